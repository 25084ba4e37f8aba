// What pools and their gradients share.
#pragma once

#include <string>

#include "ops/gradient.h"
#include "ops/image/window.h"

namespace relay::ops {

struct PoolAttrs : AttrsNode {
  Ints pool_size, strides, dilation, padding;
  std::string layout, out_layout;
  bool ceil_mode = false, count_include_pad = false;

 protected:
  PoolAttrs(const NodeInfo& info, size_t dims, const char* data)
      : AttrsNode(info), strides(dims, 1), dilation(dims, 1), padding(dims, 0), layout(data) {}
};

struct AdaptivePoolAttrs : AttrsNode {
  Ints output_size;
  std::string layout, out_layout;

 protected:
  AdaptivePoolAttrs(const NodeInfo& info, const char* data) : AttrsNode(info), layout(data) {}
};

struct GlobalPool2DAttrs : AttrsOf<GlobalPool2DAttrs> {
  std::string layout = "NCHW", out_layout;
  static AttrsList describe() {
    return {"relay.attrs.GlobalPool2DAttrs",
            {attribute("layout", &Self::layout, "Layout of the input."),
             attribute("out_layout", &Self::out_layout, "Layout of the result.")}};
  }
};

// The layout of a pool's data, NC and the spatial axes in any order; fails in `ctx` for others.
std::optional<Layout> pool_layout_of(RelationContext& ctx, const std::string& text, size_t dims,
                                     const TensorTypeNode& x);
// The shape of a pool's result; fails in `ctx` where attributes or data do not fit.
std::optional<std::vector<Dim>> pooled_shape(RelationContext& ctx, const PoolAttrs& a, size_t dims,
                                             const TensorTypeNode& x);

// The windows of a pool along one spatial axis: tap `k` of window `i` is element i * stride + k * dilation - pad_begin.
struct WindowAxis {
  size_t at;      // in the layout
  int64_t count;  // taps of a window
  int64_t stride, dilation, pad_begin;
  bool reads_outside;  // whether some tap of some window is in the border

  PrimExpr element(const PrimExpr& window, const PrimExpr& tap) const {
    return window * stride + tap * dilation - pad_begin;
  }
};

// The windows that the attributes say, of data and a result of these shapes. Taps that are in the border for all windows
// are left out, where sizes are known: a window may be far larger than the image, and costs what lies inside.
std::vector<WindowAxis> window_axes(const PoolAttrs& a, const std::vector<PrimExpr>& data,
                                    const std::vector<PrimExpr>& windows);

// The element of the data that a tap of the window `i` is.
Indices element_of(const std::vector<WindowAxis>& axes, const Indices& i, const Indices& taps);
// Whether the element at `at` of data of a shape is inside it along the axes that may read outside.
PrimExpr inside_image(const std::vector<WindowAxis>& axes, const std::vector<PrimExpr>& shape,
                      const Indices& at);

// The places of the greatest elements of windows, and the operators that move values between both (ops/image/pool_places.cc).
OpInfo max_pool_places_row();
OpInfo max_pool_gather_row();
OpInfo max_pool_spread_row();

// Of pools over windows of kDims dimensions (1 to 3).
template <size_t kDims>
Adjoints average_pool_gradient(const GradientContext& ctx);
template <size_t kDims>
Adjoints max_pool_gradient(const GradientContext& ctx);
// Of pools to a given size, and over everything.
template <bool kAverage>
Adjoints adaptive_gradient(const GradientContext& ctx);
template <bool kAverage>
Adjoints global_gradient(const GradientContext& ctx);

}  // namespace relay::ops
