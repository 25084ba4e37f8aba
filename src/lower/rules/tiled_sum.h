// Sums of products - matrix products, convolutions, depthwise ones - by a register tile.
#pragma once

#include "lower/rules/common.h"

namespace relay {

// A tile of MR x NR results stays in registers over the whole reduction, lanes over the last axis,
// and what follows is applied before it is stored. MR * NR/lanes + NR/lanes + 1 registers at most.
// Empty when the kernel is no such sum.
std::string schedule_tiled_sum(tir::Schedule& s, const TargetInfo& target);

}  // namespace relay
