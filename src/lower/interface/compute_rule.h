// The compute column of an operator: what it computes, as tensor expressions.
//
// The evaluator interprets the rule and the compiler schedules it; the maths is written once.
#pragma once

#include <functional>
#include <memory>
#include <unordered_map>
#include <vector>

#include "ir/op.h"
#include "tir/compute.h"

namespace relay {

// What a rule is given. Tuple arguments are flattened: `inputs` holds every tensor in order.
// Shapes are those of the checked types, so a rule may rely on the relation having held.
struct ComputeContext {
  Attrs attrs_ref;
  std::vector<tir::Tensor> inputs;
  // The result's tensors, tuples flattened, with shapes as tensor-IR expressions. Inputs and outputs
  // have the dtypes that kernels see: elements of narrow types are the bytes that they are stored in.
  struct Output {
    std::vector<tir::PrimExpr> shape;
    runtime::DType dtype;
  };
  std::vector<Output> outputs;
  // The arguments' Relay types (not flattened) and the result's, for rules that need more.
  std::vector<Type> arg_types;
  Type out_type;
  // What the operator's column says of the call; empty where it is no contraction.
  std::optional<Contraction> contraction;
  // A size among the attributes as an expression: a number, or over the kernel's own names.
  std::function<tir::PrimExpr(const Dim&)> size;

  template <class A>
  const A& attrs() const {
    return *static_cast<const A*>(attrs_ref.get());
  }
};

// Gives one tensor for each output, in order.
struct ComputeRule {
  std::function<std::vector<tir::Tensor>(const ComputeContext&)> build;
  // For an operator whose result has data-dependent sizes (`?` in its type): these sizes,
  // computed from the same inputs, as one int64 vector for each output. The context has no output
  // shapes yet; `build` then gets them as numbers or as names. The evaluator interprets this rule
  // and the compiler makes a kernel of it, like any other.
  std::function<std::vector<tir::Tensor>(const ComputeContext&)> shape;
};

// For rules with one result.
std::shared_ptr<const ComputeRule> compute_rule(
    std::function<tir::Tensor(const ComputeContext&)> build);
std::shared_ptr<const ComputeRule> compute_rule_multi(
    std::function<std::vector<tir::Tensor>(const ComputeContext&)> build);

// For rules with one result of data-dependent sizes: `shape` gives a vector of them.
std::shared_ptr<const ComputeRule> compute_rule_with_shape(
    std::function<tir::Tensor(const ComputeContext&)> shape,
    std::function<tir::Tensor(const ComputeContext&)> build);
// Whether the sizes of the operator's result are data-dependent.
bool data_decides_shape(const OpInfo& op);

// Runs the rule of a call: placeholders for its arguments are `inputs` (flattened). Named dimensions,
// and what they broadcast to where only a run can tell, become variables, made on first sight.
class DimScope {
 public:
  // From here on the two sizes are written alike.
  void make_equal(const Dim& a, const Dim& b);
  tir::PrimExpr lower(const Dim& d);
  std::vector<tir::PrimExpr> lower(const std::vector<Dim>& shape);
  // The variables, each with the size that it stands for.
  const std::vector<std::pair<Dim, tir::Var>>& dims() const { return dims_; }

 private:
  Dim known(const Dim& d) const;

  std::vector<std::pair<Dim, tir::Var>> dims_;
  std::unordered_map<const Node*, NodeRef> names_;  // what a name is written as
  std::vector<std::pair<Dim, Dim>> expressions_;    // the same for other sizes
};
// Throws UserError E0401 when the operator has no compute rule or a dimension is `?`.
std::vector<tir::Tensor> compute_call(const CallNode& call, const std::vector<tir::Tensor>& inputs,
                                      DimScope& dims);
// Runs the rule for the sizes of a call's result; only for an operator with a data-dependent result.
std::vector<tir::Tensor> compute_call_shapes(const CallNode& call,
                                             const std::vector<tir::Tensor>& inputs,
                                             DimScope& dims);

}  // namespace relay
