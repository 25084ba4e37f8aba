// Pooling of windows over spatial axes, which are those from 2 on: greatest elements, means and norms, and maxima that
// are put back where they were.
#pragma once

#include <vector>

#include "frontend/common/window.h"

namespace relay::frontend {

enum class PoolKind { Max, Average };

struct PoolSpec {
  Window window;
  // Whether a last window may reach past the padded input; it begins before the end padding.
  bool ceil = false;
  // Whether means count the padding. What a window reaches past it is never counted.
  bool count_padding = false;
};

struct Pooled {
  Expr y;
  // The windows stand in this input: the one that was given or, where the padding had to be written out, that one padded.
  Expr x;
  Window window;
};

// Where a size is open, a run decides with `ceil` where the last window stands.
Pooled pool(const Builder& build, PoolKind kind, const Expr& x, const PoolSpec& spec);

// What places of elements are counted through: the whole tensor, or the spatial axes of each channel alone.
enum class PlacesIn { Tensor, Channel };
// Where the maxima of a pooling stand in its input, int64 and shaped as the result. The last axis is counted fastest or,
// with `column_major`, the first spatial one.
Expr places_of_maxima(const Builder& build, const Pooled& pooled, PlacesIn places,
                      bool column_major = false);
// A tensor of this shape with the elements of `x` at these places of the same shape, and zeros around them.
Expr unpool(const Builder& build, const Expr& x, const Expr& places, PlacesIn counted,
            const std::vector<Dim>& shape);
// The shape that a pooling with this window had as input, without what its strides left over; E0505 for open sizes.
std::vector<Dim> unpooled_shape(const Builder& build, const Expr& x, const Window& window);

// The p-th root of the sum of p-th powers of absolute values, of each window. E0505 for open sizes with `ceil`.
Expr norm_pool(const Builder& build, const Expr& x, const PoolSpec& spec, double p);

// One window over all spatial axes, which are kept with a size of 1.
Expr global_pool(const Builder& build, PoolKind kind, const Expr& x);
Expr global_norm_pool(const Builder& build, const Expr& x, double p);

}  // namespace relay::frontend
