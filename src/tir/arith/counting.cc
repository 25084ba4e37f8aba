#include "tir/arith/counting.h"

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <set>
#include <unordered_set>

#include "node/walk.h"

namespace relay::tir {
namespace {

// By steps of at most this one, a register leaves int64 after 2^48 iterations.
constexpr int64_t kMostStep = int64_t{1} << 15;
// An expression of more sizes than this is not an index.
constexpr size_t kMostSizes = 16;

}  // namespace

void Counting::add(const Stmt& body) {
  Definitions definitions;
  post_order_if(
      body,
      [&](const Node& n) {
        if (auto* l = as<LetStmtNode>(&n)) definitions.push_back({l->var, l->value, false});
        if (auto* f = as<ForNode>(&n)) definitions.push_back({f->var, f->min, true});
        return true;
      },
      [](const Node&) {}, family::tir_stmt);
  counters_.clear();
  known_.clear();
  for (const auto& [var, value, is_loop] : definitions) define(var, value, is_loop);
  counters_ = find_counters(body, definitions);
  known_.clear();
  if (counters_.empty()) return;
  // What is computed from registers that count, counts.
  for (const Definition& d : definitions) numbers_.erase(d.var.get());
  for (const auto& [var, value, is_loop] : definitions) define(var, value, is_loop);
}

bool Counting::Factors::is_one() const {
  int count = loops;
  for (const auto& size : sizes) count += size.second;
  return count <= 1;
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

Counting::Counters Counting::find_counters(const Stmt& body, const Definitions& definitions) {
  std::unordered_map<const Node*, PrimExpr> value_of;
  for (const Definition& d : definitions) value_of[d.var.get()] = d.value;
  Counters found;
  // The registers that each register gets, without steps.
  std::map<Register, std::vector<Register>> gets;
  std::set<Register> numbers;               // that get what does not count
  std::unordered_set<const Node*> unknown;  // buffers that are stored to at other indices
  auto add = [&](const StoreNode& s) {
    if (s.buffer->scope != Scope::Register || !(s.buffer->dtype == kIndex)) return;
    const auto at = s.indices.size() == 1 ? as_int(s.indices[0]) : std::nullopt;
    if (!at || !s.value->dtype.is_scalar()) {
      unknown.insert(s.buffer.get());
      return;
    }
    const Register to{s.buffer.get(), *at};
    found.emplace(to, s.buffer);
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
      // No register counts here: this holds without what is to be shown.
      if (const auto& factors = look(e).factors; factors && factors->is_one()) continue;
      if (auto value = value_of.find(e.get()); value != value_of.end()) {
        work.push_back(value->second);
      } else if (auto* choice = as<SelectNode>(e)) {
        work.push_back(choice->true_value);
        work.push_back(choice->false_value);
      } else if (b != nullptr && (b->op == BinaryOp::Min || b->op == BinaryOp::Max)) {
        work.push_back(b->a);
        work.push_back(b->b);
      } else if (steps) {
        work.push_back(b->a);
      } else if (const auto from = register_of(*e.get())) {
        gets[to].push_back(*from);
      } else {
        numbers.insert(to);
      }
    }
  };
  post_order(
      body,
      [&](const Node& n) {
        if (auto* s = as<StoreNode>(&n)) add(*s);
      },
      family::tir_stmt);
  auto is_number = [&](const auto& counter) {
    const Register& r = counter.first;
    return unknown.contains(r.first) || numbers.contains(r) ||
           !std::ranges::all_of(gets[r],
                                [&](const Register& from) { return found.contains(from); });
  };
  // Until none is lost.
  while (std::erase_if(found, is_number) > 0) {
  }
  return found;
}

bool Counting::define(const Var& var, const PrimExpr& value) { return define(var, value, false); }

bool Counting::define_loop(const Var& var, const PrimExpr& min) { return define(var, min, true); }

bool Counting::define(const Var& var, const PrimExpr& value, bool is_loop) {
  const Known* v = counts(value) ? &look(value) : nullptr;
  bool changed;
  if (v == nullptr) {
    changed = numbers_.emplace(var.get(), var).second;
  } else {
    Defined d{var, is_loop ? kOfALoop : *v->factors};
    auto [it, fresh] = defined_.try_emplace(var.get(), d);
    changed = fresh || it->second.factors != d.factors;
    it->second = std::move(d);
  }
  if (changed && known_.contains(var.get())) known_.clear();
  return v != nullptr;
}

const Counting::Known& Counting::look(const PrimExpr& e) {
  post_order_if(
      e, [&](const Node& n) { return !known_.contains(&n); },
      [&](const Node& n) {
        auto& part = static_cast<const PrimExprNode&>(n);
        known_.emplace(&n, Known{relay::ref(part), of_parts(part)});
      },
      family::tir_expr);
  return known_.at(e.get());
}

bool Counting::counts(const PrimExpr& e) {
  if (isa<VarNode>(e)) return !numbers_.contains(e.get());
  if (isa<LoadNode>(e)) return is_counter(*e.get());
  auto it = known_.find(e.get());
  return (it != known_.end() ? it->second : look(e)).factors.has_value();
}

std::optional<Counting::Factors> Counting::of_parts(const PrimExprNode& e) const {
  switch (e.kind()) {
    case ExprKind::IntImm: {
      auto& i = static_cast<const IntImmNode&>(e);
      if (i.value < -kMostFactor || i.value > kMostFactor) return std::nullopt;
      return Factors{std::max<int64_t>(1, std::abs(i.value)), 0, {}};
    }
    case ExprKind::Var: {
      if (numbers_.contains(&e)) return std::nullopt;
      auto it = defined_.find(&e);
      return it != defined_.end() ? it->second.factors : Factors{1, 0, {{&e, 1}}};
    }
    case ExprKind::Binary:
      return of_binary(static_cast<const BinaryNode&>(e));
    case ExprKind::Select: {
      auto& s = static_cast<const SelectNode&>(e);
      return either(known(s.true_value), known(s.false_value));
    }
    case ExprKind::Cast: {
      auto& c = static_cast<const CastNode&>(e);
      const DType from = c.value->dtype;
      if (from.is_bool()) return Factors{};
      // A difference of uint64 below zero is near 2^64.
      const bool wraps = from.is_uint() && from.bits == 64;
      return from.is_integer() && !wraps ? known(c.value) : std::nullopt;
    }
    case ExprKind::Ramp: {
      auto& r = static_cast<const RampNode&>(e);
      return either(known(r.base), known(r.stride));
    }
    case ExprKind::Broadcast:
      return known(static_cast<const BroadcastNode&>(e).value);
    case ExprKind::Load:
      return is_counter(e) ? std::optional(kOfALoop) : std::nullopt;
    default:
      return std::nullopt;
  }
}

std::optional<Counting::Factors> Counting::of_binary(const BinaryNode& b) const {
  const std::optional<Factors>&x = known(b.a), &y = known(b.b);
  if (!x || !y) return std::nullopt;
  const auto by = as_int(b.b);
  switch (b.op) {
    case BinaryOp::Mul:
      return product(*x, *y);
    case BinaryOp::Shl:
      return std::nullopt;
    case BinaryOp::Div:
    case BinaryOp::FloorDiv:
      return by ? quotient(*x, *by) : x;
    case BinaryOp::Shr:
      return x;
    case BinaryOp::Mod:
    case BinaryOp::FloorMod:
      return by ? x : either(x, y);
    case BinaryOp::Min:
      return by && *by >= 0 ? x : either(x, y);
    case BinaryOp::Max:
      return by && *by <= 0 ? x : either(x, y);
    default:
      return either(x, y);
  }
}

// Of a sum, or of one of the two.
std::optional<Counting::Factors> Counting::either(const std::optional<Factors>& a,
                                                  const std::optional<Factors>& b) {
  if (!a || !b) return std::nullopt;
  Factors out = *a;
  out.constant = std::max(out.constant, b->constant);
  out.loops = std::max(out.loops, b->loops);
  for (const auto& [size, times] : b->sizes) {
    int& most = out.sizes[size];
    most = std::max(most, times);
  }
  return out.sizes.size() <= kMostSizes ? std::optional(std::move(out)) : std::nullopt;
}

std::optional<Counting::Factors> Counting::product(const Factors& a, const Factors& b) {
  Factors out = a;
  if (__builtin_mul_overflow(a.constant, b.constant, &out.constant) || out.constant > kMostFactor)
    return std::nullopt;
  out.loops += b.loops;
  if (out.loops > 1) return std::nullopt;
  for (const auto& [size, times] : b.sizes) {
    if ((out.sizes[size] += times) > 2) return std::nullopt;
  }
  return out.sizes.size() <= kMostSizes ? std::optional(std::move(out)) : std::nullopt;
}

// `n // 30 * 30` is about `n`: what is left of it may be split again and again.
Counting::Factors Counting::quotient(Factors a, int64_t by) {
  const int64_t divisor = std::max<int64_t>(1, std::abs(by));
  a.constant = (a.constant - 1) / divisor + 1;
  return a;
}

}  // namespace relay::tir
