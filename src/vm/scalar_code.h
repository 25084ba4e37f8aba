// Kernels on scalars as instructions.
//
// The test of a loop and the counter of a recursion are operators on rank-0 tensors. A kernel call
// for each would cost more than all the rest of the program, so a kernel that reads and writes
// scalars only, by arithmetic that the machine has, becomes a few instructions on integer
// registers. What an operator computes is read off its composed kernel: no operator is named here.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "lower/compose.h"
#include "runtime/vm/bytecode.h"

namespace relay::vm {

// The dtype of a type whose values can be in an integer register: a rank-0 tensor's.
std::optional<DType> scalar_dtype(const Type& t);

// The bits of a constant of such a type, as an integer register holds them.
int64_t scalar_bits(const Tensor& constant);

class ScalarCode {
 public:
  // Nothing when a parameter or the result is no scalar, when the function computes what the
  // machine has no instruction for, or when it is long enough for a kernel.
  static std::optional<ScalarCode> of(const FunctionNode& primitive, const ComposedKernel& kernel);

  // Writes the instructions for parameters in the registers `inputs` and returns the register of
  // the result.
  int32_t emit(runtime::FunctionBuilder& b, std::span<const int32_t> inputs) const;

 private:
  friend class ScalarTranslator;

  // Computes the next value: the inputs are values 0, 1, ..., and each step adds one.
  struct Step {
    enum Kind { kConstant, kInt, kFloat, kConvert } kind;
    uint8_t op = 0;  // IntOp, FloatOp or ScalarConversion
    int bits = 64;
    int32_t a = 0;
    int32_t b = 0;
    int64_t constant = 0;
  };

  std::vector<Step> steps_;
  int32_t result_ = 0;
};

}  // namespace relay::vm
