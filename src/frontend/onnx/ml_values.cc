#include "frontend/onnx/ml_values.h"

#include <algorithm>
#include <cmath>

#include "base/codes/types.h"

namespace relay::frontend::onnx {
namespace {

// The input as floats: integers become float32.
Expr numbers(NodeContext& ctx, size_t input) {
  Expr x = ctx.in(input);
  return NodeContext::dtype_of(x).is_floating() ? x : ctx.cast(x, DType::Float(32));
}

// 1 / sqrt(2) times the inverse of the error function of 2x - 1, as Winitzki approximates it.
Expr probit(NodeContext& ctx, const Expr& p) {
  auto number = [&](double v) { return ctx.scalar_like(v, p); };
  Expr x = ctx.sub(ctx.mul(p, number(2)), number(1));
  Expr log = ctx.call("log", {ctx.sub(number(1), ctx.mul(x, x))});
  constexpr double kA = 0.147;
  Expr v = ctx.add(number(2 / (M_PI * kA)), ctx.mul(log, number(0.5)));
  Expr root = ctx.call("sqrt", {ctx.sub(ctx.mul(v, v), ctx.mul(log, number(1 / kA)))});
  Expr size = ctx.call("sqrt", {ctx.sub(root, v)});
  return ctx.mul(ctx.mul(size, ctx.call("sign", {x})), number(1.41421356));
}

}  // namespace

Tensor floats(const std::vector<double>& values, DType dtype) {
  Tensor t = Tensor::empty(dtype, {static_cast<int64_t>(values.size())});
  for (size_t i = 0; i < values.size(); ++i) t.set_from_double(static_cast<int64_t>(i), values[i]);
  return t;
}

Expr samples(NodeContext& ctx, size_t input) {
  Expr x = numbers(ctx, input);
  if (NodeContext::rank_of(x) == 1) x = ctx.expand_dims(x, 0);
  if (NodeContext::rank_of(x) != 2) {
    ctx.fail(codes::type_rank, "the input is samples by features", "rank 1 or 2",
             to_string(x->type));
  }
  return x;
}

Expr transformed(NodeContext& ctx, const Expr& scores) {
  const std::string how = ctx.attr_string("post_transform", "NONE");
  const AttrList along{{"axis", int64_t{-1}}};
  if (how == "NONE") return scores;
  if (how == "LOGISTIC") return ctx.call("sigmoid", {scores});
  if (how == "SOFTMAX") return ctx.call("nn.softmax", {scores}, along);
  if (how == "PROBIT") return probit(ctx, scores);
  if (how != "SOFTMAX_ZERO") ctx.unsupported("post_transform '" + how + "'");
  // Scores of zero stay zero.
  Expr zero = ctx.scalar_like(0, scores);
  Expr used = ctx.call("greater", {ctx.call("abs", {scores}), ctx.scalar_like(1e-7, scores)});
  Expr most = ctx.reduce("max", scores, {NodeContext::rank_of(scores) - 1}, true);
  Expr e = ctx.call("where", {used, ctx.call("exp", {ctx.sub(scores, most)}), zero});
  Expr sum = ctx.reduce("sum", e, {NodeContext::rank_of(scores) - 1}, true);
  Expr none = ctx.call("equal", {sum, zero});
  Expr half = ctx.scalar_like(0.5, scores);
  return ctx.call("where", {none, half, ctx.div(e, ctx.call("where", {none, half, sum}))});
}

Tensor class_labels(NodeContext& ctx, const char* ints) {
  std::vector<std::string> words = ctx.attr_strings("classlabels_strings");
  if (!words.empty()) return string_vector(words);
  std::vector<int64_t> v = ctx.attr_ints(ints);
  Tensor t = Tensor::empty(DType::Int(64), {static_cast<int64_t>(v.size())});
  std::copy(v.begin(), v.end(), t.data<int64_t>());
  return t;
}

Expr best_label(NodeContext& ctx, const Expr& scores, const Tensor& labels) {
  Expr best = ctx.call("argmax", {scores}, {{"axis", to_value(std::vector<int64_t>{1})}});
  return ctx.call("take", {ctx.constant(labels), best}, {{"axis", int64_t{0}}});
}

Expr two_columns(NodeContext& ctx, const Expr& second, bool to_one) {
  Expr first =
      to_one ? ctx.sub(ctx.scalar_like(1, second), second) : ctx.call("negative", {second});
  return ctx.concat({first, second}, 1);
}

}  // namespace relay::frontend::onnx
