#include "analysis/read_counts.h"

#include <unordered_set>

#include "analysis/primitives.h"

namespace relay {

std::unordered_map<const Node*, int> read_counts(const Expr& body) {
  std::unordered_map<const Node*, int> out;
  auto read = [&](const NodeRef& child) {
    if (isa<VarNode>(child)) ++out[child.get()];
  };
  std::unordered_set<const Node*> values;
  read(body);
  post_order_outside_primitives(body, [&](const Node& n) {
    auto* l = as<LetNode>(&n);
    if (l == nullptr) return for_each_child(n, read);
    read(l->value);
    read(l->body);
    if (!values.insert(l->value.get()).second) for_each_child(*l->value.get(), read);
  });
  return out;
}

}  // namespace relay
