// Attention (the operator nn.attention) as one kernel that never stores all scores: a block of
// queries at a time, with their scores for all keys in a thread's own scratch.
//
//   for each head, for each block of queries:               (threads over these)
//     queries, scaled, one vector for the same depth of neighbouring queries
//     scores = keys x queries                               (register tiles; plus the mask)
//     top of each query; weights = exp(scores - top); total of each query
//     result = weights x values, divided by the totals      (register tiles)
//
// A block is all queries of a head where its scores fit in half of L2, else a few
// dozen, however long the sequence is.
#pragma once

#include "lower/rules/common.h"

namespace relay {

// Empty for other kernels, and for sizes or dtypes that register tiles do not take.
std::string schedule_attention(tir::Schedule& s, const Target& target);

}  // namespace relay
