#include "grad/call_gradient.h"

#include "analysis/calls.h"
#include "base/codes/gradients.h"
#include "ir/op.h"
#include "node/walk.h"

namespace relay {
namespace {

// A gradient of the type of its tensor: where sizes are known to be equal only when the program
// runs, it says so.
Expr of_type(const Expr& gradient, const TensorType& wanted, const OpInfo& row) {
  const TensorTypeNode* given = tensor_of(gradient);
  RELAY_CHECK(given != nullptr && given->rank() == wanted->rank() && given->dtype == wanted->dtype,
              "the gradient of " + row.name + " has another type than its argument");
  if (same_shape(gradient->type, Type(wanted))) return gradient;
  bool open = false;
  for (const Dim& d : wanted->shape) open |= is_any(d);
  if (open) return gradient;
  AttrValue shape = to_value(Dims(wanted->shape.begin(), wanted->shape.end()));
  return make_call("reshape", {gradient}, {{"newshape", shape}, {"allowzero", true}}, Span{});
}

}  // namespace

bool is_floating(const Type& type) {
  auto* t = as<TensorTypeNode>(type);
  return t != nullptr && (t->dtype_var || t->dtype.is_floating());
}

bool has_floats(const Type& type) {
  bool found = false;
  post_order(
      type,
      [&](const Node& n) {
        auto* t = as<TensorTypeNode>(&n);
        if (t != nullptr) found |= is_floating(Type(t));
      },
      family::type);
  return found;
}

std::vector<Expr> call_gradient(const CallNode& call, const Expr& result,
                                std::vector<Expr> adjoints) {
  const OpInfo& row = *as<OpNode>(call.op)->row;
  if (row.effect.get() == Effect::Random) {
    throw UserError(Diagnostic(codes::grad_random, call.span,
                               row.name +
                                   " draws other numbers each time: its gradient is that of no "
                                   "function")
                        .help("draw from a key: random.uniform, random.normal"));
  }
  if (!row.gradient) {
    throw UserError(
        Diagnostic(codes::grad_operator, call.span, row.name + " has no gradient")
            .expected("operators with a gradient between the arguments and the result")
            .found(std::string(to_string(row.gradient.reason())))
            .help("stop_gradient(...) around it says that its result is taken for a constant"));
  }
  BuildAt place(call.span);
  std::vector<Expr> out = row.gradient(GradientContext{call, result, std::move(adjoints)});
  std::vector<TensorType> tensors;
  for (const Expr& arg : call.args) {
    auto more = flatten_tensor_types(arg->type);
    RELAY_CHECK(more.has_value(), "an operator takes tensors and tuples of them");
    tensors.insert(tensors.end(), more->begin(), more->end());
  }
  RELAY_CHECK(out.size() <= tensors.size(), row.name);
  out.resize(tensors.size());
  for (size_t i = 0; i < out.size(); ++i) {
    if (!is_floating(tensors[i])) out[i] = nullptr;
    if (out[i]) out[i] = of_type(out[i], tensors[i], row);
  }
  return out;
}

}  // namespace relay
