#include "tir/constant_nest.h"

#include "node/walk.h"
#include "tir/arith/analyzer.h"
#include "tir/schedule/loop_tree.h"

namespace relay::tir {

std::optional<ConstantNest> constant_nest(const Stmt& s, LoopNest nest) {
  ConstantNest out;
  const StmtNode* at = s.get();
  while (auto* loop = as<ForNode>(at)) {
    auto extent = as_int(loop->extent);
    if (!extent || loop->hints.nest != nest) return std::nullopt;
    out.loops.push_back(loop);
    out.extents.push_back(*extent);
    at = loop->body.get();
  }
  out.store = as<StoreNode>(at);
  if (out.store == nullptr || out.store->predicate || out.store->indices.size() != 1) {
    return std::nullopt;
  }
  return out;
}

std::optional<LinearIndex> linear_index(const PrimExpr& index, const ConstantNest& nest) {
  // An index of fewer bits is widened as a whole (tir/passes/narrow_indices.h): it moves as what is widened does.
  auto* widened = as<CastNode>(index);
  const PrimExpr& at =
      widened != nullptr && widened->value->dtype.is_int() ? widened->value : index;
  auto whole = [&](const PrimExpr& e) { return cast(index->dtype, e); };
  LinearIndex out;
  Analyzer analyzer;
  std::unordered_map<const Node*, NodeRef> begin;
  for (const ForNode* l : nest.loops) {
    PrimExpr next = PrimExpr::unchecked(
        substitute(at, {{l->var.get(), PrimExpr(l->var) + 1}}, family::tir_expr));
    auto constant = analyzer.constant_difference(next, at);
    PrimExpr step = constant ? tir::index(*constant) : whole(analyzer.simplify(next - at));
    for (const ForNode* other : nest.loops) {
      if (uses_var(step, other->var.get())) return std::nullopt;
    }
    out.steps.push_back(step);
    begin[l->var.get()] = l->min;
  }
  out.first =
      whole(analyzer.simplify(PrimExpr::unchecked(substitute(at, begin, family::tir_expr))));
  return out;
}

std::optional<Place> place_of(const PrimExpr& at, const ConstantNest& nest) {
  auto linear = linear_index(at, nest);
  if (!linear) return std::nullopt;
  Place out{linear->first, {}};
  for (const PrimExpr& step : linear->steps) {
    auto constant = as_int(step);
    if (!constant) return std::nullopt;
    out.steps.push_back(*constant);
  }
  return out;
}

}  // namespace relay::tir
