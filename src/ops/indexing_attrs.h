// The attribute structs of the operators that sort, scan, scatter and move by index.
#pragma once

#include <optional>

#include "ops/attrs.h"

namespace relay::ops {

#define RELAY_ATTRS(Name)              \
  Name() : AttrsNode(static_info()) {} \
  static const NodeInfo& static_info()

// start, stop and step are integers or floats.
struct ArangeAttrs : AttrsNode {
  Value start, stop, step;
  DType dtype = kUnsetDType;
  RELAY_ATTRS(ArangeAttrs);
};
struct ScatterElementsAttrs : AttrsNode {
  int64_t axis = 0;
  std::string reduction = "update";
  RELAY_ATTRS(ScatterElementsAttrs);
};
struct ScatterNDAttrs : AttrsNode {
  std::string mode = "update";
  RELAY_ATTRS(ScatterNDAttrs);
};
struct ArgsortAttrs : AttrsNode {
  int64_t axis = -1;
  bool is_ascend = true;
  DType dtype = kUnsetDType;
  RELAY_ATTRS(ArgsortAttrs);
};
struct TopKAttrs : AttrsNode {
  std::optional<int64_t> k;
  int64_t axis = -1;
  std::string ret_type = "both";
  bool is_ascend = false;
  DType dtype = kUnsetDType;
  RELAY_ATTRS(TopKAttrs);
};
struct SearchSortedAttrs : AttrsNode {
  bool right = false;
  DType dtype = DType::Int(32);
  RELAY_ATTRS(SearchSortedAttrs);
};
struct ScanopAttrs : AttrsNode {
  std::optional<int64_t> axis;
  DType dtype = kUnsetDType;
  bool exclusive = false;
  RELAY_ATTRS(ScanopAttrs);
};
struct MeshgridAttrs : AttrsNode {
  std::string indexing = "ij";
  RELAY_ATTRS(MeshgridAttrs);
};
struct ShapeOfAttrs : AttrsNode {
  DType dtype = kUnsetDType;
  RELAY_ATTRS(ShapeOfAttrs);
};
struct NdarraySizeAttrs : AttrsNode {
  DType dtype = kUnsetDType;
  RELAY_ATTRS(NdarraySizeAttrs);
};
struct ReverseSequenceAttrs : AttrsNode {
  int64_t seq_axis = 1, batch_axis = 0;
  RELAY_ATTRS(ReverseSequenceAttrs);
};
struct SequenceMaskAttrs : AttrsNode {
  double mask_value = 0;
  int64_t axis = 0;
  RELAY_ATTRS(SequenceMaskAttrs);
};
struct EinsumAttrs : AttrsNode {
  std::string equation;
  RELAY_ATTRS(EinsumAttrs);
};
struct L2NormalizeAttrs : AttrsNode {
  double eps = 0;
  std::optional<Ints> axis;
  RELAY_ATTRS(L2NormalizeAttrs);
};
struct DilateAttrs : AttrsNode {
  Ints strides{1, 1};
  double dilation_value = 0;
  RELAY_ATTRS(DilateAttrs);
};
struct UpSamplingAttrs : AttrsNode {
  double scale_h = 1, scale_w = 1;
  std::string layout = "NCHW", method = "nearest_neighbor";
  bool align_corners = false;
  RELAY_ATTRS(UpSamplingAttrs);
};

#undef RELAY_ATTRS

}  // namespace relay::ops
