// Random numbers, of Relay's counter-based generator (Salmon et al., "Parallel random numbers: as easy
// as 1, 2, 3", 2011). Each node has a stream of its own, by its attribute `seed` or else its name, so
// every run of a program draws the same numbers.
#include <onnx/onnx-ml.pb.h>

#include <bit>
#include <cmath>

#include "base/codes/frontend.h"
#include "base/codes/types.h"
#include "frontend/common/open_args.h"
#include "frontend/onnx/importer.h"

namespace relay::frontend::onnx {
namespace {

// The first key of the node's stream (random.threefry_key in Python): four words of seed, no path, no
// counter, and the mark of where the path ends.
Expr stream_key(NodeContext& ctx) {
  uint64_t seed = 0xCBF29CE484222325u;  // FNV-1a
  std::string name =
      ctx.node().name().empty() && ctx.num_outputs() > 0 ? ctx.node().output(0) : ctx.node().name();
  for (char c : name) seed = (seed ^ static_cast<uint8_t>(c)) * 0x100000001B3u;
  if (ctx.has_attr("seed")) {
    seed = ctx.op_type() == "Dropout" ? static_cast<uint64_t>(ctx.attr("seed", 0))
                                      : std::bit_cast<uint64_t>(ctx.attr_float("seed", 0));
  }
  Tensor key = Tensor::zeros(DType::UInt(64), {10});
  key.data<uint64_t>()[0] = seed;
  key.data<uint64_t>()[8] = uint64_t{1} << 63;
  return ctx.constant(std::move(key));
}

// One of the two distributions of random numbers, with its two parameters.
struct Distribution {
  std::string op;
  double first = 0, second = 1;
};

DType drawn_dtype(DType dtype) { return dtype.bits == 64 ? DType::Float(64) : DType::Float(32); }

Expr draw(NodeContext& ctx, const Distribution& d, const std::vector<int64_t>& shape, DType dtype) {
  DType wide = drawn_dtype(dtype);
  Expr both =
      ctx.call(d.op, {stream_key(ctx), ctx.scalar(d.first, wide), ctx.scalar(d.second, wide)},
               {{"out_shape", to_value(shape)}, {"out_dtype", to_value(wide)}});
  return ctx.cast(ctx.item(both, 1), dtype);
}

// As many as another tensor has elements; the same ones whether its sizes are known or open.
Expr draw_like(NodeContext& ctx, const Distribution& d, const Expr& like, DType dtype) {
  const auto& type = NodeContext::type_of(like);
  if (auto shape = type.const_shape()) return draw(ctx, d, *shape, dtype);
  DType wide = drawn_dtype(dtype);
  Expr numbers = ctx.call("dyn." + d.op, {stream_key(ctx), ctx.scalar(d.first, wide),
                                          ctx.scalar(d.second, wide), sizes_of(ctx, like)});
  return ctx.cast(ctx.with_sizes(numbers, type.shape), dtype);
}

Values convert_random(NodeContext& ctx) {
  const std::string& op = ctx.op_type();
  const bool like = op.ends_with("Like"), is_uniform = op.starts_with("RandomUniform");
  DType dtype = DType::Float(32);
  if (like && NodeContext::dtype_of(ctx.in(0)).is_floating()) {
    dtype = NodeContext::dtype_of(ctx.in(0));
  }
  dtype = ctx.attr_dtype("dtype", dtype);
  const Distribution d =
      is_uniform
          ? Distribution{"random.uniform", ctx.attr_float("low", 0), ctx.attr_float("high", 1)}
          : Distribution{"random.normal", ctx.attr_float("mean", 0), ctx.attr_float("scale", 1)};
  return {value_of(like ? draw_like(ctx, d, ctx.in(0), dtype)
                        : draw(ctx, d, ctx.attr_ints("shape"), dtype))};
}

// 1 with the probability that the element says.
Values convert_bernoulli(NodeContext& ctx) {
  Expr p = ctx.in(0);
  DType dtype = NodeContext::dtype_of(p);
  Expr u = draw_like(ctx, {"random.uniform"}, p, drawn_dtype(dtype));
  Expr hit = ctx.call("less", {u, ctx.cast(p, NodeContext::dtype_of(u))});
  return {value_of(ctx.cast(hit, ctx.attr_dtype("dtype", dtype)))};
}

// Classes by their unnormalised logarithms.
Values convert_multinomial(NodeContext& ctx) {
  Expr weights = ctx.call("nn.softmax", {ctx.in(0)}, {{"axis", int64_t{-1}}});
  Expr both = ctx.call("random.multinomial", {stream_key(ctx), weights},
                       {{"num_samples", ctx.attr("sample_size", 1)}});
  return {value_of(ctx.cast(ctx.item(both, 1), ctx.attr_dtype("dtype", DType::Int(32))))};
}

// Of the ratio's share of the elements nothing is left, and the others make up for them. Outside of
// training nothing changes.
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
  Expr u = draw_like(ctx, {"random.uniform"}, x, f32);
  Expr kept = ctx.call("greater_equal", {u, share});
  if (!training) {
    Expr no = ctx.call("logical_not", {one_number(ctx, 2, DType::Bool())});
    kept = ctx.call("logical_or", {kept, no});
    share = ctx.call("where", {no, ctx.scalar(0, f32), share});
  }
  Expr grown = ctx.div(x, ctx.cast(ctx.sub(ctx.scalar(1, f32), share), NodeContext::dtype_of(x)));
  return {value_of(ctx.call("where", {kept, grown, ctx.scalar_like(0, x)})), value_of(kept)};
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
