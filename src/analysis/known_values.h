// What the elements of small tensors are, before a program runs: sizes and what is computed from
// them, masks, lists of axes and pads.
//
//   fn [n: Dim] (%x: Tensor[(n, 768), float32]) {
//     let %s = shape_of(%x, dtype="int64");              [n, 768]
//     let %b = take(%s, 0i64, axis=0);                   n
//     stack((%b, 12i64, 64i64), axis=0)                  [n, 12, 64]
//   }
//
// Constants and sizes are propagated through operators that move elements (reshape, transpose,
// take, concatenate, stack, strided_slice, split, tile, ...), combine them (arithmetic, tests,
// where, reductions, cast), make tensors (full, zeros, arange, ...), and through Let and tuples. An
// evaluator, where one is given, computes what else is applied to numbers alone.
//
// The answer is sound: an element that is known has that value in every run in which the program
// gets there, sizes being 0 or more. Operators on more than kMaxKnownElements elements say nothing.
// Each expression is looked at once, with an explicit stack; all answers together hold at most
// about a million elements.
#pragma once

#include <memory>

#include "analysis/evaluate_constants.h"
#include "analysis/known_value.h"
#include "ir/expr.h"
#include "node/node_map.h"

namespace relay {

class KnownValues {
 public:
  KnownValues() = default;
  explicit KnownValues(ConstantEvaluator evaluate) : evaluate_(std::move(evaluate)) {}

  // Lets variables that Lets in the program bind stand for their values.
  void bind(const NodeRef& program);
  // Lets a variable stand for a value: a weight that is a parameter.
  void assume(const Var& v, KnownValue value);

  // The elements; null when none is known. Holds while the instance lives.
  const KnownValue* of(const Expr& e);

 private:
  using Value = std::shared_ptr<const KnownValue>;

  // The expression whose value the expression has: behind variables, Lets and projections; null
  // when that is a part of a part of a result.
  Expr source(const Expr& e) const;
  // The operands whose elements its own follow from.
  std::vector<Expr> operands(const Expr& e) const;
  Value evaluate(const Expr& e, const std::vector<Expr>& operands);
  Value compute(const CallNode& c, const std::vector<Expr>& operands) const;
  const Value* find(const Expr& e) const { return values_.find(e.get()); }
  void set(const Expr& e, Value value);

  ConstantEvaluator evaluate_;
  NodeMap<Value> values_;
  NodeMap<Expr> bound_;
  std::vector<Expr> keep_;  // keeps the keys alive
  int64_t elements_ = 0;
};

}  // namespace relay
