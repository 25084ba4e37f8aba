// Operators of sequence models with a state, and attention with parts that the model brings along.
#include <cmath>

#include "base/codes/frontend.h"
#include "base/codes/types.h"
#include "frontend/common/activation.h"
#include "frontend/common/attention.h"
#include "frontend/common/open_args.h"
#include "frontend/common/step_loop.h"
#include "frontend/onnx/converters.h"

namespace relay::frontend::onnx {
namespace {

// The recurrence over the sequence: a state of (batch, heads, key, value) is faded, corrected, written
// and read once a step.
Values convert_linear_attention(NodeContext& ctx) {
  const DType f32 = DType::Float(32);
  std::string rule = ctx.attr_string("update_rule", "gated_delta");
  const bool gated = rule == "gated" || rule == "gated_delta";
  const bool corrects = rule == "delta" || rule == "gated_delta";
  if (!gated && !corrects && rule != "linear") {
    ctx.fail(codes::frontend_attribute, "attribute 'update_rule' has an unknown value",
             "linear, gated, delta or gated_delta", rule.substr(0, 100));
  }
  const int64_t q_heads = ctx.attr("q_num_heads", 0), heads = ctx.attr("kv_num_heads", 0);
  Expr query = ctx.in(0), key = ctx.in(1), value = ctx.in(2);
  const int64_t dk = head_size(ctx, query, q_heads), dv = head_size(ctx, value, heads);
  if (q_heads % heads != 0 || head_size(ctx, key, heads) != dk) {
    ctx.fail(codes::type_shape, "the heads of queries, keys and values do not fit together");
  }
  double scale = ctx.attr_float("scale", 0);
  if (scale == 0) scale = 1 / std::sqrt(static_cast<double>(dk));
  const Dim batch = NodeContext::shape_of(query)[0];
  // One step of a packed input as (batch, heads, size).
  auto at_step = [&](const Expr& x, const Expr& t, int64_t count, int64_t size) {
    Expr line = ctx.call("take", {x, t}, {{"axis", int64_t{1}}});
    return ctx.cast(ctx.reshape(line, {batch, dim(count), dim(size)}), f32);
  };
  StepLoop loop;
  loop.lines = zeros_along(ctx, query, 1);
  loop.count = length_of(ctx, loop.lines);
  loop.backward = {false};
  const std::vector<Dim> state_shape{batch, dim(heads), dim(dk), dim(dv)};
  Expr state = ctx.has(3) ? ctx.cast(ctx.in(3), f32) : Expr();
  DType state_dtype = NodeContext::dtype_of(ctx.has(3) ? ctx.in(3) : query);
  if (!state) {
    // Zeros of the batch's size, which may be open.
    Expr one = ctx.select(ctx.slice(query, 2, 0, 1), 1, 0);
    Expr zero = ctx.cast(ctx.call("zeros_like", {one}), f32);
    state = ctx.add(ctx.expand_dims(zero, 2, 2), ctx.full(0, {dim(heads), dim(dk), dim(dv)}, f32));
  }
  loop.initial = {ctx.reshape(state, state_shape)};
  StepResults results =
      run_steps(ctx, loop, [&](const Expr& t, const Expr&, const std::vector<Expr>& states) {
        Expr s = states[0];
        Expr k = ctx.expand_dims(at_step(key, t, heads, dk), 3);
        Expr v = ctx.expand_dims(at_step(value, t, heads, dv), 2);
        if (gated) {
          int64_t width = head_size(ctx, ctx.in(4), heads);
          s = ctx.mul(s,
                      ctx.call("exp", {ctx.expand_dims(at_step(ctx.in(4), t, heads, width), 3)}));
        }
        if (corrects) {
          int64_t rates = ctx.const_dim(ctx.in(5), 2, "the number of update rates");
          Expr read = ctx.reduce("sum", ctx.mul(s, k), {2}, true);
          v = ctx.mul(ctx.expand_dims(at_step(ctx.in(5), t, rates, 1), 3), ctx.sub(v, read));
        }
        s = ctx.reshape(ctx.add(s, ctx.mul(k, v)), state_shape);
        // Groups of query heads share a state.
        Expr q = ctx.reshape(at_step(query, t, q_heads, dk),
                             {batch, dim(heads), dim(q_heads / heads), dim(dk)});
        Expr read =
            ctx.reduce("sum", ctx.mul(ctx.expand_dims(q, 4), ctx.expand_dims(s, 2)), {3}, false);
        Step step;
        step.states = {s};
        step.results = {
            ctx.mul(ctx.reshape(read, {batch, dim(q_heads * dv)}), ctx.scalar(scale, f32))};
        return step;
      });
  Expr y = ctx.transpose(results.stacked[0], {1, 0, 2});
  return {value_of(ctx.cast(y, NodeContext::dtype_of(query))),
          value_of(ctx.cast(results.states[0], state_dtype))};
}

// Each channel with a kernel of its own over what came before; the last places are the next state.
Values convert_causal_conv(NodeContext& ctx) {
  Expr x = ctx.in(0), weight = ctx.in(1);
  if (NodeContext::rank_of(x) != 3 || NodeContext::rank_of(weight) != 3) {
    ctx.fail(codes::type_rank, "input and weight must have three dimensions", "rank 3",
             to_string(x->type) + " and " + to_string(weight->type));
  }
  const int64_t channels = ctx.const_dim(weight, 0, "the number of channels");
  const int64_t kernel = ctx.const_dim(weight, 2, "the size of the kernel"), past = kernel - 1;
  if (kernel < 1) ctx.fail(codes::type_shape, "the kernel is empty");
  if (past > 0) {
    if (ctx.has(3)) {
      x = ctx.concat({ctx.in(3), x}, 2);
    } else {
      ValueList widths{to_value({0, 0}), to_value({0, 0}), to_value({past, 0})};
      x = ctx.call("nn.pad", {x, ctx.scalar_like(0, x)},
                   {{"pad_width", AttrValue(std::move(widths))}});
    }
  }
  Expr y = ctx.call("nn.conv1d", {x, weight},
                    {{"channels", channels},
                     {"kernel_size", to_value(std::vector<int64_t>{kernel})},
                     {"groups", channels}});
  if (ctx.has(2)) y = ctx.add(y, ctx.expand_dims(ctx.in(2), 1));
  std::string activation = ctx.attr_string("activation", "none");
  if (activation == "silu" || activation == "swish") {
    y = swish(ctx, y);
  } else if (activation != "none") {
    ctx.fail(codes::frontend_attribute, "attribute 'activation' has an unknown value",
             "none, silu or swish", activation.substr(0, 100));
  }
  if (!ctx.output_used(1)) return {value_of(y)};
  if (past == 0) return {value_of(y), value_of(ctx.slice(x, 2, 0, 0))};
  Expr last = ctx.call("strided_slice", {x},
                       {{"begin", to_value(std::vector<int64_t>{-past})},
                        {"end", to_value(std::vector<int64_t>{INT64_MAX})},
                        {"strides", to_value(std::vector<int64_t>{1})},
                        {"axes", to_value(std::vector<int64_t>{2})}});
  return {value_of(y), value_of(last)};
}

// What a subgraph of one input and output makes of a value; the value where there is none.
Expr modified(NodeContext& ctx, const char* graph, const Expr& x) {
  if (!ctx.has_attr(graph)) return x;
  Values out = ctx.import_graph(ctx.attr_graph(graph), {value_of(x)});
  if (out.size() != 1) {
    ctx.fail(codes::frontend_graph, "a subgraph has the wrong number of outputs", "1",
             std::to_string(out.size()));
  }
  return ctx.expr_of(out[0]);
}

Values convert_flex_attention(NodeContext& ctx) {
  Expr q = ctx.in(0), k = ctx.in(1), v = ctx.in(2);
  for (const Expr& e : {q, k, v}) {
    if (NodeContext::rank_of(e) != 4) {
      ctx.fail(codes::type_rank, "queries, keys and values must be (batch, heads, length, size)",
               "rank 4", to_string(e->type));
    }
  }
  DType dtype = NodeContext::dtype_of(q);
  DType wide = dtype.bits == 64 ? dtype : DType::Float(32);
  wide = ctx.attr_dtype("softmax_precision", wide);
  share_heads(ctx, q, k, v);
  const auto size = static_cast<double>(ctx.const_dim(q, 3, "the size of a head"));
  Expr scores = ctx.matmul(ctx.cast(q, wide), ctx.swap_last(ctx.cast(k, wide)));
  scores = ctx.mul(scores, ctx.scalar(ctx.attr_float("scale", 1 / std::sqrt(size)), wide));
  Expr weights =
      ctx.call("nn.softmax", {modified(ctx, "score_mod", scores)}, {{"axis", int64_t{-1}}});
  weights = modified(ctx, "prob_mod", weights);
  return {value_of(ctx.cast(ctx.matmul(weights, ctx.cast(v, wide)), dtype))};
}

// The cache with lines of one axis replaced, at a place of its own for each entry of the batch.
Values convert_tensor_scatter(NodeContext& ctx) {
  const DType i64 = DType::Int(64);
  Expr cache = ctx.in(0), update = ctx.in(1);
  const int64_t rank = NodeContext::rank_of(cache);
  const int64_t axis = ctx.axis(ctx.attr("axis", -2), rank);
  if (axis == 0) ctx.fail(codes::frontend_attribute, "the axis is that of the batch");
  std::string mode = ctx.attr_string("mode", "linear");
  if (mode != "linear" && mode != "circular") {
    ctx.fail(codes::frontend_attribute, "attribute 'mode' has an unknown value",
             "linear or circular", mode.substr(0, 100));
  }
  Expr size = ctx.select(sizes_of(ctx, cache), 0, axis);
  Expr count = ctx.select(sizes_of(ctx, update), 0, axis);
  Expr zero = ctx.scalar(0, i64);
  // Where in the cache each line of the update goes, (batch or 1, ..., lines, 1, ...).
  Expr place = ctx.expand_dims(open_range(ctx, zero, count), 0, axis);
  place = ctx.expand_dims(place, axis + 1, rank - axis - 1);
  if (ctx.has(2)) {
    place = ctx.add(place, ctx.expand_dims(ctx.cast(ctx.in(2), i64), 1, rank - 1));
  }
  if (mode == "circular") {
    place = ctx.call("floor_mod", {place, size});
  } else {
    // A place before the cache is as wrong as one behind it: places count from the front.
    place = ctx.call("where", {ctx.call("less", {place, zero}), size, place});
  }
  // Only the new lines are written, so that a cache that is donated is updated in their time.
  Expr everywhere = ctx.call("zeros_like", {ctx.cast(update, i64)});
  return {value_of(
      ctx.call("scatter_elements", {cache, ctx.add(everywhere, place), update}, {{"axis", axis}}))};
}

}  // namespace

template <>
std::span<const ConverterRow> converter_rows<Converters::Recent>() {
  static constexpr ConverterRow rows[] = {
      {kOnnx, "CausalConvWithState", 27, convert_causal_conv},
      {kOnnx, "LinearAttention", 27, convert_linear_attention},
      {kOnnx, "TensorScatter", 24, convert_tensor_scatter},
      {"ai.onnx.preview", "FlexAttention", 1, convert_flex_attention},
  };
  return rows;
}

}  // namespace relay::frontend::onnx
