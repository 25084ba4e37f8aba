// Walks over a program in which operators have been fused into primitive functions: one kernel each.
#pragma once

#include <functional>

#include "ir/expr.h"

namespace relay {

// Calls `visit` for each distinct expression and pattern of `body`, children before parents, but not
// for primitive functions and what is inside them.
void post_order_outside_primitives(const Expr& body, const std::function<void(const Node&)>& visit);

// The primitive function without why it ends (attr::kFusionReason), which is no part of what it computes.
Function without_reason(const Function& f);

}  // namespace relay
