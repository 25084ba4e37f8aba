// Gradients of plain dataflow: calls of operators, tuples and their fields, shared as they are.
//
// Reverse accumulation over the graph ("adjoints"): from the results to what they are computed from,
// each expression once, adding up what its uses say. The values of the forward computation are
// shared, not computed again; where nothing arrives there is no adjoint, not one of zeros.
#pragma once

#include <vector>

#include "ir/module.h"

namespace relay {

// An expression of tensors and tuples of them, with the adjoint of each of its tensors, tuples
// flattened; null stands for zero.
struct Seed {
  Expr value;
  std::vector<Expr> adjoints;
};

// The adjoints of the tensors of each expression of `wrt` from those of `results`. What is not
// between the two may be anything. Throws UserError as `call_gradient` does, and E1007, at its place,
// for an expression in between that is no dataflow. Iterative; linear.
std::vector<std::vector<Expr>> dataflow_gradient(const std::vector<Seed>& results,
                                                 const std::vector<Expr>& wrt);

// How the result of an operator call changes with its arguments (forward mode): of each tensor of
// the result, tuples flattened, the tangent, from those of the tensors of the arguments; null stands
// for zero. The gradient of an operator is linear in the adjoint of its result, and this is the
// transpose of that linear function, which is its gradient again. `result` is the call's value; it
// and the arguments are leaves, or tuples of leaves.
std::vector<Expr> call_tangent(const CallNode& call, const Expr& result,
                               const std::vector<Expr>& tangents);

// A function with variables and type parameters of its own.
Function fresh_copy(const Function& f);

// A gradient as a value: of a tensor of floats its adjoint, or zeros where that is null; of another
// tensor the empty tuple; of a tuple the tuple of its fields'. Takes the adjoints from `next` on.
Expr gradient_value(const Expr& value, const std::vector<Expr>& adjoints, size_t& next);
// The tensors of a value, tuples flattened.
std::vector<Expr> tensors_of(const Expr& value);
// Tensors of the type of another.
Expr ones_of(const Expr& e);
Expr zeros_of(const Expr& e);
// Ones as the adjoint of each floating tensor, null for others.
std::vector<Expr> unit_adjoints(const Expr& value);

// fn (args) { (f(args), (the gradient of each argument)) }: the gradient of the sum of all floats of
// the result. Throws UserError E1001 when the result holds no floats, E1007 when the function is not
// plain dataflow.
Function first_order_gradient(const Function& f);

// Throws UserError E1001 when nothing in the result of the function is a float, E1007 when a type in
// it is nested so deep that a walk over it would not end well: what walks over types recurses.
void check_differentiable(const Function& f);

}  // namespace relay
