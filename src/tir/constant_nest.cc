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

namespace {

// An index that is computed in 32 bits (tir/passes/narrow_indices.h), in 64: none of its terms overflows.
class Widened : public Rewriter {
 public:
  Widened() : Rewriter(family::tir_expr) {}

  // The variable in 64 bits that stands for one of 32; other variables stand for themselves.
  const Node* of(const Var& v) const {
    auto it = wide_.find(v.get());
    return it == wide_.end() ? v.get() : it->second.get();
  }
  // The expression over the narrow variables again.
  PrimExpr over_narrow(const PrimExpr& e) const {
    return PrimExpr::unchecked(substitute(e, narrow_, family::tir_expr));
  }

  NodeRef post(const NodeRef&, NodeRef rebuilt) override {
    auto& e = static_cast<const PrimExprNode&>(*rebuilt.get());
    auto wide = [](const PrimExpr& x) { return cast(kIndex, x); };
    switch (e.kind()) {
      case ExprKind::Var: {
        if (e.dtype != DType::Int(32)) return rebuilt;
        auto [it, is_new] = wide_.try_emplace(&e);
        if (is_new) {
          it->second = var(static_cast<const VarNode&>(e).name, kIndex);
          narrow_[it->second.get()] = cast(kIndex, PrimExpr::unchecked(rebuilt));
        }
        return it->second;
      }
      case ExprKind::IntImm:
        return e.dtype == DType::Int(32) ? NodeRef(index(static_cast<const IntImmNode&>(e).value))
                                         : rebuilt;
      case ExprKind::Binary: {
        auto& n = static_cast<const BinaryNode&>(e);
        bool changed = n.a->dtype == kIndex || n.b->dtype == kIndex;
        return changed ? NodeRef(binary(n.op, wide(n.a), wide(n.b))) : rebuilt;
      }
      case ExprKind::Cast: {
        auto& n = static_cast<const CastNode&>(e);
        return e.dtype == kIndex && n.value->dtype == kIndex ? NodeRef(n.value) : rebuilt;
      }
      default:
        return rebuilt;
    }
  }

 private:
  std::unordered_map<const Node*, Var> wide_;
  std::unordered_map<const Node*, NodeRef> narrow_;
};

}  // namespace

std::optional<PrimExpr> step_along(const PrimExpr& index, const ConstantNest& nest,
                                   const ForNode& loop) {
  Widened widened;
  const PrimExpr at = PrimExpr::unchecked(widened.apply(index));
  Analyzer analyzer;
  const Node* v = widened.of(loop.var);
  PrimExpr next = PrimExpr::unchecked(
      substitute(at, {{v, PrimExpr::unchecked(NodeRef(v)) + 1}}, family::tir_expr));
  auto constant = analyzer.constant_difference(next, at);
  PrimExpr step =
      constant ? tir::index(*constant) : widened.over_narrow(analyzer.simplify(next - at));
  for (const ForNode* other : nest.loops) {
    if (uses_var(step, other->var.get())) return std::nullopt;
  }
  return step;
}

std::optional<LinearIndex> linear_index(const PrimExpr& index, const ConstantNest& nest) {
  LinearIndex out;
  std::unordered_map<const Node*, NodeRef> begin;
  for (const ForNode* l : nest.loops) {
    auto step = step_along(index, nest, *l);
    if (!step) return std::nullopt;
    out.steps.push_back(*step);
    begin[l->var.get()] = l->min;
  }
  out.first = Analyzer().simplify(PrimExpr::unchecked(substitute(index, begin, family::tir_expr)));
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
