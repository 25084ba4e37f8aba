// Windows that convolutions and pools move over spatial axes, which are those from 2 on but for windows that say otherwise.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "frontend/common/builder.h"

namespace relay::frontend {

inline constexpr int64_t kMaxWindow = int64_t{1} << 31;

// Kernel, strides, dilations and pads of a convolution or pooling over `nd` spatial dimensions.
struct Window {
  std::vector<int64_t> kernel, strides, dilations;
  std::vector<int64_t> begin, end;  // pads
  // Whether images have their channels last: the spatial axes are those from 1 on then.
  bool channels_last = false;

  int64_t first_axis() const { return channels_last ? 1 : 2; }
  // "NCHW" or "NHWC", and the like for 1 and 3 spatial axes.
  std::string layout() const {
    const std::string axes = kernel.size() == 1 ? "W" : kernel.size() == 2 ? "HW" : "DHW";
    return channels_last ? "N" + axes + "C" : "NC" + axes;
  }

  std::vector<int64_t> padding() const {
    std::vector<int64_t> all = begin;
    all.insert(all.end(), end.begin(), end.end());
    return all;
  }
  bool padded() const {
    auto any = [](const std::vector<int64_t>& v) {
      return std::any_of(v.begin(), v.end(), [](int64_t p) { return p != 0; });
    };
    return any(begin) || any(end);
  }
};

// The window whose results are as many as the input has places for its strides: the pads are what is missing. Where
// their sum is odd, the greater one is at the end (`upper`) or at the begin. E0505 for strides over an open size.
void pad_to_same(const Builder& build, const Expr& x, bool upper, Window& window);

// A convolution with symmetric semantics for float and integer operands, of images and weights (channels, channels of a
// group, kernel...). `quantized` are the further arguments of the quantised dialect's operator, where it is that one.
Expr convolution(const Builder& build, Expr x, Expr w, const Window& window, int64_t groups,
                 DType out_dtype, std::vector<Expr> quantized = {});

// A transposed convolution, of images and weights (channels, channels of a group, kernel...). `extra` elements are
// appended along each spatial axis of the result.
Expr transposed_convolution(const Builder& build, Expr x, Expr w, const Window& window,
                            const std::vector<int64_t>& extra, int64_t groups);
// The pads of a transposed convolution of which the padding is to be the same on both sides, or greater by one at the
// end (`upper`) or at the begin: as many as give results of the input's sizes times the strides or, where `sizes` is
// not empty, of these sizes. What no pad gives is added to `extra`.
void pad_transposed(const Builder& build, const Expr& x, bool upper,
                    const std::vector<int64_t>& sizes, Window& window, std::vector<int64_t>& extra);

// The kernel of weights with two axes before it. E0205 for a weight of another rank.
std::vector<int64_t> kernel_of(const Builder& build, const Expr& w, int64_t nd);
// y plus a number for each channel, which are along axis 1; a null bias adds nothing.
Expr with_channel_bias(const Builder& build, Expr y, const Expr& bias);

// The number of spatial dimensions, 1 to 3.
int64_t spatial_rank(const Builder& build, const Expr& x);

// "nn.conv2d"
std::string with_rank(const char* name, int64_t nd);

// (n, ..., c) as (n, c, ...), and back.
Expr channels_first(const Builder& build, const Expr& x);
Expr channels_last(const Builder& build, const Expr& x);

}  // namespace relay::frontend
