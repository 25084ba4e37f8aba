// The attribute structs of the operators, with the names and defaults that Relay's users know.
#pragma once

#include <optional>

#include "ir/attrs.h"

namespace relay::ops {

using Ints = std::vector<int64_t>;

#define RELAY_ATTRS(Name)              \
  Name() : AttrsNode(static_info()) {} \
  static const NodeInfo& static_info()

struct ClipAttrs : AttrsNode {
  double a_min = 0, a_max = 0;
  RELAY_ATTRS(ClipAttrs);
};
struct CastAttrs : AttrsNode {
  DType dtype = kUnsetDType;
  RELAY_ATTRS(CastAttrs);
};
struct LeakyReluAttrs : AttrsNode {
  double alpha = 0.25;
  RELAY_ATTRS(LeakyReluAttrs);
};
struct PReluAttrs : AttrsNode {
  int64_t axis = 1;
  RELAY_ATTRS(PReluAttrs);
};
struct BiasAddAttrs : AttrsNode {
  int64_t axis = 1;
  RELAY_ATTRS(BiasAddAttrs);
};
struct ReduceAttrs : AttrsNode {
  std::optional<Ints> axis;
  bool keepdims = false, exclude = false;
  RELAY_ATTRS(ReduceAttrs);
};
struct ArgReduceAttrs : AttrsNode {
  std::optional<Ints> axis;
  bool keepdims = false, select_last_index = false, exclude = false;
  RELAY_ATTRS(ArgReduceAttrs);
};
struct VarianceAttrs : AttrsNode {
  std::optional<Ints> axis;
  bool keepdims = false, exclude = false, unbiased = false;
  RELAY_ATTRS(VarianceAttrs);
};
struct MatmulAttrs : AttrsNode {
  std::optional<int64_t> units;
  DType out_dtype = kUnsetDType;
  bool transpose_a = false, transpose_b = false;
  RELAY_ATTRS(MatmulAttrs);
};
struct DenseAttrs : AttrsNode {
  std::optional<int64_t> units;
  DType out_dtype = kUnsetDType;
  RELAY_ATTRS(DenseAttrs);
};
struct DensePackAttrs : AttrsNode {
  std::optional<int64_t> units;
  DType out_dtype = kUnsetDType;
  std::string weight_layout = "NC";
  RELAY_ATTRS(DensePackAttrs);
};
struct BatchMatmulAttrs : AttrsNode {
  DType out_dtype = kUnsetDType;
  bool transpose_a = false, transpose_b = false;
  RELAY_ATTRS(BatchMatmulAttrs);
};
// Conv1DAttrs, Conv2DAttrs and Conv3DAttrs differ in the lengths and layouts of their defaults.
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
        padding(2 * dims, 0),
        dilation(dims, 1),
        data_layout(data),
        kernel_layout(kernel) {
    // The reference gives two zeros whatever the number of dimensions of a 2-D convolution.
    if (dims == 2) padding.assign(2, 0);
    if (dims == 3) padding.assign(3, 0);
  }
};
struct Conv1DAttrs : ConvAttrs {
  Conv1DAttrs() : ConvAttrs(static_info(), 1, "NCW", "OIW") {}
  static const NodeInfo& static_info();
};
struct Conv2DAttrs : ConvAttrs {
  Conv2DAttrs() : ConvAttrs(static_info(), 2, "NCHW", "OIHW") {}
  static const NodeInfo& static_info();
};
struct Conv3DAttrs : ConvAttrs {
  Conv3DAttrs() : ConvAttrs(static_info(), 3, "NCDHW", "OIDHW") {}
  static const NodeInfo& static_info();
};
struct ConvWinogradWeightTransformAttrs : AttrsNode {
  int64_t tile_size = 4;
  RELAY_ATTRS(ConvWinogradWeightTransformAttrs);
};
struct Conv2DWinogradAttrs : ConvAttrs {
  int64_t tile_size = 4;
  Conv2DWinogradAttrs() : ConvAttrs(static_info(), 2, "NCHW", "OIHW") {}
  static const NodeInfo& static_info();
};
struct ConvTransposeAttrs : ConvAttrs {
  Ints output_padding;

 protected:
  ConvTransposeAttrs(const NodeInfo& info, size_t dims, const char* data, const char* kernel)
      : ConvAttrs(info, dims, data, kernel), output_padding(dims, 0) {}
};
struct Conv1DTransposeAttrs : ConvTransposeAttrs {
  Conv1DTransposeAttrs() : ConvTransposeAttrs(static_info(), 1, "NCW", "IOW") {}
  static const NodeInfo& static_info();
};
struct Conv2DTransposeAttrs : ConvTransposeAttrs {
  Conv2DTransposeAttrs() : ConvTransposeAttrs(static_info(), 2, "NCHW", "IOHW") {}
  static const NodeInfo& static_info();
};
struct Conv3DTransposeAttrs : ConvTransposeAttrs {
  Conv3DTransposeAttrs() : ConvTransposeAttrs(static_info(), 3, "NCDHW", "IODHW") {}
  static const NodeInfo& static_info();
};
struct PoolAttrs : AttrsNode {
  Ints pool_size, strides, dilation, padding;
  std::string layout, out_layout;
  bool ceil_mode = false, count_include_pad = false;

 protected:
  PoolAttrs(const NodeInfo& info, size_t dims, const char* data)
      : AttrsNode(info), strides(dims, 1), dilation(dims, 1), padding(dims, 0), layout(data) {}
};
struct MaxPool1DAttrs : PoolAttrs {
  MaxPool1DAttrs() : PoolAttrs(static_info(), 1, "NCW") {}
  static const NodeInfo& static_info();
};
struct MaxPool2DAttrs : PoolAttrs {
  MaxPool2DAttrs() : PoolAttrs(static_info(), 2, "NCHW") {}
  static const NodeInfo& static_info();
};
struct MaxPool3DAttrs : PoolAttrs {
  MaxPool3DAttrs() : PoolAttrs(static_info(), 3, "NCDHW") {}
  static const NodeInfo& static_info();
};
struct AvgPool1DAttrs : PoolAttrs {
  AvgPool1DAttrs() : PoolAttrs(static_info(), 1, "NCW") {}
  static const NodeInfo& static_info();
};
struct AvgPool2DAttrs : PoolAttrs {
  AvgPool2DAttrs() : PoolAttrs(static_info(), 2, "NCHW") {}
  static const NodeInfo& static_info();
};
struct AvgPool3DAttrs : PoolAttrs {
  AvgPool3DAttrs() : PoolAttrs(static_info(), 3, "NCDHW") {}
  static const NodeInfo& static_info();
};
struct GlobalPool2DAttrs : AttrsNode {
  std::string layout = "NCHW", out_layout;
  RELAY_ATTRS(GlobalPool2DAttrs);
};
struct AdaptivePoolAttrs : AttrsNode {
  Ints output_size;
  std::string layout, out_layout;

 protected:
  AdaptivePoolAttrs(const NodeInfo& info, const char* data) : AttrsNode(info), layout(data) {}
};
struct AdaptivePool1DAttrs : AdaptivePoolAttrs {
  AdaptivePool1DAttrs() : AdaptivePoolAttrs(static_info(), "NCW") {}
  static const NodeInfo& static_info();
};
struct AdaptivePool2DAttrs : AdaptivePoolAttrs {
  AdaptivePool2DAttrs() : AdaptivePoolAttrs(static_info(), "NCHW") {}
  static const NodeInfo& static_info();
};
struct AdaptivePool3DAttrs : AdaptivePoolAttrs {
  AdaptivePool3DAttrs() : AdaptivePoolAttrs(static_info(), "NCDHW") {}
  static const NodeInfo& static_info();
};
struct BatchNormAttrs : AttrsNode {
  int64_t axis = 1;
  double epsilon = 1e-5;
  bool center = true, scale = true;
  RELAY_ATTRS(BatchNormAttrs);
};
struct InstanceNormAttrs : AttrsNode {
  int64_t axis = 1;
  double epsilon = 1e-5;
  bool center = true, scale = true;
  RELAY_ATTRS(InstanceNormAttrs);
};
struct LayerNormAttrs : AttrsNode {
  int64_t axis = -1;
  double epsilon = 1e-5;
  bool center = true, scale = true;
  RELAY_ATTRS(LayerNormAttrs);
};
struct GroupNormAttrs : AttrsNode {
  int64_t num_groups = 0, axis = 1;
  double epsilon = 1e-5;
  bool center = true, scale = true;
  RELAY_ATTRS(GroupNormAttrs);
};
struct LRNAttrs : AttrsNode {
  int64_t size = 5, axis = 1;
  double bias = 2, alpha = 1e-5, beta = 0.75;
  RELAY_ATTRS(LRNAttrs);
};
struct DropoutAttrs : AttrsNode {
  double rate = 0.5;
  RELAY_ATTRS(DropoutAttrs);
};
struct SoftmaxAttrs : AttrsNode {
  int64_t axis = -1;
  RELAY_ATTRS(SoftmaxAttrs);
};
struct AttentionAttrs : AttrsNode {
  double scale = 1.0;
  std::string query_layout = "BHSD", key_layout = "BHSD", value_layout = "BHSD",
              out_layout = "BHSD";
  bool transpose_mask = false;
  RELAY_ATTRS(AttentionAttrs);
};
struct NLLLossAttrs : AttrsNode {
  std::string reduction = "mean";
  int64_t ignore_index = -100;
  RELAY_ATTRS(NLLLossAttrs);
};
struct ExpandDimsAttrs : AttrsNode {
  int64_t axis = 0, num_newaxis = 1;
  RELAY_ATTRS(ExpandDimsAttrs);
};
struct SqueezeAttrs : AttrsNode {
  std::optional<Ints> axis;
  RELAY_ATTRS(SqueezeAttrs);
};
struct ReshapeAttrs : AttrsNode {
  Ints newshape;
  bool allowzero = false;
  RELAY_ATTRS(ReshapeAttrs);
};
struct TransposeAttrs : AttrsNode {
  std::optional<Ints> axes;
  RELAY_ATTRS(TransposeAttrs);
};
struct ConcatenateAttrs : AttrsNode {
  int64_t axis = 0;
  RELAY_ATTRS(ConcatenateAttrs);
};
struct StackAttrs : AttrsNode {
  int64_t axis = 0;
  RELAY_ATTRS(StackAttrs);
};
struct SplitAttrs : AttrsNode {
  Value indices_or_sections{int64_t{1}};
  int64_t axis = 0;
  RELAY_ATTRS(SplitAttrs);
};
struct StridedSliceAttrs : AttrsNode {
  std::optional<Ints> begin, end, strides, axes;
  std::string slice_mode = "end";
  RELAY_ATTRS(StridedSliceAttrs);
};
struct PadAttrs : AttrsNode {
  std::vector<Ints> pad_width;
  std::string pad_mode = "constant";
  RELAY_ATTRS(PadAttrs);
};
struct MirrorPadAttrs : AttrsNode {
  std::string mode = "SYMMETRIC";
  std::vector<Ints> pad_width;
  RELAY_ATTRS(MirrorPadAttrs);
};
struct TileAttrs : AttrsNode {
  Ints reps;
  RELAY_ATTRS(TileAttrs);
};
struct RepeatAttrs : AttrsNode {
  int64_t repeats = 1;
  std::optional<int64_t> axis;
  RELAY_ATTRS(RepeatAttrs);
};
struct ReverseAttrs : AttrsNode {
  int64_t axis = 0;
  RELAY_ATTRS(ReverseAttrs);
};
struct InitOpAttrs : AttrsNode {
  Ints shape;
  DType dtype = kUnsetDType;
  RELAY_ATTRS(InitOpAttrs);
};
struct TakeAttrs : AttrsNode {
  int64_t batch_dims = 0;
  std::optional<int64_t> axis;
  std::string mode = "clip";
  RELAY_ATTRS(TakeAttrs);
};
struct GatherAttrs : AttrsNode {
  int64_t axis = 0;
  RELAY_ATTRS(GatherAttrs);
};
struct GatherNDAttrs : AttrsNode {
  int64_t batch_dims = 0;
  std::optional<int64_t> index_rank;
  RELAY_ATTRS(GatherNDAttrs);
};
struct OneHotAttrs : AttrsNode {
  int64_t depth = 1, axis = -1;
  DType dtype = kUnsetDType;
  RELAY_ATTRS(OneHotAttrs);
};
struct TriluAttrs : AttrsNode {
  bool upper = true;
  RELAY_ATTRS(TriluAttrs);
};
struct LayoutTransformAttrs : AttrsNode {
  std::string src_layout, dst_layout;
  RELAY_ATTRS(LayoutTransformAttrs);
};
struct SubPixelAttrs : AttrsNode {
  int64_t block_size = 1;
  std::string layout = "NCHW", mode = "DCR";
  RELAY_ATTRS(SubPixelAttrs);
};

#undef RELAY_ATTRS

}  // namespace relay::ops
