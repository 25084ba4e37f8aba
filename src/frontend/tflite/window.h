// Windows over images with channels last, by SAME and VALID.
#pragma once

#include "frontend/common/window.h"
#include "frontend/tflite/node_context.h"

namespace relay::frontend::tflite {

// A window whose pads follow from the padding and the sizes of `x`. E0504 for numbers out of range.
Window window_of(NodeContext& ctx, const Expr& x, schema::Padding padding,
                 std::vector<int64_t> kernel, std::vector<int64_t> strides,
                 std::vector<int64_t> dilations);

}  // namespace relay::frontend::tflite
