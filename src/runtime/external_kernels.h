// Kernels that are not in an artifact's own code: functions of libraries beside the runtime, and
// functions that the process registers. All are called as generated kernels are
// (core/kernel_abi.h).
#pragma once

#include <span>
#include <string>
#include <vector>

#include "runtime/core/kernel_abi.h"
#include "runtime/vm/bytecode.h"

namespace relay::runtime {

// Makes a function of the process known to programs that call it by name. For the same name the last
// registration holds, for programs that are loaded after it; null removes the name.
void register_host_kernel(const std::string& name, relay_kernel function);

// The entry points of all kernels of the program, in its order: `generated` are those of its own
// code. UserError E0619, naming kernel, library and function, for one that is not there.
std::vector<relay_kernel> with_external_kernels(const Program& program,
                                                std::span<const relay_kernel> generated);

}  // namespace relay::runtime
