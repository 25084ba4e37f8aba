#include "ops/attrs.h"

namespace relay::ops {
namespace {

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

template <class T>
std::vector<Field> conv_transpose_fields() {
  std::vector<Field> fields = conv_fields<T>();
  fields.push_back(attribute("output_padding", &T::output_padding,
                             "Extra size at the end of each spatial axis."));
  return fields;
}

std::vector<Field> conv_winograd_fields() {
  using T = Conv2DWinogradAttrs;
  std::vector<Field> fields = conv_fields<T>();
  fields.insert(fields.begin(),
                attribute("tile_size", &T::tile_size, "Sides of the squares of results: 4."));
  return fields;
}

template <class T>
std::vector<Field> pool_fields(bool average) {
  std::vector<Field> fields{
      attribute("pool_size", &T::pool_size, "Size of the window."),
      attribute("strides", &T::strides, "Steps between windows."),
      attribute("dilation", &T::dilation, "Distance between the elements of a window."),
      attribute("padding", &T::padding,
                "Border: one number, one for each axis, or begins then ends."),
      attribute("layout", &T::layout, "Layout of the input."),
      attribute("out_layout", &T::out_layout, "Layout of the result; empty: that of the input."),
      attribute("ceil_mode", &T::ceil_mode, "Windows may hang over the end.")};
  if (average)
    fields.push_back(
        attribute("count_include_pad", &T::count_include_pad, "The border counts as elements."));
  return fields;
}

template <class T>
std::vector<Field> adaptive_fields() {
  return {
      attribute("output_size", &T::output_size,
                "Spatial size of the result; empty: that of the input."),
      attribute("layout", &T::layout, "Layout of the input."),
      attribute("out_layout", &T::out_layout, "Layout of the result; empty: that of the input.")};
}

template <class T>
std::vector<Field> norm_fields(const char* what) {
  return {attribute("axis", &T::axis, what),
          attribute("epsilon", &T::epsilon, "Added to the variance."),
          attribute("center", &T::center, "Add beta."),
          attribute("scale", &T::scale, "Multiply by gamma.")};
}

}  // namespace

#define RELAY_INFO(Name, ...)                                                             \
  const NodeInfo& Name::static_info() {                                                   \
    static const NodeInfo info = describe_attrs<Name>("relay.attrs." #Name, __VA_ARGS__); \
    return info;                                                                          \
  }

RELAY_INFO(ClipAttrs, {attribute("a_min", &ClipAttrs::a_min, "Least result."),
                       attribute("a_max", &ClipAttrs::a_max, "Greatest result.")})
RELAY_INFO(CastAttrs, {attribute("dtype", &CastAttrs::dtype, "dtype of the result.")})
RELAY_INFO(LeakyReluAttrs, {attribute("alpha", &LeakyReluAttrs::alpha, "Slope below zero.")})
RELAY_INFO(PReluAttrs, {attribute("axis", &PReluAttrs::axis, "Axis of the channels.")})
RELAY_INFO(BiasAddAttrs,
           {attribute("axis", &BiasAddAttrs::axis, "Axis along which the bias varies.")})
RELAY_INFO(ReduceAttrs,
           {attribute("axis", &ReduceAttrs::axis, "Axes to reduce; None: all."),
            attribute("keepdims", &ReduceAttrs::keepdims, "Keep reduced axes with size one."),
            attribute("exclude", &ReduceAttrs::exclude, "Reduce all axes but these.")})
RELAY_INFO(ArgReduceAttrs,
           {attribute("axis", &ArgReduceAttrs::axis, "Axes to reduce; None: all."),
            attribute("keepdims", &ArgReduceAttrs::keepdims, "Keep reduced axes with size one."),
            attribute("select_last_index", &ArgReduceAttrs::select_last_index,
                      "The last of equal values wins."),
            attribute("exclude", &ArgReduceAttrs::exclude, "Reduce all axes but these.")})
RELAY_INFO(VarianceAttrs,
           {attribute("axis", &VarianceAttrs::axis, "Axes to reduce; None: all."),
            attribute("keepdims", &VarianceAttrs::keepdims, "Keep reduced axes with size one."),
            attribute("exclude", &VarianceAttrs::exclude, "Reduce all axes but these."),
            attribute("unbiased", &VarianceAttrs::unbiased, "Divide by the count less one.")})
RELAY_INFO(MatmulAttrs,
           {attribute("units", &MatmulAttrs::units, "Columns of the result."),
            attribute("out_dtype", &MatmulAttrs::out_dtype, "dtype of the result."),
            attribute("transpose_a", &MatmulAttrs::transpose_a, "The first matrix is transposed."),
            attribute("transpose_b", &MatmulAttrs::transpose_b,
                      "The second matrix is transposed.")})
RELAY_INFO(DenseAttrs, {attribute("units", &DenseAttrs::units, "Columns of the result."),
                        attribute("out_dtype", &DenseAttrs::out_dtype, "dtype of the result.")})
RELAY_INFO(DensePackAttrs,
           {attribute("units", &DensePackAttrs::units, "Columns of the result."),
            attribute("out_dtype", &DensePackAttrs::out_dtype, "dtype of the result."),
            attribute("weight_layout", &DensePackAttrs::weight_layout,
                      "Layout of the weight, NC or NC<block>n.")})
RELAY_INFO(BatchMatmulAttrs,
           {attribute("out_dtype", &BatchMatmulAttrs::out_dtype, "dtype of the result."),
            attribute("transpose_a", &BatchMatmulAttrs::transpose_a,
                      "The first matrices are transposed."),
            attribute("transpose_b", &BatchMatmulAttrs::transpose_b,
                      "The second matrices are transposed.")})
RELAY_INFO(Conv1DAttrs, conv_fields<Conv1DAttrs>())
RELAY_INFO(Conv2DAttrs, conv_fields<Conv2DAttrs>())
RELAY_INFO(Conv3DAttrs, conv_fields<Conv3DAttrs>())
RELAY_INFO(ConvWinogradWeightTransformAttrs,
           {attribute("tile_size", &ConvWinogradWeightTransformAttrs::tile_size,
                      "Sides of the squares of results: 4.")})
RELAY_INFO(Conv2DWinogradAttrs, conv_winograd_fields())
RELAY_INFO(Conv1DTransposeAttrs, conv_transpose_fields<Conv1DTransposeAttrs>())
RELAY_INFO(Conv2DTransposeAttrs, conv_transpose_fields<Conv2DTransposeAttrs>())
RELAY_INFO(Conv3DTransposeAttrs, conv_transpose_fields<Conv3DTransposeAttrs>())
RELAY_INFO(MaxPool1DAttrs, pool_fields<MaxPool1DAttrs>(false))
RELAY_INFO(MaxPool2DAttrs, pool_fields<MaxPool2DAttrs>(false))
RELAY_INFO(MaxPool3DAttrs, pool_fields<MaxPool3DAttrs>(false))
RELAY_INFO(AvgPool1DAttrs, pool_fields<AvgPool1DAttrs>(true))
RELAY_INFO(AvgPool2DAttrs, pool_fields<AvgPool2DAttrs>(true))
RELAY_INFO(AvgPool3DAttrs, pool_fields<AvgPool3DAttrs>(true))
RELAY_INFO(GlobalPool2DAttrs,
           {attribute("layout", &GlobalPool2DAttrs::layout, "Layout of the input."),
            attribute("out_layout", &GlobalPool2DAttrs::out_layout, "Layout of the result.")})
RELAY_INFO(AdaptivePool1DAttrs, adaptive_fields<AdaptivePool1DAttrs>())
RELAY_INFO(AdaptivePool2DAttrs, adaptive_fields<AdaptivePool2DAttrs>())
RELAY_INFO(AdaptivePool3DAttrs, adaptive_fields<AdaptivePool3DAttrs>())
RELAY_INFO(BatchNormAttrs, norm_fields<BatchNormAttrs>("Axis of the channels."))
RELAY_INFO(InstanceNormAttrs, norm_fields<InstanceNormAttrs>("Axis of the channels."))
RELAY_INFO(LayerNormAttrs, norm_fields<LayerNormAttrs>("Axis that is normalised."))
RELAY_INFO(GroupNormAttrs,
           {attribute("num_groups", &GroupNormAttrs::num_groups, "Groups of channels."),
            attribute("axis", &GroupNormAttrs::axis, "Axis of the channels."),
            attribute("epsilon", &GroupNormAttrs::epsilon, "Added to the variance."),
            attribute("center", &GroupNormAttrs::center, "Add beta."),
            attribute("scale", &GroupNormAttrs::scale, "Multiply by gamma.")})
RELAY_INFO(LRNAttrs, {attribute("size", &LRNAttrs::size, "Channels in a window, odd."),
                      attribute("axis", &LRNAttrs::axis, "Axis of the channels."),
                      attribute("bias", &LRNAttrs::bias, "Added to the sum."),
                      attribute("alpha", &LRNAttrs::alpha, "Factor of the sum."),
                      attribute("beta", &LRNAttrs::beta, "Exponent.")})
RELAY_INFO(DropoutAttrs,
           {attribute("rate", &DropoutAttrs::rate, "Share of elements that training drops.")})
RELAY_INFO(SoftmaxAttrs, {attribute("axis", &SoftmaxAttrs::axis, "The axis that sums to one.")})
RELAY_INFO(AttentionAttrs,
           {attribute("scale", &AttentionAttrs::scale, "What the products are multiplied by."),
            attribute("query_layout", &AttentionAttrs::query_layout,
                      "Axes of the queries: batch, heads, sequence and depth in any order."),
            attribute("key_layout", &AttentionAttrs::key_layout, "Axes of the keys."),
            attribute("value_layout", &AttentionAttrs::value_layout, "Axes of the values."),
            attribute("out_layout", &AttentionAttrs::out_layout, "Axes of the result."),
            attribute("transpose_mask", &AttentionAttrs::transpose_mask,
                      "The mask has the keys before the queries.")})
RELAY_INFO(NLLLossAttrs, {attribute("reduction", &NLLLossAttrs::reduction, "none, sum or mean."),
                          attribute("ignore_index", &NLLLossAttrs::ignore_index,
                                    "A target that counts nothing.")})
RELAY_INFO(ExpandDimsAttrs, {attribute("axis", &ExpandDimsAttrs::axis, "Where the new axes go."),
                             attribute("num_newaxis", &ExpandDimsAttrs::num_newaxis, "How many.")})
RELAY_INFO(SqueezeAttrs,
           {attribute("axis", &SqueezeAttrs::axis, "Axes of size one to drop; None: all of them.")})
RELAY_INFO(
    ReshapeAttrs,
    {attribute("newshape", &ReshapeAttrs::newshape,
               "Sizes; 0 copies, -1 is inferred, -2 copies the rest, -3 joins two, -4 splits one."),
     attribute("allowzero", &ReshapeAttrs::allowzero, "0 means an empty axis.")})
RELAY_INFO(TransposeAttrs,
           {attribute("axes", &TransposeAttrs::axes, "Order of the axes; None: reversed.")})
RELAY_INFO(ConcatenateAttrs,
           {attribute("axis", &ConcatenateAttrs::axis, "Axis along which the tensors are joined.")})
RELAY_INFO(StackAttrs, {attribute("axis", &StackAttrs::axis, "Where the new axis goes.")})
RELAY_INFO(SplitAttrs, {attribute("indices_or_sections", &SplitAttrs::indices_or_sections,
                                  "A number of equal parts, or where parts begin."),
                        attribute("axis", &SplitAttrs::axis, "Axis to split.")})
RELAY_INFO(StridedSliceAttrs,
           {attribute("begin", &StridedSliceAttrs::begin, "First index of each axis."),
            attribute("end", &StridedSliceAttrs::end, "Index behind the last, or size."),
            attribute("strides", &StridedSliceAttrs::strides, "Steps."),
            attribute("slice_mode", &StridedSliceAttrs::slice_mode, "\"end\" or \"size\"."),
            attribute("axes", &StridedSliceAttrs::axes,
                      "Axes that the lists are for; None: the first ones.")})
RELAY_INFO(PadAttrs, {attribute("pad_width", &PadAttrs::pad_width, "Begin and end of each axis."),
                      attribute("pad_mode", &PadAttrs::pad_mode, "constant, edge or reflect.")})
RELAY_INFO(MirrorPadAttrs,
           {attribute("mode", &MirrorPadAttrs::mode, "SYMMETRIC or REFLECT."),
            attribute("pad_width", &MirrorPadAttrs::pad_width, "Begin and end of each axis.")})
RELAY_INFO(TileAttrs, {attribute("reps", &TileAttrs::reps, "Repetitions of each axis.")})
RELAY_INFO(RepeatAttrs,
           {attribute("repeats", &RepeatAttrs::repeats, "Times each element is repeated."),
            attribute("axis", &RepeatAttrs::axis, "Along which axis; None: flattened.")})
RELAY_INFO(ReverseAttrs, {attribute("axis", &ReverseAttrs::axis, "Axis to reverse.")})
RELAY_INFO(InitOpAttrs, {attribute("shape", &InitOpAttrs::shape, "Shape of the result."),
                         attribute("dtype", &InitOpAttrs::dtype, "dtype of the result.")})
RELAY_INFO(TakeAttrs, {attribute("batch_dims", &TakeAttrs::batch_dims,
                                 "Leading axes shared by data and indices."),
                       attribute("axis", &TakeAttrs::axis, "Axis to take from; None: flattened."),
                       attribute("mode", &TakeAttrs::mode,
                                 "What indices out of range mean: clip moves them to the border, "
                                 "negative ones to the first; wrap counts on from the other end; "
                                 "fast counts negative ones from the end and clips the rest.")})
RELAY_INFO(GatherAttrs, {attribute("axis", &GatherAttrs::axis, "Axis that the indices are along.")})
RELAY_INFO(GatherNDAttrs, {attribute("batch_dims", &GatherNDAttrs::batch_dims,
                                     "Leading axes shared by data and indices."),
                           attribute("index_rank", &GatherNDAttrs::index_rank,
                                     "Length of the index axis when unknown.")})
RELAY_INFO(OneHotAttrs, {attribute("depth", &OneHotAttrs::depth, "Size of the new axis."),
                         attribute("axis", &OneHotAttrs::axis, "Where the new axis goes."),
                         attribute("dtype", &OneHotAttrs::dtype, "dtype of the result.")})
RELAY_INFO(TriluAttrs, {attribute("upper", &TriluAttrs::upper, "Keep the upper triangle.")})
RELAY_INFO(LayoutTransformAttrs,
           {attribute("src_layout", &LayoutTransformAttrs::src_layout, "Layout of the input."),
            attribute("dst_layout", &LayoutTransformAttrs::dst_layout, "Layout of the result.")})
RELAY_INFO(SubPixelAttrs, {attribute("block_size", &SubPixelAttrs::block_size, "Size of a block."),
                           attribute("layout", &SubPixelAttrs::layout, "Layout."),
                           attribute("mode", &SubPixelAttrs::mode, "DCR or CDR.")})

#undef RELAY_INFO

}  // namespace relay::ops
