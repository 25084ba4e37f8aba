#include "tir/lane_reduction.h"

#include <algorithm>

#include "node/structural.h"
#include "tir/passes/statements.h"

namespace relay::tir {
namespace {

bool same_place(const StoreNode& s, const std::vector<PrimExpr>& indices) {
  return std::ranges::equal(s.indices, indices, [](const PrimExpr& a, const PrimExpr& b) {
    return structural_equal(a, b);
  });
}

bool is_any_order(BinaryOp op) {
  switch (op) {
    case BinaryOp::Add:
    case BinaryOp::Mul:
    case BinaryOp::Min:
    case BinaryOp::Max:
    case BinaryOp::And:
    case BinaryOp::Or:
    case BinaryOp::BitAnd:
    case BinaryOp::BitOr:
      return true;
    default:
      return false;
  }
}

}  // namespace

bool reduces_lanes(const ThreadNest& phase) {
  return phase.axes[0] != nullptr && phase.axes[0]->hints.nest == LoopNest::Lanes;
}

std::variant<LaneReduction, std::string> lane_reduction(const ThreadNest& phase) {
  const ForNode* lane = phase.axes[0];
  if (lane == nullptr || as_int(lane->extent) != kWarpItems || as_int(lane->min) != 0) {
    return "it is not over the " + std::to_string(kWarpItems) + " items of a warp";
  }
  std::vector<Stmt> all{phase.body};
  if (auto* s = as<SeqNode>(phase.body)) all = s->stmts;
  LaneReduction out;
  if (all.size() == 2) {
    auto* first = as<IfNode>(all[0]);
    auto* is = first == nullptr || first->else_body ? nullptr : as<BinaryNode>(first->cond);
    const bool of_first = is != nullptr && is->op == BinaryOp::Eq &&
                          is->a.get() == lane->var.get() && as_int(is->b) == 0;
    out.init = of_first ? as<StoreNode>(first->then_body) : nullptr;
    if (out.init == nullptr) return "its first item does not begin the reduction";
  }
  out.store = as<StoreNode>(all.back());
  auto* update = out.store == nullptr ? nullptr : as<BinaryNode>(out.store->value);
  auto* old = update == nullptr ? nullptr : as<LoadNode>(update->a);
  if (all.size() > 2 || old == nullptr || out.store->predicate || old->predicate ||
      !is_any_order(update->op) || !(old->buffer == out.store->buffer) ||
      !same_place(*out.store, old->indices)) {
    return "its items do not combine what they have with one element";
  }
  if (out.init != nullptr &&
      (!(out.init->buffer == out.store->buffer) || out.init->predicate ||
       !same_place(*out.store, out.init->indices) || uses(out.init->value, lane->var.get()))) {
    return "it begins with another element";
  }
  const auto of_item = [&](const PrimExpr& e) { return uses(e, lane->var.get()); };
  if (std::ranges::any_of(out.store->indices, of_item)) return "its items have elements each";
  if (uses(update->b, out.store->buffer.get())) return "it reads what it stores";
  out.op = update->op;
  out.own = update->b;
  return out;
}

}  // namespace relay::tir
