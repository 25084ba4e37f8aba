// Walks over a program in which operators have been fused into primitive functions: one kernel each.
#pragma once

#include <functional>

#include "ir/expr.h"
#include "node/walk.h"

namespace relay {

// The node as a primitive function; null when it is something else.
const FunctionNode* as_primitive(const Node* n);
// The primitive function that a call runs, or null.
inline const FunctionNode* primitive_of(const CallNode& c) { return as_primitive(c.op.get()); }

// Calls `visit` for each distinct expression and pattern of `body`, children before parents, but not
// for primitive functions and what is inside them.
void post_order_outside_primitives(const Expr& body, const std::function<void(const Node&)>& visit);

// Rewrites expressions and patterns; primitive functions stay as they are, as a whole.
class RewriterOutsidePrimitives : public Rewriter {
 public:
  RewriterOutsidePrimitives() : Rewriter(family::program) {}
  NodeRef pre(const NodeRef& node) override;
};

// The primitive function without why it ends (attr::kFusionReason), which is no part of what it computes.
Function without_reason(const Function& f);

}  // namespace relay
