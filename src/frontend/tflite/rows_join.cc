// Tensors joined and taken apart.
#include "base/codes/frontend.h"
#include "frontend/tflite/node_context.h"
#include "frontend/tflite/quantized.h"

namespace relay::frontend::tflite {
namespace {

Values concatenation(NodeContext& ctx) {
  const auto& o = ctx.options<schema::Concatenation>();
  std::vector<Expr> parts = ctx.all();
  const int64_t axis = ctx.axis(o.axis(), Builder::rank_of(parts[0]));
  if (ctx.is_quantized()) {
    for (size_t i = 0; i < parts.size(); ++i) parts[i] = joined_part(ctx, i);
    return one(ctx.concat(std::move(parts), axis));
  }
  return one(ctx.activated(ctx.concat(std::move(parts), axis), o.activation()));
}

Values pack(NodeContext& ctx) {
  std::vector<Expr> parts = ctx.all();
  const int64_t axis = ctx.axis(ctx.options<schema::Pack>().axis(), Builder::rank_of(parts[0]) + 1);
  return one(ctx.call("stack", {ctx.tuple_of(std::move(parts))}, {{"axis", axis}}));
}

Values unpack(NodeContext& ctx) {
  Expr x = ctx.in(0);
  const int64_t axis = ctx.axis(ctx.options<schema::Pack>().axis(), Builder::rank_of(x));
  const auto count = static_cast<int64_t>(ctx.num_outputs());
  if (const auto size = as_const(Builder::shape_of(x)[static_cast<size_t>(axis)]);
      size && *size != count) {
    ctx.fail(codes::frontend_graph, "the outputs are not as many as the parts",
             std::to_string(*size), std::to_string(count));
  }
  std::vector<Expr> parts;
  for (int64_t i = 0; i < count; ++i) parts.push_back(ctx.select(x, axis, i));
  return values_of(parts);
}

}  // namespace

template <>
std::span<const Row> rows<Family::Join>() {
  using O = schema::Options;
  static constexpr Row kRows[] = {
      {"CONCATENATION", concatenation, O::concatenation},
      {"PACK", pack, O::pack},
      {"UNPACK", unpack, O::unpack},
  };
  return kRows;
}

}  // namespace relay::frontend::tflite
