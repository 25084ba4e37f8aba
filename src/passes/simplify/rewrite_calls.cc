#include "passes/simplify/rewrite_calls.h"

#include "node/walk.h"

namespace relay {

Function rewrite_calls(const Function& f, const std::function<Expr(const CallNode&)>& replace) {
  return cast<FunctionNode>(rewrite(
      f,
      [&](const NodeRef&, NodeRef rebuilt) -> NodeRef {
        auto* c = as<CallNode>(rebuilt);
        Expr out = c == nullptr ? nullptr : replace(*c);
        return out ? NodeRef(out) : rebuilt;
      },
      family::program));
}

}  // namespace relay
