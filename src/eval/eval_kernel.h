// Kernels of the evaluator that something else than the interpreter runs.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "runtime/core/tensor.h"
#include "tir/stmt.h"

namespace relay {

class EvalKernel {
 public:
  virtual ~EvalKernel() = default;
  // As tir::KernelInterpreter::run.
  virtual int64_t run(const std::vector<runtime::Tensor>& buffers) = 0;
};

// Gets a kernel of blocks as its compute rule makes them, for static sizes. Null: the kernel is interpreted.
using EvalKernelCompiler = std::function<std::shared_ptr<EvalKernel>(const tir::PrimFunc& kernel)>;

}  // namespace relay
