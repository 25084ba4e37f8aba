#include "tir/arith/counting.h"

#include <algorithm>
#include <optional>
#include <unordered_set>

#include "node/walk.h"

namespace relay::tir {
namespace {

// By steps of at most this one, a register leaves int64 after 2^48 iterations.
constexpr int64_t kMostStep = int64_t{1} << 15;

}  // namespace

void Counting::add(const Stmt& body) {
  Definitions definitions;
  post_order_if(
      body,
      [&](const Node& n) {
        if (auto* l = as<LetStmtNode>(&n)) definitions.emplace_back(l->var, l->value);
        if (auto* f = as<ForNode>(&n)) definitions.emplace_back(f->var, f->min);
        return true;
      },
      [](const Node&) {}, family::tir_stmt);
  for (const auto& [var, value] : definitions) define(var, value);
  add_counters(body, definitions);
  if (counters_.empty()) return;
  // What is computed from registers that count, counts.
  for (const auto& [var, value] : definitions) numbers_.erase(var.get());
  known_.clear();
  for (const auto& [var, value] : definitions) define(var, value);
}

std::optional<Counting::Register> Counting::register_of(const Node& e) {
  auto* l = as<LoadNode>(&e);
  if (l == nullptr || l->buffer->scope != Scope::Register || l->indices.size() != 1)
    return std::nullopt;
  const auto at = as_int(l->indices[0]);
  return at ? std::optional(Register{l->buffer.get(), *at}) : std::nullopt;
}

bool Counting::is_counter(const Node& e) const {
  const auto r = counters_.empty() ? std::nullopt : register_of(e);
  return r && counters_.contains(*r);
}

void Counting::add_counters(const Stmt& body, const Definitions& definitions) {
  std::unordered_map<const Node*, PrimExpr> value_of;
  for (const auto& [var, value] : definitions) value_of[var.get()] = value;
  // What each register gets, without steps: other registers, and what must count.
  std::map<Register, std::vector<PrimExpr>> gets;
  std::unordered_set<const Node*> unknown;  // buffers that are stored to at other indices
  auto add = [&](const StoreNode& s) {
    if (s.buffer->scope != Scope::Register || !(s.buffer->dtype == kIndex)) return;
    const auto at = s.indices.size() == 1 ? as_int(s.indices[0]) : std::nullopt;
    if (!at || !s.value->dtype.is_scalar()) {
      unknown.insert(s.buffer.get());
      return;
    }
    const Register to{s.buffer.get(), *at};
    counters_.emplace(to, s.buffer);
    std::vector<PrimExpr> work{s.value};
    std::unordered_set<const Node*> seen;
    while (!work.empty()) {
      const PrimExpr e = std::move(work.back());
      work.pop_back();
      if (!seen.insert(e.get()).second) continue;
      auto* b = as<BinaryNode>(e);
      const auto by = b == nullptr ? std::nullopt : as_int(b->b);
      const bool steps = by && (b->op == BinaryOp::Add || b->op == BinaryOp::Sub) &&
                         *by >= -kMostStep && *by <= kMostStep;
      if (auto value = value_of.find(e.get()); value != value_of.end() && !counts(e)) {
        work.push_back(value->second);
      } else if (auto* choice = as<SelectNode>(e)) {
        work.push_back(choice->true_value);
        work.push_back(choice->false_value);
      } else if (steps) {
        work.push_back(b->a);
      } else {
        gets[to].push_back(e);
      }
    }
  };
  post_order(
      body,
      [&](const Node& n) {
        if (auto* s = as<StoreNode>(&n)) add(*s);
      },
      family::tir_stmt);
  auto stays = [&](const auto& counter) {
    return !unknown.contains(counter.first.first) &&
           std::ranges::all_of(gets[counter.first], [&](const PrimExpr& e) {
             return register_of(*e.get()) ? is_counter(*e.get()) : counts(e);
           });
  };
  // Until none is lost.
  while (std::erase_if(counters_, [&](const auto& c) { return !stays(c); }) > 0) {
  }
}

bool Counting::define(const Var& var, const PrimExpr& value) {
  if (counts(value)) return true;
  if (numbers_.emplace(var.get(), var).second && known_.contains(var.get())) known_.clear();
  return false;
}

bool Counting::counts(const PrimExpr& e) {
  auto it = known_.find(e.get());
  if (it != known_.end()) return it->second.counts;
  if (isa<VarNode>(e)) return !numbers_.contains(e.get());
  if (isa<LoadNode>(e)) return is_counter(*e.get());
  post_order_if(
      e, [&](const Node& n) { return !known_.contains(&n); },
      [&](const Node& n) {
        auto& part = static_cast<const PrimExprNode&>(n);
        known_.emplace(&n, Known{relay::ref(part), of_parts(part)});
      },
      family::tir_expr);
  return known(e);
}

bool Counting::of_parts(const PrimExprNode& e) const {
  switch (e.kind()) {
    case ExprKind::IntImm: {
      auto& i = static_cast<const IntImmNode&>(e);
      return i.value >= -kMostFactor && i.value <= kMostFactor;
    }
    case ExprKind::Var:
      return !numbers_.contains(&e);
    case ExprKind::Binary: {
      auto& b = static_cast<const BinaryNode&>(e);
      return b.op != BinaryOp::Shl && known(b.a) && known(b.b);
    }
    case ExprKind::Select: {
      auto& s = static_cast<const SelectNode&>(e);
      return known(s.true_value) && known(s.false_value);
    }
    case ExprKind::Cast: {
      auto& c = static_cast<const CastNode&>(e);
      return c.value->dtype.is_bool() || (c.value->dtype.is_integer() && known(c.value));
    }
    case ExprKind::Ramp: {
      auto& r = static_cast<const RampNode&>(e);
      return known(r.base) && known(r.stride);
    }
    case ExprKind::Broadcast:
      return known(static_cast<const BroadcastNode&>(e).value);
    case ExprKind::Load:
      return is_counter(e);
    default:
      return false;
  }
}

}  // namespace relay::tir
