// Operators on integers that stand for real numbers, to the last digit of the format's reference kernels.
//
// A sum of products is scaled by a factor of 31 bits and a power of two (fixed_point.h), the zero point of the result is
// added, and the sum is clamped. Functions of one element of 8 bits are tables.
#pragma once

#include <vector>

#include "frontend/common/pool.h"
#include "frontend/common/window.h"
#include "frontend/tflite/fixed_point.h"
#include "frontend/tflite/node_context.h"

namespace relay::frontend::tflite {

// ---- Parts

inline const DType kInt = DType::Int(32), kWide = DType::Int(64), kFloat = DType::Float(32),
                   kDouble = DType::Float(64);

// The scale and zero point of a tensor with one of each; refuses those with more.
struct Level {
  float scale;
  int64_t zero;
};
Level level_of(NodeContext& ctx, const Quantization& q);
// Scales (float32) and zero points (int32) of a tensor of this rank: one number each, or vectors that broadcast along
// their axis.
struct Levels {
  Expr scale, zero;
};
Levels levels_of(const Builder& build, const Quantization& q, int64_t rank);
// The nearest integer, halves away from zero, as a float.
Expr rounded_away(const Builder& build, const Expr& x);
// The integers less their zero point, in int32.
Expr centred(const Builder& build, const Expr& x, int64_t zero);
// How a product by a factor is rounded: at once, halves up, or as `multiply` does.
enum class Rounding { Once, Twice };
// int32 by a factor.
Expr scaled(const Builder& build, const Expr& x, Multiplier m, Rounding rounding = Rounding::Twice);
// The same with a factor for each line of the last axis; sums in int64 are scaled by 16 bits of the factor where they are
// rounded twice.
Expr scaled_lines(const Builder& build, const Expr& x, const std::vector<Multiplier>& m,
                  Rounding rounding = Rounding::Twice);
// What an activation leaves of the range of a quantised result.
struct Range {
  int64_t low, high;
};
Range range_of(NodeContext& ctx, schema::FusedActivation activation, const Quantization& q,
               DType dtype);
// Numbers plus a zero point, clamped, in the dtype of the result.
Expr stored(const Builder& build, const Expr& x, int64_t zero, Range range, DType dtype);

// ---- Numbers to integers and back
Expr to_integers(NodeContext& ctx, const Expr& x, const Quantization& q, DType dtype);
Expr to_floats(NodeContext& ctx, const Expr& x, const Quantization& q);
// A quantised input with the scale of the result.
Expr requantized_input(NodeContext& ctx);
// A part of a concatenation, with the scale of the result.
Expr joined_part(NodeContext& ctx, size_t input);

// ---- Elements
Expr quantized_sum(NodeContext& ctx);  // ADD and SUB
Expr quantized_product(NodeContext& ctx);
Expr quantized_quotient(NodeContext& ctx);
Expr quantized_squared_difference(NodeContext& ctx);
Expr quantized_comparison(NodeContext& ctx);
Expr quantized_unary(NodeContext& ctx);
Expr quantized_relu(NodeContext& ctx, double low, double high);
Expr quantized_leaky_relu(NodeContext& ctx, double alpha);
Expr quantized_prelu(NodeContext& ctx);
Expr quantized_hard_swish(NodeContext& ctx);
Expr quantized_softmax(NodeContext& ctx, double beta);

// ---- Layers

// A convolution by the places of its inputs; `order` makes the weights (out, in, kernel...).
struct ConvolutionParts {
  size_t input = 0, weight = 1, bias = 2;
  Window window;
  int64_t groups = 1;
  std::vector<int64_t> order;
  int64_t channel_axis = 0;  // of the weights as they are stored
  bool is_transposed = false;
  std::vector<int64_t> extra = {};  // of a transposed one
};
Expr quantized_convolution(NodeContext& ctx, const ConvolutionParts& parts,
                           schema::FusedActivation activation);
// Of (rows, in) by the weights of the operator, which has a bias as input 2.
Expr quantized_dense(NodeContext& ctx, const Expr& x, schema::FusedActivation activation);
Expr quantized_matmul(NodeContext& ctx, const Expr& a, const Expr& b);
// Floats by integer weights: each line of the floats is rounded to integers with a scale of its own. Without bias.
Expr hybrid_convolution(NodeContext& ctx, const ConvolutionParts& parts);
Expr hybrid_dense(NodeContext& ctx, const Expr& x, bool asymmetric);
// The same of (rows, in) by int8 weights (out, in), with one scale or one for each line.
Expr hybrid_product(const Builder& build, const Expr& x, const Expr& w,
                    const std::vector<float>& scales, bool asymmetric);
Expr quantized_pool(NodeContext& ctx, PoolKind kind, const Window& window,
                    schema::FusedActivation activation);
Expr quantized_mean_or_sum(NodeContext& ctx, const std::vector<int64_t>& axes, bool keep_dims,
                           bool mean);
// The product along axes, scaled at each step.
Expr quantized_reduce_product(NodeContext& ctx, const std::vector<int64_t>& axes, bool keep_dims);
Expr quantized_resize_bilinear(NodeContext& ctx, bool align_corners, bool half_pixel);

// ---- Recurrent layers

struct SvdfResult {
  Expr y;
  Expr memory;  // (batch, filters, memory), for the next step
};
SvdfResult quantized_svdf(NodeContext& ctx, int64_t filters, int64_t memory, int64_t rank);

// One step of an LSTM of uint8, by (x, state, weights, bias, cell): the new state and cell, the joined inputs, and what
// the gates read.
Values basic_quantized_lstm(NodeContext& ctx);

}  // namespace relay::frontend::tflite
