// Attention: softmax of products of queries and keys, times the values.
#include <algorithm>

#include "base/codes/operators.h"
#include "base/codes/types.h"
#include "ir/layout.h"
#include "ops/batching.h"
#include "ops/gradient.h"
#include "ops/image/window.h"
#include "ops/rows.h"

namespace relay::ops {
namespace {

using namespace tir;  // NOLINT
using relay::CallNode;
using relay::Type;

// The four axes of a tensor in its layout.
template <class T>
struct Heads {
  T batch, heads, sequence, depth;
};

template <class T>
Heads<T> heads_of(const Layout& layout, const std::vector<T>& at) {
  return {at[axis_of(layout, 'B')], at[axis_of(layout, 'H')], at[axis_of(layout, 'S')],
          at[axis_of(layout, 'D')]};
}

template <class T>
std::vector<T> in_layout(const Layout& layout, const Heads<T>& h) {
  std::vector<T> out(4);
  out[axis_of(layout, 'B')] = h.batch;
  out[axis_of(layout, 'H')] = h.heads;
  out[axis_of(layout, 'S')] = h.sequence;
  out[axis_of(layout, 'D')] = h.depth;
  return out;
}

// The layout that the attribute gives; fails in `ctx` when it does not name the four axes.
std::optional<Layout> layout_attr(RelationContext& ctx, const std::string& name,
                                  const std::string& text) {
  auto layout = Layout::parse(text);
  std::string axes = layout ? layout->to_string() : "";
  std::sort(axes.begin(), axes.end());
  if (!require(ctx, axes == "BDHS", codes::op_bad_attribute, name + " is not supported",
               "B, H, S and D in some order", text))
    return std::nullopt;
  return layout;
}

std::optional<Heads<Dim>> heads_arg(RelationContext& ctx, size_t arg, const TensorTypeNode& t,
                                    const std::string& attr, const std::string& layout_text) {
  auto layout = layout_attr(ctx, attr, layout_text);
  if (!layout || !require(ctx, t.rank() == 4, codes::type_rank,
                          "argument '" + std::string(ctx.op().args[arg].name) +
                              "' does not have the layout's dimensions",
                          layout_text, shape_text(t.shape)))
    return std::nullopt;
  return heads_of(*layout, t.shape);
}

struct AttentionAttrs : AttrsOf<AttentionAttrs> {
  double scale = 1.0;
  std::string query_layout = "BHSD", key_layout = "BHSD", value_layout = "BHSD",
              out_layout = "BHSD";
  bool transpose_mask = false;
  static AttrsList describe() {
    return {"relay.attrs.AttentionAttrs",
            {attribute("scale", &Self::scale, "What the products are multiplied by."),
             attribute("query_layout", &Self::query_layout,
                       "Axes of the queries: batch, heads, sequence and depth in any order."),
             attribute("key_layout", &Self::key_layout, "Axes of the keys."),
             attribute("value_layout", &Self::value_layout, "Axes of the values."),
             attribute("out_layout", &Self::out_layout, "Axes of the result."),
             attribute("transpose_mask", &Self::transpose_mask,
                       "The mask has the keys before the queries.")}};
  }
};

Type attention_relation(RelationContext& ctx) {
  const TensorTypeNode *q = ctx.tensor(0), *k = ctx.tensor(1), *v = ctx.tensor(2),
                       *mask = ctx.tensor(3);
  if (q == nullptr || k == nullptr || v == nullptr || mask == nullptr) return nullptr;
  auto& a = ctx.attrs<AttentionAttrs>();
  if (!require(ctx, q->dtype.is_floating(), codes::type_dtype, "needs a floating dtype", "float32",
               q->dtype.to_string()))
    return nullptr;
  for (const TensorTypeNode* t : {k, v, mask}) {
    if (!require(ctx, t->dtype == q->dtype, codes::type_dtype,
                 "the arguments have different dtypes", q->dtype.to_string(), t->dtype.to_string()))
      return nullptr;
  }
  auto query = heads_arg(ctx, 0, *q, "query_layout", a.query_layout);
  auto key = heads_arg(ctx, 1, *k, "key_layout", a.key_layout);
  auto value = heads_arg(ctx, 2, *v, "value_layout", a.value_layout);
  auto out = layout_attr(ctx, "out_layout", a.out_layout);
  if (!query || !key || !value || !out) return nullptr;
  auto equal = [&](const Dim& x, const Dim& y, const std::string& what) {
    return require(ctx, ctx.equal(x, y), codes::type_shape, what + " differ", "equal " + what,
                   to_string(x) + " and " + to_string(y));
  };
  auto all_heads = as_const(query->heads), shared = as_const(key->heads);
  bool groups = all_heads && shared && *shared > 0 && *all_heads % *shared == 0;
  if (!equal(query->batch, key->batch, "batches of queries and keys") ||
      (!groups && !equal(query->heads, key->heads, "heads of queries and keys")) ||
      !equal(query->depth, key->depth, "depths of queries and keys") ||
      !equal(key->batch, value->batch, "batches of keys and values") ||
      !equal(key->heads, value->heads, "heads of keys and values") ||
      (!groups && all_heads && as_const(value->heads) &&
       !equal(query->heads, value->heads, "heads of queries and values")) ||
      !equal(key->sequence, value->sequence, "lengths of keys and values"))
    return nullptr;
  std::vector<Dim> scores{query->batch, query->heads, query->sequence, key->sequence};
  if (a.transpose_mask) std::swap(scores[2], scores[3]);
  auto all = broadcast_shapes(ctx, scores, mask->shape);
  if (!all) return nullptr;
  bool fits = all->size() == 4;
  for (size_t i = 0; fits && i < 4; ++i) fits = ctx.equal((*all)[i], scores[i]);
  if (!require(ctx, fits, codes::type_shape, "the mask does not broadcast to the scores",
               shape_text(scores), shape_text(mask->shape)))
    return nullptr;
  return tensor_type(
      in_layout<Dim>(*out, {query->batch, query->heads, query->sequence, value->depth}), q->dtype);
}

// The heads of queries, one after another, that share a head of keys and values.
int64_t queries_of_a_key(const TensorTypeNode& query, const std::string& query_layout,
                         const TensorTypeNode& key, const std::string& key_layout) {
  auto all = as_const(heads_of(Layout::of(query_layout), query.shape).heads);
  auto shared = as_const(heads_of(Layout::of(key_layout), key.shape).heads);
  return all && shared && *shared > 0 ? *all / *shared : 1;
}

// Each block has its part in attention as its role; the schedule rule of that name places them.
tir::BlockRole attention_part(const char* name) { return {"attention", name}; }

// Scores have the queries last: then neighbouring results of every step but the last are those of
// neighbouring queries, and no step combines the lanes of a vector.
TirTensor attention_compute(const ComputeContext& ctx) {
  auto& a = ctx.attrs<AttentionAttrs>();
  TirTensor q = ctx.inputs[0], k = ctx.inputs[1], v = ctx.inputs[2], mask = ctx.inputs[3];
  Layout query = Layout::of(a.query_layout), key = Layout::of(a.key_layout),
         value = Layout::of(a.value_layout), out = Layout::of(a.out_layout);
  auto [batch, heads, rows, depth] = heads_of(query, q->shape());
  PrimExpr keys = heads_of(key, k->shape()).sequence;
  auto all_heads = as_int(heads), key_heads = as_int(heads_of(key, k->shape()).heads);
  int64_t group = all_heads && key_heads && *key_heads > 0 ? *all_heads / *key_heads : 1;
  auto shared = [&](const PrimExpr& head) {
    return group == 1 ? head : floor_div(head, tir::index(group));
  };
  PrimExpr width = heads_of(value, v->shape()).depth;
  DType acc = accumulator(q->dtype);
  auto read = [&](const TirTensor& t, const Layout& layout, const Heads<PrimExpr>& at) {
    return tir::cast(acc, t(in_layout(layout, at)));
  };
  TirTensor queries = tir::compute(
      "queries", {batch, heads, depth, rows},
      [&](const Indices& i) {
        return read(q, query, {i[0], i[1], i[3], i[2]}) * imm_float(acc, a.scale);
      },
      attention_part("queries"));
  std::vector<PrimExpr> score_shape{batch, heads, keys, rows}, masked = score_shape;
  if (!a.transpose_mask) std::swap(masked[2], masked[3]);
  TirTensor product = tir::compute(
      "product", score_shape,
      [&](const Indices& i) {
        return tir::sum({depth}, [&](const Indices& d) {
          return read(k, key, {i[0], shared(i[1]), i[2], d[0]}) * queries(i[0], i[1], d[0], i[3]);
        });
      },
      attention_part("product"));
  TirTensor scores = tir::compute(
      "scores", score_shape,
      [&](const Indices& i) {
        Indices at = i;
        if (!a.transpose_mask) std::swap(at[2], at[3]);
        return product(i) + tir::cast(acc, broadcast_read(mask, at, masked));
      },
      attention_part("scores"));
  std::vector<PrimExpr> row_shape{batch, heads, rows};
  TirTensor top = tir::compute(
      "top", row_shape,
      [&](const Indices& i) {
        return reduce(Combiner::Max, {keys},
                      [&](const Indices& n) { return scores(i[0], i[1], n[0], i[2]); });
      },
      attention_part("top"));
  TirTensor weights = tir::compute(
      "weights", score_shape,
      [&](const Indices& i) { return tir::call("exp", acc, {scores(i) - top(i[0], i[1], i[3])}); },
      attention_part("weights"));
  TirTensor total = tir::compute(
      "total", row_shape,
      [&](const Indices& i) {
        return tir::sum({keys}, [&](const Indices& n) { return weights(i[0], i[1], n[0], i[2]); });
      },
      attention_part("total"));
  TirTensor weighted = tir::compute(
      "weighted", {batch, heads, rows, width},
      [&](const Indices& i) {
        return tir::sum({keys}, [&](const Indices& n) {
          return weights(i[0], i[1], n[0], i[2]) * read(v, value, {i[0], shared(i[1]), n[0], i[3]});
        });
      },
      attention_part("weighted"));
  return tir::compute(
      "attention", ctx.outputs[0].shape,
      [&](const Indices& i) {
        Heads<PrimExpr> at = heads_of(out, i);
        PrimExpr all = total(at.batch, at.heads, at.sequence);
        // The largest weight is 1: only without keys is their sum less.
        if (tir::as_int(keys).value_or(0) == 0) all = tir::max(all, imm_float(acc, 1));
        PrimExpr share = div(imm_float(acc, 1), all);
        return tir::cast(q->dtype, weighted(at.batch, at.heads, at.sequence, at.depth) * share);
      },
      attention_part("result"));
}

double attention_cost(const CallNode& c) {
  auto& a = static_cast<const AttentionAttrs&>(*c.attrs.get());
  auto of = [&](size_t arg, const std::string& layout) {
    return heads_of(Layout::of(layout), as<TensorTypeNode>(c.args[arg]->type)->shape);
  };
  auto keys = as_const(of(1, a.key_layout).sequence), width = as_const(of(2, a.value_layout).depth);
  auto depth = as_const(of(0, a.query_layout).depth);
  if (!keys || !width || !depth) return 0;
  double queries = num_elements(c.type) / std::max(1.0, static_cast<double>(*width));
  return 2.0 * queries * static_cast<double>(*keys) * static_cast<double>(*depth + *width);
}

// ---- Gradients

// The probabilities are computed again: they are many times larger than what they are made of.
Adjoints attention_gradient(const GradientContext& ctx) {
  auto& a = ctx.attrs<AttentionAttrs>();
  // Labels of a tensor in its layout: the sequence of the queries is q, of the keys k; the depth of
  // the values is v.
  auto labels = [](std::string layout, char sequence, char depth) {
    for (char& c : layout) c = c == 'B' ? 'b' : c == 'H' ? 'h' : c == 'S' ? sequence : depth;
    return layout;
  };
  const std::string query = labels(a.query_layout, 'q', 'd'), key = labels(a.key_layout, 'k', 'd'),
                    value = labels(a.value_layout, 'k', 'v'), out = labels(a.out_layout, 'q', 'v'),
                    scores = a.transpose_mask ? "bhkq" : "bhqk";
  auto product = [](const std::string& equation, const Expr& x, const Expr& y) {
    return apply("einsum", {tuple({x, y})}, {{"equation", equation}});
  };
  const Expr &q = ctx.arg(0), &mask = ctx.arg(3);
  int64_t group = queries_of_a_key(type_of(q), a.query_layout, type_of(ctx.arg(1)), a.key_layout);
  // Of a head that several share: one for each, and its adjoint is the sum of theirs.
  auto for_each_head = [&](const Expr& e, const std::string& layout) {
    auto axis = static_cast<int64_t>(layout.find('H'));
    return group == 1 ? e : apply("repeat", {e}, {{"repeats", group}, {"axis", axis}});
  };
  auto of_shared_head = [&](const Expr& e, const Expr& like, const std::string& layout) {
    if (group == 1) return e;
    auto axis = static_cast<int64_t>(layout.find('H'));
    std::vector<Dim> shape = type_of(like).shape;
    shape.insert(shape.begin() + axis + 1, dim(group));
    return sum_over(reshape_to(e, shape), {axis + 1});
  };
  Expr k = for_each_head(ctx.arg(1), a.key_layout), v = for_each_head(ctx.arg(2), a.value_layout);
  const Expr& g = ctx.adjoint();
  Expr products = a.scale * product(query + "," + key + "->" + scores, q, k) + mask;
  int64_t keys = a.transpose_mask ? 2 : 3;
  Expr p = apply("nn.softmax", {products}, {{"axis", keys}});
  Expr dp = product(out + "," + value + "->" + scores, g, v);
  Expr ds = p * (dp - sum_over(dp * p, {keys}, true)), scaled = a.scale * ds;
  return {
      product(scores + "," + key + "->" + query, scaled, k),
      of_shared_head(product(scores + "," + query + "->" + key, scaled, q), ctx.arg(1),
                     a.key_layout),
      of_shared_head(product(scores + "," + out + "->" + value, p, g), ctx.arg(2), a.value_layout),
      unbroadcast(ds, mask)};
}

// ---- Batching

// Lanes are more of the batch where all layouts begin with it.
Expr batch_attention(const BatchingContext& ctx) {
  auto& a = ctx.attrs<AttentionAttrs>();
  for (const std::string* layout :
       {&a.query_layout, &a.key_layout, &a.value_layout, &a.out_layout}) {
    if (!layout->starts_with('B')) return nullptr;
  }
  std::vector<Expr> args;
  for (size_t i = 0; i < 3; ++i) {
    args.push_back(in_lanes(ctx, i));
    if (!has_named_sizes(args[i])) return nullptr;
    args[i] = fold_lanes(args[i], 0);
  }
  const std::vector<Dim>& mask = type_of(ctx.call.args[3]).shape;
  bool one_for_all = mask.size() < 4 || as_const(mask[0]) == 1;
  args.push_back(ctx.arg(3));
  if (ctx.batched[3] || !one_for_all) {
    Expr all = lanes_of_rank(in_lanes(ctx, 3), 4);
    std::vector<Dim> shape = type_of(all).shape;
    shape[1] = type_of(ctx.call.args[0]).shape[0];
    if (std::ranges::any_of(shape, is_any)) return nullptr;
    args[3] = fold_lanes(apply("broadcast_to", {all}, {{"shape", shape_value(shape)}}), 0);
  }
  return unfold_lanes(same_call(ctx, std::move(args)), 0, ctx.lanes, ctx.call.type);
}

}  // namespace

template <>
std::span<const OpInfo> rows_of<Family::Attention>() {
  static const OpInfo rows[] = {
      {
          .name = "nn.attention",
          .doc = "softmax(scale * query * transposed key + mask) * value for each head, with one "
                 "softmax over "
                 "all keys for each query.",
          .args = {{"query", "The queries, in query_layout."},
                   {"key",
                    "The keys, in key_layout; of fewer heads where several heads of queries, one "
                    "after another, share one."},
                   {"value", "One value for each key, in value_layout."},
                   {"mask",
                    "Added to the products; broadcasts to (batch, heads, queries, keys), with "
                    "transpose_mask to (batch, heads, keys, queries). 0 adds nothing."}},
          .attrs = &AttentionAttrs::static_info(),
          .support_level = 10,
          .fusion = FusionClass::OutEWiseFusable,
          .effect = Effect::Pure,
          .relation = attention_relation,
          .compute = compute_rule(attention_compute),
          .contraction = Absent::NotOneSum,
          .layout = Absent::AxesAsWritten,
          .memory = Absent::OnePiece,
          .precision = Precision::Always,
          .cost = attention_cost,
          .gradient = attention_gradient,
          .batching = batch_attention,
          .examples = {{{"Tensor[(1, 2, 5, 4), float32]", "Tensor[(1, 2, 6, 4), float32]",
                         "Tensor[(1, 2, 6, 3), float32]", "Tensor[(5, 6), float32]"},
                        "scale=0.5"},
                       {{"Tensor[(2, 5, 2, 4), float32]", "Tensor[(2, 6, 2, 4), float32]",
                         "Tensor[(2, 2, 6, 3), float32]", "Tensor[(2, 1, 1, 6), float32]"},
                        "query_layout=\"BSHD\", key_layout=\"BSHD\", out_layout=\"BSHD\""},
                       {{"Tensor[(1, 2, 5, 4), float32]", "Tensor[(1, 2, 6, 4), float32]",
                         "Tensor[(1, 2, 6, 3), float32]", "Tensor[(2, 6, 5), float32]"},
                        "transpose_mask=True"},
                       {{"Tensor[(2, 6, 5, 4), float32]", "Tensor[(2, 2, 6, 4), float32]",
                         "Tensor[(2, 6, 2, 3), float32]", "Tensor[(5, 6), float32]"},
                        "value_layout=\"BSHD\""}},
          .expected = Absent::ByNumPy,
      },
  };
  return rows;
}

}  // namespace relay::ops
