// Normalisations: elements less their mean, divided by their deviation, over the batch, channels, groups or last axes.
//
// Channels are along axis 1. `gamma` scales and `beta` shifts what is normalised; null for neither.
#pragma once

#include <vector>

#include "frontend/common/builder.h"

namespace relay::frontend {

// With these means and variances of channels, all vectors.
Expr batch_norm(const Builder& build, const Expr& x, const Expr& gamma, const Expr& beta,
                const Expr& mean, const Expr& variance, double epsilon);

// With the means and variances of the batch itself, which are vectors in at least float32. The variance is that of all
// elements, divided by their number.
struct BatchNorm {
  Expr y, mean, variance;
};
BatchNorm batch_norm_of_batch(const Builder& build, const Expr& x, const Expr& gamma,
                              const Expr& beta, double epsilon);
// keep * old + (1 - keep) * now, in the dtype of `old`.
Expr running_average(const Builder& build, const Expr& old, const Expr& now, double keep);

// Elements less their mean over some axes, times the inverse of their deviation. Both keep the axes with a size of 1.
struct Moments {
  Expr mean, inverse_deviation, normalised;
};
Moments normalise(const Builder& build, const Expr& x, const std::vector<int64_t>& axes,
                  double epsilon);

// Over the axes from `axis` on; gamma and beta broadcast against them.
Expr layer_norm(const Builder& build, const Expr& x, const Expr& gamma, const Expr& beta,
                int64_t axis, double epsilon);
// The same with the moments, all in the dtype of `x`; `normalised` is scaled and shifted.
Moments layer_norm_with_moments(const Builder& build, const Expr& x, const Expr& gamma,
                                const Expr& beta, int64_t axis, double epsilon);
// Divided by the root of the mean of squares, over the axes from `axis` on.
Expr rms_norm(const Builder& build, const Expr& x, const Expr& gamma, int64_t axis, double epsilon);

// Over all axes behind the channels, for each channel or for each of `groups` of channels.
Expr instance_norm(const Builder& build, const Expr& x, const Expr& gamma, const Expr& beta,
                   double epsilon);
// E0504 for a number of groups that does not divide the channels.
Expr group_norm(const Builder& build, const Expr& x, const Expr& gamma, const Expr& beta,
                int64_t groups, double epsilon);

// Divided by the sum of absolute values (`p` is 1) or the root of the sum of squares (2) along an axis; a line of zeros
// stays one.
Expr unit_norm(const Builder& build, const Expr& x, int64_t axis, int64_t p);

}  // namespace relay::frontend
