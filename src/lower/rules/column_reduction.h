// Reductions over other axes than the last: pooling, means over space with channels last.
#pragma once

#include "lower/rules/common.h"

namespace relay {

// Lanes over the last axis, the accumulators of up to eight vectors in registers over the whole
// reduction, and what follows applied before they are stored. Windows that may reach over the
// border are peeled, so that inside no element is tested. Empty for sums of products, and when the
// last axis does not walk neighbouring elements.
std::string schedule_column_reduction(tir::Schedule& s, const Target& target);

}  // namespace relay
