// The attribute structs of the operators that draw random numbers.
#pragma once

#include "ops/attrs.h"

namespace relay::ops {

#define RELAY_ATTRS(Name)              \
  Name() : AttrsNode(static_info()) {} \
  static const NodeInfo& static_info()

struct ThreefryGenerateAttrs : AttrsNode {
  Ints out_shape;
  RELAY_ATTRS(ThreefryGenerateAttrs);
};
struct UniformAttrs : AttrsNode {
  Ints out_shape;
  DType out_dtype = kUnsetDType;
  RELAY_ATTRS(UniformAttrs);
};
struct NormalAttrs : AttrsNode {
  Ints out_shape;
  DType out_dtype = kUnsetDType;
  RELAY_ATTRS(NormalAttrs);
};
struct MultinomialAttrs : AttrsNode {
  int64_t num_samples = 1;
  RELAY_ATTRS(MultinomialAttrs);
};

#undef RELAY_ATTRS

}  // namespace relay::ops
