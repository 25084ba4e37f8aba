// Values of constant expressions at compile time.
#pragma once

#include "codegen/target.h"
#include "passes/pass.h"

namespace relay {

// Evaluates pure functions of tensors, each compiled to one kernel in this process. Kernels are
// kept, so equal expressions on different weights are compiled once. May be copied; copies share
// the kernels.
ConstantEvaluator make_constant_evaluator(const Target& target);

}  // namespace relay
