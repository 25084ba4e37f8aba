#include "plan/escape.h"

#include <algorithm>

#include "analysis/primitives.h"
#include "ir/bindings.h"
#include "lower/lower_program.h"
#include "node/walk.h"
#include "plan/joins.h"

namespace relay::plan {
namespace {

void escape(const Expr& e, VarSet& escapes) {
  if (isa<VarNode>(e)) escapes.insert(e.get());
}

void escape_captured(const FunctionNode& inner, VarSet& escapes) {
  for (const Var& v : free_vars(ref(inner))) escapes.insert(v.get());
}

// Whether each of the results is memory of its own, of a size that is known before the kernel runs.
bool has_parts_of_its_own(const Expr& value) {
  auto* c = as<CallNode>(value);
  auto* f = c == nullptr ? nullptr : primitive_of(*c);
  auto* type = f == nullptr ? nullptr : as<TupleTypeNode>(value->type);
  auto is_tensor = [](const Type& t) { return isa<TensorTypeNode>(t); };
  return type != nullptr && std::ranges::all_of(type->fields, is_tensor) &&
         !has_open_size(value->type) && !shares_its_operand(*f) && !is_device_copy(*f) &&
         memory_of(*f) != Memory::Cut;
}

// Let nodes come in reverse order of execution, so what a value does is known before its operands
// are asked about. `apart`: variables of kernels whose results are values of their own.
void escape_operands(const LetNode& l, const VarSet& apart, VarSet& escapes) {
  bool mine = escapes.contains(l.var.get());
  switch (l.value->kind()) {
    case ExprKind::Var:
      if (mine) escape(l.value, escapes);
      return;
    case ExprKind::Tuple:
      if (!mine) return;
      break;
    case ExprKind::TupleGetItem:
      if (!mine || apart.contains(as<TupleGetItemNode>(l.value)->tuple.get())) return;
      break;
    case ExprKind::Call: {
      auto& c = *as<CallNode>(l.value);
      if (auto* f = primitive_of(c)) {
        if ((is_view(*f) && mine) || is_view_sized_by_data(*f)) escape(c.args[0], escapes);
        return;
      }
      escape(c.op, escapes);
      break;
    }
    case ExprKind::If:
      return;
    case ExprKind::Match:
      escape(as<MatchNode>(l.value)->data, escapes);
      return;
    case ExprKind::Function:
      return;
    default:
      break;
  }
  for_each_child(*l.value, [&](const NodeRef& child) {
    if (isa<VarNode>(child)) escapes.insert(child.get());
  });
}

}  // namespace

const Expr& result_of(const Expr& body) {
  const Expr* at = &body;
  while (auto* l = as<LetNode>(*at)) at = &l->body;
  return *at;
}

VarSet find_escapes(const FunctionNode& f, bool writes_outputs) {
  VarSet escapes, apart;
  post_order_outside_primitives(f.body, [&](const Node& n) {
    auto* l = as<LetNode>(&n);
    if (l != nullptr && has_parts_of_its_own(l->value)) apart.insert(l->var.get());
  });
  if (!writes_outputs) escape(result_of(f.body), escapes);
  post_order_if(
      f.body,
      [&](const Node& n) {
        // Before what is inside the branches is asked about.
        if (auto* i = as<IfNode>(&n)) {
          escape(result_of(i->true_branch), escapes);
          escape(result_of(i->false_branch), escapes);
        } else if (auto* c = as<ClauseNode>(&n)) {
          escape(result_of(c->rhs), escapes);
        }
        auto* inner = as<FunctionNode>(&n);
        if (inner == nullptr) return true;
        if (!inner->is_primitive()) escape_captured(*inner, escapes);
        return false;
      },
      [&](const Node& n) {
        auto* l = as<LetNode>(&n);
        if (l == nullptr) return;
        if (auto* inner = as<FunctionNode>(l->value)) escape_captured(*inner, escapes);
        escape_operands(*l, apart, escapes);
      },
      family::program);
  return escapes;
}

}  // namespace relay::plan
