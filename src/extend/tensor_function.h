// Tensor functions that are given as text: loops, buffers and conditions that become a kernel.
//
//   TensorFunction f = TensorFunction::read("mylib.row_sums", R"(
//   def row_sums(x: float32[n, m]) -> (sums: float32[n]):
//     for i in range(n):
//       sums[i] = 0f
//       for j in range(m):
//         sums[i] = sums[i] + x[i, j]
//   )");
//
// The language is that of tir/text.h without blocks and vectors: `for` over range and parallel, `if`, `else`, `let`,
// `allocate`, `check`, `pass`, and assignments to elements. Sizes are named by the parameters. Both sides of an operator
// have one dtype; int64 is that of plain integers, float32 has an f, and `float16(2f)` converts.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "ir/type.h"
#include "tir/compute.h"

namespace relay::extend {

class TensorFunction {
 public:
  // Throws UserError E1306, with the place in the text.
  static TensorFunction read(const std::string& what, const std::string& text);

  size_t num_inputs() const;
  // The type of the result for types of arguments. Throws UserError E0912 where they do not fit the parameters.
  Type relation(const std::vector<Type>& args, const Span& call) const;
  // The tensors that it writes from these. An index that may be outside of its buffer is checked when it runs.
  std::vector<tir::Tensor> compute(const std::vector<tir::Tensor>& inputs) const;

 private:
  struct Text;
  explicit TensorFunction(std::shared_ptr<const Text> text) : text_(std::move(text)) {}
  std::shared_ptr<const Text> text_;
};

}  // namespace relay::extend
