// LLVM as a backend: every architecture that has a file of its own here.
#pragma once

#include "codegen/backend.h"

namespace relay::codegen {

const Backend& llvm_backend();

}  // namespace relay::codegen
