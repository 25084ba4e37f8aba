// Gradients of operators, as PyTorch's differentiation leaves them in a graph: derivatives of what the operators are here.
#include <functional>
#include <unordered_map>

#include "analysis/definitions.h"
#include "base/codes/frontend.h"
#include "base/codes/types.h"
#include "frontend/common/activation.h"
#include "frontend/common/attention.h"
#include "frontend/common/norm.h"
#include "frontend/common/pool.h"
#include "frontend/common/window.h"
#include "frontend/torch/layers.h"
#include "frontend/torch/node_context.h"
#include "grad/dataflow.h"
#include "node/walk.h"

namespace relay::frontend::torch {
namespace {

using Forward = std::function<Expr(const std::vector<Expr>& args)>;

// The adjoints of the arguments of a function, at these arguments, from that of its result.
std::vector<Expr> adjoints(NodeContext& ctx, const std::vector<Expr>& args, const Expr& adjoint,
                           const Forward& forward) {
  std::vector<Var> params;
  for (const Expr& a : args) params.push_back(var("x", a->type, ctx.span()));
  Expr body = forward({params.begin(), params.end()});
  // Operators without a gradient rule of their own are differentiated in their definitions.
  const Function f = expand_for_gradients(function(std::move(params), std::move(body)));
  const std::vector<Expr> vars(f->params.begin(), f->params.end());
  const Expr seed = ctx.cast(adjoint, Builder::dtype_of(f->body));
  const auto all = dataflow_gradient({{f->body, {seed}}}, vars);
  std::unordered_map<const relay::Node*, NodeRef> given;
  for (size_t i = 0; i < vars.size(); ++i) given.emplace(vars[i].get(), args[i]);
  std::vector<Expr> out;
  for (size_t i = 0; i < vars.size(); ++i) {
    size_t next = 0;
    out.push_back(
        cast<ExprNode>(substitute(gradient_value(vars[i], all[i], next), given, family::program)));
  }
  return out;
}

// Of one argument.
Values adjoint_of(NodeContext& ctx, const char* argument,
                  const std::function<Expr(const Expr&)>& forward) {
  Expr grad = ctx.tensor("grad_output");
  return {value_of(adjoints(ctx, {ctx.tensor(argument)}, grad,
                            [&](const std::vector<Expr>& args) { return forward(args[0]); })[0])};
}

// Of an image, which may lack the axis of a batch.
Values image_adjoint(NodeContext& ctx, int64_t nd,
                     const std::function<Expr(const Expr&)>& forward) {
  const Batched grad = batched(ctx, ctx.tensor("grad_output"), nd);
  const Batched x = batched(ctx, ctx.tensor("self"), nd);
  return unbatched(ctx, x, {adjoints(ctx, {x.x}, grad.x, [&](const std::vector<Expr>& args) {
                     return forward(args[0]);
                   })[0]});
}

// Which gradients are wanted.
std::vector<bool> mask_of(NodeContext& ctx, size_t count) {
  std::vector<bool> out;
  const Argument* a = ctx.find("output_mask");
  if (a != nullptr) {
    for (const Element& e : a->elements) {
      const bool* wanted = std::get_if<bool>(&e);
      out.push_back(wanted == nullptr || *wanted);
    }
  }
  out.resize(count, true);
  return out;
}

// Gradients one after the other, null for those that are not wanted.
Values masked(const std::vector<Expr>& gradients, const std::vector<bool>& mask) {
  Values out;
  for (size_t i = 0; i < gradients.size(); ++i)
    out.push_back(mask[i] && gradients[i] ? value_of(gradients[i]) : nullptr);
  return out;
}

std::vector<int64_t> all_but(int64_t rank, int64_t axis) {
  std::vector<int64_t> out;
  for (int64_t a = 0; a < rank; ++a)
    if (a != axis) out.push_back(a);
  return out;
}

Values convolution_backward(NodeContext& ctx) {
  Expr grad = ctx.tensor("grad_output"), x = ctx.tensor("input"), w = ctx.tensor("weight");
  ctx.find("bias_sizes");
  const std::vector<bool> mask = mask_of(ctx, 3);
  const Convolution c = convolution_of(ctx, Builder::rank_of(w) - 2, w);
  const std::vector<Expr> both = adjoints(ctx, {x, w}, grad, [&](const std::vector<Expr>& args) {
    return c.apply(ctx, args[0], args[1]);
  });
  Expr bias = ctx.reduce("sum", grad, all_but(Builder::rank_of(grad), 1), false);
  return masked({both[0], both[1], bias}, mask);
}

template <int64_t kRank>
Values avg_pool_backward(NodeContext& ctx) {
  return image_adjoint(ctx, kRank, [&](const Expr& x) { return average_pool(ctx, x, kRank); });
}
template <int64_t kRank>
Values adaptive_pool_backward(NodeContext& ctx) {
  return image_adjoint(ctx, kRank, [&](const Expr& x) {
    std::vector<int64_t> size;
    const Expr grad = ctx.tensor("grad_output");
    for (int64_t a = Builder::rank_of(grad) - kRank; a < Builder::rank_of(grad); ++a)
      size.push_back(ctx.const_dim(grad, a, "a size of the result"));
    return adaptive_average_pool(ctx, x, size);
  });
}

Values replication_pad_backward(NodeContext& ctx) {
  return adjoint_of(ctx, "self", [&](const Expr& x) { return padded(ctx, x, "padding", "edge"); });
}

// ---- Normalisations ----------------------------------------------------------------------------

Values layer_norm_backward(NodeContext& ctx) {
  Expr grad = ctx.tensor("grad_out"), x = ctx.tensor("input");
  Expr gamma = ctx.tensor_or_null("weight"), beta = ctx.tensor_or_null("bias");
  const Expr mean = ctx.tensor("mean"), rstd = ctx.tensor("rstd");
  const int64_t rank = Builder::rank_of(x);
  const int64_t axis = rank - static_cast<int64_t>(ctx.sizes("normalized_shape").size());
  if (axis < 0) ctx.fail(codes::frontend_attribute, "normalized_shape does not fit the input");
  std::vector<int64_t> inner, outer;
  for (int64_t a = 0; a < rank; ++a) (a < axis ? outer : inner).push_back(a);
  // With n = (x - mean) * rstd: rstd * (g - mean(g) - n * mean(g * n)).
  Expr normal = ctx.mul(ctx.sub(x, mean), rstd);
  Expr g = gamma ? ctx.mul(grad, gamma) : grad;
  Expr dx = ctx.sub(ctx.sub(g, ctx.reduce("mean", g, inner, true)),
                    ctx.mul(normal, ctx.reduce("mean", ctx.mul(g, normal), inner, true)));
  return masked(
      {ctx.mul(dx, rstd), gamma ? ctx.reduce("sum", ctx.mul(grad, normal), outer, false) : nullptr,
       beta ? ctx.reduce("sum", grad, outer, false) : nullptr},
      mask_of(ctx, 3));
}

Values batch_norm_backward(NodeContext& ctx) {
  Expr grad = ctx.tensor("grad_out"), x = ctx.tensor("input"), gamma = ctx.tensor_or_null("weight");
  const bool training = ctx.truth("train", false);
  const double epsilon = ctx.real("eps", 1e-5);
  const Expr running_mean = ctx.tensor_or_null("running_mean"),
             running_var = ctx.tensor_or_null("running_var");
  const Expr save_mean = ctx.tensor_or_null("save_mean"),
             save_invstd = ctx.tensor_or_null("save_invstd");
  const int64_t rank = Builder::rank_of(x);
  const std::vector<int64_t> axes = all_but(rank, 1);
  auto channel = [&](const Expr& e) { return ctx.expand_dims(e, 1, rank - 2); };
  Expr mean = training ? save_mean : running_mean, inverse = save_invstd;
  if (!training && running_var)
    inverse = ctx.call("rsqrt", {ctx.add(running_var, ctx.scalar_like(epsilon, running_var))});
  if (!mean || !inverse) ctx.fail(codes::frontend_graph, "the statistics are missing");
  Expr normal = ctx.mul(ctx.sub(x, channel(mean)), channel(inverse));
  Expr g = gamma ? ctx.mul(grad, channel(gamma)) : grad;
  Expr dx = g;
  if (training) {
    dx = ctx.sub(ctx.sub(g, ctx.reduce("mean", g, axes, true)),
                 ctx.mul(normal, ctx.reduce("mean", ctx.mul(g, normal), axes, true)));
  }
  return masked({ctx.mul(dx, channel(inverse)),
                 gamma ? ctx.reduce("sum", ctx.mul(grad, normal), axes, false) : nullptr,
                 ctx.reduce("sum", grad, axes, false)},
                mask_of(ctx, 3));
}

Values group_norm_backward(NodeContext& ctx) {
  Expr grad = ctx.tensor("grad_out"), x = ctx.tensor("input"), gamma = ctx.tensor_or_null("weight");
  const Expr mean = ctx.tensor("mean"), rstd = ctx.tensor("rstd");
  for (const char* name : {"N", "C", "HxW"}) ctx.find(name);
  const int64_t groups = ctx.integer("group"), rank = Builder::rank_of(x);
  const int64_t channels = ctx.const_dim(x, 1, "the channels");
  if (groups < 1 || channels % groups != 0)
    ctx.fail(codes::frontend_attribute, "the groups do not divide the channels");
  const std::vector<Dim> from = Builder::shape_of(x);
  std::vector<Dim> split{from[0], dim(groups), dim(channels / groups)};
  split.insert(split.end(), from.begin() + 2, from.end());
  std::vector<int64_t> axes;
  for (int64_t a = 2; a < rank + 1; ++a) axes.push_back(a);
  auto grouped = [&](const Expr& e) { return ctx.reshape(e, split); };
  auto spread = [&](const Expr& e) { return ctx.expand_dims(e, 2, rank - 1); };
  Expr normal = ctx.mul(ctx.sub(grouped(x), spread(mean)), spread(rstd));
  Expr g = grouped(gamma ? ctx.mul(grad, ctx.expand_dims(gamma, 1, rank - 2)) : grad);
  Expr dx = ctx.sub(ctx.sub(g, ctx.reduce("mean", g, axes, true)),
                    ctx.mul(normal, ctx.reduce("mean", ctx.mul(g, normal), axes, true)));
  const std::vector<int64_t> outer = all_but(rank, 1);
  return masked(
      {ctx.reshape(ctx.mul(dx, spread(rstd)), from),
       gamma ? ctx.reduce("sum", ctx.mul(grad, ctx.reshape(normal, from)), outer, false) : nullptr,
       ctx.reduce("sum", grad, outer, false)},
      mask_of(ctx, 3));
}

// ---- Functions of one element ------------------------------------------------------------------

Values gelu_backward(NodeContext& ctx) {
  const bool by_tanh = ctx.text("approximate", "none") == "tanh";
  return adjoint_of(ctx, "self",
                    [&](const Expr& x) { return by_tanh ? gelu_by_tanh(ctx, x) : gelu(ctx, x); });
}
template <Expr (*kFunction)(const Builder&, const Expr&)>
Values derivative(NodeContext& ctx) {
  return adjoint_of(ctx, "self", [&](const Expr& x) { return kFunction(ctx, x); });
}
Expr silu(const Builder& build, const Expr& x) { return swish(build, x); }
Expr hardsigmoid(const Builder& build, const Expr& x) {
  return hard_sigmoid(build, x, 1.0 / 6, 0.5);
}

Values tanh_backward(NodeContext& ctx) {
  Expr y = ctx.tensor("output");
  return {
      value_of(ctx.mul(ctx.tensor("grad_output"), ctx.sub(ctx.scalar_like(1, y), ctx.mul(y, y))))};
}
Values sigmoid_backward(NodeContext& ctx) {
  Expr y = ctx.tensor("output");
  return {
      value_of(ctx.mul(ctx.tensor("grad_output"), ctx.mul(y, ctx.sub(ctx.scalar_like(1, y), y))))};
}
// The adjoint where the test holds.
Values where_inside(NodeContext& ctx, const Expr& inside) {
  Expr grad = ctx.tensor("grad_output");
  return {value_of(ctx.where(inside, grad, ctx.scalar_like(0, grad)))};
}
Values threshold_backward(NodeContext& ctx) {
  Expr x = ctx.tensor("self");
  return where_inside(ctx, ctx.call("greater", {x, ctx.scalar_like(ctx.real("threshold"), x)}));
}
Values hardtanh_backward(NodeContext& ctx) {
  Expr x = ctx.tensor("self");
  return where_inside(
      ctx,
      ctx.call("logical_and", {ctx.call("greater", {x, ctx.scalar_like(ctx.real("min_val"), x)}),
                               ctx.call("less", {x, ctx.scalar_like(ctx.real("max_val"), x)})}));
}
Values leaky_relu_backward(NodeContext& ctx) {
  Expr x = ctx.tensor("self"), grad = ctx.tensor("grad_output");
  ctx.find("self_is_result");  // the sign of the result is that of the argument
  Expr above = ctx.call("greater", {x, ctx.scalar_like(0, x)});
  return {value_of(
      ctx.where(above, grad, ctx.mul(grad, ctx.scalar_like(ctx.real("negative_slope"), grad))))};
}
Values softplus_backward(NodeContext& ctx) {
  Expr x = ctx.tensor("self"), grad = ctx.tensor("grad_output");
  const double beta = ctx.real("beta", 1);
  Expr scaled = ctx.mul(x, ctx.scalar_like(beta, x));
  Expr above = ctx.call("greater", {scaled, ctx.scalar_like(ctx.real("threshold", 20), x)});
  return {value_of(ctx.where(above, grad, ctx.mul(grad, ctx.call("sigmoid", {scaled}))))};
}

Values softmax_backward(NodeContext& ctx) {
  Expr grad = ctx.tensor("grad_output"), y = ctx.tensor("output");
  ctx.find("input_dtype");
  const std::vector<int64_t> axis{ctx.axis_of("dim", Builder::rank_of(y), std::nullopt)};
  if (Builder::rank_of(y) == 0) return {value_of(ctx.scalar_like(0, y))};
  Expr product = ctx.mul(grad, y);
  return {value_of(ctx.sub(product, ctx.mul(y, ctx.reduce("sum", product, axis, true))))};
}
Values log_softmax_backward(NodeContext& ctx) {
  Expr grad = ctx.tensor("grad_output"), y = ctx.tensor("output");
  ctx.find("input_dtype");
  const std::vector<int64_t> axis{ctx.axis_of("dim", Builder::rank_of(y), std::nullopt)};
  if (Builder::rank_of(y) == 0) return {value_of(ctx.scalar_like(0, y))};
  return {
      value_of(ctx.sub(grad, ctx.mul(ctx.call("exp", {y}), ctx.reduce("sum", grad, axis, true))))};
}

// ---- Attention and images ----------------------------------------------------------------------

Values attention_backward(NodeContext& ctx) {
  Expr grad = ctx.tensor("grad_out");
  if (ctx.real("dropout_p", 0) != 0) ctx.unsupported("attention with dropout");
  ctx.tensor("out");
  ctx.tensor("logsumexp");  // the weights are computed again
  AttentionSpec spec;
  if (ctx.has("scale")) spec.scale = ctx.real("scale");
  spec.causal = ctx.truth("is_causal", false);
  spec.mask = ctx.tensor_or_null("attn_mask");
  const std::vector<Expr> all =
      adjoints(ctx, {ctx.tensor("query"), ctx.tensor("key"), ctx.tensor("value")}, grad,
               [&](const std::vector<Expr>& args) {
                 return attention(ctx, args[0], args[1], args[2], spec).y;
               });
  return {value_of(all[0]), value_of(all[1]), value_of(all[2])};
}

// An image at another size is linear in the image.
Values resize_backward(NodeContext& ctx, ResizeSpec spec, int64_t nd) {
  Expr grad = ctx.tensor("grad_output");
  ctx.sizes("output_size");
  const std::vector<Dim> shape = ctx.sizes("input_size");
  if (static_cast<int64_t>(shape.size()) != nd + 2 || Builder::rank_of(grad) != nd + 2)
    ctx.fail(codes::frontend_attribute, "input_size does not fit the image");
  const Resizing resizing = resizing_of(ctx, std::move(spec), nd);
  const std::vector<Dim>& out = Builder::shape_of(grad);
  Expr zeros = ctx.full(0, shape, Builder::dtype_of(grad));
  return {value_of(adjoints(ctx, {zeros}, grad, [&](const std::vector<Expr>& args) {
    return resizing.apply(ctx, args[0], {out.begin() + 2, out.end()});
  })[0])};
}
template <int64_t kRank>
Values nearest_backward(NodeContext& ctx) {
  return resize_backward(ctx, nearest_spec(), kRank);
}
template <int64_t kRank>
Values linear_backward(NodeContext& ctx) {
  return resize_backward(ctx, smooth_spec(ctx, "linear"), kRank);
}
template <int64_t kRank>
Values nearest_exact_backward(NodeContext& ctx) {
  return resize_backward(ctx, nearest_exact_spec(), kRank);
}
Values cubic_backward(NodeContext& ctx) {
  return resize_backward(ctx, smooth_spec(ctx, "cubic"), 2);
}
Values filtered_linear_backward(NodeContext& ctx) {
  return resize_backward(ctx, antialias_spec(ctx, "linear"), 2);
}
Values filtered_cubic_backward(NodeContext& ctx) {
  return resize_backward(ctx, antialias_spec(ctx, "cubic"), 2);
}

Values grid_sampler_backward(NodeContext& ctx) {
  const SampleSpec spec = sample_spec(ctx);
  const std::vector<Expr> both = adjoints(
      ctx, {ctx.tensor("input"), ctx.tensor("grid")}, ctx.tensor("grad_output"),
      [&](const std::vector<Expr>& args) { return grid_sample(ctx, args[0], args[1], spec); });
  return masked(both, mask_of(ctx, 2));
}

// The gradient outside of [-lambd, lambd], and zeros within.
Values shrink_backward(NodeContext& ctx) {
  Expr x = ctx.tensor("self"), grad = ctx.tensor(ctx.has("grad_out") ? "grad_out" : "grad_output");
  Expr bound = ctx.number_as(*ctx.number("lambd"), Builder::dtype_of(x));
  Expr inside = ctx.call("less_equal", {ctx.call("abs", {x}), bound});
  return {value_of(ctx.where(inside, ctx.scalar_like(0, grad), grad))};
}

}  // namespace

template <>
std::span<const Row> rows<Family::Backward>() {
  static constexpr Row kRows[] = {
      {"aten.convolution_backward.default", convolution_backward},
      {"aten.avg_pool2d_backward.default", avg_pool_backward<2>},
      {"aten.avg_pool3d_backward.default", avg_pool_backward<3>},
      {"aten._adaptive_avg_pool2d_backward.default", adaptive_pool_backward<2>},
      {"aten._adaptive_avg_pool3d_backward.default", adaptive_pool_backward<3>},
      {"aten.replication_pad1d_backward.default", replication_pad_backward},
      {"aten.replication_pad2d_backward.default", replication_pad_backward},
      {"aten.replication_pad3d_backward.default", replication_pad_backward},
      {"aten.native_layer_norm_backward.default", layer_norm_backward, kInFloat32},
      {"aten.native_batch_norm_backward.default", batch_norm_backward, kInFloat32},
      {"aten.native_group_norm_backward.default", group_norm_backward, kInFloat32},
      {"aten.gelu_backward.default", gelu_backward, kInFloat32},
      {"aten.silu_backward.default", derivative<silu>, kInFloat32},
      {"aten.mish_backward.default", derivative<mish>, kInFloat32},
      {"aten.hardswish_backward.default", derivative<hard_swish>, kInFloat32},
      {"aten.hardsigmoid_backward.default", derivative<hardsigmoid>, kInFloat32},
      {"aten.tanh_backward.default", tanh_backward, kInFloat32},
      {"aten.sigmoid_backward.default", sigmoid_backward, kInFloat32},
      {"aten.threshold_backward.default", threshold_backward},
      {"aten.hardtanh_backward.default", hardtanh_backward},
      {"aten.leaky_relu_backward.default", leaky_relu_backward},
      {"aten.softplus_backward.default", softplus_backward, kInFloat32},
      {"aten._softmax_backward_data.default", softmax_backward, kInFloat32},
      {"aten._log_softmax_backward_data.default", log_softmax_backward, kInFloat32},
      {"aten._scaled_dot_product_flash_attention_for_cpu_backward.default", attention_backward,
       kInFloat32},
      {"aten.upsample_nearest1d_backward.default", nearest_backward<1>},
      {"aten.upsample_nearest2d_backward.default", nearest_backward<2>},
      {"aten.upsample_nearest3d_backward.default", nearest_backward<3>},
      {"aten.upsample_linear1d_backward.default", linear_backward<1>, kInFloat32},
      {"aten.upsample_bilinear2d_backward.default", linear_backward<2>, kInFloat32},
      {"aten.upsample_trilinear3d_backward.default", linear_backward<3>, kInFloat32},
      {"aten._upsample_nearest_exact1d_backward.default", nearest_exact_backward<1>},
      {"aten._upsample_nearest_exact2d_backward.default", nearest_exact_backward<2>},
      {"aten._upsample_nearest_exact3d_backward.default", nearest_exact_backward<3>},
      {"aten.upsample_bicubic2d_backward.default", cubic_backward, kInFloat32},
      {"aten._upsample_bilinear2d_aa_backward.default", filtered_linear_backward, kInFloat32},
      {"aten._upsample_bicubic2d_aa_backward.default", filtered_cubic_backward, kInFloat32},
      {"aten.grid_sampler_2d_backward.default", grid_sampler_backward, kInFloat32},
      {"aten.grid_sampler_3d_backward.default", grid_sampler_backward, kInFloat32},
      {"aten.hardshrink_backward.default", shrink_backward},
      {"aten.softshrink_backward.default", shrink_backward},
  };
  return kRows;
}

}  // namespace relay::frontend::torch
