// Arguments of layers that rows of the layers and of their gradients read alike.
#pragma once

#include <string>
#include <vector>

#include "frontend/common/image.h"
#include "frontend/common/pool.h"
#include "frontend/common/resize.h"
#include "frontend/common/window.h"
#include "frontend/torch/node_context.h"

namespace relay::frontend::torch {

// An image without the axis of a batch has one of size 1 put before it, which the result loses again.
struct Batched {
  Expr x;
  bool added = false;
};
Batched batched(NodeContext& ctx, Expr x, int64_t nd);
Values unbatched(NodeContext& ctx, const Batched& from, std::vector<Expr> results);

struct Convolution {
  Window window;
  std::vector<int64_t> extra;  // of a transposed one
  int64_t groups = 1;
  bool transposed = false;

  // Without a bias, of an image with a batch.
  Expr apply(const Builder& build, const Expr& x, const Expr& w) const;
};
// As "stride", "padding" in numbers, "dilation", "transposed", "output_padding" and "groups" say.
Convolution convolution_of(NodeContext& ctx, int64_t nd, const Expr& w);

// As "kernel_size", "stride", "padding", "dilation" and "ceil_mode" say.
PoolSpec pool_spec(NodeContext& ctx, int64_t nd);
// Means by the same and "count_include_pad" and "divisor_override", of an image with a batch.
Expr average_pool(NodeContext& ctx, const Expr& x, int64_t nd);
Expr adaptive_average_pool(const Builder& build, const Expr& x, const std::vector<int64_t>& size);

// A tensor with a border of widths that PyTorch lists from the last axis on, before and behind each. `fill` is the border
// of the mode "constant", null for zeros.
Expr padded(NodeContext& ctx, const Expr& x, const char* widths, const std::string& mode,
            const Expr& fill = nullptr);

// An image of a batch at another size. Scale factors of all axes, where they are given and the corners are not aligned, say
// where places lie; else the sizes do.
struct Resizing {
  ResizeSpec spec;
  std::vector<double> scales;  // of every spatial axis, or none

  Expr apply(const Builder& build, const Expr& x, const std::vector<Dim>& sizes) const;
};
// As "scale_factors", or "scales" with the axis behind it, say.
Resizing resizing_of(NodeContext& ctx, ResizeSpec spec, int64_t nd);
ResizeSpec nearest_spec();
// To the nearest place, halves upwards.
ResizeSpec nearest_exact_spec();
// As "align_corners" says.
ResizeSpec smooth_spec(NodeContext& ctx, const char* mode);
// The same with a filter as wide as a place of the result, where that is smaller.
ResizeSpec antialias_spec(NodeContext& ctx, const char* mode);

// How a grid reads an image: as "interpolation_mode", "padding_mode" and "align_corners" say.
SampleSpec sample_spec(NodeContext& ctx);

}  // namespace relay::frontend::torch
