#include "plan/outputs.h"
#include "analysis/primitives.h"

#include <algorithm>

namespace relay::plan {

bool is_static_tensor(const Type& t) {
  auto* tensor = as<TensorTypeNode>(t);
  return tensor != nullptr && tensor->const_shape().has_value();
}

bool writes_outputs(const FunctionNode& f) {
  if (scalar_dtype(f.body->type)) return false;
  auto* fields = as<TupleTypeNode>(f.body->type);
  bool all_static = fields != nullptr ? std::ranges::all_of(fields->fields, is_static_tensor)
                                      : is_static_tensor(f.body->type);
  if (!all_static) return false;
  auto* result = as<VarNode>(result_of(f.body));
  for (auto* l = as<LetNode>(f.body); l != nullptr; l = as<LetNode>(l->body)) {
    if (l->var.get() != result) continue;
    auto* call = as<CallNode>(l->value);
    if (call != nullptr && primitive_of(*call) == nullptr) return false;
    if (isa<IfNode>(l->value) || isa<MatchNode>(l->value)) return false;
  }
  return true;
}

bool results_on_host(const FunctionNode& f, const Placement& where) {
  return std::ranges::all_of(Placement::devices_of(where.result(f), f.body->type),
                             [](Device d) { return d == Device::cpu(); });
}

std::unordered_map<const Node*, int32_t> claim_outputs(const FunctionNode& f, const VarSet& escapes,
                                                       const Joins& joins) {
  std::unordered_map<const Node*, int32_t> claimed;
  std::unordered_map<const Node*, const LetNode*> bound;
  const Expr* at = &f.body;
  while (auto* l = as<LetNode>(*at)) {
    bound[l->var.get()] = l;
    at = &l->body;
  }
  int32_t next = 0;
  // The leaves of the result in order; projections of kernels with several results are copied.
  std::vector<Expr> stack{*at};
  while (!stack.empty()) {
    Expr e = stack.back();
    stack.pop_back();
    auto it = bound.find(e.get());
    if (auto* t = as<TupleNode>(it == bound.end() ? e : it->second->value)) {
      stack.insert(stack.end(), t->fields.rbegin(), t->fields.rend());
      continue;
    }
    if (it == bound.end() || !isa<TensorTypeNode>(e->type)) {
      next += static_cast<int32_t>(flatten_tensor_types(e->type)->size());
      continue;
    }
    const LetNode* l = it->second;
    // Through names and views to the kernel that makes the bytes.
    while (l != nullptr) {
      Expr from;
      if (isa<VarNode>(l->value)) {
        from = l->value;
      } else if (auto* c = as<CallNode>(l->value)) {
        auto* called = primitive_of(*c);
        const Node* v = l->var.get();
        if (called != nullptr && is_view(*called)) {
          from = c->args[0];
        } else if (called != nullptr && isa<TensorTypeNode>(l->var->type) && !escapes.contains(v) &&
                   !joins.inside.contains(v) && !joins.joined.contains(v)) {
          claimed.emplace(v, next);
          break;
        }
      }
      auto source = from ? bound.find(from.get()) : bound.end();
      l = source == bound.end() ? nullptr : source->second;
    }
    ++next;
  }
  return claimed;
}

}  // namespace relay::plan
