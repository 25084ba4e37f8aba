#include "grad/type_depth.h"

#include <algorithm>

#include "node/node_map.h"
#include "node/walk.h"

namespace relay {

void check_type_depth(const Function& f, const DiagnosticCode& code) {
  constexpr int kDeepest = 200;
  NodeMap<int> depths;
  auto check_depth = [&](const Type& type, const Span& span) {
    post_order_if(
        type, [&](const Node& n) { return !depths.contains(&n); },
        [&](const Node& n) {
          int depth = 0;
          for_each_child(n, [&](const NodeRef& c) {
            const int* below = depths.find(c.get());
            if (below != nullptr) depth = std::max(depth, *below + 1);
          });
          depths[&n] = depth;
        },
        family::type);
    if (depths.at(type.get()) <= kDeepest) return;
    throw UserError(Diagnostic(code, span, "a type is nested too deep")
                        .expected("at most " + std::to_string(kDeepest) + " levels")
                        .found(std::to_string(depths.at(type.get()))));
  };
  post_order(
      f,
      [&](const Node& n) {
        auto* e = n.info().family == family::expr ? static_cast<const ExprNode*>(&n) : nullptr;
        if (e != nullptr && e->type) check_depth(e->type, e->span);
      },
      family::program);
}

}  // namespace relay
