// Reductions over the last axes and what surrounds them: softmax, layer normalisation, means.
#pragma once

#include "lower/rules/common.h"

namespace relay {

// One loop over rows; in it every block for that row, intermediate rows in a thread's own memory.
// A reduction keeps four vectors of partial results, which are combined at the row's end; rows of
// any length end in masked lanes. Empty when no reduction walks neighbouring elements, each read
// once.
std::string schedule_row_reduction(tir::Schedule& s, const Target& target);

}  // namespace relay
