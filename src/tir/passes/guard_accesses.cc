#include "tir/passes/guard_accesses.h"

#include <optional>
#include <unordered_map>

#include "node/walk.h"
#include "tir/access.h"
#include "tir/passes/conditions.h"
#include "tir/passes/statements.h"

namespace relay::tir {
namespace {

class AccessGuard {
 public:
  explicit AccessGuard(const PrimFunc& f) { analyzer_.bind_function(f); }

  Stmt run(const Stmt& s) {
    switch (s->kind()) {
      case StmtKind::For: {
        auto* f = as<ForNode>(s);
        std::optional<Analyzer::Scope> inside;
        if (holds_throughout(f->min, f->body) && holds_throughout(f->extent, f->body))
          inside.emplace(analyzer_.inside(f->var, f->min, f->extent));
        return map_inner(s, [&](const Stmt& inner) { return run(inner); });
      }
      case StmtKind::If: {
        auto* i = as<IfNode>(s);
        Stmt then_body;
        {
          std::optional<Analyzer::Scope> scope;
          if (holds_throughout(i->cond, i->then_body)) scope.emplace(analyzer_.assume(i->cond));
          then_body = run(i->then_body);
        }
        Stmt else_body = i->else_body ? run(i->else_body) : nullptr;
        bool same = then_body == i->then_body && else_body == i->else_body;
        return same ? s : if_(i->cond, then_body, else_body);
      }
      case StmtKind::Store:
        return guarded(s);
      default:
        break;
    }
    return map_inner(s, [&](const Stmt& inner) { return run(inner); });
  }

 private:
  // Guards the loads of an expression in whose lanes `mask` is on; null: in all.
  class Expressions : public Rewriter {
   public:
    Expressions(AccessGuard& guard, PrimExpr mask)
        : Rewriter(family::tir_expr), guard_(guard), mask_(std::move(mask)) {}

    NodeRef pre(const NodeRef& node) override {
      auto met = guard_.met_.find(node.get());
      if (met != guard_.met_.end()) return met->second;
      auto* s = as<SelectNode>(node);
      if (s == nullptr || s->dtype.lanes == 1 ||
          !(has_loads(s->true_value) || has_loads(s->false_value))) {
        return nullptr;
      }
      NodeRef out = guard_.chosen(*s, mask_);
      guard_.note(node, out);
      return out;
    }

    NodeRef post(const NodeRef& original, NodeRef rebuilt) override {
      auto* l = as<LoadNode>(rebuilt);
      if (l != nullptr && guard_.may_be_far(*l)) {
        PrimExpr on = lanes_of_load(*l, mask_);
        if (on && !guard_.begins_inside(*l, on)) {
          rebuilt = if_any(on, PrimExpr::unchecked(rebuilt));
        }
      }
      guard_.note(original, rebuilt);
      return rebuilt;
    }

   private:
    AccessGuard& guard_;
    PrimExpr mask_;
  };

  // One choice for all lanes: the builder would make it one for each.
  static PrimExpr branch(const PrimExpr& cond, const PrimExpr& a, const PrimExpr& b) {
    return make<SelectNode>([&](SelectNode& n) {
      n.dtype = a->dtype;
      n.cond = cond;
      n.true_value = a;
      n.false_value = b;
    });
  }
  static PrimExpr if_any(const PrimExpr& mask, const PrimExpr& load) {
    PrimExpr zero = imm(load->dtype.element(), 0);
    int lanes = load->dtype.lanes;
    return branch(any_lane(mask), load, lanes == 1 ? zero : broadcast(zero, lanes));
  }

  // What was met before, within the part of the expression that is computed whenever this one is:
  // it stays what it became there.
  void note(const NodeRef& node, const NodeRef& became) {
    if (met_.emplace(node.get(), became).second) order_.push_back(node);
  }
  PrimExpr side(const PrimExpr& e, const PrimExpr& mask) {
    size_t mark = order_.size();
    PrimExpr out = Expressions(*this, mask).apply(e);
    for (; order_.size() > mark; order_.pop_back()) met_.erase(order_.back().get());
    return out;
  }

  PrimExpr chosen(const SelectNode& s, const PrimExpr& mask) {
    PrimExpr cond = Expressions(*this, mask).apply(s.cond);
    auto* all = as<BroadcastNode>(cond);
    if (all != nullptr && (is_far(s.true_value) || is_far(s.false_value))) cond = all->value;
    bool one = cond->dtype.lanes == 1;
    PrimExpr a = side(s.true_value, one ? mask : narrowed(mask, cond, true));
    PrimExpr b = side(s.false_value, one ? mask : narrowed(mask, cond, false));
    if (cond == s.cond && a == s.true_value && b == s.false_value) return ref(s);
    return branch(cond, a, b);
  }

  // Of a vector: that it points elsewhere than near its buffer. Of one element: that it is not in it.
  bool may_be_far(const LoadNode& l) {
    if (is_vector_access(l.indices)) return !points_near(l.buffer, l.indices[0], analyzer_);
    return l.dtype.lanes == 1 && l.indices.size() == 1 &&
           !lies_in(l.buffer, l.indices[0], analyzer_);
  }

  bool begins_inside(const LoadNode& l, const PrimExpr& on) {
    return is_vector_access(l.indices) && first_lane_is_on(on, analyzer_);
  }

  // Whether a load below may be far.
  bool is_far(const PrimExpr& e) {
    bool far = false;
    post_order(
        e,
        [&](const Node& n) {
          auto* l = as<LoadNode>(&n);
          far |= l != nullptr && may_be_far(*l);
        },
        family::tir_expr);
    return far;
  }

  Stmt guarded(const Stmt& s) {
    auto* n = as<StoreNode>(s);
    if (!may_mask(*n)) return s;
    met_.clear();
    order_.clear();
    std::vector<PrimExpr> at;
    for (const PrimExpr& i : n->indices) at.push_back(Expressions(*this, nullptr).apply(i));
    PrimExpr predicate = n->predicate ? Expressions(*this, nullptr).apply(n->predicate) : nullptr;
    PrimExpr value = Expressions(*this, nullptr).apply(n->value);
    bool far = predicate && is_vector_access(n->indices) &&
               !first_lane_is_on(predicate, analyzer_) &&
               !points_near(n->buffer, n->indices[0], analyzer_);
    bool same = at == n->indices && predicate == n->predicate && value == n->value;
    Stmt out = same ? s : store(n->buffer, std::move(at), value, predicate);
    return far ? if_(any_lane(predicate), out) : out;
  }

  Analyzer analyzer_;
  std::unordered_map<const Node*, NodeRef> met_;
  std::vector<NodeRef> order_;  // the keys of met_
};

}  // namespace

PrimFunc guard_accesses(const PrimFunc& f) { return with_body(f, AccessGuard(f).run(f->body)); }

}  // namespace relay::tir
