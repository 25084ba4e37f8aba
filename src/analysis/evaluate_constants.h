// The values of constant expressions, computed a piece at a time.
#pragma once

#include <functional>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "ir/module.h"

namespace relay {

// Computes a function without free variables on constants; the driver gives a fast one.
using ConstantEvaluator =
    std::function<std::vector<Tensor>(const Function& f, const std::vector<Tensor>& args)>;

// An expression as a function of the constants in it, so that the same operators on other constants are one function and
// compiled once.
class ConstantFunction {
 public:
  // What stands for a constant: a parameter, the same for the same node.
  Var param(const Constant& c);
  // Evaluates `root` with `by` in place of each node; the constants are replaced too. nullopt when the run would fail:
  // it then fails at the same place, if it gets there.
  std::optional<std::vector<Tensor>> evaluate(
      const Expr& root, const ConstantEvaluator& evaluate,
      std::unordered_map<const Node*, NodeRef> by = {}) const;
  const std::vector<Tensor>& arguments() const { return arguments_; }

 private:
  std::unordered_map<const Node*, Var> param_of_;
  std::vector<Var> params_;
  std::vector<Tensor> arguments_;
};

// The bytes of a type of static tensors; nullopt when unknown or absurd.
std::optional<int64_t> bytes_of(const Type& type);

// Whether a value is so much larger than what it is made of that it is computed where it is used (zeros, broadcast_to).
bool grows_too_much(int64_t bytes, int64_t arg_bytes);

// For the expressions of `f` that are in `constant` (pure operator calls on constants, projections
// and tuples of them, all operands in it too) and used by something that is not: what to put in
// their place. What cannot be computed is absent: the run fails there, if it gets there.
//
// Each expression is computed once. A small or shared one has a value of its own, so that equal
// operators are one kernel however long the program is; a chain of large ones is one kernel for up
// to 16 calls, so that not all of them are in memory. A value is let go after its last use.
std::unordered_map<const Node*, NodeRef> evaluate_constants(
    const Function& f, const std::unordered_set<const Node*>& constant,
    const ConstantEvaluator& evaluate);

}  // namespace relay
