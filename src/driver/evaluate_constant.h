// Values of constant expressions at compile time.
#pragma once

#include <memory>

#include "codegen/kernel_cache.h"
#include "passes/pass.h"
#include "runtime/core/denormals.h"

namespace relay {

// Evaluates pure functions of tensors, each as one kernel: interpreted when there is little to
// compute, else compiled in this process, for least_target(): the bits of a constant depend neither on the machine that
// compiles nor on the program's target. Kernels are kept, so equal expressions on different weights are compiled once,
// and their code is in `on_disk` (may be null) for the next time. May be copied; copies share the kernels.
// `denormals`: as in the runs of the program that they are constants of.
ConstantEvaluator make_constant_evaluator(std::shared_ptr<KernelCache> on_disk = nullptr,
                                          runtime::Denormals denormals = runtime::Denormals::flush);

}  // namespace relay
