// What a single operator makes of known elements: the types of the row's columns `known` and `moves` (ir/op_facts.h), and the
// rules that rows name.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "analysis/known_value.h"
#include "ir/expr.h"

namespace relay {

// An operand of an operator's call; the fields of a tuple are operands of their own.
struct KnownOperand {
  const TensorTypeNode* type;
  // Its sizes; nullopt where one is not a number.
  std::optional<std::vector<int64_t>> shape;
  // Null where nothing is known.
  const KnownValue* value;
};

struct KnownCall {
  const CallNode& call;
  std::vector<KnownOperand> operands;
  // Of the result, or of that part of a result that is a tuple.
  const TensorTypeNode& type;
  std::vector<int64_t> shape;
  int64_t part = 0;
};

struct KnownRule {
  // The elements of the result; nullopt when none follows.
  std::function<std::optional<KnownValue>(const KnownCall& c)> elements;
  // Whether the elements of operands matter, not only their types.
  bool reads_elements = true;
};

// How the elements of a call follow from those of its operands: by its row, or since it only moves elements. Null where
// nothing is said.
std::shared_ptr<const KnownRule> known_rule(const CallNode& call);

// An operator on one element; null functions where only the operator itself can say.
struct UnaryElement {
  Dim (*ints)(const Dim& x, runtime::DType dtype);
  double (*floats)(double x) = nullptr;
};

// For rows.
namespace known_rules {

using Rule = std::shared_ptr<const KnownRule>;

// One number everywhere.
Rule filled(double value);
// The element of operand `value` everywhere.
Rule filled_with(size_t value);
// Those of an operator without arguments that counts from `start` by `step`.
Rule arange();
// The sizes of the first operand, and their product.
Rule shape_of();
Rule num_elements();
Rule cast();
Rule unary(const UnaryElement& element);
// Of two operands that broadcast.
Rule binary(const BinaryElement& element);
// Over the axes that the attributes `axis` and `exclude` name.
Rule reduction(const BinaryElement& element);

}  // namespace known_rules

// What operators do to an integer or a float.
namespace unary_elements {

extern const UnaryElement logical_not, negative, abs, floor, ceil, trunc, sqrt;

}  // namespace unary_elements

}  // namespace relay
