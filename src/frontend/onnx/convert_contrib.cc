// com.microsoft: what ONNX Runtime's optimisers make of several operators, and images with their channels last. Attention is
// in convert_transformer.cc, what is quantised in convert_quantize.cc.
#include <limits>
#include <numeric>

#include "base/codes/frontend.h"
#include "base/codes/types.h"
#include "frontend/common/activation.h"
#include "frontend/common/norm.h"
#include "frontend/common/open_args.h"
#include "frontend/onnx/activation_names.h"
#include "frontend/onnx/converters.h"
#include "frontend/onnx/window.h"

namespace relay::frontend::onnx {
namespace {

// What attribute 'activation' says, with its numbers in 'activation_params' or in attributes of their own.
Expr activated(NodeContext& ctx, Expr y) {
  const std::string name = ctx.attr_string("activation", "");
  const std::vector<double> params = ctx.attr_floats("activation_params");
  auto param = [&](size_t i, double otherwise) {
    static constexpr const char* kNames[] = {"activation_alpha", "activation_beta"};
    return i < params.size() ? params[i] : ctx.attr_float(kNames[i], otherwise);
  };
  if (name.empty()) return y;
  if (name == "Clip") {
    constexpr double kMost = std::numeric_limits<float>::max();
    return ctx.clip(y, param(0, -kMost), param(1, kMost));
  }
  const ActivationName* row = find_activation(name);
  if (row == nullptr) ctx.unsupported("activation " + name.substr(0, 100));
  return activate(
      ctx, {row->kind, param(0, row->alpha.value_or(0)), param(1, row->beta.value_or(0))}, y);
}

// ---- Convolutions and pooling

// (x, weights, bias, what is added to the result)
Values convert_fused_conv(NodeContext& ctx) {
  Expr y = with_channel_bias(ctx, convolution(ctx, ctx.in(0), ctx.in(1)), ctx.in_if_given(2));
  if (ctx.has(3)) y = ctx.add(y, ctx.in(3));
  return {value_of(activated(ctx, y))};
}

// NhwcConv has its weights as (outputs, kernel, inputs), NhwcFusedConv as Conv has them.
Values convert_nhwc_conv(NodeContext& ctx) {
  const bool turned = ctx.op_type() == "NhwcConv";
  Expr x = channels_first(ctx, ctx.in(0));
  Expr w = turned ? channels_first(ctx, ctx.in(1)) : ctx.in(1);
  Expr y = convolution(ctx, x, w);
  y = channels_last(ctx, with_channel_bias(ctx, y, ctx.in_if_given(2)));
  if (ctx.has(3)) y = ctx.add(y, ctx.in(3));
  return {value_of(activated(ctx, y))};
}

Values convert_nhwc_max_pool(NodeContext& ctx) {
  return {value_of(channels_last(ctx, pooled(ctx, PoolKind::Max, channels_first(ctx, ctx.in(0)))))};
}

// ---- Normalisation

// GroupNorm (x, gamma, beta) and SkipGroupNorm (x, gamma, beta, skip, bias), which gives the sum, too.
Values convert_contrib_group_norm(NodeContext& ctx) {
  const bool last = ctx.attr("channels_last", 1) != 0;
  Expr sum = ctx.in(0);
  const int64_t rank = NodeContext::rank_of(sum);
  if (rank < 3) ctx.fail(codes::type_rank, "the input needs spatial axes", "rank 3 or more");
  if (ctx.has(3)) {
    Expr skip = ctx.in(3);
    // (batch, channels) holds for all pixels.
    if (NodeContext::rank_of(skip) == 2) skip = ctx.expand_dims(skip, last ? 1 : 2, rank - 2);
    sum = ctx.add(sum, skip);
  }
  if (ctx.has(4)) {
    Expr bias = ctx.in(4);
    sum = ctx.add(sum, last ? bias : ctx.expand_dims(bias, 1, rank - 2));
  }
  Expr x = last ? channels_first(ctx, sum) : sum;
  const DType dtype = NodeContext::dtype_of(x);
  auto vector = [&](size_t input) { return ctx.cast(ctx.in(input), dtype); };
  Expr y = group_norm(ctx, x, vector(1), vector(2), ctx.attr("groups", 0),
                      ctx.attr_float("epsilon", 1e-5));
  if (ctx.attr("activation", 0) != 0) y = swish(ctx, y);
  return {value_of(last ? channels_last(ctx, y) : y), value_of(sum)};
}

Values convert_bias_softmax(NodeContext& ctx) {
  Expr scores = ctx.add(ctx.in(0), ctx.in(1));
  const int64_t rank = NodeContext::rank_of(scores), axis = ctx.axis(ctx.attr("axis", 1), rank);
  if (axis != rank - 1) ctx.unsupported("softmax of joined axes");
  return {value_of(ctx.call("nn.softmax", {scores}, {{"axis", axis}}))};
}

// ---- Element by element

// (x, bias, what is added)
Values convert_bias_add(NodeContext& ctx) {
  return {value_of(ctx.add(ctx.add(ctx.in(0), ctx.in(1)), ctx.in(2)))};
}

// The left half of the channels times Gelu of the right one.
Values convert_bias_split_gelu(NodeContext& ctx) {
  Expr x = ctx.add(ctx.in(0), ctx.in(1));
  std::vector<Expr> half = ctx.split(x, NodeContext::rank_of(x) - 1, 2);
  return {value_of(ctx.mul(half[0], gelu(ctx, half[1])))};
}

// Pairs of a real and an imaginary part in the last axis; of ComplexMulConj the second's complex conjugate.
Values convert_complex_mul(NodeContext& ctx) {
  Expr a = ctx.in(0), b = ctx.in(1);
  const int64_t last = NodeContext::rank_of(a) - 1, other = NodeContext::rank_of(b) - 1;
  if (last < 0 || other < 0 || ctx.const_dim(a, last, "the last axis") != 2 ||
      ctx.const_dim(b, other, "the last axis") != 2) {
    ctx.fail(codes::type_shape, "complex numbers are pairs", "2 in the last axis",
             to_string(a->type) + " and " + to_string(b->type));
  }
  Expr ar = ctx.select(a, last, 0), ai = ctx.select(a, last, 1), br = ctx.select(b, other, 0),
       bi = ctx.select(b, other, 1);
  if (ctx.op_type() == "ComplexMulConj") bi = ctx.call("negative", {bi});
  Expr real = ctx.sub(ctx.mul(ar, br), ctx.mul(ai, bi));
  Expr imaginary = ctx.add(ctx.mul(ar, bi), ctx.mul(ai, br));
  return {value_of(ctx.call("stack", {ctx.tuple_of({real, imaginary})}, {{"axis", int64_t{-1}}}))};
}

// Whether no element of any input is NaN or infinite.
Values convert_is_all_finite(NodeContext& ctx) {
  const bool nan = ctx.attr("isinf_only", 0) == 0, inf = ctx.attr("isnan_only", 0) == 0;
  Expr all;
  for (const Expr& x : ctx.all()) {
    Expr bad = nan && inf ? ctx.call("logical_not", {ctx.call("isfinite", {x})})
                          : ctx.call(nan ? "isnan" : "isinf", {x});
    const std::vector<int64_t> axes = Builder::all_axes(NodeContext::rank_of(x));
    Expr good = ctx.call("logical_not", {ctx.reduce("any", bad, axes, false)});
    all = all ? ctx.call("logical_and", {all, good}) : good;
  }
  if (!all) ctx.fail(codes::frontend_graph, "there is nothing to check", "one input or more");
  return {value_of(all)};
}

// ---- Matrices

Values convert_fused_gemm(NodeContext& ctx) {
  return {value_of(activated(ctx, general_product(ctx)))};
}

// Distances between the rows of two matrices.
Values convert_cdist(NodeContext& ctx) {
  const std::string metric = ctx.attr_string("metric", "sqeuclidean");
  if (metric != "sqeuclidean" && metric != "euclidean") {
    ctx.unsupported("metric " + metric.substr(0, 100));
  }
  for (size_t i : {0u, 1u}) {
    if (NodeContext::rank_of(ctx.in(i)) == 2) continue;
    ctx.fail(codes::type_rank, "distances are between rows of matrices", "rank 2",
             to_string(ctx.in(i)->type));
  }
  Expr apart = ctx.sub(ctx.expand_dims(ctx.in(0), 1), ctx.expand_dims(ctx.in(1), 0));
  Expr sum = ctx.reduce("sum", ctx.mul(apart, apart), {2}, false);
  return {value_of(metric == "euclidean" ? ctx.call("sqrt", {sum}) : sum)};
}

Values convert_inverse(NodeContext& ctx) { return {value_of(ctx.call("linalg.inv", {ctx.in(0)}))}; }

// The x of A x = B, for a vector or the columns of a matrix.
Values convert_solve(NodeContext& ctx) {
  Expr a = ctx.in(0), b = ctx.in(1);
  if (NodeContext::rank_of(a) < 2) {
    ctx.fail(codes::type_rank, "the first operand must be a matrix", "rank 2 or more",
             to_string(a->type));
  }
  if (ctx.attr("transposed", 0) != 0) a = ctx.swap_last(a);
  return {value_of(ctx.matmul(ctx.call("linalg.inv", {a}), b))};
}

Values convert_contrib_expand_dims(NodeContext& ctx) {
  Expr x = ctx.in(0);
  const int64_t rank = NodeContext::rank_of(x);
  return {value_of(ctx.expand_dims(x, ctx.axis(ctx.const_int(1, "the axis"), rank + 1)))};
}

}  // namespace

template <>
std::span<const ConverterRow> converter_rows<Converters::Contrib>() {
  static constexpr ConverterRow rows[] = {
      {kMicrosoft, "BiasAdd", 1, convert_bias_add, kInFloat32},
      {kMicrosoft, "BiasSoftmax", 1, convert_bias_softmax, kInFloat32},
      {kMicrosoft, "BiasSplitGelu", 1, convert_bias_split_gelu, kInFloat32},
      {kMicrosoft, "CDist", 1, convert_cdist, kInFloat32},
      {kMicrosoft, "ComplexMul", 1, convert_complex_mul, kInFloat32},
      {kMicrosoft, "ComplexMulConj", 1, convert_complex_mul, kInFloat32},
      {kMicrosoft, "ExpandDims", 1, convert_contrib_expand_dims},
      {kMicrosoft, "FusedConv", 1, convert_fused_conv},
      {kMicrosoft, "FusedGemm", 1, convert_fused_gemm},
      {kMicrosoft, "GroupNorm", 1, convert_contrib_group_norm, kInFloat32},
      {kMicrosoft, "Inverse", 1, convert_inverse},
      {kMicrosoft, "IsAllFinite", 1, convert_is_all_finite},
      {kMicrosoft, "NhwcConv", 1, convert_nhwc_conv},
      {kMicrosoft, "NhwcFusedConv", 1, convert_nhwc_conv},
      {kMicrosoft, "NhwcMaxPool", 1, convert_nhwc_max_pool},
      {kMicrosoft, "SkipGroupNorm", 1, convert_contrib_group_norm, kInFloat32},
      {kMicrosoft, "Solve", 1, convert_solve},
  };
  return rows;
}

}  // namespace relay::frontend::onnx
