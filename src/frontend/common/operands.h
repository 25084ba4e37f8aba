// One operator of a model with its inputs, as expressions or as what is known of their elements.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "frontend/common/builder.h"

namespace relay::frontend {

class Operands : public Builder {
 public:
  // Null for an input that is left out.
  Operands(ProgramBuilder& program, std::string what, Values inputs, Span span)
      : Builder(program, std::move(what), std::move(span)), inputs_(std::move(inputs)) {}

  size_t num_inputs() const { return inputs_.size(); }
  bool has(size_t i) const { return i < inputs_.size() && inputs_[i] != nullptr; }
  // E0507 for an input that is left out.
  const ValuePtr& value(size_t i) const;
  // Null for an input that is left out.
  ValuePtr given(size_t i) const { return has(i) ? inputs_[i] : nullptr; }
  Expr in(size_t i) const { return tensor_of(value(i)); }
  // Null for an input that is left out.
  Expr in_if_given(size_t i) const { return has(i) ? in(i) : nullptr; }
  // All inputs as expressions.
  std::vector<Expr> all() const;
  // What is known about an input's elements.
  std::optional<KnownValue> known(size_t i) const;
  // The same when the operator cannot do without: E0505 otherwise. `what` is "the shape".
  KnownValue must_know(size_t i, const char* what) const;
  std::vector<int64_t> const_ints(size_t i, const char* what) const;
  int64_t const_int(size_t i, const char* what) const;
  // The one number of an input; nullopt where it has more, or where it is not known.
  std::optional<double> const_scalar(size_t i) const;
  // The data of a constant input, or null.
  Tensor constant_data(size_t i) const { return Builder::constant_data(given(i)); }
  // The matrix product with an input on the right; a constant matrix becomes the weight of nn.dense.
  Expr matmul_input(Expr a, size_t b) const;

 private:
  Values inputs_;
};

}  // namespace relay::frontend
