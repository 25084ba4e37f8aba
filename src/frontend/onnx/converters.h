// What converters of several families share.
#pragma once

#include "frontend/onnx/importer.h"

namespace relay::frontend::onnx {

// A convolution with symmetric semantics for float and integer operands; shared by Conv and its
// quantised forms. `quantized` are the further arguments of the quantised dialect's operator, where it
// is that one.
Expr convolution(NodeContext& ctx, Expr x, Expr w, DType out_dtype,
                 std::vector<Expr> quantized = {});

// The pooling that the node's attributes say, of channels behind the batch.
Expr pooled(NodeContext& ctx, const Expr& x, bool average);

// alpha * a * b + beta * c of Gemm.
Expr general_product(NodeContext& ctx);

// Keys and values (batch, heads, length, size) with as many heads as the queries have: each group of
// query heads shares one of theirs. Fails when these do not divide those.
void share_heads(NodeContext& ctx, const Expr& queries, Expr& keys, Expr& values);

}  // namespace relay::frontend::onnx
