#include "tir/passes/hoist_checks.h"

#include <algorithm>
#include <cstdlib>
#include <deque>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "node/structural.h"
#include "node/walk.h"
#include "tir/arith/analyzer.h"
#include "tir/passes/simplify.h"
#include "tir/passes/statements.h"
#include "tir/while.h"

namespace relay::tir {
namespace {

// Nodes of a body that is copied, and of all of them in a function.
constexpr int64_t kMaxNodes = 2000, kMaxCopiedNodes = 8000;
// A loop that is known to have fewer iterations stays as it is.
constexpr int64_t kMinIterations = 9;
// Sums and products that are part of an index.
constexpr int kMaxDepth = 24;
// A product of these is less than 2^63.
constexpr int64_t kMaxExtent = int64_t{1} << 40, kMaxStep = int64_t{1} << 20;

// step * i + base, where i is the variable of the loop, and neither step nor base changes in it.
struct Affine {
  PrimExpr step, base;
  // What must hold for the value to be this one.
  std::vector<PrimExpr> needs{};

  bool is_invariant() const { return as_int(step) == 0; }
};

// One loop, and the checks in it that can be made before it.
class LoopChecks {
 public:
  // `around` knows the variables outside of the loop.
  LoopChecks(const ForNode& loop, Analyzer& around) : loop_(loop), around_(around) {
    changing_.insert(loop.var.get());
    post_order(
        loop.body,
        [&](const Node& n) {
          if (auto* l = as<LetStmtNode>(&n)) changing_.insert(l->var.get());
          if (auto* s = as<StoreNode>(&n)) {
            auto at = s->indices.size() == 1 ? as_int(s->indices[0]) : std::nullopt;
            if (s->buffer->scope == Scope::Register && at) {
              stored_[s->buffer.get()].insert(*at);
            } else {
              written_.insert(s->buffer.get());
            }
          }
        },
        family::tir_stmt);
    read(loop.body);
  }

  // The loop in two versions; null where no check can be made before it.
  Stmt versions() {
    if (facts_.empty()) return nullptr;
    std::vector<PrimExpr> conditions;
    auto add = [&](const PrimExpr& c) {
      const PrimExpr simple = around_.simplify(c);
      const bool known = as_int(simple) == 1 || std::ranges::any_of(conditions, [&](const auto& o) {
                           return structural_equal(o, simple);
                         });
      if (!known) conditions.push_back(simple);
    };
    add(le(loop_.extent, index(kMaxExtent)));
    for (const PrimExpr& s : steps_) {
      add(ge(s, index(-kMaxStep)));
      add(le(s, index(kMaxStep)));
    }
    for (const PrimExpr& fact : facts_) {
      for (const PrimExpr& at : {loop_.min, loop_.min + loop_.extent - 1})
        add(replace(fact, {{loop_.var.get(), at}}));
    }
    PrimExpr all;
    for (const PrimExpr& c : conditions) {
      if (as_int(c) == 0) return nullptr;
      all = all ? logical_and(all, c) : c;
    }
    const Stmt fast = with_body(loop_, without_checks());
    return all ? if_(all, fast, ref(loop_)) : fast;
  }

 private:
  Stmt without_checks() {
    // Values in terms of the loop's variable, which what is known is about.
    NodeMap map;
    std::deque<Analyzer::Scope> known;
    for (const PrimExpr& fact : facts_) known.push_back(around_.assume(fact));
    const Stmt body = substituted(loop_.body, map);
    const Stmt out = simplify(body, around_);
    while (!known.empty()) known.pop_back();
    return out;
  }

  // The body without the Lets of affine values.
  Stmt substituted(const Stmt& s, NodeMap& map) {
    auto* l = as<LetStmtNode>(s);
    if (l == nullptr) {
      const bool has_inner = s->kind() == StmtKind::Seq || s->kind() == StmtKind::If;
      if (!has_inner) return replace(s, map);
      if (auto* i = as<IfNode>(s)) {
        return if_(replace(i->cond, map), substituted(i->then_body, map),
                   i->else_body ? substituted(i->else_body, map) : nullptr);
      }
      return map_inner(s, [&](const Stmt& inner) { return substituted(inner, map); });
    }
    auto it = values_.find(l->var.get());
    const bool holds =
        it != values_.end() && std::ranges::all_of(it->second.needs, [&](const PrimExpr& n) {
          return std::ranges::any_of(facts_, [&](const PrimExpr& f) { return f == n; });
        });
    if (holds) {
      map[l->var.get()] = expanded(it->second);
      return substituted(l->body, map);
    }
    return let_stmt(l->var, replace(l->value, map), substituted(l->body, map));
  }

  PrimExpr expanded(const Affine& a) const {
    if (a.is_invariant()) return a.base;
    return around_.simplify(loop_.var * a.step + a.base);
  }

  // ---- What is affine

  bool is_invariant_load(const LoadNode& l) const {
    if (l.buffer->scope != Scope::Register || l.indices.size() != 1 || l.predicate) return false;
    auto at = as_int(l.indices[0]);
    auto stored = stored_.find(l.buffer.get());
    return at && !written_.contains(l.buffer.get()) &&
           (stored == stored_.end() || !stored->second.contains(*at));
  }

  static Affine merged(PrimExpr step, PrimExpr base, const Affine& a, const Affine& b) {
    Affine out{std::move(step), std::move(base), a.needs};
    out.needs.insert(out.needs.end(), b.needs.begin(), b.needs.end());
    return out;
  }

  std::optional<Affine> affine(const PrimExpr& e, int depth = 0) {
    if (!(e->dtype == kIndex) || depth > kMaxDepth) return std::nullopt;
    if (isa<IntImmNode>(e)) return Affine{index(0), e};
    if (e.get() == loop_.var.get()) return Affine{index(1), index(0)};
    if (isa<VarNode>(e)) {
      auto it = values_.find(e.get());
      if (it != values_.end()) return it->second;
      return changing_.contains(e.get()) ? std::nullopt : std::optional(Affine{index(0), e});
    }
    if (auto* l = as<LoadNode>(e))
      return is_invariant_load(*l) ? std::optional(Affine{index(0), e}) : std::nullopt;
    auto* b = as<BinaryNode>(e);
    if (b == nullptr) return std::nullopt;
    auto x = affine(b->a, depth + 1);
    auto y = x ? affine(b->b, depth + 1) : std::nullopt;
    if (!y) return std::nullopt;
    auto sum = [&](const PrimExpr& p, const PrimExpr& q) {
      return around_.simplify(b->op == BinaryOp::Add ? p + q : p - q);
    };
    switch (b->op) {
      case BinaryOp::Add:
      case BinaryOp::Sub:
        return merged(sum(x->step, y->step), sum(x->base, y->base), *x, *y);
      case BinaryOp::Mul:
        if (!x->is_invariant() && !y->is_invariant()) return std::nullopt;
        return x->is_invariant()
                   ? merged(around_.simplify(x->base * y->step), x->base * y->base, *x, *y)
                   : merged(around_.simplify(x->step * y->base), x->base * y->base, *x, *y);
      default:
        return std::nullopt;
    }
  }

  // A comparison of affine values, in terms of the loop's variable; null where it is none.
  PrimExpr comparison(const PrimExpr& cond, std::vector<PrimExpr>& needs) {
    auto* b = as<BinaryNode>(cond);
    constexpr BinaryOp kMonotone[] = {BinaryOp::Lt, BinaryOp::Le, BinaryOp::Gt, BinaryOp::Ge};
    if (b == nullptr || std::ranges::find(kMonotone, b->op) == std::end(kMonotone)) return nullptr;
    auto x = affine(b->a), y = affine(b->b);
    if (!x || !y || !has_bounded_step(*x) || !has_bounded_step(*y)) return nullptr;
    for (const Affine* a : {&*x, &*y}) needs.insert(needs.end(), a->needs.begin(), a->needs.end());
    return binary(b->op, expanded(*x), expanded(*y));
  }

  bool has_bounded_step(const Affine& a) {
    if (auto by = as_int(a.step)) return std::abs(*by) <= kMaxStep;
    steps_.push_back(a.step);
    return true;
  }

  // select(x < 0, x + n, x), which is x where x is at least 0.
  std::optional<Affine> counted_from_end(const PrimExpr& e) {
    auto* s = as<SelectNode>(e);
    if (s == nullptr || !(s->dtype == kIndex) || s->dtype.lanes != 1) return std::nullopt;
    auto x = affine(s->false_value);
    std::vector<PrimExpr> needs;
    const PrimExpr cond = x ? comparison(s->cond, needs) : nullptr;
    if (cond == nullptr || !has_bounded_step(*x)) return std::nullopt;
    const PrimExpr positive = ge(expanded(*x), index(0));
    auto known = around_.assume(positive);
    if (as_int(around_.simplify(cond)) != 0) return std::nullopt;
    x->needs.insert(x->needs.end(), needs.begin(), needs.end());
    x->needs.push_back(positive);
    return x;
  }

  // ---- The checks

  void read(const Stmt& s) {
    if (auto* l = as<LetStmtNode>(s)) {
      auto value = affine(l->value);
      if (!value) value = counted_from_end(l->value);
      if (value) values_.emplace(l->var.get(), std::move(*value));
    } else if (auto* c = as<CheckNode>(s)) {
      check(c->cond);
    }
    for_each_inner(*s.get(), [&](const Stmt& inner) { read(inner); });
  }

  void check(const PrimExpr& cond) {
    std::vector<PrimExpr> parts{cond}, facts;
    while (!parts.empty()) {
      const PrimExpr part = parts.back();
      parts.pop_back();
      auto* b = as<BinaryNode>(part);
      if (b != nullptr && b->op == BinaryOp::And) {
        parts.push_back(b->a);
        parts.push_back(b->b);
        continue;
      }
      const PrimExpr fact = comparison(part, facts);
      if (fact == nullptr) return;
      facts.push_back(fact);
    }
    for (const PrimExpr& fact : facts) {
      if (std::ranges::find(facts_, fact) == facts_.end()) facts_.push_back(fact);
    }
  }

  const ForNode& loop_;
  Analyzer& around_;
  // Variables that differ between iterations, the elements of registers that are stored to, and other memory that is.
  std::unordered_set<const Node*> changing_;
  std::unordered_map<const Node*, std::unordered_set<int64_t>> stored_;
  std::unordered_set<const Node*> written_;
  std::unordered_map<const Node*, Affine> values_;
  std::vector<PrimExpr> facts_, steps_;
};

class CheckHoisting {
 public:
  explicit CheckHoisting(const PrimFunc& f) { analyzer_.bind_function(f); }

  Stmt run(const Stmt& s) {
    auto* f = as<ForNode>(s);
    if (f == nullptr) return map_inner(s, [&](const Stmt& inner) { return run(inner); });
    auto inside = analyzer_.inside(f->var, f->min, f->extent);
    if (is_candidate(*f)) {
      LoopChecks checks(*f, analyzer_);
      // The condition stands outside of the loop.
      if (Stmt both = checks.versions()) return both;
    }
    return map_inner(s, [&](const Stmt& inner) { return run(inner); });
  }

 private:
  bool is_candidate(const ForNode& f) {
    if (!f.hints.program || f.loop_kind != ForKind::Serial || !(f.var->dtype == kIndex))
      return false;
    if (auto n = as_int(f.extent); n && *n < kMinIterations) return false;
    bool innermost = true, checks = false;
    int64_t nodes = 0;
    post_order(
        f.body,
        [&](const Node& n) {
          innermost &= !isa<ForNode>(&n) && !isa<WhileNode>(&n);
          checks |= isa<CheckNode>(&n);
          ++nodes;
        },
        family::tir_code);
    if (!innermost || !checks || nodes > kMaxNodes || copied_ + nodes > kMaxCopiedNodes)
      return false;
    copied_ += nodes;
    return true;
  }

  Analyzer analyzer_;
  int64_t copied_ = 0;
};

}  // namespace

PrimFunc hoist_checks(const PrimFunc& f) { return with_body(f, CheckHoisting(f).run(f->body)); }

}  // namespace relay::tir
