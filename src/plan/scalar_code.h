// Kernels on scalars as steps.
//
// The test of a loop and the counter of a recursion are operators on rank-0 tensors. A kernel call
// for each would cost more than all the rest of the program, so a kernel that reads and writes
// scalars only, by arithmetic that registers have, becomes a few steps on them. What an operator
// computes is read off its composed kernel: no operator is named here.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lower/compose.h"
#include "plan/step_writer.h"

namespace relay::plan {

// The bits of a constant of a scalar's dtype, as an integer register holds them.
int64_t scalar_bits(const Tensor& constant);

class ScalarCode {
 public:
  // Nothing when a parameter or the result is not a scalar, when the kernel of the function computes
  // what registers have no operation for, or when it is long enough to be called.
  static std::optional<ScalarCode> of(const FunctionNode& primitive, const ComposedKernel& kernel);

  // Writes the steps for parameters in the values `inputs`; returns the result's.
  // `string` gives the number of a string of the program.
  ValueId write(StepWriter& to, std::span<const ValueId> inputs,
                const std::function<int32_t(const std::string&)>& string) const;

 private:
  friend class ScalarTranslator;

  // Computes the next value: the inputs are values 0, 1, ..., and each instruction adds one.
  struct Instruction {
    enum Kind { kConstant, kInt, kFloat, kConvert, kIndex } kind;
    uint8_t op = 0;  // IntOp, FloatOp or ScalarConversion
    int bits = 64;
    int32_t a = 0;
    int32_t b = 0;
    int64_t constant = 0;
    std::string place{};  // of kIndex, in the source
    bool used = false;
  };

  std::vector<Instruction> instructions_;
  int32_t result_ = 0;
};

}  // namespace relay::plan
