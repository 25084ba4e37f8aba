// One operator of complex values, written as operators of their parts.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "frontend/torch/schema.h"

namespace relay::frontend::torch {

// ScalarTypes; half, float and double follow each other in this order.
inline constexpr int64_t kHalf = 6, kDouble = 8, kBool = 12;

// A real tensor of the graph that is written.
struct RealValue {
  std::string name;
  TensorMeta meta;
};
// A number without an imaginary part is real.
struct ComplexValue {
  RealValue re;
  std::optional<RealValue> im;
};
using ComplexValues = std::unordered_map<std::string, ComplexValue>;
using NamedArguments = std::vector<std::pair<std::string, Argument>>;

// Why an operator cannot be written.
struct Unwritable {
  std::string reason;
};

Argument argument_of(std::string value);
Argument argument_of(const RealValue& value);
Argument argument_of(int64_t number);
Argument argument_of(const std::vector<RealValue>& list);

class ComplexWriter {
 public:
  // `values` are the complex values of the graph `from` so far.
  ComplexWriter(const Graph& from, Graph& to, const ComplexValues& values, const Node& node);

  const Node& node() const { return node_; }
  const Argument* find(std::string_view name) const;
  // A complex or a real tensor, or a number, in the type of the parts. Unwritable for anything else.
  ComplexValue operand(std::string_view name);

  // What the graph says of the first result; of the parts where it is complex.
  TensorMeta result() const;
  // A node of the graph that is written, with a stack trace like the operator's.
  std::vector<RealValue> emit_all(std::string_view target, NamedArguments arguments,
                                  const std::vector<TensorMeta>& results);
  RealValue emit(std::string_view target, NamedArguments arguments, const TensorMeta& result);
  // An operator of "self" that keeps sizes and type.
  RealValue unary(std::string_view target, const RealValue& x);
  // An operator of "self" and "other" with broadcasting; `type` is that of the result where it is another.
  RealValue binary(std::string_view target, const RealValue& a, const RealValue& b,
                   std::optional<int64_t> type = std::nullopt);
  RealValue add(const RealValue& a, const RealValue& b) { return binary("aten.add.Tensor", a, b); }
  RealValue sub(const RealValue& a, const RealValue& b) { return binary("aten.sub.Tensor", a, b); }
  RealValue mul(const RealValue& a, const RealValue& b) { return binary("aten.mul.Tensor", a, b); }
  RealValue div(const RealValue& a, const RealValue& b) { return binary("aten.div.Tensor", a, b); }
  RealValue where(const RealValue& condition, const RealValue& a, const RealValue& b);
  // A scalar in the type of the parts.
  RealValue number(double value);
  RealValue zeros_like(const RealValue& x);
  // The parts as one tensor with a last axis of size 2; a name that is empty becomes a new one.
  RealValue joined(const ComplexValue& z, std::string name = {});

 private:
  RealValue in_part_type(const RealValue& x);
  std::string fresh_name();

  const Graph& from_;
  Graph& to_;
  const ComplexValues& values_;
  const Node& node_;
  // The ScalarType of the parts: those of the result or, where that is real, of the widest operand with axes, else of the
  // first complex operand.
  int64_t part_type_ = 0;
  int fresh_ = 0;
};

// How an operator becomes operators of the parts.
struct ComplexRow {
  std::string_view target;
  ComplexValue (*write)(ComplexWriter& w);
  // PyTorch's result is a view of the operand, this one is a copy: a later write into either is refused.
  bool copies_view = false;
};
// Null for an operator without a formula of its own.
const ComplexRow* complex_row(std::string_view target);
// Whether the parts of the result are the operator of the parts of the operands.
bool acts_on_parts(std::string_view target);

}  // namespace relay::frontend::torch
