// A shape and a dtype as attributes: of operators that make a tensor, and of those that bring one
// to a shape.
#pragma once

#include "ops/common.h"

namespace relay::ops {

struct InitOpAttrs : AttrsOf<InitOpAttrs> {
  Dims shape;
  DType dtype = kUnsetDType;
  static AttrsList describe() {
    return {"relay.attrs.InitOpAttrs",
            {child("shape", &Self::shape, "Shape of the result."),
             attribute("dtype", &Self::dtype, "dtype of the result.")}};
  }
};

}  // namespace relay::ops
