// Sums of products - matrix products, convolutions, depthwise ones - by a register tile.
#pragma once

#include "lower/rules/common.h"

namespace relay {

// A tile of results stays in registers over the whole reduction, lanes over the last axis, and what
// follows is applied before it is stored. The tile's shape is the one with the least work among
// those that leave registers for one vector of each column and one element of a row; tiles at the
// ends that are smaller are peeled off into loops of their own. Empty when the kernel is no such
// sum.
std::string schedule_tiled_sum(tir::Schedule& s, const TargetInfo& target);

}  // namespace relay
