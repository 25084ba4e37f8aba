// Matrix products, those of groups of rows, and attention.
#include <algorithm>
#include <functional>

#include "base/codes/frontend.h"
#include "frontend/common/attention.h"
#include "frontend/common/einsum.h"
#include "frontend/common/step_loop.h"
#include "frontend/torch/node_context.h"
#include "ir/dim_fields.h"
#include "ir/op.h"
#include "node/structural.h"

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
Expr matrix_product(NodeContext& ctx, const Expr& a, const Expr& b) {
  if (Expr weight = transposed_of(b); weight && Builder::rank_of(a) >= 1)
    return ctx.call("nn.dense", {a, weight});
  return ctx.matmul(a, b);
}

// A product to which something is added: of 16-bit floats it is in float32, so that only the sum is rounded.
Expr unrounded_product(NodeContext& ctx, const Expr& a, const Expr& b) {
  const DType f32 = DType::Float(32), dtype = Builder::dtype_of(a);
  if (!dtype.is_floating() || dtype.bits != 16) return matrix_product(ctx, a, b);
  const AttrList wide{{"out_dtype", to_value(f32)}};
  if (Expr weight = transposed_of(b); weight && Builder::rank_of(a) >= 1)
    return ctx.call("nn.dense", {a, weight}, wide);
  if (Builder::rank_of(a) >= 2 && Builder::rank_of(b) == 2)
    return ctx.call("nn.matmul", {a, b}, wide);
  return ctx.matmul(ctx.cast(a, f32), ctx.cast(b, f32));
}

Values matmul(NodeContext& ctx) {
  Expr a = ctx.tensor("self");
  Expr b = ctx.tensor(ctx.has("mat2") ? "mat2" : ctx.has("vec") ? "vec" : "other");
  return {value_of(matrix_product(ctx, a, b))};
}

Values dot(NodeContext& ctx) {
  Expr a = ctx.tensor("self"), b = ctx.tensor(ctx.has("tensor") ? "tensor" : "other");
  return {value_of(ctx.matmul(a, b))};
}

Values linear(NodeContext& ctx) {
  Expr x = ctx.tensor("input"), weight = ctx.tensor("weight");
  Expr bias = ctx.tensor_or_null("bias");
  if (bias == nullptr) return {value_of(ctx.call("nn.dense", {x, weight}))};
  Expr y = unrounded_product(ctx, x, ctx.transpose(weight, {1, 0}));
  bias = ctx.cast(bias, Builder::dtype_of(y));
  y = Builder::rank_of(bias) == 1 ? ctx.call("nn.bias_add", {y, bias}, {{"axis", int64_t{-1}}})
                                  : ctx.add(y, bias);
  return {value_of(ctx.cast(y, Builder::dtype_of(x)))};
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
  const char* first = ctx.has("mat1")     ? "mat1"
                      : ctx.has("batch1") ? "batch1"
                      : ctx.has("mat")    ? "mat"
                                          : "vec1";
  const char* second = ctx.has("mat2")     ? "mat2"
                       : ctx.has("batch2") ? "batch2"
                       : ctx.has("vec")    ? "vec"
                                           : "vec2";
  Expr a = ctx.tensor(first), b = ctx.tensor(second);
  if (std::string_view(second) == "vec2") {
    a = ctx.expand_dims(a, 1);
    b = ctx.expand_dims(b, 0);
  }
  const DType dtype = Builder::dtype_of(a);
  Expr y = unrounded_product(ctx, a, b);
  if (ctx.relay_op() == "sum") y = ctx.reduce("sum", y, {0}, false);
  y = scaled(ctx, "alpha", y);
  auto beta = ctx.number("beta");
  Expr self = ctx.tensor("self");
  if (beta && beta->is_known() && beta->as_double() == 0)
    return {value_of(ctx.cast(ctx.broadcast_to(y, ctx.out_shape()), dtype))};
  self = scaled(ctx, "beta", ctx.cast(self, Builder::dtype_of(y)));
  const bool is_bias = Builder::rank_of(self) == 1 && Builder::rank_of(y) == 2;
  if (is_bias && dim_equal(Builder::shape_of(self)[0], Builder::shape_of(y)[1]))
    y = ctx.call("nn.bias_add", {y, self}, {{"axis", int64_t{-1}}});
  else
    y = ctx.add(self, y);
  return {value_of(ctx.cast(y, dtype))};
}

Values einsum_row(NodeContext& ctx) {
  std::string equation = ctx.text("equation", "");
  std::erase(equation, ' ');
  ctx.find("path");
  return {value_of(einsum(ctx, equation, ctx.tensors("tensors")))};
}

// The sum over some axes of a product of three, each with further axes of size 1.
Values trilinear(NodeContext& ctx) {
  ctx.find("unroll_dim");
  Expr y;
  for (const char* i : {"1", "2", "3"}) {
    Expr e = ctx.tensor("i" + std::string(i));
    for (int64_t a : ctx.ints("expand" + std::string(i))) e = ctx.expand_dims(e, a);
    y = y ? ctx.mul(y, e) : e;
  }
  std::vector<int64_t> axes = ctx.axes(ctx.ints("sumdim"), Builder::rank_of(y));
  std::ranges::sort(axes);
  return {value_of(ctx.reduce("sum", y, axes, false))};
}

// Of vectors of 3 along an axis.
Values cross(NodeContext& ctx) {
  Expr a = ctx.tensor("self"), b = ctx.tensor("other");
  const std::vector<Dim> shape = ctx.out_shape();
  a = ctx.broadcast_to(a, shape);
  b = ctx.broadcast_to(b, shape);
  const int64_t axis = ctx.axis_of("dim", static_cast<int64_t>(shape.size()), -1);
  auto rolled = [&](const Expr& e, int64_t by) {
    return ctx.concat({ctx.slice(e, axis, by, 3), ctx.slice(e, axis, 0, by)}, axis);
  };
  if (ctx.const_dim(a, axis, "the size of the axis") != 3)
    ctx.fail(codes::frontend_attribute, "a cross product is of vectors of 3");
  return {
      value_of(ctx.sub(ctx.mul(rolled(a, 1), rolled(b, 2)), ctx.mul(rolled(a, 2), rolled(b, 1))))};
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
    right += at == db.end() ? next++
                            : left[static_cast<size_t>(da[static_cast<size_t>(at - db.begin())])];
    if (next == 'z' + 1) next = 'A';
  }
  for (int64_t i = 0; i < Builder::rank_of(a); ++i)
    if (std::ranges::find(da, i) == da.end()) result += left[static_cast<size_t>(i)];
  for (int64_t i = 0; i < Builder::rank_of(b); ++i)
    if (std::ranges::find(db, i) == db.end()) result += right[static_cast<size_t>(i)];
  return {value_of(einsum(ctx, left + "," + right + "->" + result, {a, b}))};
}

// ---- Attention ---------------------------------------------------------------------------------

// Queries, keys and values may have any number of axes before (length, size): they are those of a batch and of heads.
struct Heads {
  std::vector<Dim> lead;  // of the result
  Expr q, k, v, mask;
};

Expr as_four(NodeContext& ctx, Expr e) {
  const int64_t rank = Builder::rank_of(e);
  if (rank > 4) return ctx.merge_axes(std::move(e), 0, static_cast<size_t>(rank) - 3);
  // One head, and one batch.
  if (rank == 3) return ctx.expand_dims(std::move(e), 1);
  return rank == 2 ? ctx.expand_dims(std::move(e), 0, 2) : e;
}

Heads heads_of(NodeContext& ctx) {
  Heads h{{}, ctx.tensor("query"), ctx.tensor("key"), ctx.tensor("value"), {}};
  const std::vector<Dim>& shape = Builder::shape_of(h.q);
  const auto rank = static_cast<int64_t>(shape.size());
  for (const Expr& e : {h.k, h.v}) {
    if (Builder::rank_of(e) != rank || rank < 2)
      ctx.fail(codes::frontend_attribute, "queries, keys and values have different ranks");
  }
  h.lead.assign(shape.begin(), shape.end() - 2);
  h.mask = ctx.tensor_or_null(ctx.has("attn_bias") ? "attn_bias" : "attn_mask");
  if (h.mask) {
    // One entry stands for all keys.
    std::vector<Dim> reach = Builder::shape_of(h.mask);
    if (!reach.empty() && as_const(reach.back()) == 1) {
      reach.back() = Builder::shape_of(h.k)[static_cast<size_t>(rank) - 2];
      h.mask = ctx.broadcast_to(h.mask, reach);
    }
    const int64_t own = Builder::rank_of(h.mask);
    if (rank > 4 && own > 2) {
      std::vector<Dim> wide = h.lead;
      const std::vector<Dim>& last = Builder::shape_of(h.mask);
      wide.insert(wide.end(), last.end() - 2, last.end());
      h.mask = as_four(ctx, ctx.broadcast_to(h.mask, wide));
    } else if (rank == 3 && own == 3) {
      h.mask = ctx.expand_dims(h.mask, 1);
    }
  }
  h.q = as_four(ctx, h.q);
  h.k = as_four(ctx, h.k);
  h.v = as_four(ctx, h.v);
  if (ctx.truth("enable_gqa", false)) share_heads(ctx, h.q, h.k, h.v);
  return h;
}

Values attention_row(NodeContext& ctx) {
  if (ctx.real("dropout_p", 0) != 0 || ctx.has("dropout_mask"))
    ctx.unsupported("attention with dropout");
  ctx.find("compute_log_sumexp");
  ctx.find("return_debug_mask");
  const Heads h = heads_of(ctx);
  AttentionSpec spec;
  if (ctx.has("scale")) spec.scale = ctx.real("scale");
  spec.causal = ctx.truth("is_causal", false);
  spec.mask = h.mask;
  if (h.mask && !Builder::dtype_of(h.mask).is_bool())
    spec.mask = ctx.cast(h.mask, Builder::dtype_of(h.q));
  const bool more = ctx.outputs().size() > 1 && ctx.relay_op() != "plain";
  spec.all_stages = more;
  const AttentionStages stages = attention(ctx, h.q, h.k, h.v, spec);
  auto with_lead = [&](const Expr& e, size_t behind) {
    std::vector<Dim> shape = h.lead;
    const std::vector<Dim>& own = Builder::shape_of(e);
    shape.insert(shape.end(), own.end() - static_cast<std::ptrdiff_t>(behind), own.end());
    return value_of(ctx.reshape(e, shape));
  };
  Values out{with_lead(stages.y, 2)};
  if (!more) return out;
  if (ctx.relay_op() == "weights") {
    out.push_back(with_lead(stages.weights, 2));
  } else {
    // What the gradient of the fused kernel reads.
    Expr sums = ctx.call("logsumexp", {stages.masked},
                         {{"axis", to_value(std::vector<int64_t>{3})}, {"keepdims", false}});
    out.push_back(with_lead(sums, 1));
  }
  return out;
}

// ---- Products of groups of rows -----------------------------------------------------------------

// Indices are those of a group, or of its rows.
Expr at(NodeContext& ctx, const Expr& table, const Expr& index) {
  return ctx.call("take", {table, index}, {{"axis", int64_t{0}}, {"mode", std::string("clip")}});
}

// The consecutive rows of a group: which group, its first row and how many rows it has. Numbers are int64.
struct RowGroup {
  Expr number, first, count;
};

// `made`, to which `add` writes for one group after the other. `ends`: the row behind each group, in ascending order; those outside
// of the rows of x are the first or the last of these, as of a slice. A group without rows writes nothing.
//
//   for group: if begins[group] < ends[group]: made = add(group, made)
Expr for_groups(NodeContext& ctx, const Expr& x, Expr ends, const Expr& made,
                const std::function<Expr(const RowGroup&, const Expr& made)>& add) {
  const int64_t groups = ctx.const_dim(ends, 0, "the number of groups");
  if (groups == 0) ctx.unsupported("a product of no groups");
  const Expr none = ctx.scalar(0, kI64);
  const Expr all = at(ctx, ctx.call("shape_of", {x}, {{"dtype", to_value(kI64)}}), none);
  ends = ctx.minimum(ctx.call("maximum", {ctx.cast(ends, kI64), none}), all);
  Expr begins = ctx.ints(std::vector<int64_t>{0});
  if (groups > 1) begins = ctx.concat({begins, ctx.slice(ends, 0, 0, groups - 1)}, 0);
  const Expr counts = ctx.sub(ends, begins);
  StepLoop loop;
  loop.count = ctx.scalar(static_cast<double>(groups), kI64);
  loop.initial = {made};
  auto step = [&](const Expr& t, const Expr&, const std::vector<Expr>& states) {
    const RowGroup group{t, at(ctx, begins, t), at(ctx, counts, t)};
    Expr has_rows = ctx.call("greater", {group.count, none});
    return Step{{if_(has_rows, add(group, states[0]), states[0], ctx.span())}, {}};
  };
  return run_steps(ctx, loop, step).states[0];
}

Expr one_number(NodeContext& ctx, const Expr& number) { return ctx.expand_dims(number, 0); }

Expr rows_of(NodeContext& ctx, const Expr& e, const RowGroup& group) {
  Expr rows =
      ctx.call("dyn.arange", {group.first, ctx.add(group.first, group.count), ctx.scalar(1, kI64)});
  return at(ctx, e, rows);
}

// Each group of the rows of x (s, k) multiplied by its matrix of w (group, k, n); 0 in other rows. The kernel of a single
// row reads the matrix once, in the order in which it lies.
Expr product_by_groups(NodeContext& ctx, const Expr& x, const Expr& w, const Expr& ends) {
  const Dim &rows = Builder::shape_of(x)[0], &columns = Builder::shape_of(w)[2];
  // Matrices are selected where they lie, and transposed by the product.
  const auto* turned = as<CallNode>(w);
  const bool is_transpose = is_call_to(w, "transpose") && Builder::rank_of(turned->args[0]) == 3 &&
                            structural_equal(ctx.swap_last(turned->args[0]), w);
  Expr zeros = ctx.full(0, {rows, columns}, Builder::dtype_of(x));
  return for_groups(ctx, x, ends, zeros, [&](const RowGroup& group, const Expr& made) {
    // Each kernel selects the matrix itself: one that both branches read is a copy.
    auto product = [&](const Expr& own) {
      const Expr which = one_number(ctx, group.number);
      Expr matrix = at(ctx, is_transpose ? turned->args[0] : w, which);
      Expr y = ctx.call("nn.batch_matmul", {ctx.expand_dims(own, 0), matrix},
                        {{"transpose_b", is_transpose}});
      return ctx.call("update_slice", {made, ctx.squeeze(y, {0}), group.first});
    };
    return if_(ctx.call("equal", {group.count, ctx.scalar(1, kI64)}),
               product(at(ctx, x, one_number(ctx, group.first))), product(rows_of(ctx, x, group)),
               ctx.span());
  });
}

// Of each group of the rows of x (s, m) and of y (s, n) the product (m, n), summed over the rows.
Expr sum_by_groups(NodeContext& ctx, const Expr& x, const Expr& y, const Expr& ends) {
  Expr zeros =
      ctx.full(0, {Builder::shape_of(ends)[0], Builder::shape_of(x)[1], Builder::shape_of(y)[1]},
               Builder::dtype_of(x));
  return for_groups(ctx, x, ends, zeros, [&](const RowGroup& group, const Expr& made) {
    Expr sums = ctx.matmul(ctx.swap_last(rows_of(ctx, x, group)), rows_of(ctx, y, group));
    return ctx.call("update_slice", {made, ctx.expand_dims(sums, 0), group.number});
  });
}

// Groups of rows, of columns, or of what is summed over; without groups the products of a batch.
Values grouped_product(NodeContext& ctx) {
  Expr a = ctx.tensor("self"), b = ctx.tensor("mat2");
  Expr ends = ctx.tensor_or_null("offs");
  ctx.find("out_dtype");
  if (ctx.has("bias")) ctx.unsupported("a bias of a grouped product");
  const bool a_is_batch = Builder::rank_of(a) == 3, b_is_batch = Builder::rank_of(b) == 3;
  if ((ends == nullptr) != (a_is_batch && b_is_batch))
    ctx.unsupported("a grouped product of these ranks with these offsets");
  Expr y;
  if (ends == nullptr) {
    y = ctx.matmul(a, b);
  } else if (b_is_batch) {
    y = product_by_groups(ctx, a, b, ends);
  } else if (a_is_batch) {
    y = ctx.swap_last(product_by_groups(ctx, ctx.swap_last(b), ctx.swap_last(a), ends));
  } else {
    y = sum_by_groups(ctx, ctx.swap_last(a), b, ends);
  }
  return {value_of(ctx.cast(y, ctx.out_dtype()))};
}

// The operator by which transformers multiplies by the weights of experts, and its gradients.
Values expert_product(NodeContext& ctx) {
  return {value_of(
      product_by_groups(ctx, ctx.tensor("input"), ctx.tensor("weight"), ctx.tensor("offs")))};
}

Values expert_gradients(NodeContext& ctx) {
  Expr x = ctx.tensor("input"), w = ctx.tensor("weight"), ends = ctx.tensor("offs");
  Expr g = ctx.tensor("grad_output");
  return {value_of(product_by_groups(ctx, g, ctx.swap_last(w), ends)),
          value_of(sum_by_groups(ctx, x, g, ends))};
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
      {"aten._trilinear.default", trilinear, kInFloat32},
      {"aten.linalg_cross.default", cross},
      {"aten.outer.default", outer},
      {"aten.ger.default", outer},
      {"aten.tensordot.default", tensordot},
      {"aten.scaled_dot_product_attention.default", attention_row, "plain", kInFloat32},
      {"aten._scaled_dot_product_attention_math.default", attention_row, "weights", kInFloat32},
      {"aten._scaled_dot_product_flash_attention_for_cpu.default", attention_row, "sum",
       kInFloat32},
      {"aten._grouped_mm.default", grouped_product},
      {"transformers.grouped_mm_fallback.default", expert_product},
      {"transformers.grouped_mm_fallback_backward.default", expert_gradients},
  };
  return kRows;
}

}  // namespace relay::frontend::torch
