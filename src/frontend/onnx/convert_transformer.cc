// Operators of transformers that exporters and optimisers write as one node.
#include <algorithm>
#include <cmath>

#include "base/codes/frontend.h"
#include "base/codes/types.h"
#include "frontend/common/activation.h"
#include "frontend/common/attention.h"
#include "frontend/common/norm.h"
#include "frontend/common/open_args.h"
#include "frontend/common/quantized.h"
#include "frontend/onnx/converters.h"
#include "frontend/onnx/importer.h"

namespace relay::frontend::onnx {

namespace {

// Along the last axis, with the node's epsilon.
Expr layer_norm(NodeContext& ctx, const Expr& x, const Expr& gamma, const Expr& beta) {
  return layer_norm(ctx, x, gamma, beta, NodeContext::rank_of(x) - 1,
                    ctx.attr_float("epsilon", 1e-12));
}

void require_rank(NodeContext& ctx, const Expr& e, int64_t rank, const char* what) {
  if (NodeContext::rank_of(e) == rank) return;
  ctx.fail(codes::type_rank, std::string(what) + " has the wrong rank",
           "rank " + std::to_string(rank), to_string(e->type));
}

Values convert_fast_gelu(NodeContext& ctx) {
  Expr x = ctx.in(0);
  if (ctx.has(1)) x = ctx.add(x, ctx.in(1));
  return {value_of(gelu_by_tanh(ctx, x))};
}

Values convert_bias_gelu(NodeContext& ctx) {
  return {value_of(gelu(ctx, ctx.add(ctx.in(0), ctx.in(1))))};
}

Values convert_skip_layer_norm(NodeContext& ctx) {
  Expr sum = ctx.add(ctx.in(0), ctx.in(1));
  if (ctx.has(4)) sum = ctx.add(sum, ctx.in(4));
  Expr y = layer_norm(ctx, sum, ctx.in(2), ctx.in_if_given(3));
  return {value_of(y), nullptr, nullptr, value_of(sum)};
}

Values convert_skip_rms_norm(NodeContext& ctx) {
  Expr sum = ctx.add(ctx.in(0), ctx.in(1));
  if (ctx.has(3)) sum = ctx.add(sum, ctx.in(3));
  Expr y =
      rms_norm(ctx, sum, ctx.in(2), NodeContext::rank_of(sum) - 1, ctx.attr_float("epsilon", 1e-5));
  return {value_of(y), nullptr, nullptr, value_of(sum)};
}

Values convert_embed_layer_norm(NodeContext& ctx) {
  Expr ids = ctx.in(0);
  require_rank(ctx, ids, 2, "the tokens");
  auto rows = [&](size_t table, const Expr& index) {
    Expr inside = checked_index(ctx, index, ctx.in(table), 0);
    return ctx.call("take", {ctx.in(table), inside}, {{"axis", int64_t{0}}});
  };
  const DType dtype = NodeContext::dtype_of(ctx.in(2));
  auto wide = [&](const Expr& e) { return dtype.bits == 16 ? ctx.cast(e, DType::Float(32)) : e; };
  Expr sum = wide(rows(2, ids));
  Expr positions;
  if (ctx.has(8)) {
    positions = rows(3, ctx.in(8));
  } else {
    if (auto length = as_const(NodeContext::shape_of(ids)[1])) {
      positions = ctx.slice(ctx.in(3), 0, 0, *length);
    } else {
      positions = rows(3, places_along(ctx, ids, 1));
    }
  }
  sum = ctx.add(sum, wide(positions));
  if (ctx.has(1) && ctx.has(4)) sum = ctx.add(sum, wide(rows(4, ctx.in(1))));
  Expr y = ctx.cast(layer_norm(ctx, sum, wide(ctx.in(5)), wide(ctx.in(6))), dtype);
  sum = ctx.cast(sum, dtype);
  // The number of tokens of each sequence.
  Expr lengths;
  if (ctx.has(7)) {
    lengths = ctx.reduce("sum", ctx.cast(ctx.in(7), DType::Int(32)), {1}, false);
  } else {
    lengths = ctx.full(0, {NodeContext::shape_of(ids)[0]}, DType::Int(32));
  }
  return {value_of(y), value_of(lengths), value_of(sum)};
}

// What scores of (batch, heads, queries, keys) are masked by in com.microsoft's operators.
struct Masking {
  Expr
      mask;  // null, or which keys are there: (batch), (batch, keys), (batch, queries, keys), (batch, 1, max, max)
  Expr bias;  // null, or what is added to the scores
  bool causal = false;
  Expr seen = nullptr;  // null, or whether a query sees a key: (batch, queries, keys)
};

// The values that queries see, by softmax of scaled products. Keys and values are (batch, heads, length, size).
Expr attend(NodeContext& ctx, const Expr& q, const Expr& k, const Expr& v, const Masking& by) {
  for (const Expr& e : {q, k, v}) require_rank(ctx, e, 4, "what attention reads");
  int64_t size = ctx.const_dim(q, 3, "the size of a head");
  double scale = ctx.attr_float("scale", 0);
  if (scale == 0) scale = 1 / std::sqrt(static_cast<double>(size));
  Expr scores = ctx.matmul(q, ctx.swap_last(k));
  scores = ctx.mul(scores, ctx.scalar_like(scale, scores));
  const DType dtype = NodeContext::dtype_of(scores);
  if (by.mask) {
    Expr mask = by.mask;
    const int64_t rank = NodeContext::rank_of(mask);
    if (rank == 1) {
      if (dim_differs(NodeContext::shape_of(mask)[0], NodeContext::shape_of(scores)[0])) {
        ctx.unsupported("attention with a mask of starts and ends of sequences");
      }
      // How many keys of each sequence are there.
      Expr length = ctx.expand_dims(ctx.cast(mask, DType::Int(64)), 1);
      mask = ctx.call("less", {ctx.expand_dims(places_along(ctx, scores, 3), 0), length});
    } else if (rank == 4) {
      ctx.unsupported("attention with a mask of all positions");
    }
    if (NodeContext::rank_of(mask) == 2) mask = ctx.expand_dims(mask, 1);
    // 1 sees, 0 does not.
    Expr hidden = ctx.sub(ctx.scalar(1, dtype), ctx.cast(ctx.expand_dims(mask, 1), dtype));
    Expr low = ctx.scalar(ctx.attr_float("mask_filter_value", -10000), dtype);
    scores = ctx.add(scores, ctx.mul(hidden, low));
  }
  if (by.bias) scores = ctx.add(scores, by.bias);
  if (double cap = ctx.attr_float("softcap", 0); cap > 0) {
    Expr most = ctx.scalar(cap, dtype);
    scores = ctx.mul(ctx.call("tanh", {ctx.div(scores, most)}), most);
  }
  if (by.seen) {
    scores = ctx.call("where", {ctx.expand_dims(by.seen, 1), scores, lowest_like(ctx, scores)});
  }
  if (by.causal) {
    auto rows = as_const(NodeContext::shape_of(scores)[2]),
         columns = as_const(NodeContext::shape_of(scores)[3]);
    if (rows && columns) {
      scores = ctx.add(scores, causal_bias(ctx, scores, *columns - *rows));
    } else {
      // The last query is the last key's.
      Expr sizes = sizes_of(ctx, scores);
      Expr before = ctx.sub(ctx.select(sizes, 0, 3), ctx.select(sizes, 0, 2));
      Expr query = ctx.expand_dims(ctx.add(places_along(ctx, scores, 2), before), 1);
      Expr key = ctx.expand_dims(places_along(ctx, scores, 3), 0);
      Expr seen = ctx.expand_dims(ctx.call("greater_equal", {query, key}), 0, 2);
      scores = ctx.call("where", {seen, scores, lowest_like(ctx, scores)});
    }
  }
  Expr weights = ctx.call("nn.softmax", {scores}, {{"axis", int64_t{-1}}});
  return join_heads(ctx, ctx.matmul(weights, v));
}

// Attention of one packed product that makes queries, keys and values; the inputs by number. A past is both, (2, batch,
// heads, length, size), and so is what is there afterwards.
Values packed_attention(NodeContext& ctx, Expr packed, size_t mask, size_t past, size_t bias) {
  if (ctx.attr("do_rotary", 0) != 0) ctx.unsupported("attention with rotary positions");
  if (ctx.has(2)) packed = ctx.add(packed, ctx.in(2));
  require_rank(ctx, packed, 3, "the product of the input and the weights");
  const int64_t heads = ctx.attr("num_heads", 0);
  std::vector<int64_t> widths = ctx.attr_ints("qkv_hidden_sizes");
  std::vector<Expr> qkv;
  if (widths.empty()) {
    qkv = ctx.split(packed, 2, 3);
  } else {
    int64_t total = ctx.const_dim(packed, 2, "the width of queries, keys and values");
    if (widths.size() != 3 ||
        std::ranges::any_of(widths, [&](int64_t w) { return w < 1 || w > total; }) ||
        widths[0] + widths[1] + widths[2] != total) {
      ctx.fail(codes::frontend_attribute, "attribute 'qkv_hidden_sizes' does not fit",
               "three widths, together " + std::to_string(total));
    }
    int64_t at = 0;
    for (int64_t w : widths) {
      qkv.push_back(ctx.slice(packed, 2, at, at + w));
      at += w;
    }
  }
  Expr q = split_heads(ctx, qkv[0], heads), k = split_heads(ctx, qkv[1], heads),
       v = split_heads(ctx, qkv[2], heads);
  if (ctx.has(past)) {
    k = ctx.concat({ctx.select(ctx.in(past), 0, 0), k}, 2);
    v = ctx.concat({ctx.select(ctx.in(past), 0, 1), v}, 2);
  }
  Expr y = attend(ctx, q, k, v,
                  {ctx.has(mask) ? ctx.in(mask) : nullptr, ctx.has(bias) ? ctx.in(bias) : nullptr,
                   ctx.attr("unidirectional", 0) != 0});
  Values out{value_of(y)};
  if (ctx.output_used(1)) {
    out.push_back(value_of(ctx.call("stack", {ctx.tuple_of({k, v})}, {{"axis", int64_t{0}}})));
  }
  return out;
}

// com.microsoft.Attention: (x, weights, bias, mask, past, bias of scores).
Values convert_packed_attention(NodeContext& ctx) {
  if (ctx.has(6)) ctx.unsupported("attention with a past that is longer than its sequences");
  return packed_attention(ctx, ctx.matmul_input(ctx.in(0), 1), 3, 4, 5);
}

// The same of integers: (x, weights, bias, scales of both, mask, zero points of both, past).
Values convert_quantized_attention(NodeContext& ctx) {
  constexpr size_t kNoBias = 9;
  return packed_attention(ctx,
                          scaled_product(ctx, {ctx.in(0), ctx.in(3), ctx.given(6)},
                                         {ctx.in(1), ctx.in(4), ctx.given(7)}),
                          5, 8, kNoBias);
}

// com.microsoft.MultiHeadAttention: queries, keys and values that are made before it.
Values convert_multi_head_attention(NodeContext& ctx) {
  if (NodeContext::rank_of(ctx.in(0)) != 3 || !ctx.has(1) || !ctx.has(2)) {
    ctx.unsupported("packed queries, keys and values");
  }
  if (ctx.has(8) || ctx.has(9) || ctx.output_used(3)) {
    ctx.unsupported("attention with a past that is longer than its sequences");
  }
  const int64_t heads = ctx.attr("num_heads", 0);
  Expr parts[] = {ctx.in(0), ctx.in(1), ctx.in(2)};
  int64_t at = 0;
  for (Expr& e : parts) {
    if (NodeContext::rank_of(e) != 3) continue;  // (batch, heads, length, size) already
    if (ctx.has(3)) {
      int64_t width = ctx.const_dim(e, 2, "the width of the heads");
      e = ctx.add(e, ctx.slice(ctx.in(3), 0, at, at + width));
      at += width;
    }
    e = split_heads(ctx, e, heads);
  }
  auto& [q, k, v] = parts;
  if (ctx.has(6) && ctx.has(7)) {
    k = ctx.concat({ctx.in(6), k}, 2);
    v = ctx.concat({ctx.in(7), v}, 2);
  }
  Expr y = attend(ctx, q, k, v,
                  {ctx.has(4) ? ctx.in(4) : nullptr, ctx.has(5) ? ctx.in(5) : nullptr,
                   ctx.attr("unidirectional", 0) != 0});
  return {value_of(y), value_of(k), value_of(v)};
}

Values convert_attention(NodeContext& ctx) {
  Expr q = ctx.in(0), k = ctx.in(1), v = ctx.in(2);
  bool flat = NodeContext::rank_of(q) == 3;
  if (flat) {
    int64_t q_heads = ctx.attr("q_num_heads", 0), kv_heads = ctx.attr("kv_num_heads", 0);
    q = split_heads(ctx, q, q_heads);
    k = split_heads(ctx, k, kv_heads);
    v = split_heads(ctx, v, kv_heads);
  }
  for (const Expr& e : {q, k, v}) require_rank(ctx, e, 4, "what attention reads");
  Expr past;
  if (ctx.has(4) && ctx.has(5)) {
    past = ctx.in(4);
    require_rank(ctx, past, 4, "the past");
    require_rank(ctx, ctx.in(5), 4, "the past");
    k = ctx.concat({ctx.in(4), k}, 2);
    v = ctx.concat({ctx.in(5), v}, 2);
  }
  Expr present_key = k, present_value = v;
  share_heads(ctx, q, k, v);
  AttentionSpec spec{.softcap = ctx.attr_float("softcap", 0),
                     .causal = ctx.attr("is_causal", 0) != 0,
                     .left_window = ctx.attr("left_window_size", -1),
                     .right_window = ctx.attr("right_window_size", -1),
                     .past = past,
                     .lengths = ctx.in_if_given(6),
                     .mask = ctx.in_if_given(3),
                     .all_stages = ctx.output_used(3)};
  if (ctx.has_attr("scale")) spec.scale = ctx.attr_float("scale", 1);
  if (ctx.has_attr("softmax_precision")) {
    spec.precision = ctx.attr_dtype("softmax_precision", NodeContext::dtype_of(q));
  }
  AttentionStages stages = attention(ctx, q, k, v, spec);
  Values out{value_of(flat ? join_heads(ctx, stages.y) : stages.y), value_of(present_key),
             value_of(present_value)};
  if (spec.all_stages) {
    const int64_t mode = ctx.attr("qk_matmul_output_mode", 0);
    out.push_back(value_of(mode == 3 ? stages.weights : mode == 2 ? stages.masked : stages.scores));
  }
  return out;
}

int64_t rotated_size(NodeContext& ctx, int64_t size) {
  int64_t rotated = ctx.attr("rotary_embedding_dim", 0);
  if (rotated == 0) rotated = size;
  if (rotated < 2 || rotated > size || rotated % 2 != 0) {
    ctx.fail(codes::frontend_attribute, "attribute 'rotary_embedding_dim' is out of range",
             "an even number up to " + std::to_string(size), std::to_string(rotated));
  }
  return rotated;
}

Values convert_rotary_embedding(NodeContext& ctx) {
  Expr x = ctx.in(0);
  bool flat = NodeContext::rank_of(x) == 3;
  if (flat) x = split_heads(ctx, x, ctx.attr("num_heads", 0));
  require_rank(ctx, x, 4, "the input");
  int64_t rotated = rotated_size(ctx, ctx.const_dim(x, 3, "the size of a head"));
  Expr cos = ctx.in(1), sin = ctx.in(2);
  if (ctx.has(3)) {
    Expr positions = checked_index(ctx, ctx.in(3), cos, 0);
    cos = ctx.call("take", {cos, positions}, {{"axis", int64_t{0}}});
    sin = ctx.call("take", {sin, positions}, {{"axis", int64_t{0}}});
  }
  // (batch, sequence, rotated / 2) against all heads.
  Expr y = rotate(ctx, x, rotated, ctx.expand_dims(cos, 1), ctx.expand_dims(sin, 1),
                  ctx.attr("interleaved", 0) != 0);
  return {value_of(flat ? join_heads(ctx, y) : y)};
}

// com.microsoft.RotaryEmbedding: (x, positions, cosines, sines). The positions are those of each token, or one number,
// the first token's.
Values convert_microsoft_rotary(NodeContext& ctx) {
  if (ctx.attr("is_packed_batching", 0) != 0) ctx.unsupported("batches of packed sequences");
  Expr x = ctx.in(0), positions = ctx.in(1);
  const bool flat = NodeContext::rank_of(x) == 3;
  require_rank(ctx, ctx.in(2), 2, "the table of cosines");
  require_rank(ctx, ctx.in(3), 2, "the table of sines");
  if (flat) {
    int64_t width = ctx.const_dim(x, 2, "the width of the heads"), heads = ctx.attr("num_heads", 0);
    int64_t half = ctx.const_dim(ctx.in(2), 1, "the number of angles");
    if (heads == 0 && half > 0) heads = width / (2 * half);
    x = split_heads(ctx, x, heads);
  }
  require_rank(ctx, x, 4, "the input");
  int64_t rotated = rotated_size(ctx, ctx.const_dim(x, 3, "the size of a head"));
  if (NodeContext::rank_of(positions) == 0) positions = ctx.expand_dims(positions, 0);
  if (NodeContext::rank_of(positions) == 1) {
    positions = ctx.expand_dims(ctx.add(positions, places_along(ctx, x, 2)), 0);
  }
  auto angles = [&](size_t table) {
    return ctx.expand_dims(ctx.call("take", {ctx.in(table), positions}, {{"axis", int64_t{0}}}), 1);
  };
  Expr y = rotate(ctx, x, rotated, angles(2), angles(3), ctx.attr("interleaved", 0) != 0);
  double scale = ctx.attr_float("scale", 1);
  if (scale != 1) y = ctx.mul(y, ctx.scalar_like(scale, y));
  return {value_of(flat ? join_heads(ctx, y) : y)};
}

// com.microsoft.GroupQueryAttention: a decoder's attention, with fewer heads of keys than of queries, with what came
// before, and with rotary positions. Each sequence has a length of its own, `lengths` with the new tokens; where the new
// tokens are all that there is, they are a prompt, filled up on the right.
Values convert_group_query_attention(NodeContext& ctx) {
  const DType i64 = DType::Int(64);
  for (size_t i = 9; i < 14; ++i) {
    if (ctx.has(i)) ctx.unsupported("positions, biases or sinks of its own");
  }
  if (!ctx.has(5) || !ctx.has(6)) ctx.unsupported("queries without lengths of sequences");
  if (ctx.attr("smooth_softmax", 0) != 0) ctx.unsupported("a smooth softmax");
  const int64_t heads = ctx.attr("num_heads", 0), kv_heads = ctx.attr("kv_num_heads", 0);
  Expr queries = ctx.in(0);
  require_rank(ctx, queries, 3, "the queries");
  Expr keys, values;
  if (ctx.has(1) && ctx.has(2)) {
    keys = ctx.in(1);
    values = ctx.in(2);
  } else {
    const int64_t width = ctx.const_dim(queries, 2, "the width of the heads"),
                  all = heads + 2 * kv_heads;
    if (heads < 1 || kv_heads < 1 || width % all != 0) {
      ctx.fail(codes::frontend_attribute, "the number of heads does not divide the width",
               "a divisor of " + std::to_string(width), std::to_string(all));
    }
    const int64_t size = width / all;
    keys = ctx.slice(queries, 2, heads * size, (heads + kv_heads) * size);
    values = ctx.slice(queries, 2, (heads + kv_heads) * size, width);
    queries = ctx.slice(queries, 2, 0, heads * size);
  }
  Expr q = split_heads(ctx, queries, heads), k = split_heads(ctx, keys, kv_heads),
       v = split_heads(ctx, values, kv_heads);
  // How many tokens stand before the new ones, (batch, 1); none before a prompt.
  Expr lengths = ctx.cast(ctx.in(5), i64), total = one_number(ctx, 6, i64);
  if (NodeContext::rank_of(lengths) == 2) lengths = ctx.squeeze(lengths, {1});
  require_rank(ctx, lengths, 1, "the lengths of sequences");
  Expr fresh = ctx.select(sizes_of(ctx, q), 0, 2), one = ctx.scalar(1, i64),
       zero = ctx.scalar(0, i64);
  Expr before = ctx.sub(ctx.add(lengths, one), fresh);
  before = ctx.call("where", {ctx.call("equal", {total, fresh}), ctx.mul(before, zero), before});
  before = ctx.expand_dims(before, 1);
  Expr places = ctx.add(before, ctx.expand_dims(places_along(ctx, q, 2), 0));  // (batch, new)
  if (ctx.attr("do_rotary", 0) != 0) {
    if (!ctx.has(7) || !ctx.has(8)) ctx.unsupported("rotary positions without their tables");
    require_rank(ctx, ctx.in(7), 2, "the table of cosines");
    require_rank(ctx, ctx.in(8), 2, "the table of sines");
    const int64_t rotated = 2 * ctx.const_dim(ctx.in(7), 1, "the number of angles");
    if (rotated < 2 || rotated > ctx.const_dim(q, 3, "the size of a head")) {
      ctx.fail(codes::type_shape, "there are more angles than a head has pairs");
    }
    auto angles = [&](size_t table) {
      return ctx.expand_dims(ctx.call("take", {ctx.in(table), places}, {{"axis", int64_t{0}}}), 1);
    };
    Expr cos = angles(7), sin = angles(8);
    const bool pairs = ctx.attr("rotary_interleaved", 0) != 0;
    q = rotate(ctx, q, rotated, cos, sin, pairs);
    k = rotate(ctx, k, rotated, cos, sin, pairs);
  }
  Expr present_k = k, present_v = v;
  if (ctx.has(3) && ctx.has(4)) {
    require_rank(ctx, ctx.in(3), 4, "the past");
    require_rank(ctx, ctx.in(4), 4, "the past");
    // Place j of a sequence is the past's, or one of the new ones behind them.
    Expr past = ctx.select(sizes_of(ctx, ctx.in(3)), 0, 2);
    Expr line = ctx.expand_dims(open_range(ctx, zero, ctx.call("maximum", {past, total})), 0);
    Expr after = ctx.call("maximum", {ctx.sub(line, before), zero});
    after = ctx.call("minimum", {after, ctx.sub(fresh, one)});
    Expr from = ctx.call("where", {ctx.call("less", {line, before}), line, ctx.add(past, after)});
    auto joined = [&](size_t old, const Expr& now) {
      Expr all = ctx.concat({ctx.in(old), now}, 2);
      Expr lines = ctx.transpose(all, {0, 2, 1, 3});
      Expr taken =
          ctx.call("gather_nd", {lines, ctx.expand_dims(from, 0)}, {{"batch_dims", int64_t{1}}});
      // Behind the new tokens there is nothing.
      Expr there = ctx.call("less", {line, ctx.add(before, fresh)});
      taken = ctx.call("where", {ctx.expand_dims(there, 2, 2), taken, ctx.scalar_like(0, taken)});
      return ctx.transpose(taken, {0, 2, 1, 3});
    };
    present_k = joined(3, k);
    present_v = joined(4, v);
  }
  // A query sees the keys up to its own place, within the window.
  Expr key = ctx.expand_dims(places_along(ctx, present_k, 2), 0, 2),
       own = ctx.expand_dims(places, 2);
  Masking by;
  by.seen = ctx.call("less_equal", {key, own});
  if (int64_t window = ctx.attr("local_window_size", -1); window > 0) {
    Expr near =
        ctx.call("greater", {key, ctx.sub(own, ctx.scalar(static_cast<double>(window), i64))});
    by.seen = ctx.call("logical_and", {by.seen, near});
  }
  Expr shared_k = present_k, shared_v = present_v;
  share_heads(ctx, q, shared_k, shared_v);
  return {value_of(attend(ctx, q, shared_k, shared_v, by)), value_of(present_k),
          value_of(present_v)};
}

Values convert_fused_matmul(NodeContext& ctx) {
  auto side = [&](size_t input, const char* turned, const char* batch) {
    Expr e = ctx.in(input);
    const int64_t rank = NodeContext::rank_of(e);
    // The first axis goes behind those of the batch.
    if (ctx.attr(batch, 0) != 0 && rank > 2) {
      std::vector<int64_t> order;
      for (int64_t a = 1; a < rank - 1; ++a) order.push_back(a);
      order.insert(order.end(), {0, rank - 1});
      e = ctx.transpose(e, order);
    }
    return ctx.attr(turned, 0) != 0 && rank > 1 ? ctx.swap_last(e) : e;
  };
  Expr a = side(0, "transA", "transBatchA"), b = side(1, "transB", "transBatchB");
  Expr y = ctx.matmul(a, b);
  double alpha = ctx.attr_float("alpha", 1);
  return {value_of(alpha == 1 ? y : ctx.mul(y, ctx.scalar_like(alpha, y)))};
}

}  // namespace

template <>
std::span<const ConverterRow> converter_rows<Converters::Transformer>() {
  static constexpr ConverterRow rows[] = {
      {kOnnx, "Attention", 23, convert_attention},
      {kOnnx, "RotaryEmbedding", 23, convert_rotary_embedding},
      {kMicrosoft, "Attention", 1, convert_packed_attention},
      {kMicrosoft, "BiasGelu", 1, convert_bias_gelu, kInFloat32},
      {kMicrosoft, "EmbedLayerNormalization", 1, convert_embed_layer_norm},
      {kMicrosoft, "FastGelu", 1, convert_fast_gelu, kInFloat32},
      {kMicrosoft, "FusedMatMul", 1, convert_fused_matmul},
      {kMicrosoft, "GroupQueryAttention", 1, convert_group_query_attention},
      {kMicrosoft, "MultiHeadAttention", 1, convert_multi_head_attention},
      {kMicrosoft, "RotaryEmbedding", 1, convert_microsoft_rotary},
      {kMicrosoft, "QAttention", 1, convert_quantized_attention},
      {kMicrosoft, "SkipLayerNormalization", 1, convert_skip_layer_norm, kInFloat32},
      {kMicrosoft, "SkipSimplifiedLayerNormalization", 1, convert_skip_rms_norm, kInFloat32},
      {kMicrosoft, "TransposeMatMul", 1, convert_fused_matmul},
  };
  return rows;
}

}  // namespace relay::frontend::onnx
