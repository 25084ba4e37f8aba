// Rules for the column `quantized`: calls on integers that represent real numbers.
//
// Exact forms hold whatever reads the result: sums (of products, means) in 32-bit integers, comparisons and limits on the
// integers themselves. Forms of the quantised dialect round once to the scale of the result, so that they need a reader that
// names it (qnn.quantize); they compute what the floats and the reader compute.
#pragma once

#include <utility>
#include <vector>

#include "ir/op.h"

namespace relay::ops {

using QuantizedResult = std::vector<QuantizedTensor>;

// A row with a rule.
inline OpInfo with_quantized_form(OpInfo row, QuantizedRule quantized) {
  row.quantized = std::move(quantized);
  return row;
}

// A number: not one scale for each channel.
bool is_one_number(const Expr& e);
// Numbers as scale and zero point.
bool has_one_scale(const QuantizedTensor& x);

// An operator of the quantised dialect on the first operand, or on both operands, with the attributes of the call.
QuantizedRule by_dialect(const char* op);
QuantizedRule by_dialect_of_two(const char* op);

// max(x, zero), and the limits of a clip where they are integers.
QuantizedResult quantized_relu(const QuantizedCall& q);
QuantizedResult quantized_clip(const QuantizedCall& q);
// Of operands with one scale: the sum or difference of the integers.
QuantizedResult quantized_linear(const QuantizedCall& q);
QuantizedResult quantized_bias_add(const QuantizedCall& q);
// Sums and means over the axes that `axis` and `exclude` name.
QuantizedResult quantized_sum(const QuantizedCall& q);
QuantizedResult quantized_mean(const QuantizedCall& q);
// nn.global_avg_pool2d.
QuantizedResult quantized_global_mean(const QuantizedCall& q);
// A border whose value is one of the integers.
QuantizedResult quantized_pad(const QuantizedCall& q);
// With a scale for each channel, whose axis moves.
QuantizedResult quantized_transpose(const QuantizedCall& q);
// Sums of products.
QuantizedResult quantized_conv2d(const QuantizedCall& q);
// Convolutions over any number of axes, and transposed ones.
QuantizedResult quantized_convolution(const QuantizedCall& q);
// By the column `contraction`, of two operands without windows: one product of matrices, or one for each index of the
// dimensions that are of both operands and of the result.
QuantizedResult quantized_contraction(const QuantizedCall& q);
QuantizedResult quantized_dense(const QuantizedCall& q);
QuantizedResult quantized_matmul(const QuantizedCall& q);
QuantizedResult quantized_batch_matmul(const QuantizedCall& q);

// Whether each window of a max pool covers an element of the data: in integers its border is not -infinity.
bool windows_cover_elements(const relay::CallNode& call);

}  // namespace relay::ops
