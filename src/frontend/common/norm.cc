#include "frontend/common/norm.h"

#include "base/codes/frontend.h"
#include "base/codes/types.h"

namespace relay::frontend {
namespace {

std::vector<int64_t> axes_from(const Expr& x, int64_t axis) {
  std::vector<int64_t> axes;
  for (int64_t a = axis; a < Builder::rank_of(x); ++a) axes.push_back(a);
  return axes;
}

Expr in_float32(const Builder& build, const Expr& e) {
  return Builder::dtype_of(e).bits == 16 ? build.cast(e, DType::Float(32)) : e;
}

// A number for each channel, the same one where `given` is null.
Expr for_channels(const Builder& build, const Expr& given, double otherwise, const Expr& x) {
  if (given) return given;
  if (Builder::rank_of(x) < 2) {
    build.fail(codes::type_rank, "the input needs a channel dimension", "rank 2 or more",
               to_string(x->type));
  }
  return build.full(otherwise, {Builder::shape_of(x)[1]}, Builder::dtype_of(x));
}

}  // namespace

Expr batch_norm(const Builder& build, const Expr& x, const Expr& gamma, const Expr& beta,
                const Expr& mean, const Expr& variance, double epsilon) {
  const DType dtype = Builder::dtype_of(x);
  auto vector = [&](const Expr& e, double otherwise) {
    return build.cast(for_channels(build, e, otherwise, x), dtype);
  };
  Expr all = build.call(
      "nn.batch_norm", {x, vector(gamma, 1), vector(beta, 0), vector(mean, 0), vector(variance, 1)},
      {{"axis", int64_t{1}}, {"epsilon", epsilon}});
  return build.item(all, 0);
}

BatchNorm batch_norm_of_batch(const Builder& build, const Expr& x, const Expr& gamma,
                              const Expr& beta, double epsilon) {
  const int64_t rank = Builder::rank_of(x);
  std::vector<int64_t> axes{0};
  for (int64_t a = 2; a < rank; ++a) axes.push_back(a);
  const DType dtype = Builder::dtype_of(x);
  Expr value = in_float32(build, x);
  const DType wide = Builder::dtype_of(value);
  Expr mean = build.reduce("mean", value, axes, true);
  Expr centred = build.sub(value, mean);
  Expr variance = build.reduce("mean", build.mul(centred, centred), axes, true);
  auto channel = [&](const Expr& e) {
    Expr p = build.cast(e, wide);
    return rank > 2 ? build.expand_dims(p, 1, rank - 2) : p;
  };
  Expr root = build.call("sqrt", {build.add(variance, build.scalar(epsilon, wide))});
  Expr y = build.div(centred, root);
  if (gamma) y = build.mul(y, channel(gamma));
  if (beta) y = build.add(y, channel(beta));
  return {build.cast(y, dtype), build.squeeze(mean, axes), build.squeeze(variance, axes)};
}

Expr running_average(const Builder& build, const Expr& old, const Expr& now, double keep) {
  Expr fresh = build.cast(now, Builder::dtype_of(old));
  return build.add(build.mul(old, build.scalar_like(keep, old)),
                   build.mul(fresh, build.scalar_like(1 - keep, fresh)));
}

Moments normalise(const Builder& build, const Expr& x, const std::vector<int64_t>& axes,
                  double epsilon) {
  Expr mean = build.reduce("mean", x, axes, true);
  Expr centred = build.sub(x, mean);
  Expr variance = build.reduce("mean", build.mul(centred, centred), axes, true);
  Expr root = build.call("sqrt", {build.add(variance, build.scalar_like(epsilon, x))});
  Expr inverse = build.div(build.scalar_like(1, x), root);
  return {mean, inverse, build.mul(centred, inverse)};
}

Expr layer_norm(const Builder& build, const Expr& x, const Expr& gamma, const Expr& beta,
                int64_t axis, double epsilon) {
  const bool along_one = axis == Builder::rank_of(x) - 1;
  const bool is_vector =
      gamma ? Builder::rank_of(gamma) == 1 : along_one && !is_any(Builder::shape_of(x).back());
  if (!along_one || !is_vector) {
    return layer_norm_with_moments(build, x, gamma, beta, axis, epsilon).normalised;
  }
  const DType dtype = Builder::dtype_of(x);
  Expr scale = gamma ? gamma : build.full(1, {Builder::shape_of(x).back()}, dtype);
  Expr shift = beta ? beta : build.full(0, Builder::shape_of(scale), dtype);
  return build.call("nn.layer_norm", {x, scale, shift},
                    {{"axis", int64_t{-1}}, {"epsilon", epsilon}});
}

Moments layer_norm_with_moments(const Builder& build, const Expr& x, const Expr& gamma,
                                const Expr& beta, int64_t axis, double epsilon) {
  const DType dtype = Builder::dtype_of(x);
  const bool narrow = dtype.bits == 16;
  auto wide = [&](const Expr& e) { return narrow ? build.cast(e, DType::Float(32)) : e; };
  Moments m = normalise(build, wide(x), axes_from(x, axis), epsilon);
  if (gamma) m.normalised = build.mul(m.normalised, wide(gamma));
  if (beta) m.normalised = build.add(m.normalised, wide(beta));
  for (Expr* e : {&m.mean, &m.inverse_deviation, &m.normalised}) *e = build.cast(*e, dtype);
  return m;
}

Expr rms_norm(const Builder& build, const Expr& x, const Expr& gamma, int64_t axis,
              double epsilon) {
  Expr wide = in_float32(build, x);
  Expr square = build.reduce("mean", build.mul(wide, wide), axes_from(x, axis), true);
  Expr root = build.call("sqrt", {build.add(square, build.scalar_like(epsilon, wide))});
  Expr y = build.cast(build.div(wide, root), Builder::dtype_of(x));
  return gamma ? build.mul(y, gamma) : y;
}

Expr instance_norm(const Builder& build, const Expr& x, const Expr& gamma, const Expr& beta,
                   double epsilon) {
  return build.call("nn.instance_norm",
                    {x, for_channels(build, gamma, 1, x), for_channels(build, beta, 0, x)},
                    {{"axis", int64_t{1}}, {"epsilon", epsilon}});
}

Expr group_norm(const Builder& build, const Expr& x, const Expr& gamma, const Expr& beta,
                int64_t groups, double epsilon) {
  const int64_t channels = build.const_dim(x, 1, "the number of channels");
  if (groups < 1 || channels % groups != 0) {
    build.fail(codes::frontend_attribute, "the number of groups does not divide the channels",
               "a divisor of " + std::to_string(channels), std::to_string(groups));
  }
  return build.call("nn.group_norm",
                    {x, for_channels(build, gamma, 1, x), for_channels(build, beta, 0, x)},
                    {{"num_groups", groups}, {"axis", int64_t{1}}, {"epsilon", epsilon}});
}

Expr unit_norm(const Builder& build, const Expr& x, int64_t axis, int64_t p) {
  Expr norm;
  if (p == 1) {
    norm = build.reduce("sum", build.call("abs", {x}), {axis}, true);
  } else {
    norm = build.call("sqrt", {build.reduce("sum", build.mul(x, x), {axis}, true)});
  }
  Expr zero = build.call("equal", {norm, build.scalar_like(0, x)});
  return build.div(x, build.where(zero, build.scalar_like(1, x), norm));
}

}  // namespace relay::frontend
