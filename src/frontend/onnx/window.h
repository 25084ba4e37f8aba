// Windows of convolutions and pools as attributes say them.
#pragma once

#include <string>
#include <vector>

#include "frontend/common/window.h"
#include "frontend/onnx/importer.h"

namespace relay::frontend::onnx {

// The attribute with one number of 1 or more for each of `nd` axes; ones without it.
std::vector<int64_t> positive_list(NodeContext& ctx, const char* name, int64_t nd);

// The strides and dilations of this kernel, without pads.
Window unpadded_window(NodeContext& ctx, std::vector<int64_t> kernel);
// The window of this kernel over the spatial axes of x, which are those from 2 on.
Window window_of(NodeContext& ctx, const Expr& x, std::vector<int64_t> kernel);

}  // namespace relay::frontend::onnx
