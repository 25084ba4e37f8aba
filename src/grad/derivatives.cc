#include "grad/derivatives.h"

#include <algorithm>

#include "analysis/calls.h"
#include "base/codes/gradients.h"
#include "grad/call_gradient.h"
#include "grad/dataflow.h"
#include "grad/lift.h"

namespace relay {
namespace {

constexpr std::pair<std::string_view, DerivativeKind> kKinds[] = {
    {"gradient", DerivativeKind::gradient},
    {"gradient_of_first", DerivativeKind::gradient_of_first},
    {"vjp", DerivativeKind::vjp},
    {"jvp", DerivativeKind::jvp},
    {"hvp", DerivativeKind::hvp},
    {"jacobian", DerivativeKind::jacobian},
    {"hessian", DerivativeKind::hessian},
};

// The function that gives one field of what another gives.
Function field_of(const Function& f, int64_t index) {
  Bindings b;
  Expr whole = b.leaf(f->body);
  Expr body = b.in(tuple_get_item(whole, index));
  return function(f->params, body, body->type, f->type_params, {}, f->span);
}

void check_tensor(const Function& f, const Type& type, const std::string& what) {
  auto* t = as<TensorTypeNode>(type);
  bool known = t != nullptr && is_floating(type);
  for (size_t d = 0; known && d < t->shape.size(); ++d) known = !is_any(t->shape[d]);
  if (known) return;
  throw UserError(
      Diagnostic(codes::grad_function, f->span, what + " of a jacobian must be one floating tensor")
          .expected("a tensor of known or named sizes")
          .found(to_string(type)));
}

Dim elements(const Type& type) {
  Dim n = dim(1);
  for (const Dim& d : as<TensorTypeNode>(type)->shape) n = n * d;
  return n;
}

Expr shaped(const Expr& e, const std::vector<Dim>& shape) {
  return make_call("reshape", {e},
                   {{"newshape", to_value(Dims(shape.begin(), shape.end()))}, {"allowzero", true}},
                   Span{});
}

// A row of the matrix for each element of the result: a loop in which the result is weighted by one
// element after the other, and the gradients are written below each other.
Derivative jacobian(const Module& mod, const Function& f, size_t count_of_params) {
  check_tensor(f, f->body->type, "the result");
  const size_t wanted = std::min(count_of_params, f->params.size());
  for (size_t k = 0; k < wanted; ++k) check_tensor(f, f->params[k]->type, "each parameter");
  Derivative weighted = reverse_mode(mod, f, Weights::Given, wanted);
  Function rows_of = field_of(weighted.function, 1);
  std::vector<Var> all_params(rows_of->params.begin(), rows_of->params.end() - 1);
  std::vector<Var> params(all_params.begin(), all_params.begin() + static_cast<int64_t>(wanted));
  const Var& weights = rows_of->params.back();
  const Type& result = weights->type;
  auto* y = as<TensorTypeNode>(result);
  const Dim count = elements(result);
  const DType index = DType::Int(64);

  std::vector<Expr> zeros;
  std::vector<Type> matrices;
  for (const Var& p : params) {
    const DType dtype = as<TensorTypeNode>(p->type)->dtype;
    Dims shape{count, elements(p->type)};
    zeros.push_back(make_call("zeros", {},
                              {{"shape", to_value(shape)}, {"dtype", dtype.to_string()}}, f->span));
    matrices.push_back(zeros.back()->type);
  }
  // fn (i, matrices) { if (i < count) { loop(i + 1, matrices with row i) } else { matrices } }
  Type all = tuple_type(matrices);
  Var i = var("i", scalar_type(index)), done = var("rows", all),
      loop = var("loop", func_type({scalar_type(index), all}, all));
  Bindings b;
  Expr numbers = make_call("arange", {}, {{"stop", to_value(count)}, {"dtype", "int64"}}, f->span);
  Expr one_hot =
      make_call("cast", {call("equal", {numbers, i})}, {{"dtype", y->dtype.to_string()}}, f->span);
  // The parameters are those around the loop; the weights are its own.
  Expr row = let(weights, shaped(one_hot, y->shape), rows_of->body);
  Var gradients = b.bind("row", row);
  std::vector<Expr> next;
  for (size_t k = 0; k < params.size(); ++k) {
    auto at = static_cast<int64_t>(k);
    Expr line = shaped(tuple_get_item(gradients, at), {dim(1), elements(params[k]->type)});
    next.push_back(call("update_slice", {tuple_get_item(done, at), line, i}));
  }
  Expr again = b.in(
      call(loop, {call("add", {i, constant(Tensor::scalar(1, index))}), tuple(std::move(next))}));
  // Of symbolic sizes the number is that of the weights' elements.
  Expr limit = make_call(
      "ndarray_size",
      {make_call("zeros", {}, {{"shape", to_value(Dims{count})}, {"dtype", "bool"}}, f->span)},
      {{"dtype", "int64"}}, f->span);
  Function step = function({i, done}, if_(call("less", {i, limit}), again, done), all);
  Bindings outer;
  Expr found = let(loop, step, call(loop, {constant(Tensor::scalar(0, index)), tuple(zeros)}));
  Var matrix = outer.bind("jacobian", found);
  std::vector<Expr> out;
  for (size_t k = 0; k < params.size(); ++k) {
    std::vector<Dim> shape = y->shape;
    const auto& own = as<TensorTypeNode>(params[k]->type)->shape;
    shape.insert(shape.end(), own.begin(), own.end());
    out.push_back(shaped(tuple_get_item(matrix, static_cast<int64_t>(k)), shape));
  }
  Expr body = outer.in(tuple(std::move(out)));
  return {weighted.module,
          function(std::move(all_params), body, body->type, rows_of->type_params, {}, f->span)};
}

// The functions of a derivative's module may be differentiated again.
Derivative along(const Derivative& first) {
  return forward_mode(first.module, field_of(first.function, 1));
}

}  // namespace

std::string_view to_string(DerivativeKind kind) {
  for (const auto& [name, k] : kKinds) {
    if (k == kind) return name;
  }
  return "?";
}

const DerivativeKind* find_derivative(std::string_view name) {
  for (const auto& [known, kind] : kKinds) {
    if (known == name) return &kind;
  }
  return nullptr;
}

Derivative derivative(const Module& mod, const Function& f, DerivativeKind kind, size_t count) {
  switch (kind) {
    case DerivativeKind::gradient:
      return reverse_mode(mod, f, Weights::Ones, count);
    case DerivativeKind::gradient_of_first:
      return reverse_mode(mod, f, Weights::First, count);
    case DerivativeKind::vjp:
      return reverse_mode(mod, f, Weights::Given, count);
    case DerivativeKind::jvp:
      return forward_mode(mod, f);
    case DerivativeKind::hvp: {
      Derivative second = along(reverse_mode(mod, f, Weights::Ones, count));
      return {second.module, field_of(second.function, 1)};
    }
    case DerivativeKind::jacobian:
      return jacobian(mod, f, count);
    case DerivativeKind::hessian: {
      if (std::min(count, f->params.size()) != 1) {
        throw UserError(Diagnostic(codes::grad_function, f->span,
                                   "a hessian is that of a function of one tensor")
                            .expected("1 parameter")
                            .found(std::to_string(std::min(count, f->params.size())))
                            .help("join the parameters into one tensor, or use hvp"));
      }
      Derivative first = reverse_mode(mod, f, Weights::Ones, 1);
      return jacobian(first.module, field_of(field_of(first.function, 1), 0), 1);
    }
  }
  RELAY_CHECK(false, "a kind of derivative");
}

}  // namespace relay
