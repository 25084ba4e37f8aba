// What single operators make of elements that are known: the table behind KnownValues.
#pragma once

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
  std::optional<KnownValue> (*elements)(const KnownCall& c);
  // Whether the elements of operands matter, not only their types.
  bool reads_elements = true;
};

// Null for operators about which nothing is said.
const KnownRule* known_rule(const CallNode& call);

}  // namespace relay
