// What LLVM knows of the machine this runs on.
#pragma once

#include "target/target.h"

namespace relay::codegen {

// The machine, with its caches and the cores that the process may use.
Target host_target();

}  // namespace relay::codegen
