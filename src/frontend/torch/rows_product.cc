// Matrix products and attention.
#include <algorithm>
#include <cmath>
#include <limits>

#include "base/codes/frontend.h"
#include "frontend/common/einsum.h"
#include "frontend/common/open_args.h"
#include "frontend/torch/node_context.h"
#include "ir/op.h"

namespace relay::frontend::torch {
namespace {

// The matrix of which `e` is the transpose; null for others.
Expr transposed_of(const Expr& e) {
  const auto* call = as<CallNode>(e);
  const auto* op = call == nullptr ? nullptr : as<OpNode>(call->op);
  if (op == nullptr || op->name != "transpose" || Builder::rank_of(e) != 2) return nullptr;
  return call->args[0];
}

// A weight is stored as (outputs, inputs), and its transpose is multiplied by.
Expr product(NodeContext& ctx, const Expr& a, const Expr& b) {
  if (Expr weight = transposed_of(b); weight && Builder::rank_of(a) >= 1)
    return ctx.call("nn.dense", {a, weight});
  return ctx.matmul(a, b);
}

Values matmul(NodeContext& ctx) {
  Expr a = ctx.tensor("self");
  Expr b = ctx.tensor(ctx.has("mat2") ? "mat2" : ctx.has("vec") ? "vec" : "other");
  return {value_of(product(ctx, a, b))};
}

Values dot(NodeContext& ctx) {
  Expr a = ctx.tensor("self"), b = ctx.tensor(ctx.has("tensor") ? "tensor" : "other");
  return {value_of(ctx.matmul(a, b))};
}

Values linear(NodeContext& ctx) {
  Expr y = ctx.call("nn.dense", {ctx.tensor("input"), ctx.tensor("weight")});
  Expr bias = ctx.tensor_or_null("bias");
  if (bias && Builder::rank_of(bias) == 1)
    y = ctx.call("nn.bias_add", {y, bias}, {{"axis", int64_t{-1}}});
  else if (bias)
    y = ctx.add(y, bias);
  return {value_of(y)};
}

Values bilinear(NodeContext& ctx) {
  Expr a = ctx.tensor("input1"), b = ctx.tensor("input2"), w = ctx.tensor("weight");
  Expr y = einsum(ctx, "...i,oij,...j->...o", {a, w, b});
  if (Expr bias = ctx.tensor_or_null("bias")) y = ctx.add(y, bias);
  return {value_of(y)};
}

Expr scaled(NodeContext& ctx, const char* name, Expr e) {
  auto factor = ctx.number(name);
  if (!factor || (factor->is_known() && factor->as_double() == 1)) return e;
  return ctx.mul(e, ctx.number_as(*factor, Builder::dtype_of(e)));
}

// beta * self + alpha * product
Values add_product(NodeContext& ctx) {
  const char *first = ctx.has("mat1") ? "mat1" : ctx.has("batch1") ? "batch1"
                                        : ctx.has("mat")   ? "mat"
                                                           : "vec1";
  const char *second = ctx.has("mat2") ? "mat2" : ctx.has("batch2") ? "batch2"
                                         : ctx.has("vec")   ? "vec"
                                                            : "vec2";
  Expr a = ctx.tensor(first), b = ctx.tensor(second);
  if (std::string_view(second) == "vec2") {
    a = ctx.expand_dims(a, 1);
    b = ctx.expand_dims(b, 0);
  }
  Expr y = product(ctx, a, b);
  if (ctx.relay_op() == "sum") y = ctx.reduce("sum", y, {0}, false);
  y = scaled(ctx, "alpha", y);
  auto beta = ctx.number("beta");
  Expr self = ctx.tensor("self");
  if (beta && beta->is_known() && beta->as_double() == 0)
    return {value_of(ctx.broadcast_to(y, ctx.out_shape()))};
  self = scaled(ctx, "beta", self);
  const bool is_bias = Builder::rank_of(self) == 1 && Builder::rank_of(y) == 2;
  if (is_bias && dim_equal(Builder::shape_of(self)[0], Builder::shape_of(y)[1]))
    return {value_of(ctx.call("nn.bias_add", {y, self}, {{"axis", int64_t{-1}}}))};
  return {value_of(ctx.add(self, y))};
}

Values einsum_row(NodeContext& ctx) {
  std::string equation = ctx.text("equation", "");
  std::erase(equation, ' ');
  ctx.find("path");
  return {value_of(einsum(ctx, equation, ctx.tensors("tensors")))};
}

Values outer(NodeContext& ctx) {
  Expr a = ctx.expand_dims(ctx.tensor("self"), 1), b = ctx.tensor("vec2");
  const DType dtype = ctx.out_dtype();
  return {value_of(ctx.mul(ctx.cast(a, dtype), ctx.cast(b, dtype)))};
}

Values tensordot(NodeContext& ctx) {
  Expr a = ctx.tensor("self"), b = ctx.tensor("other");
  std::vector<int64_t> da = ctx.axes(ctx.ints("dims_self"), Builder::rank_of(a)),
                       db = ctx.axes(ctx.ints("dims_other"), Builder::rank_of(b));
  if (da.size() != db.size())
    ctx.fail(codes::frontend_attribute, "dims_self and dims_other differ in length");
  if (Builder::rank_of(a) + Builder::rank_of(b) > 52) ctx.unsupported("so many dimensions");
  std::string left, right, result;
  char next = 'a';
  for (int64_t i = 0; i < Builder::rank_of(a); ++i) left += next++;
  for (int64_t i = 0; i < Builder::rank_of(b); ++i) {
    auto at = std::ranges::find(db, i);
    right += at == db.end() ? next++ : left[static_cast<size_t>(da[static_cast<size_t>(at - db.begin())])];
    if (next == 'z' + 1) next = 'A';
  }
  for (int64_t i = 0; i < Builder::rank_of(a); ++i)
    if (std::ranges::find(da, i) == da.end()) result += left[static_cast<size_t>(i)];
  for (int64_t i = 0; i < Builder::rank_of(b); ++i)
    if (std::ranges::find(db, i) == db.end()) result += right[static_cast<size_t>(i)];
  return {value_of(einsum(ctx, left + "," + right + "->" + result, {a, b}))};
}

// ---- Attention ---------------------------------------------------------------------------------

Expr swap_last(NodeContext& ctx, const Expr& e) {
  std::vector<int64_t> order = Builder::all_axes(Builder::rank_of(e));
  std::swap(order[order.size() - 1], order[order.size() - 2]);
  return ctx.transpose(e, order);
}

// 0 for keys that a query sees, minus infinity for others. A query sees the keys up to its own place.
Expr causal_mask(NodeContext& ctx, const Expr& scores) {
  const std::vector<Dim>& shape = Builder::shape_of(scores);
  auto places = [&](const Dim& n) -> Expr {
    if (is_any(n)) ctx.fail(codes::frontend_dynamic, "a causal mask of an open size", "a term over sizes");
    return ctx.call("arange", {}, {{"stop", to_value(n)}, {"dtype", to_value(DType::Int(64))}});
  };
  Expr rows = ctx.expand_dims(places(shape[shape.size() - 2]), 1);
  Expr seen = ctx.call("less_equal", {places(shape.back()), rows});
  return ctx.call("where", {seen, ctx.scalar_like(0, scores),
                            ctx.scalar_like(-std::numeric_limits<double>::infinity(), scores)});
}

// Keys or values with as many heads as the queries: groups of queries share one.
Expr shared_heads(NodeContext& ctx, const Expr& e, const Expr& queries) {
  const int64_t rank = Builder::rank_of(e), axis = rank - 3;
  const int64_t have = ctx.const_dim(e, axis, "the number of heads"),
                need = ctx.const_dim(queries, axis, "the number of heads");
  if (have < 1 || need % have != 0)
    ctx.fail(codes::frontend_attribute, "the heads of keys do not divide those of queries");
  if (have == need) return e;
  return ctx.call("repeat", {e}, {{"repeats", need / have}, {"axis", axis}});
}

Values attention(NodeContext& ctx) {
  Expr q = ctx.tensor("query"), k = ctx.tensor("key"), v = ctx.tensor("value");
  if (ctx.real("dropout_p", 0) != 0) ctx.unsupported("attention with dropout");
  if (ctx.has("dropout_mask")) ctx.unsupported("attention with dropout");
  ctx.find("compute_log_sumexp");
  ctx.truth("return_debug_mask", false);
  const int64_t rank = Builder::rank_of(q);
  if (rank < 2) ctx.fail(codes::frontend_attribute, "queries have too few dimensions");
  if (ctx.truth("enable_gqa", false)) {
    k = shared_heads(ctx, k, q);
    v = shared_heads(ctx, v, q);
  }
  double scale = 0;
  if (ctx.has("scale")) {
    scale = ctx.real("scale");
  } else {
    const int64_t size = ctx.const_dim(q, rank - 1, "the size of a head");
    scale = 1 / std::sqrt(static_cast<double>(size));
  }
  Expr scores = ctx.matmul(q, swap_last(ctx, k));
  scores = ctx.mul(scores, ctx.scalar_like(scale, scores));
  const char* name = ctx.has("attn_bias") ? "attn_bias" : "attn_mask";
  Expr mask = ctx.tensor_or_null(name);
  if (mask && Builder::dtype_of(mask).is_bool()) {
    mask = ctx.call("where",
                    {mask, ctx.scalar_like(0, scores),
                     ctx.scalar_like(-std::numeric_limits<double>::infinity(), scores)});
  }
  if (mask) scores = ctx.add(scores, ctx.cast(mask, Builder::dtype_of(scores)));
  if (ctx.truth("is_causal", false)) scores = ctx.add(scores, causal_mask(ctx, scores));
  Expr weights = ctx.call("nn.softmax", {scores}, {{"axis", int64_t{-1}}});
  Values out{value_of(ctx.matmul(weights, v))};
  if (ctx.outputs().size() < 2 || ctx.relay_op() == "plain") return out;
  if (ctx.relay_op() == "weights") {
    out.push_back(value_of(weights));
  } else {
    // What the gradient of the fused kernel reads.
    out.push_back(value_of(
        ctx.call("logsumexp", {scores}, {{"axis", to_value(std::vector<int64_t>{Builder::rank_of(scores) - 1})},
                                         {"keepdims", false}})));
  }
  return out;
}

}  // namespace

template <>
std::span<const Row> rows<Family::Product>() {
  static constexpr Row kRows[] = {
      {"aten.matmul.default", matmul},
      {"aten.mm.default", matmul},
      {"aten.bmm.default", matmul},
      {"aten.mv.default", matmul},
      {"aten.linalg_matmul.default", matmul},
      {"aten.dot.default", dot},
      {"aten.vdot.default", dot},
      {"aten.linear.default", linear},
      {"aten.bilinear.default", bilinear},
      {"aten.addmm.default", add_product},
      {"aten.addmv.default", add_product},
      {"aten.addbmm.default", add_product, "sum"},
      {"aten.baddbmm.default", add_product},
      {"aten.addr.default", add_product},
      {"aten.einsum.default", einsum_row},
      {"aten.outer.default", outer},
      {"aten.ger.default", outer},
      {"aten.tensordot.default", tensordot},
      {"aten.scaled_dot_product_attention.default", attention, "plain", kInFloat32},
      {"aten._scaled_dot_product_attention_math.default", attention, "weights", kInFloat32},
      {"aten._scaled_dot_product_flash_attention_for_cpu.default", attention, "sum", kInFloat32},
  };
  return kRows;
}

}  // namespace relay::frontend::torch
