// Operators applied to tensors: the compute rule at the shapes that are there, interpreted.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "eval/eval_kernel.h"
#include "ir/expr.h"
#include "runtime/core/denormals.h"
#include "runtime/core/value.h"
#include "tir/interpret.h"

namespace relay {

struct OpCallOptions {
  // Floats are computed as float64 and rounded when they are stored.
  bool wide_floats = false;
  runtime::Denormals denormals = runtime::Denormals::flush;
  // Not asked for wide floats.
  EvalKernelCompiler compile_kernel;
  // Asked for the memory of results before they are made; may throw.
  std::function<void(int64_t bytes)> reserve;
};

// Applies operators; keeps the kernel of each operator, attributes and argument shapes.
class OpCaller {
 public:
  explicit OpCaller(OpCallOptions options) : options_(std::move(options)) {}

  // The operator's result on tensors and (nested) tuples of them; null `attrs` are the defaults.
  // Throws RuntimeError: what the type relation says when shapes do not fit (E02xx), E0401 for an
  // operator that cannot be evaluated, E0605 when the kernel finds an index out of range, say.
  runtime::Value call(const OpNode& op, const Attrs& attrs, std::span<const runtime::Value> args,
                      const Span& span);

 private:
  struct Kernel {
    const OpNode* op;
    Attrs attrs;
    std::vector<int64_t>
        signature;  // of the arguments, and of the result where its sizes are data-dependent
    // A kernel for the sizes of the result, which are data-dependent.
    bool gives_sizes = false;
    Type result;
    // The tensors of the result, as numbers.
    std::vector<std::pair<DType, std::vector<int64_t>>> outputs;
    std::shared_ptr<EvalKernel> compiled;  // null: interpreted
    std::optional<tir::KernelInterpreter> interpreter;
  };
  // `sizes` are those of the result's tensors, one after the other, once they are known.
  std::shared_ptr<Kernel> find(const OpNode& op, const Attrs& attrs,
                               std::span<const runtime::Value> args, const Span& span,
                               const std::vector<int64_t>* sizes = nullptr);
  // The result's tensors. RuntimeError E0605 when a Check fails.
  std::vector<Tensor> run(Kernel& kernel, const std::vector<Tensor>& inputs, const Span& span);

  OpCallOptions options_;
  std::unordered_map<uint64_t, std::vector<std::shared_ptr<Kernel>>> kernels_;
  size_t num_kernels_ = 0;
};

}  // namespace relay
