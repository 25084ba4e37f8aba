// What LLVM knows of the machine this runs on, and of features.
#pragma once

#include <string>
#include <string_view>

#include "target/target.h"

namespace relay::codegen {

// The machine, with its caches and the cores that the process may use.
Target host_target();

// Whether LLVM has a feature of that name for the triple's architecture.
bool is_llvm_feature(const std::string& triple, std::string_view feature);

}  // namespace relay::codegen
