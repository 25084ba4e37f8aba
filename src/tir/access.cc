#include "tir/access.h"

#include "node/walk.h"

namespace relay::tir {
namespace {

// The elements of memory from a buffer's first element to behind its last one.
PrimExpr extent_in_memory(const Buffer& b) {
  PrimExpr last = index(0);
  std::vector<PrimExpr> at;
  for (const PrimExpr& d : b->shape) at.push_back(d - 1);
  if (!at.empty()) last = element_offset(*b.get(), at);
  return last + 1;
}

}  // namespace

bool is_vector_access(const std::vector<PrimExpr>& indices) {
  auto* r = indices.size() == 1 ? as<RampNode>(indices[0]) : nullptr;
  return r != nullptr && as_int(r->stride) == 1;
}

bool points_near(const Buffer& buffer, const PrimExpr& at, Analyzer& analyzer) {
  auto* r = as<RampNode>(at);
  int64_t lanes = at->dtype.lanes;
  PrimExpr extent = extent_in_memory(buffer);
  if (auto size = as_int(extent)) return analyzer.bounds(r->base).within(-lanes, *size);
  return analyzer.can_prove(ge(r->base, index(-lanes))) && analyzer.can_prove(le(r->base, extent));
}

bool lies_in(const Buffer& buffer, const PrimExpr& at, Analyzer& analyzer) {
  PrimExpr extent = extent_in_memory(buffer);
  if (auto size = as_int(extent)) return analyzer.bounds(at).within(0, *size - 1);
  return analyzer.can_prove(ge(at, index(0))) && analyzer.can_prove(lt(at, extent));
}

PrimExpr narrowed(const PrimExpr& mask, const PrimExpr& cond, bool taken) {
  PrimExpr lanes = taken ? cond : logical_not(cond);
  if (!mask) return lanes;
  return mask->dtype.lanes == lanes->dtype.lanes ? logical_and(mask, lanes) : lanes;
}

PrimExpr lanes_of_load(const LoadNode& l, const PrimExpr& mask) {
  int lanes = l.dtype.lanes;
  PrimExpr on = mask;
  if (on && on->dtype.lanes != lanes) on = broadcast(any_lane(on), lanes);
  if (!l.predicate) return on;
  return on ? logical_and(on, l.predicate) : l.predicate;
}

PrimExpr any_lane(const PrimExpr& mask) {
  if (mask->dtype.lanes == 1) return mask;
  if (auto* b = as<BroadcastNode>(mask)) return b->value;
  return reduce_lanes(BinaryOp::Or, mask);
}

bool first_lane_is_on(const PrimExpr& mask, Analyzer& analyzer) {
  auto* c = as<BinaryNode>(mask);
  if (c == nullptr || (c->op != BinaryOp::Lt && c->op != BinaryOp::Le)) return false;
  auto* r = as<RampNode>(c->a);
  auto* end = as<BroadcastNode>(c->b);
  return r != nullptr && end != nullptr && r->dtype.element() == kIndex &&
         analyzer.can_prove(binary(c->op, r->base, end->value));
}

bool may_mask(const StoreNode& s) {
  bool found = s.predicate != nullptr;
  auto look = [&](const Node& n) {
    auto* c = as<SelectNode>(&n);
    auto* l = as<LoadNode>(&n);
    found |= (c != nullptr && c->dtype.lanes > 1) || (l != nullptr && l->predicate);
  };
  for (const PrimExpr& i : s.indices) post_order(i, look, family::tir_expr);
  post_order(s.value, look, family::tir_expr);
  return found;
}

bool has_loads(const PrimExpr& e) {
  bool found = false;
  post_order(
      e, [&](const Node& n) { found |= isa<LoadNode>(&n); }, family::tir_expr);
  return found;
}

}  // namespace relay::tir
