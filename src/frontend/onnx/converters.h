// What converters of several families share.
#pragma once

#include "frontend/common/pool.h"
#include "frontend/onnx/importer.h"

namespace relay::frontend::onnx {

// What the attributes of a convolution say of these images and weights.
struct ConvolutionSpec {
  Window window;
  int64_t groups = 1;
};
ConvolutionSpec convolution_spec(NodeContext& ctx, const Expr& x, const Expr& w);
// The convolution, of floats; its bias is added by with_channel_bias.
Expr convolution(NodeContext& ctx, const Expr& x, const Expr& w);

// The pooling that the node's attributes say, of channels behind the batch.
Expr pooled(NodeContext& ctx, PoolKind kind, const Expr& x);

// alpha * a * b + beta * c of Gemm.
Expr general_product(NodeContext& ctx);

}  // namespace relay::frontend::onnx
