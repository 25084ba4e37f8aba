#include "ops/indexing_attrs.h"

namespace relay::ops {

#define RELAY_INFO(Name, ...)                                                             \
  const NodeInfo& Name::static_info() {                                                   \
    static const NodeInfo info = describe_attrs<Name>("relay.attrs." #Name, __VA_ARGS__); \
    return info;                                                                          \
  }

RELAY_INFO(ArangeAttrs,
           {attribute("start", &ArangeAttrs::start, "First number; None: 0."),
            attribute("stop", &ArangeAttrs::stop, "Where to end, which is left out."),
            attribute("step", &ArangeAttrs::step, "Distance between numbers; None: 1."),
            attribute("dtype", &ArangeAttrs::dtype, "dtype of the result; unset: float32.")})
RELAY_INFO(ScatterElementsAttrs,
           {attribute("axis", &ScatterElementsAttrs::axis, "Axis that the indices are along."),
            attribute("reduction", &ScatterElementsAttrs::reduction,
                      "What meets what is there: update, add, mul, mean, min or max.")})
RELAY_INFO(ScatterNDAttrs, {attribute("mode", &ScatterNDAttrs::mode,
                                      "What meets what is there: update, add, mul, min or max.")})
RELAY_INFO(ArgsortAttrs,
           {attribute("axis", &ArgsortAttrs::axis, "Axis to sort."),
            attribute("is_ascend", &ArgsortAttrs::is_ascend, "The least comes first."),
            attribute("dtype", &ArgsortAttrs::dtype, "dtype of indices; unset: int32.")})
RELAY_INFO(TopKAttrs, {attribute("k", &TopKAttrs::k, "How many; None: one; less than one: all."),
                       attribute("axis", &TopKAttrs::axis, "Axis to sort."),
                       attribute("ret_type", &TopKAttrs::ret_type, "both, values or indices."),
                       attribute("is_ascend", &TopKAttrs::is_ascend, "The least come first."),
                       attribute("dtype", &TopKAttrs::dtype, "dtype of indices; unset: int32.")})
RELAY_INFO(SearchSortedAttrs,
           {attribute("right", &SearchSortedAttrs::right, "Behind equal elements, not before."),
            attribute("dtype", &SearchSortedAttrs::dtype, "dtype of the result.")})
RELAY_INFO(ScanopAttrs,
           {attribute("axis", &ScanopAttrs::axis, "Axis to run along; None: flattened."),
            attribute("dtype", &ScanopAttrs::dtype, "dtype of the result; unset: the input's."),
            attribute("exclusive", &ScanopAttrs::exclusive, "Leave out the element itself.")})
RELAY_INFO(MeshgridAttrs, {attribute("indexing", &MeshgridAttrs::indexing,
                                     "ij: matrix order; xy: the first two axes swapped.")})
RELAY_INFO(ShapeOfAttrs,
           {attribute("dtype", &ShapeOfAttrs::dtype, "dtype of the result; unset: int32.")})
RELAY_INFO(NdarraySizeAttrs,
           {attribute("dtype", &NdarraySizeAttrs::dtype, "dtype of the result; unset: int32.")})
RELAY_INFO(ReverseSequenceAttrs,
           {attribute("seq_axis", &ReverseSequenceAttrs::seq_axis, "Axis to reverse."),
            attribute("batch_axis", &ReverseSequenceAttrs::batch_axis, "Axis of the sequences.")})
RELAY_INFO(SequenceMaskAttrs,
           {attribute("mask_value", &SequenceMaskAttrs::mask_value, "Stands behind the end."),
            attribute("axis", &SequenceMaskAttrs::axis, "Axis of time, 0 or 1.")})
RELAY_INFO(EinsumAttrs, {attribute("equation", &EinsumAttrs::equation,
                                   "Labels of the operands' axes, then the result's: ij,jk->ik.")})
RELAY_INFO(L2NormalizeAttrs,
           {attribute("eps", &L2NormalizeAttrs::eps, "Least sum of squares to divide by."),
            attribute("axis", &L2NormalizeAttrs::axis, "Axes to sum over; None: all.")})
RELAY_INFO(DilateAttrs,
           {attribute("strides", &DilateAttrs::strides, "Distance of elements along each axis."),
            attribute("dilation_value", &DilateAttrs::dilation_value, "Stands in between.")})
RELAY_INFO(UpSamplingAttrs,
           {attribute("scale_h", &UpSamplingAttrs::scale_h, "Factor of the height."),
            attribute("scale_w", &UpSamplingAttrs::scale_w, "Factor of the width."),
            attribute("layout", &UpSamplingAttrs::layout, "Layout of the image."),
            attribute("method", &UpSamplingAttrs::method, "nearest_neighbor or bilinear."),
            attribute("align_corners", &UpSamplingAttrs::align_corners, "Corners stay in place.")})

#undef RELAY_INFO

}  // namespace relay::ops
