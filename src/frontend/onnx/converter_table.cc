// Which ONNX operator is converted by what.
//
// A row holds from its version until the next row of the same operator; a node uses the row with
// the highest version that its model's opset reaches. Versions in which only types were added have
// no row of their own. Of opsets before 7 only the operators are read that mean the same since.
#include <algorithm>

#include "frontend/onnx/converters.h"
#include "frontend/onnx/onnx.h"

namespace relay::importer {
namespace {

constexpr std::string_view kOnnx = "";
constexpr std::string_view kMicrosoft = "com.microsoft";

std::vector<ConverterRow> make_table() {
  std::vector<ConverterRow> rows{
      // Element-wise.
      {kOnnx, "Abs", 1, convert_unary},
      {kOnnx, "Acos", 7, convert_unary},
      {kOnnx, "Acosh", 9, convert_unary},
      {kOnnx, "Add", 7, convert_binary},
      {kOnnx, "And", 7, convert_binary},
      {kOnnx, "Asin", 7, convert_unary},
      {kOnnx, "Asinh", 9, convert_unary},
      {kOnnx, "Atan", 7, convert_unary},
      {kOnnx, "Atanh", 9, convert_unary},
      {kOnnx, "BitCast", 26, convert_bit_cast},
      {kOnnx, "BitShift", 11, convert_bit_shift},
      {kOnnx, "BitwiseAnd", 18, convert_binary},
      {kOnnx, "BitwiseNot", 18, convert_unary},
      {kOnnx, "BitwiseOr", 18, convert_binary},
      {kOnnx, "BitwiseXor", 18, convert_binary},
      {kOnnx, "Cast", 6, convert_cast},
      {kOnnx, "CastLike", 15, convert_cast_like},
      {kOnnx, "Ceil", 1, convert_unary},
      {kOnnx, "Celu", 12, convert_activation},
      {kOnnx, "Clip", 1, convert_clip_attrs},
      {kOnnx, "Clip", 11, convert_clip},
      {kOnnx, "Cos", 7, convert_unary},
      {kOnnx, "Cosh", 9, convert_unary},
      {kOnnx, "Div", 7, convert_binary},
      {kOnnx, "Dropout", 7, convert_dropout},
      {kOnnx, "Elu", 1, convert_activation},
      {kOnnx, "Equal", 7, convert_binary},
      {kOnnx, "Erf", 9, convert_unary},
      {kOnnx, "Exp", 1, convert_unary},
      {kOnnx, "Floor", 1, convert_unary},
      {kOnnx, "Gelu", 20, convert_gelu},
      {kOnnx, "Greater", 7, convert_binary},
      {kOnnx, "GreaterOrEqual", 12, convert_binary},
      {kOnnx, "HardSigmoid", 1, convert_activation},
      {kOnnx, "HardSwish", 14, convert_activation},
      {kOnnx, "Identity", 1, convert_identity},
      {kOnnx, "IsInf", 10, convert_is_inf},
      {kOnnx, "IsNaN", 9, convert_unary},
      {kOnnx, "LeakyRelu", 1, convert_activation},
      {kOnnx, "Less", 7, convert_binary},
      {kOnnx, "LessOrEqual", 12, convert_binary},
      {kOnnx, "Log", 1, convert_unary},
      {kOnnx, "Max", 6, convert_variadic},
      {kOnnx, "Mean", 6, convert_variadic},
      {kOnnx, "Min", 6, convert_variadic},
      {kOnnx, "Mish", 18, convert_activation},
      {kOnnx, "Mod", 10, convert_mod},
      {kOnnx, "Mul", 7, convert_binary},
      {kOnnx, "Neg", 1, convert_unary},
      {kOnnx, "Not", 1, convert_unary},
      {kOnnx, "Or", 7, convert_binary},
      {kOnnx, "PRelu", 7, convert_prelu},
      {kOnnx, "Pow", 7, convert_pow},
      {kOnnx, "Reciprocal", 1, convert_unary},
      {kOnnx, "Relu", 1, convert_unary},
      {kOnnx, "Round", 11, convert_unary},
      {kOnnx, "Selu", 1, convert_activation},
      {kOnnx, "Shrink", 9, convert_activation},
      {kOnnx, "Sigmoid", 1, convert_unary},
      {kOnnx, "Sign", 9, convert_unary},
      {kOnnx, "Sin", 7, convert_unary},
      {kOnnx, "Sinh", 9, convert_unary},
      {kOnnx, "Softplus", 1, convert_activation},
      {kOnnx, "Softsign", 1, convert_activation},
      {kOnnx, "Sqrt", 1, convert_unary},
      {kOnnx, "Sub", 7, convert_binary},
      {kOnnx, "Sum", 6, convert_variadic},
      {kOnnx, "Swish", 24, convert_activation},
      {kOnnx, "Tan", 7, convert_unary},
      {kOnnx, "Tanh", 1, convert_unary},
      {kOnnx, "ThresholdedRelu", 1, convert_activation},
      {kOnnx, "Where", 9, convert_where},
      {kOnnx, "Xor", 7, convert_binary},

      // Convolution, pooling, normalisation, products.
      {kOnnx, "AveragePool", 7, convert_pool},
      {kOnnx, "BatchNormalization", 7, convert_batch_norm},
      {kOnnx, "Conv", 1, convert_conv},
      {kOnnx, "ConvTranspose", 1, convert_conv_transpose},
      {kOnnx, "Einsum", 12, convert_einsum},
      {kOnnx, "Gemm", 7, convert_gemm},
      {kOnnx, "GlobalAveragePool", 1, convert_global_pool},
      {kOnnx, "GlobalLpPool", 1, convert_global_pool},
      {kOnnx, "GlobalMaxPool", 1, convert_global_pool},
      {kOnnx, "GroupNormalization", 18, convert_group_norm},
      {kOnnx, "Hardmax", 1, convert_hardmax_flat},
      {kOnnx, "Hardmax", 13, convert_hardmax},
      {kOnnx, "InstanceNormalization", 1, convert_instance_norm},
      {kOnnx, "LRN", 1, convert_lrn},
      {kOnnx, "LayerNormalization", 1, convert_layer_norm},
      {kOnnx, "LogSoftmax", 1, convert_softmax_flat},
      {kOnnx, "LogSoftmax", 13, convert_softmax},
      {kOnnx, "LpNormalization", 1, convert_lp_norm},
      {kOnnx, "LpPool", 1, convert_lp_pool},
      {kOnnx, "MatMul", 1, convert_matmul},
      {kOnnx, "MaxPool", 1, convert_pool},
      {kOnnx, "MeanVarianceNormalization", 9, convert_mean_variance_norm},
      {kOnnx, "RMSNormalization", 23, convert_rms_norm},
      {kOnnx, "Softmax", 1, convert_softmax_flat},
      {kOnnx, "Softmax", 13, convert_softmax},

      // Reductions and sorting.
      {kOnnx, "ArgMax", 1, convert_arg_reduce},
      {kOnnx, "ArgMin", 1, convert_arg_reduce},
      {kOnnx, "CumProd", 26, convert_cumulative},
      {kOnnx, "CumSum", 11, convert_cumulative},
      {kOnnx, "ReduceL1", 1, convert_reduce_attr},
      {kOnnx, "ReduceL1", 18, convert_reduce_input},
      {kOnnx, "ReduceL2", 1, convert_reduce_attr},
      {kOnnx, "ReduceL2", 18, convert_reduce_input},
      {kOnnx, "ReduceLogSum", 1, convert_reduce_attr},
      {kOnnx, "ReduceLogSum", 18, convert_reduce_input},
      {kOnnx, "ReduceLogSumExp", 1, convert_reduce_attr},
      {kOnnx, "ReduceLogSumExp", 18, convert_reduce_input},
      {kOnnx, "ReduceMax", 1, convert_reduce_attr},
      {kOnnx, "ReduceMax", 18, convert_reduce_input},
      {kOnnx, "ReduceMean", 1, convert_reduce_attr},
      {kOnnx, "ReduceMean", 18, convert_reduce_input},
      {kOnnx, "ReduceMin", 1, convert_reduce_attr},
      {kOnnx, "ReduceMin", 18, convert_reduce_input},
      {kOnnx, "ReduceProd", 1, convert_reduce_attr},
      {kOnnx, "ReduceProd", 18, convert_reduce_input},
      {kOnnx, "ReduceSum", 1, convert_reduce_attr},
      {kOnnx, "ReduceSum", 13, convert_reduce_input},
      {kOnnx, "ReduceSumSquare", 1, convert_reduce_attr},
      {kOnnx, "ReduceSumSquare", 18, convert_reduce_input},
      {kOnnx, "TopK", 1, convert_top_k_attr},
      {kOnnx, "TopK", 10, convert_top_k},

      // Shapes, constants, rearrangement.
      {kOnnx, "CenterCropPad", 18, convert_center_crop_pad},
      {kOnnx, "Compress", 9, convert_compress},
      {kOnnx, "Concat", 4, convert_concat},
      {kOnnx, "Constant", 1, convert_constant},
      {kOnnx, "ConstantOfShape", 9, convert_constant_of_shape},
      {kOnnx, "DepthToSpace", 1, convert_depth_to_space},
      {kOnnx, "Expand", 8, convert_expand},
      {kOnnx, "EyeLike", 9, convert_eye_like},
      {kOnnx, "Flatten", 1, convert_flatten},
      {kOnnx, "NonMaxSuppression", 10, convert_data_dependent},
      {kOnnx, "NonZero", 9, convert_non_zero},
      {kOnnx, "Pad", 2, convert_pad_attr},
      {kOnnx, "Pad", 11, convert_pad},
      {kOnnx, "Range", 11, convert_range},
      {kOnnx, "Reshape", 5, convert_reshape},
      {kOnnx, "ReverseSequence", 10, convert_reverse_sequence},
      {kOnnx, "Shape", 1, convert_shape},
      {kOnnx, "Size", 1, convert_size},
      {kOnnx, "Slice", 1, convert_slice_attr},
      {kOnnx, "Slice", 10, convert_slice},
      {kOnnx, "SpaceToDepth", 1, convert_space_to_depth},
      {kOnnx, "Split", 2, convert_split_attr},
      {kOnnx, "Split", 13, convert_split},
      {kOnnx, "Squeeze", 1, convert_squeeze_attr},
      {kOnnx, "Squeeze", 13, convert_squeeze},
      {kOnnx, "Tile", 6, convert_tile},
      {kOnnx, "Transpose", 1, convert_transpose},
      {kOnnx, "Trilu", 14, convert_trilu},
      {kOnnx, "Unique", 11, convert_data_dependent},
      {kOnnx, "Unsqueeze", 1, convert_unsqueeze_attr},
      {kOnnx, "Unsqueeze", 13, convert_unsqueeze},

      // Reading and writing at computed places.
      {kOnnx, "Gather", 1, convert_gather},
      {kOnnx, "GatherElements", 11, convert_gather_elements},
      {kOnnx, "GatherND", 11, convert_gather_nd},
      {kOnnx, "OneHot", 9, convert_one_hot},
      {kOnnx, "Scatter", 9, convert_scatter_elements},
      {kOnnx, "ScatterElements", 11, convert_scatter_elements},
      {kOnnx, "ScatterND", 11, convert_scatter_nd},

      // Images.
      {kOnnx, "AffineGrid", 20, convert_affine_grid},
      {kOnnx, "GridSample", 16, convert_grid_sample},
      {kOnnx, "MaxRoiPool", 1, convert_max_roi_pool},
      {kOnnx, "Resize", 10, convert_resize_10},
      {kOnnx, "Resize", 11, convert_resize},
      {kOnnx, "RoiAlign", 10, convert_roi_align},
      {kOnnx, "Upsample", 7, convert_upsample_attr},
      {kOnnx, "Upsample", 9, convert_upsample},

      // Recurrences, control flow, sequences.
      {kOnnx, "ConcatFromSequence", 11, convert_concat_from_sequence},
      {kOnnx, "GRU", 7, convert_gru},
      {kOnnx, "If", 1, convert_if},
      {kOnnx, "LSTM", 7, convert_lstm},
      {kOnnx, "Loop", 1, convert_loop},
      {kOnnx, "Optional", 15, convert_optional},
      {kOnnx, "OptionalGetElement", 15, convert_identity},
      {kOnnx, "OptionalHasElement", 15, convert_optional_has_element},
      {kOnnx, "RNN", 7, convert_rnn},
      {kOnnx, "Scan", 9, convert_scan},
      {kOnnx, "SequenceAt", 11, convert_sequence_at},
      {kOnnx, "SequenceConstruct", 11, convert_sequence_construct},
      {kOnnx, "SequenceEmpty", 11, convert_sequence_empty},
      {kOnnx, "SequenceErase", 11, convert_sequence_erase},
      {kOnnx, "SequenceInsert", 11, convert_sequence_insert},
      {kOnnx, "SequenceLength", 11, convert_sequence_length},
      {kOnnx, "SplitToSequence", 11, convert_split_to_sequence},

      // Quantised.
      {kOnnx, "ConvInteger", 10, convert_conv_integer},
      {kOnnx, "DequantizeLinear", 10, convert_dequantize_linear},
      {kOnnx, "DynamicQuantizeLinear", 11, convert_dynamic_quantize_linear},
      {kOnnx, "MatMulInteger", 10, convert_matmul_integer},
      {kOnnx, "QLinearConv", 10, convert_qlinear_conv},
      {kOnnx, "QLinearMatMul", 10, convert_qlinear_matmul},
      {kOnnx, "QuantizeLinear", 10, convert_quantize_linear},

      // Signals and losses.
      {kOnnx, "BlackmanWindow", 17, convert_window},
      {kOnnx, "DFT", 17, convert_dft},
      {kOnnx, "HammingWindow", 17, convert_window},
      {kOnnx, "HannWindow", 17, convert_window},
      {kOnnx, "NegativeLogLikelihoodLoss", 12, convert_nll_loss},
      {kOnnx, "SoftmaxCrossEntropyLoss", 12, convert_softmax_cross_entropy},

      // Transformers.
      {kOnnx, "Attention", 23, convert_attention},
      {kOnnx, "RotaryEmbedding", 23, convert_rotary_embedding},
      {kMicrosoft, "Attention", 1, convert_packed_attention},
      {kMicrosoft, "BiasGelu", 1, convert_bias_gelu},
      {kMicrosoft, "DequantizeLinear", 1, convert_dequantize_linear},
      {kMicrosoft, "EmbedLayerNormalization", 1, convert_embed_layer_norm},
      {kMicrosoft, "FastGelu", 1, convert_fast_gelu},
      {kMicrosoft, "FusedMatMul", 1, convert_fused_matmul},
      {kMicrosoft, "Gelu", 1, convert_gelu},
      {kMicrosoft, "QuantizeLinear", 1, convert_quantize_linear},
      {kMicrosoft, "QuickGelu", 1, convert_activation},
      {kMicrosoft, "SkipLayerNormalization", 1, convert_skip_layer_norm},
      {kMicrosoft, "SkipSimplifiedLayerNormalization", 1, convert_skip_rms_norm},
      // Exporters put it into the default domain, too.
      {kOnnx, "SimplifiedLayerNormalization", 1, convert_rms_norm},
      {kMicrosoft, "SimplifiedLayerNormalization", 1, convert_rms_norm},
  };
  std::sort(rows.begin(), rows.end(), [](const ConverterRow& a, const ConverterRow& b) {
    return std::tie(a.domain, a.op, a.since) < std::tie(b.domain, b.op, b.since);
  });
  return rows;
}

}  // namespace

const std::vector<ConverterRow>& converter_table() {
  static const std::vector<ConverterRow> table = make_table();
  return table;
}

const ConverterRow* find_converter(std::string_view domain, std::string_view op, int64_t opset) {
  const auto& table = converter_table();
  auto key = std::make_tuple(domain, op, opset);
  auto after =
      std::upper_bound(table.begin(), table.end(), key, [](const auto& k, const ConverterRow& row) {
        return k < std::make_tuple(row.domain, row.op, static_cast<int64_t>(row.since));
      });
  if (after == table.begin()) return nullptr;
  const ConverterRow& row = *std::prev(after);
  return row.domain == domain && row.op == op ? &row : nullptr;
}

}  // namespace relay::importer

namespace relay {

std::vector<OnnxOperator> supported_onnx_operators() {
  std::vector<OnnxOperator> out;
  for (const auto& row : importer::converter_table())
    out.push_back({row.domain, row.op, row.since});
  return out;
}

}  // namespace relay
