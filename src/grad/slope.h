// What an operator does to adjoints, as far as it can be told without their numbers.
#pragma once

#include <vector>

#include "ir/expr.h"

namespace relay {

struct Slope {
  // A variable for the adjoint of each tensor of the result; null where none comes, or no floats.
  std::vector<Expr> adjoints = {};
  // What they make of the adjoint of each operand, tuples flattened; null: nothing. Empty: the operator
  // has no gradient.
  std::vector<Expr> of_args = {};
  // Which of these depend on the values of operands or result, and not only on their sizes: on numbers
  // that may be infinite or NaN.
  std::vector<bool> reads = {};
};

// `operands` are the call's arguments, tuples flattened; `reached` says to which tensors of the result
// an adjoint comes, to one of floats at least.
Slope slope(const CallNode& c, const Var& result, const std::vector<Expr>& operands,
            const std::vector<bool>& reached);

// Element i of the result depends on element i of the only argument.
bool one_to_one(const CallNode& c);
// Element i of the result depends on what broadcasts to it.
bool by_element(const CallNode& c);
// Adjoints are moved, or added up.
bool is_move(const CallNode& c, const Slope& s);
// Of a move: whether the adjoints of several elements may come to one. They do not where elements
// are added up or renamed.
bool adds_adjoints(const CallNode& c);

}  // namespace relay
