// Windows that convolutions and pools move over spatial axes, as attributes say them.
#pragma once

#include <string>
#include <vector>

#include "frontend/onnx/importer.h"

namespace relay::importer {

inline constexpr int64_t kMaxWindow = int64_t{1} << 31;

// Kernel, strides, dilations and pads of a convolution or pooling over `nd` spatial dimensions.
struct Window {
  std::vector<int64_t> kernel, strides, dilations;
  std::vector<int64_t> begin, end;  // pads

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
// The attribute with one number of 1 or more for each of `nd` axes; without it `otherwise`, and ones for that empty.
std::vector<int64_t> positive_list(NodeContext& ctx, const char* name, int64_t nd,
                                   const std::vector<int64_t>& otherwise);

// The window of this kernel over the spatial axes of x, which are those from 2 on.
Window window_of(NodeContext& ctx, const Expr& x, std::vector<int64_t> kernel);

// The number of spatial dimensions, 1 to 3.
int64_t spatial_rank(NodeContext& ctx, const Expr& x);

// "nn.conv2d"
std::string with_rank(const char* name, int64_t nd);

// (n, ..., c) as (n, c, ...), and back.
Expr channels_first(NodeContext& ctx, const Expr& x);
Expr channels_last(NodeContext& ctx, const Expr& x);

}  // namespace relay::importer
