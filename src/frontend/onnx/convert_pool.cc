// Pooling: greatest elements, means and norms of windows, and maxima put back.
#include "base/codes/frontend.h"
#include "frontend/common/open_args.h"
#include "frontend/common/pool.h"
#include "frontend/onnx/converters.h"
#include "frontend/onnx/window.h"

namespace relay::frontend::onnx {
namespace {

PoolSpec pool_spec(NodeContext& ctx, const Expr& x) {
  const int64_t nd = spatial_rank(ctx, x);
  return {.window = window_of(ctx, x, positive_list(ctx, "kernel_shape", nd)),
          .ceil = ctx.attr("ceil_mode", 0) != 0,
          .count_padding = ctx.attr("count_include_pad", 0) != 0};
}

Pooled pool(NodeContext& ctx, PoolKind kind, const Expr& x) {
  if (!ctx.has_attr("kernel_shape")) {
    ctx.fail(codes::frontend_attribute, "attribute 'kernel_shape' is missing");
  }
  return pool(ctx, kind, x, pool_spec(ctx, x));
}

Values convert_pool(NodeContext& ctx) {
  Pooled p =
      pool(ctx, ctx.op_type() == "AveragePool" ? PoolKind::Average : PoolKind::Max, ctx.in(0));
  if (!ctx.output_used(1)) return {value_of(p.y)};
  const bool column_major = ctx.attr("storage_order", 0) != 0;
  return {value_of(p.y), value_of(places_of_maxima(ctx, p, PlacesIn::Tensor, column_major))};
}

// The elements at the places that MaxPool has given, zeros around them.
Values convert_max_unpool(NodeContext& ctx) {
  Expr x = ctx.in(0), places = ctx.cast(ctx.in(1), DType::Int(64));
  const int64_t nd = spatial_rank(ctx, x);
  Window w = window_of(ctx, x, positive_list(ctx, "kernel_shape", nd));
  Expr y = unpool(ctx, x, places, PlacesIn::Tensor, unpooled_shape(ctx, x, w));
  if (!ctx.has(2)) return {value_of(y)};
  // A larger shape than that is filled up at the ends.
  Expr more = ctx.sub(int_vector_of(ctx, 2, "the shape of the result", nd + 2), sizes_of(ctx, y));
  Expr none = ctx.full(0, {dim(nd + 2)}, DType::Int(64));
  return {value_of(ctx.call("dyn.pad", {y, ctx.concat({none, more}, 0), ctx.scalar_like(0, y)}))};
}

// Which norm the node takes.
double norm_of(NodeContext& ctx) {
  const int64_t p = ctx.attr("p", 2);
  if (p < 1) ctx.fail(codes::frontend_attribute, "attribute 'p' must be positive");
  return static_cast<double>(p);
}

Values convert_lp_pool(NodeContext& ctx) {
  Expr x = ctx.in(0);
  return {value_of(norm_pool(ctx, x, pool_spec(ctx, x), norm_of(ctx)))};
}

Values convert_global_pool(NodeContext& ctx) {
  Expr x = ctx.in(0);
  if (ctx.op_type() == "GlobalLpPool") return {value_of(global_norm_pool(ctx, x, norm_of(ctx)))};
  const bool average = ctx.op_type() == "GlobalAveragePool";
  return {value_of(global_pool(ctx, average ? PoolKind::Average : PoolKind::Max, x))};
}
}  // namespace

Expr pooled(NodeContext& ctx, PoolKind kind, const Expr& x) { return pool(ctx, kind, x).y; }

template <>
std::span<const ConverterRow> converter_rows<Converters::Pool>() {
  static constexpr ConverterRow rows[] = {
      {kOnnx, "AveragePool", 1, convert_pool},
      {kOnnx, "GlobalAveragePool", 1, convert_global_pool},
      {kOnnx, "GlobalLpPool", 1, convert_global_pool},
      {kOnnx, "GlobalMaxPool", 1, convert_global_pool},
      {kOnnx, "LpPool", 1, convert_lp_pool},
      {kOnnx, "MaxPool", 1, convert_pool},
      {kOnnx, "MaxUnpool", 9, convert_max_unpool},
  };
  return rows;
}

}  // namespace relay::frontend::onnx
