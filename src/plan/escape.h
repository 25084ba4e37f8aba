// Which values leave the function that makes them.
//
// A value that is returned as it is, passed on, captured, put into data or a reference, or chosen by
// a branch outlives the memory of its function's arena or is asked for as an object: it escapes, and
// is an object of its own. All others can be in the arena. Of a kernel with several results that are only taken
// apart, the parts escape, each by itself.
#pragma once

#include <unordered_set>

#include "ir/expr.h"

namespace relay::plan {

using VarSet = std::unordered_set<const Node*>;

// `writes_outputs`: the function writes its results into outputs (plan/outputs.h), so they do not
// leave as values.
VarSet find_escapes(const FunctionNode& f, bool writes_outputs);

// The last expression of a Let chain.
const Expr& result_of(const Expr& body);

}  // namespace relay::plan
