#include "tir/arith/analyzer_impl.h"

#include <algorithm>
#include <numeric>

#include "tir/scalar.h"

namespace relay::tir {

std::optional<Analyzer::Impl::Lanes> Analyzer::Impl::lanes_of(const PrimExpr& e) {
  if (auto* r = as<RampNode>(e)) return Lanes{r->base, r->stride};
  if (auto* b = as<BroadcastNode>(e)) return Lanes{b->value, imm(b->value->dtype, 0)};
  return std::nullopt;
}

PrimExpr Analyzer::Impl::make_ramp(const PrimExpr& base, const PrimExpr& stride, int lanes) {
  return intern(ramp(base, stride, lanes));
}

PrimExpr Analyzer::Impl::simplify_vector(BinaryOp op, const PrimExpr& a, const PrimExpr& b) {
  int lanes = a->dtype.lanes;
  auto x = lanes_of(a);
  auto y = lanes_of(b);
  if (!x || !y) return nullptr;
  if (isa<BroadcastNode>(a) && isa<BroadcastNode>(b)) {
    return intern(broadcast(simplify_binary(op, x->base, y->base), lanes));
  }
  if (!(a->dtype.element() == kIndex)) return nullptr;
  auto combined = [&](BinaryOp o, const PrimExpr& p, const PrimExpr& q) {
    return simplify_binary(o, p, q);
  };
  auto last = [&](const Lanes& l) {
    return combined(BinaryOp::Add, l.base, combined(BinaryOp::Mul, l.stride, index(lanes - 1)));
  };
  // Whether no lane wraps.
  auto is_even = [&](const Lanes& l) { return fits(linear(l.base)) && fits(linear(last(l))); };
  auto stride = as_int(x->stride);
  auto divisor = as_int(b);
  switch (op) {
    case BinaryOp::Add:
    case BinaryOp::Sub:
      return make_ramp(combined(op, x->base, y->base), combined(op, x->stride, y->stride), lanes);
    case BinaryOp::Mul:
      if (isa<BroadcastNode>(b)) {
        return make_ramp(combined(op, x->base, y->base), combined(op, x->stride, y->base), lanes);
      }
      if (isa<BroadcastNode>(a)) {
        return make_ramp(combined(op, x->base, y->base), combined(op, x->base, y->stride), lanes);
      }
      return nullptr;
    case BinaryOp::FloorDiv:
    case BinaryOp::FloorMod: {
      if (!divisor || *divisor <= 0 || !stride || *stride < 0 || !is_even(*x)) return nullptr;
      if (*stride % *divisor == 0) {
        return op == BinaryOp::FloorDiv
                   ? make_ramp(floor_div_of(x->base, *divisor), index(*stride / *divisor), lanes)
                   : intern(broadcast(floor_mod_of(x->base, *divisor), lanes));
      }
      PrimExpr first = floor_mod_of(x->base, *divisor);
      int64_t span = *stride * (lanes - 1);
      Bounds r = bounds(first);
      // The greatest remainder is lower when base and divisor share a factor.
      Modular m = modular(first);
      if (m.modulus > 0) {
        int64_t g = std::gcd(m.modulus, *divisor);
        r.max = std::min(r.max, *divisor - g + floor_mod_int(m.remainder, g));
      }
      if (r.max > *divisor - 1 - span) return nullptr;
      return op == BinaryOp::FloorDiv ? intern(broadcast(floor_div_of(x->base, *divisor), lanes))
                                      : make_ramp(first, x->stride, lanes);
    }
    case BinaryOp::Lt:
    case BinaryOp::Le:
    case BinaryOp::Gt:
    case BinaryOp::Ge: {
      // Both ends decide when they agree: the difference is monotone in the lane.
      if (!is_even(*x) || !is_even(*y)) return nullptr;
      auto at_first = as_int(simplify_binary(op, x->base, y->base));
      auto at_last = as_int(simplify_binary(op, last(*x), last(*y)));
      if (at_first && at_first == at_last) return intern(imm(DType::Bool(lanes), *at_first));
      return nullptr;
    }
    default:
      return nullptr;
  }
}

}  // namespace relay::tir
