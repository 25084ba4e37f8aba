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

Claims claim_outputs(const FunctionNode& f, const VarSet& escapes, const Joins& joins) {
  Claims claimed;
  std::unordered_map<const Node*, const LetNode*> bound;
  const Expr* at = &f.body;
  while (auto* l = as<LetNode>(*at)) {
    bound[l->var.get()] = l;
    at = &l->body;
  }
  auto binding = [&](const Expr& e) -> const LetNode* {
    auto it = bound.find(e.get());
    return it == bound.end() ? nullptr : it->second;
  };
  auto has_own_memory = [&](const LetNode& l) {
    const Node* v = l.var.get();
    return !escapes.contains(v) && !joins.inside.contains(v) && !joins.joined.contains(v);
  };
  // The field of a kernel's result, of a tensor the only one; what an earlier leaf has claimed stays.
  auto claim = [&](const LetNode& kernel, size_t field, int32_t output) {
    auto* fields = as<TupleTypeNode>(kernel.var->type);
    if (fields != nullptr && !std::ranges::all_of(fields->fields, is_static_tensor)) return;
    std::vector<int32_t>& outputs = claimed[kernel.var.get()];
    outputs.resize(fields == nullptr ? 1 : fields->fields.size(), kNoOutput);
    if (outputs[field] == kNoOutput) outputs[field] = output;
  };
  auto makes_bytes = [&](const LetNode& l) {
    auto* c = as<CallNode>(l.value);
    auto* called = c == nullptr ? nullptr : primitive_of(*c);
    return called != nullptr && !is_view(*called) && has_own_memory(l);
  };
  int32_t next = 0;
  // The leaves of the result in order.
  std::vector<Expr> stack{*at};
  while (!stack.empty()) {
    Expr e = stack.back();
    stack.pop_back();
    const LetNode* l = binding(e);
    if (auto* t = as<TupleNode>(l == nullptr ? e : l->value)) {
      stack.insert(stack.end(), t->fields.rbegin(), t->fields.rend());
      continue;
    }
    if (l == nullptr || !isa<TensorTypeNode>(e->type)) {
      const auto leaves = static_cast<int32_t>(flatten_tensor_types(e->type)->size());
      // A part that escapes by itself is an object.
      auto parts = l == nullptr ? joins.projections.end() : joins.projections.find(l->var.get());
      const bool whole = parts == joins.projections.end() ||
                         std::ranges::none_of(parts->second, [&](const Node* part) {
                           return escapes.contains(part);
                         });
      for (int32_t i = 0; l != nullptr && whole && makes_bytes(*l) && i < leaves; ++i) {
        claim(*l, static_cast<size_t>(i), next + i);
      }
      next += leaves;
      continue;
    }
    // Through names, views and projections to the kernel that makes the bytes.
    while (l != nullptr) {
      Expr from;
      if (isa<VarNode>(l->value)) {
        from = l->value;
      } else if (auto* g = as<TupleGetItemNode>(l->value)) {
        const LetNode* tuple = has_own_memory(*l) ? binding(g->tuple) : nullptr;
        if (tuple != nullptr && makes_bytes(*tuple)) {
          claim(*tuple, static_cast<size_t>(g->index), next);
        }
      } else if (auto* c = as<CallNode>(l->value)) {
        auto* called = primitive_of(*c);
        if (called != nullptr && is_view(*called)) {
          from = c->args[0];
        } else if (isa<TensorTypeNode>(l->var->type) && makes_bytes(*l)) {
          claim(*l, 0, next);
        }
      }
      l = from ? binding(from) : nullptr;
    }
    ++next;
  }
  return claimed;
}

}  // namespace relay::plan
