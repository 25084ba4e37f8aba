#include "ops/gradient.h"

#include <algorithm>

#include "base/codes/gradients.h"

namespace relay::ops {

Expr iota(const Dim& size) {
  return apply("arange", {}, {{"stop", to_value(size)}, {"dtype", "int64"}});
}
Expr numbered(const Expr& e) {
  const std::vector<Dim>& shape = type_of(e).shape;
  if (!std::ranges::any_of(shape, is_any)) {
    Dim count = dim(1);
    for (const Dim& d : shape) count = count * d;
    return reshape_to(iota(count), shape);
  }
  Expr ones = cast_to(apply("ones_like", {e}), DType::Int(64));
  return apply("reshape_like", {apply("cumsum", {ones}, {{"exclusive", true}}), e});
}

Expr scattered(const Expr& g, const Expr& places, const Expr& like) {
  auto flat = [](const Expr& e) {
    return apply("reshape", {e}, {{"newshape", to_value(Ints{-1})}});
  };
  Expr zeros = flat(cast_to(zeros_like(like), type_of(g).dtype));
  Expr sums = apply("scatter_elements", {zeros, flat(places), flat(g)},
                    {{"axis", int64_t{0}}, {"reduction", "add"}});
  return reshape_like(sums, like);
}

Adjoints moved(const GradientContext& ctx) {
  std::vector<Expr> args = ctx.call.args;
  // Of a tuple, its first tensor.
  bool listed = isa<TupleTypeNode>(args[0]->type);
  std::vector<Expr> fields;
  if (listed) {
    auto* types = as<TupleTypeNode>(args[0]->type);
    for (size_t i = 0; i < types->fields.size(); ++i)
      fields.push_back(tuple_get_item(args[0], static_cast<int64_t>(i)));
  }
  Expr data = listed ? fields[0] : args[0];
  if (listed) {
    fields[0] = numbered(data);
    args[0] = tuple(fields);
  } else {
    args[0] = numbered(data);
  }
  Expr places = call(ctx.call.op, std::move(args), ctx.call.attrs, ctx.call.span);
  return {scattered(ctx.adjoint(), places, data)};
}

Expr identity_matrix(const Dim& size, const Expr& like) {
  Expr i = iota(size);
  return indicator(is_equal(apply("expand_dims", {i}, {{"axis", int64_t{1}}}), i), like);
}

Expr along_axis(const Expr& g, int64_t axis, const Expr& matrix) {
  int64_t last = rank_of(g) - 1;
  return move_axis(apply("nn.dense", {move_axis(g, axis, last), matrix}), last, axis);
}

Adjoints no_change(const GradientContext&) { return {}; }

void no_gradient(const GradientContext& ctx, const std::string& why, const std::string& help) {
  throw UserError(Diagnostic(codes::grad_attributes, ctx.call.span,
                             as<OpNode>(ctx.call.op)->name + " has no gradient here: " + why)
                      .found(attr_values(ctx.call.attrs).empty() ? "" : to_string(ctx.call.type))
                      .help(help));
}

}  // namespace relay::ops
