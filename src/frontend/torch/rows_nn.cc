// Convolutions, normalisations and pools.
#include <algorithm>
#include <numeric>

#include "base/codes/frontend.h"
#include "base/codes/types.h"
#include "frontend/common/image.h"
#include "frontend/common/norm.h"
#include "frontend/common/pool.h"
#include "frontend/common/window.h"
#include "frontend/torch/layers.h"
#include "frontend/torch/node_context.h"

namespace relay::frontend::torch {
namespace {

// ---- Convolutions ------------------------------------------------------------------------------

Values convolve(NodeContext& ctx, std::optional<bool> transposed) {
  Expr w = ctx.tensor("weight");
  const int64_t nd = Builder::rank_of(w) - 2;
  const Batched b = batched(ctx, ctx.tensor("input"), nd);
  Convolution c = convolution_of(ctx, nd, w);
  if (transposed) c.transposed = *transposed;
  const Argument* padding = ctx.find("padding");
  if (padding != nullptr && !padding->is_list &&
      std::holds_alternative<std::string>(padding->elements[0])) {
    const std::string word = ctx.text("padding", "");
    if (word == "same") {
      // Where the sum is odd, the greater part is at the end.
      pad_to_same(ctx, b.x, true, c.window);
    } else if (word != "valid") {
      ctx.fail(codes::frontend_attribute, "argument 'padding' has an unknown value",
               "same or valid", shorten(word));
    }
  }
  return unbatched(ctx, b,
                   {with_channel_bias(ctx, c.apply(ctx, b.x, w), ctx.tensor_or_null("bias"))});
}

Values conv(NodeContext& ctx) { return convolve(ctx, false); }
Values conv_transpose(NodeContext& ctx) { return convolve(ctx, true); }
Values convolution_row(NodeContext& ctx) { return convolve(ctx, std::nullopt); }

// ---- Normalisations ----------------------------------------------------------------------------

// With n elements for each channel, their variance divided by n - 1, as running statistics have it.
Expr unbiased(NodeContext& ctx, const Expr& variance, const Expr& x) {
  Dim n = Builder::shape_of(x)[0];
  for (int64_t a = 2; a < Builder::rank_of(x); ++a)
    n = n * Builder::shape_of(x)[static_cast<size_t>(a)];
  const DType dtype = Builder::dtype_of(variance);
  if (auto count = as_const(n)) {
    const double by =
        *count > 1 ? static_cast<double>(*count) / static_cast<double>(*count - 1) : 1;
    return ctx.mul(variance, ctx.scalar(by, dtype));
  }
  Expr count = ctx.cast(ctx.expr_of(value_of(known_scalar(n))), dtype);
  return ctx.mul(variance, ctx.div(count, ctx.sub(count, ctx.scalar(1, dtype))));
}

struct Normalised {
  Expr y, mean, inverse, running_mean, running_variance;
};

Normalised normalise_batch(NodeContext& ctx, bool training) {
  Expr x = ctx.tensor("input");
  if (Builder::rank_of(x) < 2) ctx.fail(codes::type_rank, "the input needs a channel dimension");
  Expr gamma = ctx.tensor_or_null("weight"), beta = ctx.tensor_or_null("bias");
  const double epsilon = ctx.real("eps", 1e-5), momentum = ctx.real("momentum", 0.1);
  Expr old_mean = ctx.tensor_or_null("running_mean"),
       old_variance = ctx.tensor_or_null("running_var");
  if (!training) {
    if (!old_mean || !old_variance)
      ctx.fail(codes::frontend_graph, "the running statistics are missing");
    return {batch_norm(ctx, x, gamma, beta, old_mean, old_variance, epsilon),
            {},
            {},
            old_mean,
            old_variance};
  }
  BatchNorm n = batch_norm_of_batch(ctx, x, gamma, beta, epsilon);
  Normalised out{n.y,
                 n.mean,
                 ctx.call("rsqrt", {ctx.add(n.variance, ctx.scalar_like(epsilon, n.variance))}),
                 {},
                 {}};
  if (old_mean) out.running_mean = running_average(ctx, old_mean, n.mean, 1 - momentum);
  if (old_variance) {
    out.running_variance =
        running_average(ctx, old_variance, unbiased(ctx, n.variance, x), 1 - momentum);
  }
  return out;
}

// Statistics that are not computed are empty.
Expr or_empty(NodeContext& ctx, const Expr& e, size_t output) {
  return e ? e : ctx.full(0, ctx.out_shape(output), ctx.out_dtype(output));
}

Values batch_norm_row(NodeContext& ctx) {
  const bool training = ctx.truth("training", false);
  const Normalised n = normalise_batch(ctx, training);
  if (training && n.running_mean) ctx.write("running_mean", n.running_mean);
  if (training && n.running_variance) ctx.write("running_var", n.running_variance);
  Values out{value_of(n.y)};
  if (ctx.outputs().size() > 2) {
    out.push_back(value_of(or_empty(ctx, n.mean, 1)));
    out.push_back(value_of(or_empty(ctx, n.inverse, 2)));
  }
  return out;
}

Values batch_norm_inference(NodeContext& ctx) {
  const Normalised n = normalise_batch(ctx, false);
  return {value_of(n.y), value_of(or_empty(ctx, {}, 1)), value_of(or_empty(ctx, {}, 2))};
}

// The running statistics are results.
Values batch_norm_functional(NodeContext& ctx) {
  const Normalised n = normalise_batch(ctx, ctx.truth("training", false));
  return {value_of(n.y), value_of(or_empty(ctx, n.mean, 1)), value_of(or_empty(ctx, n.inverse, 2)),
          value_of(n.running_mean), value_of(n.running_variance)};
}

// Training, with a further result in which other devices keep something.
Values batch_norm_with_update(NodeContext& ctx) {
  const Normalised n = normalise_batch(ctx, true);
  if (n.running_mean) ctx.write("running_mean", n.running_mean);
  if (n.running_variance) ctx.write("running_var", n.running_variance);
  return {value_of(n.y), value_of(n.mean), value_of(n.inverse), value_of(or_empty(ctx, {}, 3))};
}

int64_t first_normalised(NodeContext& ctx, const Expr& x) {
  const std::vector<Dim> shape = ctx.sizes("normalized_shape");
  const int64_t axis = Builder::rank_of(x) - static_cast<int64_t>(shape.size());
  if (axis < 0 || shape.empty())
    ctx.fail(codes::frontend_attribute, "normalized_shape does not fit the input");
  for (size_t i = 0; i < shape.size(); ++i) {
    if (dim_differs(shape[i], Builder::shape_of(x)[static_cast<size_t>(axis) + i]))
      ctx.fail(codes::frontend_attribute, "normalized_shape does not fit the input");
  }
  return axis;
}

Values layer_norm_row(NodeContext& ctx) {
  Expr x = ctx.tensor("input");
  Expr gamma = ctx.tensor_or_null("weight"), beta = ctx.tensor_or_null("bias");
  const double epsilon = ctx.real("eps", 1e-5);
  const int64_t axis = first_normalised(ctx, x);
  if (ctx.outputs().size() < 2) return {value_of(layer_norm(ctx, x, gamma, beta, axis, epsilon))};
  const Moments m = layer_norm_with_moments(ctx, x, gamma, beta, axis, epsilon);
  return {value_of(m.normalised), value_of(m.mean), value_of(m.inverse_deviation)};
}

Values rms_norm_row(NodeContext& ctx) {
  Expr x = ctx.tensor("input");
  const DType dtype = ctx.out_dtype();
  const double least = dtype.is_bfloat16() ? 0.0078125
                       : dtype.bits == 16  ? 0.0009765625
                       : dtype.bits == 64  ? 2.220446049250313e-16
                                           : 1.1920928955078125e-07;
  const double epsilon = ctx.real("eps", least);
  return {
      value_of(rms_norm(ctx, x, ctx.tensor_or_null("weight"), first_normalised(ctx, x), epsilon))};
}

Values group_norm_row(NodeContext& ctx) {
  Expr x = ctx.tensor("input");
  const int64_t groups = ctx.integer(ctx.has("num_groups") ? "num_groups" : "group");
  for (const char* name : {"N", "C", "HxW"}) ctx.find(name);
  const double epsilon = ctx.real("eps", 1e-5);
  Expr gamma = ctx.tensor_or_null("weight"), beta = ctx.tensor_or_null("bias");
  Values out{value_of(group_norm(ctx, x, gamma, beta, groups, epsilon))};
  if (ctx.outputs().size() < 3) return out;
  // The moments of each group.
  const std::vector<Dim> from = Builder::shape_of(x);
  const int64_t channels = ctx.const_dim(x, 1, "the channels");
  std::vector<Dim> split{from[0], dim(groups), dim(channels / groups)};
  split.insert(split.end(), from.begin() + 2, from.end());
  Expr grouped = ctx.reshape(x, split);
  std::vector<int64_t> axes(split.size() - 2);
  std::iota(axes.begin(), axes.end(), 2);
  const Moments m = normalise(ctx, grouped, axes, epsilon);
  out.push_back(value_of(ctx.squeeze(m.mean, axes)));
  out.push_back(value_of(ctx.squeeze(m.inverse_deviation, axes)));
  return out;
}

Values instance_norm_row(NodeContext& ctx) {
  Expr x = ctx.tensor("input");
  Expr gamma = ctx.tensor_or_null("weight"), beta = ctx.tensor_or_null("bias");
  const double epsilon = ctx.real("eps", 1e-5);
  ctx.find("momentum");
  if (!ctx.truth("use_input_stats", true)) {
    return {value_of(batch_norm(ctx, x, gamma, beta, ctx.tensor("running_mean"),
                                ctx.tensor("running_var"), epsilon))};
  }
  if (ctx.has("running_mean") || ctx.has("running_var"))
    ctx.unsupported("an instance normalisation that keeps statistics");
  return {value_of(instance_norm(ctx, x, gamma, beta, epsilon))};
}

// ---- Pools -------------------------------------------------------------------------------------

template <int64_t kRank>
Values max_pool(NodeContext& ctx) {
  const Batched b = batched(ctx, ctx.tensor("self"), kRank);
  const Pooled p = pool(ctx, PoolKind::Max, b.x, pool_spec(ctx, kRank));
  std::vector<Expr> out{p.y};
  if (ctx.outputs().size() > 1) out.push_back(places_of_maxima(ctx, p, PlacesIn::Channel));
  return unbatched(ctx, b, std::move(out));
}

// Maxima where they were, and zeros around them.
template <int64_t kRank>
Values max_unpool(NodeContext& ctx) {
  for (const char* name : {"stride", "padding", "output_size"})
    if (ctx.has(name)) ctx.sizes(name);
  Expr places = ctx.tensor("indices");
  const Batched b = batched(ctx, ctx.tensor("self"), kRank);
  std::vector<Dim> shape = ctx.out_shape();
  if (b.added) {
    shape.insert(shape.begin(), dim(1));
    places = ctx.expand_dims(places, 0);
  }
  return unbatched(ctx, b, {unpool(ctx, b.x, places, PlacesIn::Channel, shape)});
}

// ---- Sampling ----------------------------------------------------------------------------------

Values grid_sampler(NodeContext& ctx) {
  const SampleSpec spec = sample_spec(ctx);
  return {value_of(grid_sample(ctx, ctx.tensor("input"), ctx.tensor("grid"), spec))};
}

Values affine_grid_row(NodeContext& ctx) {
  std::vector<int64_t> size = ctx.ints("size");
  if (size.size() < 4) ctx.fail(codes::frontend_attribute, "the size has too few entries");
  size.erase(size.begin(), size.begin() + 2);
  return {value_of(affine_grid(ctx, ctx.tensor("theta"), size, ctx.truth("align_corners", false)))};
}

template <int64_t kRank>
Values avg_pool(NodeContext& ctx) {
  const Batched b = batched(ctx, ctx.tensor("self"), kRank);
  return unbatched(ctx, b, {average_pool(ctx, b.x, kRank)});
}

template <int64_t kRank>
Values adaptive_avg_pool(NodeContext& ctx) {
  const Batched b = batched(ctx, ctx.tensor("self"), kRank);
  return unbatched(ctx, b,
                   {adaptive_average_pool(ctx, b.x, ctx.ints_for("output_size", kRank, 1))});
}

}  // namespace

template <>
std::span<const Row> rows<Family::Nn>() {
  static constexpr Row kRows[] = {
      {"aten.convolution.default", convolution_row},
      {"aten.conv1d.default", conv},
      {"aten.conv1d.padding", conv},
      {"aten.conv2d.default", conv},
      {"aten.conv2d.padding", conv},
      {"aten.conv3d.default", conv},
      {"aten.conv3d.padding", conv},
      {"aten.conv_transpose1d.default", conv_transpose},
      {"aten.conv_transpose2d.input", conv_transpose},
      {"aten.conv_transpose3d.input", conv_transpose},
      {"aten.batch_norm.default", batch_norm_row, kInFloat32},
      {"aten.native_batch_norm.default", batch_norm_row, kInFloat32},
      {"aten._native_batch_norm_legit.default", batch_norm_row, kInFloat32},
      {"aten._native_batch_norm_legit_no_training.default", batch_norm_inference, kInFloat32},
      {"aten._native_batch_norm_legit_functional.default", batch_norm_functional, kInFloat32},
      {"aten._batch_norm_with_update.default", batch_norm_with_update, kInFloat32},
      {"aten.layer_norm.default", layer_norm_row, kInFloat32},
      {"aten.native_layer_norm.default", layer_norm_row, kInFloat32},
      {"aten.rms_norm.default", rms_norm_row, kInFloat32},
      {"aten.group_norm.default", group_norm_row, kInFloat32},
      {"aten.native_group_norm.default", group_norm_row, kInFloat32},
      {"aten.instance_norm.default", instance_norm_row, kInFloat32},
      {"aten.max_pool1d.default", max_pool<1>},
      {"aten.max_pool2d.default", max_pool<2>},
      {"aten.max_pool3d.default", max_pool<3>},
      {"aten.max_pool1d_with_indices.default", max_pool<1>},
      {"aten.max_pool2d_with_indices.default", max_pool<2>},
      {"aten.max_pool3d_with_indices.default", max_pool<3>},
      {"aten.max_unpool2d.default", max_unpool<2>},
      {"aten.max_unpool3d.default", max_unpool<3>},
      {"aten.grid_sampler.default", grid_sampler},
      {"aten.grid_sampler_2d.default", grid_sampler},
      {"aten.grid_sampler_3d.default", grid_sampler},
      {"aten.affine_grid_generator.default", affine_grid_row},
      {"aten.avg_pool1d.default", avg_pool<1>},
      {"aten.avg_pool2d.default", avg_pool<2>},
      {"aten.avg_pool3d.default", avg_pool<3>},
      {"aten.adaptive_avg_pool1d.default", adaptive_avg_pool<1>},
      {"aten.adaptive_avg_pool2d.default", adaptive_avg_pool<2>},
      {"aten._adaptive_avg_pool2d.default", adaptive_avg_pool<2>},
      {"aten.adaptive_avg_pool3d.default", adaptive_avg_pool<3>},
      {"aten._adaptive_avg_pool3d.default", adaptive_avg_pool<3>},
  };
  return kRows;
}

}  // namespace relay::frontend::torch
