#include "passes/simplify/rewrite_calls.h"

#include "node/walk.h"

namespace relay {

Function rewrite_calls(const Function& f, const std::function<Expr(const CallNode&)>& replace) {
  return rewrite_calls(f, [&](const CallNode&, const CallNode& c) { return replace(c); });
}

Function rewrite_calls(
    const Function& f,
    const std::function<Expr(const CallNode& original, const CallNode& c)>& replace) {
  return cast<FunctionNode>(rewrite(
      f,
      [&](const NodeRef& original, NodeRef rebuilt) -> NodeRef {
        auto* c = as<CallNode>(rebuilt);
        Expr out = c == nullptr ? nullptr : replace(*as<CallNode>(original), *c);
        return out ? NodeRef(out) : rebuilt;
      },
      family::program));
}

}  // namespace relay
