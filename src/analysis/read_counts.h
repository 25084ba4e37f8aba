// How often variables are read.
#pragma once

#include <unordered_map>

#include "ir/expr.h"

namespace relay {

// Of each variable, the expressions outside of primitive functions that read it: an argument twice counts twice. A value that
// several bindings share reads once for each. Iterative and linear.
std::unordered_map<const Node*, int> read_counts(const Expr& body);

}  // namespace relay
