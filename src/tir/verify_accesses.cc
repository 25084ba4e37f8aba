#include "tir/verify_accesses.h"

#include <algorithm>
#include <optional>
#include <unordered_set>

#include "node/structural.h"
#include "node/walk.h"
#include "tir/access.h"
#include "tir/passes/conditions.h"
#include "tir/passes/statements.h"
#include "tir/while.h"

namespace relay::tir {
namespace {

class AccessVerifier {
 public:
  AccessVerifier(const PrimFunc& f, Accesses which) : f_(*f.get()), which_(which) {
    analyzer_.bind_function(f);
  }

  void run(const Stmt& s) {
    switch (s->kind()) {
      case StmtKind::For: {
        auto* n = as<ForNode>(s);
        begin(s);
        value(n->min, nullptr);
        value(n->extent, nullptr);
        auto inside = analyzer_.inside(n->var, n->min, n->extent);
        if (is_known(n->min) && is_known(n->extent)) known_.insert(n->var.get());
        return run(n->body);
      }
      case StmtKind::If: {
        auto* n = as<IfNode>(s);
        begin(s);
        value(n->cond, nullptr);
        {
          const bool holds = holds_throughout(n->cond, n->then_body);
          std::optional<Analyzer::Scope> scope;
          if (holds) scope.emplace(analyzer_.assume(n->cond));
          if (holds) holds_.push_back(n->cond);
          run(n->then_body);
          if (holds) holds_.pop_back();
        }
        if (!n->else_body) return;
        std::optional<Analyzer::Scope> scope;
        if (holds_throughout(n->cond, n->else_body))
          scope.emplace(analyzer_.assume(negated(n->cond)));
        return run(n->else_body);
      }
      case StmtKind::While:
        begin(s);
        value(as<WhileNode>(s)->cond, nullptr);
        return run(as<WhileNode>(s)->body);
      case StmtKind::LetStmt:
        begin(s);
        value(as<LetStmtNode>(s)->value, nullptr);
        return run(as<LetStmtNode>(s)->body);
      case StmtKind::Store: {
        auto* n = as<StoreNode>(s);
        if (which_ == Accesses::Masked && !may_mask(*n)) return;
        begin(s);
        for (const PrimExpr& i : n->indices) value(i, nullptr);
        if (n->predicate) value(n->predicate, nullptr);
        value(n->value, nullptr);
        return access(n->buffer, n->indices, n->predicate);
      }
      case StmtKind::Check:
        begin(s);
        return value(as<CheckNode>(s)->cond, nullptr);
      default:
        for_each_inner(*s.get(), [&](const Stmt& inner) { run(inner); });
    }
  }

 private:
  void begin(const Stmt& s) {
    at_ = s.get();
    met_.clear();
    order_.clear();
  }

  // The loads of an expression in whose lanes `mask` is on (null: in all), in the order of code
  // generation: what was met before, on the way to here, is not computed again.
  void value(const PrimExpr& root, const PrimExpr& mask) {
    std::vector<const SelectNode*> choices;
    post_order_if(
        root,
        [&](const Node& n) {
          if (met_.contains(&n)) return false;
          auto* s = as<SelectNode>(&n);
          if (s == nullptr || !(has_loads(s->true_value) || has_loads(s->false_value))) return true;
          note(n);
          choices.push_back(s);
          return false;
        },
        [&](const Node& n) {
          note(n);
          if (auto* l = as<LoadNode>(&n)) access(l->buffer, l->indices, lanes_of_load(*l, mask));
        },
        family::tir_expr);
    for (const SelectNode* s : choices) {
      value(s->cond, mask);
      bool one = s->cond->dtype.lanes == 1;
      side(s->true_value, one ? mask : narrowed(mask, s->cond, true), one ? s->cond : nullptr);
      side(s->false_value, one ? mask : narrowed(mask, s->cond, false),
           one ? negated(s->cond) : nullptr);
    }
  }

  void note(const Node& n) {
    if (met_.insert(&n).second) order_.push_back(&n);
  }

  void side(const PrimExpr& e, const PrimExpr& mask, const PrimExpr& cond) {
    size_t mark = order_.size();
    if (cond) {
      auto scope = analyzer_.assume(cond);
      holds_.push_back(cond);
      value(e, mask);
      holds_.pop_back();
    } else {
      value(e, mask);
    }
    for (; order_.size() > mark; order_.pop_back()) met_.erase(order_.back());
  }

  static PrimExpr negated(const PrimExpr& cond) {
    auto* b = as<BinaryNode>(cond);
    if (b != nullptr && b->a->dtype == kIndex) {
      switch (b->op) {
        case BinaryOp::Lt:
          return ge(b->a, b->b);
        case BinaryOp::Le:
          return gt(b->a, b->b);
        case BinaryOp::Gt:
          return le(b->a, b->b);
        case BinaryOp::Ge:
          return lt(b->a, b->b);
        default:
          break;
      }
    }
    return logical_not(cond);
  }

  void access(const Buffer& buffer, const std::vector<PrimExpr>& indices, const PrimExpr& mask) {
    if (indices.empty()) return;
    const PrimExpr& at = indices[0];
    if (mask && at->dtype.lanes > 1) {
      if (!is_vector_access(indices) || points_near(buffer, at, analyzer_)) return;
      if (is_held(any_lane(mask)) || first_lane_is_on(mask, analyzer_)) return;
      return fail(buffer, at, "points far from it where its mask is off");
    }
    if (mask && is_held(any_lane(mask))) return;
    auto bytes = bytes_in_memory(*buffer.get());
    if (which_ == Accesses::Masked || !bytes || !is_known(at)) return;
    Bounds range = range_of(at);
    if (range.within(0, *bytes / static_cast<int64_t>(buffer->dtype.element().bytes()) - 1)) return;
    fail(buffer, at,
         "is not proved to lie in it: " + std::to_string(range.min) + " to " +
             std::to_string(range.max));
  }

  bool is_held(const PrimExpr& cond) const {
    return std::ranges::any_of(holds_,
                               [&](const PrimExpr& c) { return structural_equal(c, cond); });
  }

  // Of all lanes of an index.
  Bounds range_of(const PrimExpr& at) {
    if (auto* r = as<RampNode>(at)) {
      Bounds first = analyzer_.bounds(r->base);
      return hull(first, analyzer_.bounds(r->base + r->stride * (at->dtype.lanes - 1)));
    }
    if (auto* b = as<BroadcastNode>(at)) return analyzer_.bounds(b->value);
    return analyzer_.bounds(at);
  }

  // Whether an index follows from loops of constant extents.
  bool is_known(const PrimExpr& e) const {
    bool known = true;
    post_order(
        e,
        [&](const Node& n) {
          known &= !isa<LoadNode>(&n) && !isa<CallNode>(&n) &&
                   (!isa<VarNode>(&n) || known_.contains(&n));
        },
        family::tir_expr);
    return known && (e->dtype.lanes == 1 || isa<RampNode>(e) || isa<BroadcastNode>(e));
  }

  void fail(const Buffer& buffer, const PrimExpr& at, const std::string& what) const {
    internal_error(__FILE__, __LINE__,
                   "kernel " + f_.name + ": an access of " + buffer->name + " at " + to_string(at) +
                       " " + what + "\n" + to_string(Stmt(at_)));
  }

  const PrimFuncNode& f_;
  Accesses which_;
  const StmtNode* at_ = nullptr;  // for messages
  Analyzer analyzer_;
  std::unordered_set<const Node*> known_;  // loop variables with constant ranges
  std::vector<PrimExpr> holds_;            // conditions around what is looked at
  std::unordered_set<const Node*> met_;
  std::vector<const Node*> order_;  // what is in met_
};

}  // namespace

void verify_accesses(const PrimFunc& f, Accesses which) { AccessVerifier(f, which).run(f->body); }

}  // namespace relay::tir
