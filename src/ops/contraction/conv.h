// The attributes that all convolutions have in common.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "ops/common.h"

namespace relay::ops {

// Convolutions over one, two and three axes differ in the lengths and layouts of their defaults.
struct ConvAttrs : AttrsNode {
  Ints strides, padding, dilation;
  int64_t groups = 1;
  std::optional<int64_t> channels;
  std::optional<Ints> kernel_size;
  std::string data_layout, kernel_layout, out_layout;
  DType out_dtype = kUnsetDType;

 protected:
  using AttrsNode::AttrsNode;
  ConvAttrs(const NodeInfo& info, size_t dims, const char* data, const char* kernel)
      : AttrsNode(info),
        strides(dims, 1),
        // Two zeros for one axis and for two, as Relay's users know it.
        padding(std::max<size_t>(dims, 2), 0),
        dilation(dims, 1),
        data_layout(data),
        kernel_layout(kernel) {}
};

template <class T>
std::vector<Field> conv_fields() {
  return {
      attribute("strides", &T::strides, "Steps between windows, one for each spatial axis."),
      attribute("padding", &T::padding,
                "Zeros around the input: one number, one for each axis, or begins then ends."),
      attribute("dilation", &T::dilation, "Distance between the elements of the kernel."),
      attribute("groups", &T::groups, "Groups of channels that are convolved apart."),
      attribute("channels", &T::channels, "Output channels."),
      attribute("kernel_size", &T::kernel_size, "Size of the kernel."),
      attribute("data_layout", &T::data_layout, "Layout of the input."),
      attribute("kernel_layout", &T::kernel_layout, "Layout of the weight."),
      attribute("out_layout", &T::out_layout, "Layout of the result; empty: that of the input."),
      attribute("out_dtype", &T::out_dtype, "dtype of the result; unset: that of the input.")};
}

// The gradient of a convolution over so many axes, or of a transposed one.
GradientRule conv_gradient(size_t dims, bool transposed);

}  // namespace relay::ops
