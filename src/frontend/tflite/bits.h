// The bits of elements, as integers.
#pragma once

#include "frontend/common/builder.h"

namespace relay::frontend::tflite {

// The bits of each element, as the low ones of a uint64.
Expr wide_bits(const Builder& build, const Expr& e);
// The same bits as elements of another dtype. Wider ones are made of the last axis, narrower ones are along a new one, the
// lowest bits first. Not for bool, strings, or a last axis of another size (E0203).
Expr with_bits_of(const Builder& build, const Expr& e, DType dtype);

}  // namespace relay::frontend::tflite
