// Products of integers by real factors that are a multiplier of 31 bits and a power of two.
#pragma once

#include <vector>

#include "ir/op.h"

namespace relay::ops {

// fixed_point_multiply and fixed_point_multiply_per_axis.
OpInfo fixed_point_row();
OpInfo fixed_point_per_axis_row();

}  // namespace relay::ops
