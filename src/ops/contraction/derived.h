// What follows from the column `contraction` of an operator's row: a row that states a sum of products, and says nothing in
// these columns, is complete.
//
//   OpRegistry::global().add(contraction_row({
//       .name = "mylib.grouped_dense", .doc = .., .args = {{"data", ".."}, {"weight", ".."}},
//       .relation = .., .contraction = .., .examples = .., .expected = Absent::ByNumPy}));
//
//   compute     the sum over the reduced dimensions and windows of the product of the operands' elements; the contraction rule schedules it
//   cost        its multiplications and additions
//   gradient    of operands without windows: the adjoint and the other operands, in index notation
//   quantized   of two operands without windows: products of matrices of bytes
// Batching reads the column itself (grad/batch_call.h).
#pragma once

#include "ir/op.h"
#include "lower/interface/compute_rule.h"

namespace relay::ops {

// The sum that the contraction of a call states, with zeros where a window reaches over an end. The result has no windows and
// no blocks.
std::shared_ptr<const ComputeRule> contraction_rule(const std::string& name);

// E1003 for windows and blocks.
std::vector<Expr> contraction_gradient(const GradientContext& ctx);

// The row with the columns above, where it says nothing in them.
OpInfo contraction_row(OpInfo row);

}  // namespace relay::ops
