#include "ir/open_types.h"

#include <unordered_set>

#include "node/walk.h"

namespace relay {

std::vector<TypeVar> free_type_vars(const Expr& expr) {
  std::unordered_set<const Node*> bound;
  std::vector<const TypeVarNode*> found;
  post_order_if(
      expr,
      // The types of a constructor are those of its data type, which binds their variables.
      [](const Node& n) { return !isa<ConstructorNode>(&n); },
      [&](const Node& n) {
        for (const Field& f : n.info().fields) {
          if (f.role != Role::binder) continue;
          const void* at = f.in(n);
          for (size_t i = 0; i < f.ops->count(at); ++i) bound.insert(f.ops->get_child(at, i).get());
        }
        if (auto* v = as<TypeVarNode>(&n)) found.push_back(v);
      });
  std::vector<TypeVar> out;
  for (const TypeVarNode* v : found) {
    if (!bound.contains(v)) out.emplace_back(v);
  }
  return out;
}

Function with_free_type_vars(const Function& f) {
  std::vector<TypeVar> free = free_type_vars(f);
  if (free.empty()) return f;
  std::vector<TypeVar> all = f->type_params;
  all.insert(all.end(), free.begin(), free.end());
  return function(f->params, f->body, f->ret_type, std::move(all), f->attrs, f->span);
}

}  // namespace relay
