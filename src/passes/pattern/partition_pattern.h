// Functions of their own for what matches a pattern.
//
//   nn.relu(nn.bias_add(nn.conv2d(%x, %w), %b))
// becomes, for the pattern is_op("nn.relu")(is_op("nn.bias_add")(conv, wildcard())),
//   fn (%p0, %p1, %p2, PartitionedFromPattern="nn.conv2d_nn.bias_add_nn.relu_") {
//     nn.relu(nn.bias_add(nn.conv2d(%p0, %p1), %p2)) }(%x, %w, %b)
#pragma once

#include <functional>

#include "passes/pattern/dataflow_pattern.h"

namespace relay {

// Matches are looked for from the results on and do not overlap; nothing outside one uses what it
// computes but its result, otherwise it stays as it is. Nothing is matched inside the functions of earlier matches. What wildcards and variables match are the
// arguments; constants that is_constant matches come along. The functions have the attributes `attrs`.
// Branches of an if and bodies of lets and functions that the pattern does not describe come along as they are, since they
// are evaluated in their own place or read variables of the match; their free variables are arguments. `check` (may be
// null) refuses a match. Linear in the size of the program, and in that of such branches for each match.
Expr partition_pattern(const DFPattern& pattern, const Expr& expr, const Dict& attrs,
                       const std::function<bool(const Expr& root)>& check);

}  // namespace relay
