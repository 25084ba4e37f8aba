// Random numbers. Each node has a stream of its own, so every run of a program draws the same numbers.
#include <onnx/onnx-ml.pb.h>

#include <bit>

#include "base/codes/frontend.h"
#include "base/codes/types.h"
#include "frontend/common/open_args.h"
#include "frontend/common/random.h"
#include "frontend/onnx/importer.h"

namespace relay::frontend::onnx {
namespace {

// The node's stream, by its attribute `seed` or else its name.
Expr stream_key(NodeContext& ctx) {
  if (ctx.has_attr("seed")) {
    return random_key(ctx, ctx.op_type() == "Dropout"
                               ? static_cast<uint64_t>(ctx.attr("seed", 0))
                               : std::bit_cast<uint64_t>(ctx.attr_float("seed", 0)));
  }
  const std::string& name = ctx.node().name();
  return random_key(
      ctx, seed_of_name(name.empty() && ctx.num_outputs() > 0 ? ctx.node().output(0) : name));
}

Values convert_random(NodeContext& ctx) {
  const std::string& op = ctx.op_type();
  const bool like = op.ends_with("Like"), is_uniform = op.starts_with("RandomUniform");
  DType dtype = DType::Float(32);
  if (like && NodeContext::dtype_of(ctx.in(0)).is_floating()) {
    dtype = NodeContext::dtype_of(ctx.in(0));
  }
  dtype = ctx.attr_dtype("dtype", dtype);
  Distribution d;
  if (is_uniform) {
    d = {Distribution::Uniform, ctx.attr_float("low", 0), ctx.attr_float("high", 1)};
  } else {
    d = {Distribution::Normal, ctx.attr_float("mean", 0), ctx.attr_float("scale", 1)};
  }
  Expr key = stream_key(ctx);
  return {value_of(like ? draw_like(ctx, key, d, ctx.in(0), dtype)
                        : draw(ctx, key, d, ctx.attr_ints("shape"), dtype))};
}

Values convert_bernoulli(NodeContext& ctx) {
  Expr p = ctx.in(0);
  return {value_of(
      bernoulli(ctx, stream_key(ctx), p, ctx.attr_dtype("dtype", NodeContext::dtype_of(p))))};
}

Values convert_multinomial(NodeContext& ctx) {
  Expr weights = ctx.call("nn.softmax", {ctx.in(0)}, {{"axis", int64_t{-1}}});
  return {value_of(multinomial(ctx, stream_key(ctx), weights, ctx.attr("sample_size", 1),
                               ctx.attr_dtype("dtype", DType::Int(32))))};
}

// Outside of training nothing changes.
Values convert_dropout(NodeContext& ctx) {
  Expr x = ctx.in(0);
  auto number = [&](size_t input) -> std::optional<double> {
    auto k = ctx.known(input);
    if (!k || k->size() != 1 || !k->is_constant()) return std::nullopt;
    return k->float_at(0);
  };
  const bool as_inputs = ctx.opset() >= 12;
  std::optional<double> training = as_inputs ? (ctx.has(2) ? number(2) : 0) : 0;
  std::optional<double> ratio = as_inputs ? (ctx.has(1) ? number(1) : 0.5) : 0;
  if (ctx.opset() < 7 && ctx.attr("is_test", 0) == 0) {
    training = 1;
    ratio = ctx.attr_float("ratio", 0.5);
  }
  if (training == 0 || ratio == 0) {
    Values out{ctx.value(0)};
    if (ctx.num_outputs() < 2) return out;
    out.push_back(ctx.output_used(1)
                      ? value_of(ctx.full(1, NodeContext::shape_of(x), DType::Bool()))
                      : nullptr);
    return out;
  }
  const DType f32 = DType::Float(32);
  Expr share = ratio ? ctx.scalar(*ratio, f32) : one_number(ctx, 1, f32);
  Expr active = training ? nullptr : one_number(ctx, 2, DType::Bool());
  auto [y, kept] = dropout(ctx, stream_key(ctx), x, share, active);
  return {value_of(y), value_of(kept)};
}

}  // namespace

template <>
std::span<const ConverterRow> converter_rows<Converters::Random>() {
  static constexpr ConverterRow rows[] = {
      {kOnnx, "Bernoulli", 15, convert_bernoulli},     {kOnnx, "Dropout", 1, convert_dropout},
      {kOnnx, "Multinomial", 7, convert_multinomial},  {kOnnx, "RandomNormal", 1, convert_random},
      {kOnnx, "RandomNormalLike", 1, convert_random},  {kOnnx, "RandomUniform", 1, convert_random},
      {kOnnx, "RandomUniformLike", 1, convert_random},
  };
  return rows;
}

}  // namespace relay::frontend::onnx
