// The converters, by family; converter_table.cc says which operator and version each serves.
#pragma once

#include "frontend/onnx/importer.h"

namespace relay::importer {

// convert_elementwise.cc
Values convert_unary(NodeContext& ctx);
Values convert_binary(NodeContext& ctx);
Values convert_variadic(NodeContext& ctx);
Values convert_pow(NodeContext& ctx);
Values convert_mod(NodeContext& ctx);
Values convert_bit_shift(NodeContext& ctx);
Values convert_activation(NodeContext& ctx);
Values convert_prelu(NodeContext& ctx);
Values convert_gelu(NodeContext& ctx);
Values convert_clip_attrs(NodeContext& ctx);
Values convert_clip(NodeContext& ctx);
Values convert_cast(NodeContext& ctx);
Values convert_cast_like(NodeContext& ctx);
Values convert_bit_cast(NodeContext& ctx);
Values convert_where(NodeContext& ctx);
Values convert_is_inf(NodeContext& ctx);
Values convert_identity(NodeContext& ctx);
Values convert_dropout(NodeContext& ctx);

// convert_nn.cc
Values convert_conv(NodeContext& ctx);
Values convert_conv_transpose(NodeContext& ctx);
Values convert_pool(NodeContext& ctx);
Values convert_lp_pool(NodeContext& ctx);
Values convert_global_pool(NodeContext& ctx);
Values convert_batch_norm(NodeContext& ctx);
Values convert_layer_norm(NodeContext& ctx);
Values convert_rms_norm(NodeContext& ctx);
Values convert_instance_norm(NodeContext& ctx);
Values convert_group_norm(NodeContext& ctx);
Values convert_mean_variance_norm(NodeContext& ctx);
Values convert_lp_norm(NodeContext& ctx);
Values convert_lrn(NodeContext& ctx);
Values convert_softmax_flat(NodeContext& ctx);
Values convert_softmax(NodeContext& ctx);
Values convert_hardmax_flat(NodeContext& ctx);
Values convert_hardmax(NodeContext& ctx);
Values convert_gemm(NodeContext& ctx);
Values convert_matmul(NodeContext& ctx);
Values convert_einsum(NodeContext& ctx);

// convert_reduce.cc
Values convert_reduce_attr(NodeContext& ctx);
Values convert_reduce_input(NodeContext& ctx);
Values convert_arg_reduce(NodeContext& ctx);
Values convert_top_k_attr(NodeContext& ctx);
Values convert_top_k(NodeContext& ctx);
Values convert_cumulative(NodeContext& ctx);

// convert_shape.cc
Values convert_shape(NodeContext& ctx);
Values convert_size(NodeContext& ctx);
Values convert_constant(NodeContext& ctx);
Values convert_constant_of_shape(NodeContext& ctx);
Values convert_reshape(NodeContext& ctx);
Values convert_flatten(NodeContext& ctx);
Values convert_squeeze_attr(NodeContext& ctx);
Values convert_squeeze(NodeContext& ctx);
Values convert_unsqueeze_attr(NodeContext& ctx);
Values convert_unsqueeze(NodeContext& ctx);
Values convert_transpose(NodeContext& ctx);
Values convert_range(NodeContext& ctx);
Values convert_eye_like(NodeContext& ctx);

// convert_move.cc
Values convert_concat(NodeContext& ctx);
Values convert_split_attr(NodeContext& ctx);
Values convert_split(NodeContext& ctx);
Values convert_slice_attr(NodeContext& ctx);
Values convert_slice(NodeContext& ctx);
Values convert_expand(NodeContext& ctx);
Values convert_tile(NodeContext& ctx);
Values convert_pad_attr(NodeContext& ctx);
Values convert_pad(NodeContext& ctx);
Values convert_center_crop_pad(NodeContext& ctx);
Values convert_trilu(NodeContext& ctx);
Values convert_depth_to_space(NodeContext& ctx);
Values convert_space_to_depth(NodeContext& ctx);
Values convert_reverse_sequence(NodeContext& ctx);
Values convert_non_zero(NodeContext& ctx);
Values convert_compress(NodeContext& ctx);
Values convert_data_dependent(NodeContext& ctx);

// convert_gather.cc
Values convert_gather(NodeContext& ctx);
Values convert_gather_elements(NodeContext& ctx);
Values convert_gather_nd(NodeContext& ctx);
Values convert_scatter_elements(NodeContext& ctx);
Values convert_scatter_nd(NodeContext& ctx);
Values convert_one_hot(NodeContext& ctx);

// convert_resize.cc
Values convert_upsample_attr(NodeContext& ctx);
Values convert_upsample(NodeContext& ctx);
Values convert_resize_10(NodeContext& ctx);
Values convert_resize(NodeContext& ctx);
Values convert_grid_sample(NodeContext& ctx);
Values convert_affine_grid(NodeContext& ctx);
Values convert_roi_align(NodeContext& ctx);
Values convert_max_roi_pool(NodeContext& ctx);

// convert_recurrent.cc
Values convert_rnn(NodeContext& ctx);
Values convert_lstm(NodeContext& ctx);
Values convert_gru(NodeContext& ctx);

// convert_control.cc
Values convert_if(NodeContext& ctx);
Values convert_loop(NodeContext& ctx);
Values convert_scan(NodeContext& ctx);
Values convert_sequence_construct(NodeContext& ctx);
Values convert_sequence_empty(NodeContext& ctx);
Values convert_sequence_at(NodeContext& ctx);
Values convert_sequence_insert(NodeContext& ctx);
Values convert_sequence_erase(NodeContext& ctx);
Values convert_sequence_length(NodeContext& ctx);
Values convert_concat_from_sequence(NodeContext& ctx);
Values convert_split_to_sequence(NodeContext& ctx);
Values convert_optional(NodeContext& ctx);
Values convert_optional_has_element(NodeContext& ctx);

// convert_quantize.cc
Values convert_quantize_linear(NodeContext& ctx);
Values convert_dequantize_linear(NodeContext& ctx);
Values convert_dynamic_quantize_linear(NodeContext& ctx);
Values convert_matmul_integer(NodeContext& ctx);
Values convert_conv_integer(NodeContext& ctx);
Values convert_qlinear_matmul(NodeContext& ctx);
Values convert_qlinear_conv(NodeContext& ctx);

// convert_signal.cc
Values convert_window(NodeContext& ctx);
Values convert_dft(NodeContext& ctx);
Values convert_nll_loss(NodeContext& ctx);
Values convert_softmax_cross_entropy(NodeContext& ctx);

// convert_transformer.cc
Values convert_fast_gelu(NodeContext& ctx);
Values convert_bias_gelu(NodeContext& ctx);
Values convert_skip_layer_norm(NodeContext& ctx);
Values convert_skip_rms_norm(NodeContext& ctx);
Values convert_embed_layer_norm(NodeContext& ctx);
Values convert_packed_attention(NodeContext& ctx);
Values convert_attention(NodeContext& ctx);
Values convert_rotary_embedding(NodeContext& ctx);
Values convert_fused_matmul(NodeContext& ctx);

// A convolution with symmetric semantics for float and integer operands; shared by Conv and its
// quantised forms.
Expr convolution(NodeContext& ctx, Expr x, Expr w, DType out_dtype);
// Whether an expression is the float scalar-like constant `value`.
std::optional<double> constant_scalar(const NodeContext& ctx, size_t input);

}  // namespace relay::importer
