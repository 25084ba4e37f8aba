#include "tir/passes/vectorize_loops.h"

#include <unordered_map>

#include "node/structural.h"
#include "node/walk.h"
#include "tir/intrinsics.h"
#include "tir/passes/statements.h"

namespace relay::tir {
namespace {

constexpr int64_t kMaxLanes = 64;

class Vectorizer {
 public:
  Vectorizer(Var var, PrimExpr lanes_of_var, int lanes)
      : var_(std::move(var)), ramp_(std::move(lanes_of_var)), lanes_(lanes) {}

  // The statement for all values of the variable at once; null when it is not made of stores.
  Stmt run(const Stmt& s) {
    switch (s->kind()) {
      case StmtKind::Store: {
        auto* n = as<StoreNode>(s);
        // An inner loop's vectors have lanes of their own.
        if (has_vectors(s)) return varies(s) ? nullptr : s;
        std::vector<PrimExpr> at;
        for (const PrimExpr& i : n->indices) at.push_back(expr(i));
        if (PrimExpr combined = combine_lanes(*n, at)) return store(n->buffer, at, combined);
        PrimExpr v = expr(n->value);
        bool vector = v->dtype.lanes > 1;
        for (const PrimExpr& i : at) vector |= i->dtype.lanes > 1;
        // What every lane does alike is done once, unless each adds to it.
        if (!vector) return reads(n->value, n->buffer) ? nullptr : s;
        // Every lane to one place has no meaning here.
        if (at[0]->dtype.lanes == 1) return nullptr;
        return store(n->buffer, std::move(at), widen(v),
                     n->predicate ? widen(expr(n->predicate)) : nullptr);
      }
      case StmtKind::Seq: {
        std::vector<Stmt> out;
        for (const Stmt& inner : as<SeqNode>(s)->stmts) {
          out.push_back(run(inner));
          if (!out.back()) return nullptr;
        }
        return seq(std::move(out));
      }
      case StmtKind::For: {
        auto* f = as<ForNode>(s);
        if (varies(f->min) || varies(f->extent)) return nullptr;
        Stmt body = run(f->body);
        return body ? with_body(*f, body) : nullptr;
      }
      case StmtKind::If: {
        auto* i = as<IfNode>(s);
        if (varies(i->cond)) return masked(*i);
        Stmt a = run(i->then_body), b = i->else_body ? run(i->else_body) : nullptr;
        if (!a || (i->else_body && !b)) return nullptr;
        return if_(i->cond, a, b);
      }
      case StmtKind::LetStmt: {
        auto* l = as<LetStmtNode>(s);
        const bool other_lanes = has_vectors(l->value);
        if (other_lanes && varies(l->value)) return nullptr;
        PrimExpr value = other_lanes ? l->value : expr(l->value);
        Var name = value->dtype == l->value->dtype ? l->var : wide_name(l->var, value->dtype);
        Stmt body = run(l->body);
        return body ? let_stmt(name, value, body) : nullptr;
      }
      default:
        return varies(s) ? nullptr : s;
    }
  }

 private:
  // Whether lanes differ in it.
  bool varies(const NodeRef& root) const {
    bool found = false;
    post_order(
        root, [&](const Node& n) { found |= &n == var_.get() || wide_names_.contains(&n); },
        family::tir_expr | family::tir_stmt);
    return found;
  }

  Var wide_name(const Var& name, DType dtype) {
    Var wide = var(name->name, dtype);
    wide_names_[name.get()] = wide;
    return wide;
  }

  static bool has_vectors(const NodeRef& root) {
    bool found = false;
    post_order(
        root,
        [&](const Node& n) {
          found |= n.info().family == family::tir_expr &&
                   static_cast<const PrimExprNode&>(n).dtype.lanes > 1;
        },
        family::tir_expr | family::tir_stmt);
    return found;
  }

  static bool reads(const PrimExpr& value, const Buffer& buffer) {
    bool found = false;
    post_order(
        value,
        [&](const Node& n) {
          auto* l = as<LoadNode>(&n);
          found |= l != nullptr && l->buffer == buffer;
        },
        family::tir_expr);
    return found;
  }

  // The new value of `x = x op v` where only v differs between the lanes; null for other stores.
  PrimExpr combine_lanes(const StoreNode& n, const std::vector<PrimExpr>& at) {
    auto* update = as<BinaryNode>(n.value);
    auto* old = update != nullptr ? as<LoadNode>(update->a) : nullptr;
    bool halves = (lanes_ & (lanes_ - 1)) == 0;
    if (!halves || n.predicate || old == nullptr || !(old->buffer == n.buffer) || old->predicate ||
        varies(update->a) || !varies(update->b)) {
      return nullptr;
    }
    for (size_t d = 0; d < at.size(); ++d) {
      if (at[d]->dtype.lanes > 1 || !structural_equal(at[d], old->indices[d])) return nullptr;
    }
    switch (update->op) {
      case BinaryOp::Add:
      case BinaryOp::Mul:
      case BinaryOp::Min:
      case BinaryOp::Max:
      case BinaryOp::And:
      case BinaryOp::Or:
        return binary(update->op, update->a, reduce_lanes(update->op, widen(expr(update->b))));
      default:
        return nullptr;
    }
  }

  // The only part of a conjunction that differs between lanes; null where several differ, or none.
  PrimExpr differing_part(const PrimExpr& condition) const {
    PrimExpr differs;
    std::vector<PrimExpr> parts{condition};
    while (!parts.empty()) {
      const PrimExpr part = parts.back();
      parts.pop_back();
      auto* both = as<BinaryNode>(part);
      if (both != nullptr && both->op == BinaryOp::And) {
        parts.insert(parts.end(), {both->b, both->a});
      } else if (varies(part)) {
        if (differs) return nullptr;
        differs = part;
      }
    }
    return differs;
  }

  // Stores under a condition that holds in the first lanes and not in the others: none when it
  // fails in the first, else those of its lanes.
  Stmt masked(const IfNode& i) {
    auto* s = as<StoreNode>(i.then_body);
    const PrimExpr differs = differing_part(i.cond);
    auto* c = differs ? as<BinaryNode>(differs) : nullptr;
    if (i.else_body || s == nullptr || s->predicate || c == nullptr) return nullptr;
    PrimExpr grows = expr(c->a);
    auto* r = as<RampNode>(grows);
    bool first_lanes = (c->op == BinaryOp::Lt || c->op == BinaryOp::Le) && r != nullptr &&
                       as_int(r->stride) > 0 && !varies(c->b);
    if (!first_lanes || combine_lanes(*s, s->indices)) return nullptr;
    Stmt all = run(i.then_body);
    auto* wide = as<StoreNode>(all);
    if (wide == nullptr || wide->value->dtype.lanes == 1) return nullptr;
    PrimExpr mask = binary(c->op, grows, broadcast(c->b, lanes_));
    // Lanes that are not stored are not read either; what all lanes share is.
    PrimExpr value = PrimExpr::unchecked(rewrite(
        wide->value,
        [&](const NodeRef&, NodeRef rebuilt) -> NodeRef {
          auto* l = as<LoadNode>(rebuilt);
          if (l == nullptr || l->dtype.lanes == 1) return rebuilt;
          return load(l->buffer, l->indices, l->predicate ? logical_and(l->predicate, mask) : mask);
        },
        family::tir_expr));
    // The other parts stay in place: one behind may be defined only where this one holds.
    return if_(replace(i.cond, {{c, binary(c->op, r->base, c->b)}}),
               store(wide->buffer, wide->indices, value, mask));
  }

  PrimExpr widen(const PrimExpr& e) { return e->dtype.lanes > 1 ? e : broadcast(e, lanes_); }

  PrimExpr expr(const PrimExpr& root) {
    class Rewrite : public Rewriter {
     public:
      explicit Rewrite(Vectorizer& v) : Rewriter(family::tir_expr), v_(v) {}
      NodeRef pre(const NodeRef& node) override {
        if (node.get() == v_.var_.get()) return v_.ramp_;
        if (auto it = v_.wide_names_.find(node.get()); it != v_.wide_names_.end())
          return it->second;
        auto* l = as<LetNode>(node);
        return l == nullptr ? nullptr : NodeRef(v_.widened_let(*l));
      }
      NodeRef post(const NodeRef& original, NodeRef rebuilt) override {
        if (rebuilt == original) return rebuilt;
        return v_.rebuild(PrimExpr::unchecked(std::move(rebuilt)));
      }

     private:
      Vectorizer& v_;
    };
    return Rewrite(*this).apply(root);
  }

  // A name for what became a vector is one of a vector. Lets nest as deep as a rule writes them.
  PrimExpr widened_let(const LetNode& l) {
    PrimExpr value = expr(l.value);
    if (value->dtype.lanes == 1) return let(l.var, value, expr(l.body));
    Var wide = wide_name(l.var, value->dtype);
    return let(wide, value, expr(l.body));
  }

  // A node some of whose operands became vectors.
  PrimExpr rebuild(const PrimExpr& self) {
    const PrimExprNode& n = *self.get();
    switch (n.kind()) {
      case ExprKind::Binary: {
        auto& b = static_cast<const BinaryNode&>(n);
        // A ramp stays a ramp under an offset or a factor.
        if (b.op == BinaryOp::Add || b.op == BinaryOp::Sub || b.op == BinaryOp::Mul) {
          auto *x = as<RampNode>(b.a), *y = as<RampNode>(b.b);
          if (x != nullptr && y == nullptr && b.b->dtype.lanes == 1) {
            return ramp(binary(b.op, x->base, b.b),
                        b.op == BinaryOp::Mul ? x->stride * b.b : x->stride, lanes_);
          }
          if (y != nullptr && x == nullptr && b.a->dtype.lanes == 1) {
            if (b.op == BinaryOp::Add) return ramp(b.a + y->base, y->stride, lanes_);
            if (b.op == BinaryOp::Mul) return ramp(b.a * y->base, b.a * y->stride, lanes_);
            return ramp(b.a - y->base, index(0) - y->stride, lanes_);
          }
          if (x != nullptr && y != nullptr && b.op != BinaryOp::Mul) {
            return ramp(binary(b.op, x->base, y->base), binary(b.op, x->stride, y->stride), lanes_);
          }
        }
        return binary(b.op, widen(b.a), widen(b.b));
      }
      case ExprKind::Not:
        return logical_not(static_cast<const NotNode&>(n).a);
      case ExprKind::Select: {
        auto& s = static_cast<const SelectNode&>(n);
        if (s.cond->dtype.lanes == 1) {
          // One choice for all lanes.
          return make<SelectNode>([&](SelectNode& out) {
            out.cond = s.cond;
            out.true_value = widen(s.true_value);
            out.false_value = widen(s.false_value);
            out.dtype = out.true_value->dtype;
          });
        }
        return select(s.cond, widen(s.true_value), widen(s.false_value));
      }
      case ExprKind::Cast: {
        auto& c = static_cast<const CastNode&>(n);
        return cast(n.dtype.element().with_lanes(c.value->dtype.lanes), c.value);
      }
      case ExprKind::Call: {
        auto& c = static_cast<const CallNode&>(n);
        std::vector<PrimExpr> args;
        for (const PrimExpr& a : c.args) args.push_back(widen(a));
        return call(c.name, n.dtype.element().with_lanes(lanes_), std::move(args));
      }
      case ExprKind::Load: {
        auto& l = static_cast<const LoadNode&>(n);
        if (!l.predicate) return load(l.buffer, l.indices);
        // Under a guard of its own a lane also reads what is in one place for all of them.
        std::vector<PrimExpr> indices = l.indices;
        if (!indices.empty()) indices.back() = widen(indices.back());
        return load(l.buffer, std::move(indices), widen(l.predicate));
      }
      default:
        return self;
    }
  }

  Var var_;
  PrimExpr ramp_;
  int lanes_;
  std::unordered_map<const Node*, PrimExpr> wide_names_;
};

// What is called for strings is called once for each, and under the guards that each has.
bool calls_string_functions(const Stmt& s) {
  bool calls = false;
  post_order(s, [&](const Node& n) {
    auto* c = as<CallNode>(&n);
    calls |= c != nullptr && find_intrinsic(c->name)->rule == IntrinsicRule::String;
  });
  return calls;
}

Stmt vectorize(const Stmt& s) {
  Stmt rebuilt = map_inner(s, vectorize);
  auto* f = as<ForNode>(rebuilt);
  if (f == nullptr || f->loop_kind != ForKind::Vectorized) return rebuilt;
  auto extent = as_int(f->extent);
  if (extent == 1) return replace(f->body, {{f->var.get(), f->min}});
  if (extent && *extent > 1 && *extent <= kMaxLanes && !calls_string_functions(f->body)) {
    int lanes = static_cast<int>(*extent);
    if (Stmt vector = Vectorizer(f->var, ramp(f->min, index(1), lanes), lanes).run(f->body)) {
      return vector;
    }
  }
  return for_(f->var, f->min, f->extent, f->body);
}

}  // namespace

PrimFunc vectorize_loops(const PrimFunc& f) { return with_body(f, vectorize(f->body)); }

}  // namespace relay::tir
