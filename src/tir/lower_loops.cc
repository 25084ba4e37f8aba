#include "tir/lower_loops.h"

#include <algorithm>
#include <cstdlib>
#include <unordered_map>

#include "node/walk.h"
#include "tir/arith/analyzer.h"
#include "tir/compute.h"

namespace relay::tir {
namespace {

using Map = std::unordered_map<const Node*, NodeRef>;

constexpr uint32_t kExprs = family::tir_expr;
constexpr uint32_t kAll = family::tir_expr | family::tir_stmt | family::tir_other;

template <class T>
Ref<T> replace(const Ref<T>& root, const Map& map) {
  return Ref<T>::unchecked(substitute(root, map, kAll));
}

bool uses(const NodeRef& root, const Node* var) {
  bool found = false;
  post_order(
      root, [&](const Node& n) { found |= &n == var; }, kAll);
  return found;
}

// The loop with another body.
Stmt with_body(const ForNode& f, Stmt body) {
  return make<ForNode>([&](ForNode& n) {
    n.var = f.var;
    n.min = f.min;
    n.extent = f.extent;
    n.loop_kind = f.loop_kind;
    n.thread_tag = f.thread_tag;
    n.annotations = f.annotations;
    n.body = std::move(body);
  });
}

// ---- Blocks
// ----------------------------------------------------------------------------------------

class BlockLowering {
 public:
  Stmt lower(const Stmt& s) {
    switch (s->kind()) {
      case StmtKind::For: {
        auto* f = as<ForNode>(s);
        Stmt init = init_before(*f);
        Stmt body = with_body(*f, lower(f->body));
        return init ? seq({init, body}) : body;
      }
      case StmtKind::Block:
        return block(*as<BlockNode>(s));
      case StmtKind::Seq: {
        std::vector<Stmt> out;
        for (const Stmt& inner : as<SeqNode>(s)->stmts) out.push_back(lower(inner));
        return seq(std::move(out));
      }
      case StmtKind::If: {
        auto* i = as<IfNode>(s);
        return if_(i->cond, lower(i->then_body), i->else_body ? lower(i->else_body) : nullptr);
      }
      case StmtKind::Allocate: {
        auto* a = as<AllocateNode>(s);
        return allocate(a->buffer, lower(a->body));
      }
      case StmtKind::LetStmt: {
        auto* l = as<LetStmtNode>(s);
        return let_stmt(l->var, l->value, lower(l->body));
      }
      default:
        return s;
    }
  }

 private:
  // Iteration variables replaced by their bindings.
  static Map bindings_of(const BlockNode& b) {
    Map map;
    for (size_t i = 0; i < b.iters.size(); ++i) map[b.iters[i]->var.get()] = b.bindings[i];
    return map;
  }

  Stmt block(const BlockNode& b) {
    Map map = bindings_of(b);
    Stmt body = replace(lower(b.body), map);
    if (b.init && !done_.contains(&b)) {
      PrimExpr first = boolean(true);
      for (size_t i = 0; i < b.iters.size(); ++i) {
        if (b.iters[i]->kind != IterKind::Reduce) continue;
        first = logical_and(first, eq(b.bindings[i], b.iters[i]->min));
      }
      body = seq({if_(first, replace(b.init, map)), body});
    }
    if (!b.predicate || as_int(b.predicate) == 1) return body;
    return if_(replace(b.predicate, map), body);
  }

  // The initialisation of the reduction whose outermost loop is `f`, in loops of its own over the
  // data-parallel loops inside; null when `f` is no such loop. The block then comes without it.
  Stmt init_before(const ForNode& f) {
    std::vector<const ForNode*> loops{&f};
    const Node* at = f.body.get();
    while (auto* inner = as<ForNode>(at)) {
      loops.push_back(inner);
      at = inner->body.get();
    }
    auto* b = as<BlockNode>(at);
    if (b == nullptr || !b->init || done_.contains(b)) return nullptr;
    auto reduces = [&](const ForNode& loop) {
      for (size_t i = 0; i < b->iters.size(); ++i) {
        if (b->iters[i]->kind == IterKind::Reduce && uses(b->bindings[i], loop.var.get()))
          return true;
      }
      return false;
    };
    if (!reduces(f)) return nullptr;
    Map map = bindings_of(*b);
    Stmt init = replace(b->init, map);
    if (b->predicate && as_int(b->predicate) != 1) {
      PrimExpr p = replace(b->predicate, map);
      // A predicate over the reduction's loops says nothing about the initialisation.
      bool about_reduction = false;
      for (const ForNode* loop : loops)
        about_reduction |= reduces(*loop) && uses(p, loop->var.get());
      if (about_reduction) return nullptr;
      init = if_(p, init);
    }
    Map fresh;
    std::vector<std::pair<const ForNode*, Var>> kept;
    for (const ForNode* loop : loops) {
      if (reduces(*loop)) continue;
      Var v = var(loop->var->name + "_init", loop->var->dtype);
      fresh[loop->var.get()] = v;
      kept.emplace_back(loop, v);
    }
    init = replace(init, fresh);
    for (auto it = kept.rbegin(); it != kept.rend(); ++it) {
      const ForNode& loop = *it->first;
      init = for_(it->second, replace(loop.min, fresh), replace(loop.extent, fresh), init,
                  loop.loop_kind == ForKind::Parallel ? ForKind::Serial : loop.loop_kind);
    }
    done_.emplace(b, nullptr);
    return init;
  }

  Map done_;  // blocks whose initialisation stands elsewhere
};

// ---- Buffers
// ---------------------------------------------------------------------------------------

// Moves buffers of a thread's own next to where they are used, and shrinks them to what one visit
// there touches: an accumulator of a whole matrix under the loops over its tiles becomes one tile.
class Compaction {
 public:
  Stmt run(const Stmt& body) {
    Stmt out = take_allocations(body);
    for (const Buffer& b : buffers_) out = place(out, b);
    return out;
  }

 private:
  Stmt take_allocations(const Stmt& s) {
    return Stmt::unchecked(rewrite(
        s,
        [&](const NodeRef&, NodeRef rebuilt) -> NodeRef {
          auto* a = as<AllocateNode>(rebuilt);
          if (a == nullptr ||
              (a->buffer->scope != Scope::Register && a->buffer->scope != Scope::Local)) {
            return rebuilt;
          }
          buffers_.push_back(a->buffer);
          return a->body;
        },
        family::tir_stmt));
  }

  // The innermost statement that holds every access of the buffer, wrapped.
  Stmt place(const Stmt& s, const Buffer& b) {
    auto again = [&](const Stmt& inner) { return place(inner, b); };
    switch (s->kind()) {
      case StmtKind::For: {
        auto* f = as<ForNode>(s);
        if (uses(f->min, b.get()) || uses(f->extent, b.get())) break;
        return with_body(*f, again(f->body));
      }
      case StmtKind::Seq: {
        std::vector<Stmt> parts = as<SeqNode>(s)->stmts;
        int holders = 0;
        size_t last = 0;
        for (size_t i = 0; i < parts.size(); ++i) {
          if (!uses(parts[i], b.get())) continue;
          ++holders;
          last = i;
        }
        if (holders == 0) return s;
        if (holders > 1) break;
        parts[last] = again(parts[last]);
        return seq(std::move(parts));
      }
      case StmtKind::If: {
        auto* i = as<IfNode>(s);
        if (i->else_body || uses(i->cond, b.get())) break;
        return if_(i->cond, again(i->then_body));
      }
      case StmtKind::Allocate: {
        auto* a = as<AllocateNode>(s);
        return allocate(a->buffer, again(a->body));
      }
      default:
        break;
    }
    return shrink(s, b);
  }

  Stmt shrink(const Stmt& s, const Buffer& b) {
    // Loops inside this statement vary during one visit; all other variables are fixed.
    Analyzer analyzer;
    Map at_start;
    post_order(
        s,
        [&](const Node& n) {
          auto* f = as<ForNode>(&n);
          if (f == nullptr) return;
          analyzer.bind(f->var, f->min, f->extent);
          at_start[f->var.get()] = f->min;
        },
        kAll);
    std::vector<PrimExpr> base;
    std::vector<int64_t> size;
    bool fits = true;
    auto access = [&](const std::vector<PrimExpr>& indices) {
      if (base.empty()) {
        for (const PrimExpr& i : indices) base.push_back(analyzer.simplify(replace(i, at_start)));
        size.assign(indices.size(), 0);
      }
      for (size_t d = 0; d < indices.size(); ++d) {
        Bounds range = analyzer.bounds(analyzer.simplify(indices[d] - base[d]));
        fits = fits && range.has_max() && range.min >= 0;
        if (fits) size[d] = std::max(size[d], range.max + 1);
      }
    };
    post_order(
        s,
        [&](const Node& n) {
          if (auto* l = as<LoadNode>(&n); l != nullptr && l->buffer == b) access(l->indices);
          if (auto* t = as<StoreNode>(&n); t != nullptr && t->buffer == b) access(t->indices);
        },
        kAll);
    if (!fits || base.empty()) return allocate(b, s);
    Buffer small = make<BufferNode>([&](BufferNode& n) {
      n.name = b->name;
      n.dtype = b->dtype;
      n.scope = b->scope;
      n.alignment = b->alignment;
      for (int64_t d : size) n.shape.push_back(index(d));
    });
    auto moved = [&](const std::vector<PrimExpr>& indices) {
      std::vector<PrimExpr> out;
      for (size_t d = 0; d < indices.size(); ++d)
        out.push_back(analyzer.simplify(indices[d] - base[d]));
      return out;
    };
    Stmt body = Stmt::unchecked(rewrite(
        s,
        [&](const NodeRef&, NodeRef rebuilt) -> NodeRef {
          if (auto* l = as<LoadNode>(rebuilt); l != nullptr && l->buffer == b) {
            return load(small, moved(l->indices), l->predicate);
          }
          if (auto* t = as<StoreNode>(rebuilt); t != nullptr && t->buffer == b) {
            return store(small, moved(t->indices), t->value, t->predicate);
          }
          return rebuilt;
        },
        kExprs | family::tir_stmt));
    return allocate(small, body);
  }

  std::vector<Buffer> buffers_;
};

class Flattening : public Rewriter {
 public:
  Flattening() : Rewriter(kAll) {}
  NodeRef post(const NodeRef&, NodeRef rebuilt) override {
    if (auto* l = as<LoadNode>(rebuilt)) {
      if (l->indices.size() == 1 && l->buffer->shape.size() == 1) return rebuilt;
      return load(l->buffer, {flat(l->buffer, l->indices)}, l->predicate);
    }
    if (auto* s = as<StoreNode>(rebuilt)) {
      if (s->indices.size() == 1 && s->buffer->shape.size() == 1) return rebuilt;
      return store(s->buffer, {flat(s->buffer, s->indices)}, s->value, s->predicate);
    }
    return rebuilt;
  }

 private:
  static PrimExpr flat(const Buffer& b, const std::vector<PrimExpr>& indices) {
    RELAY_CHECK(indices.size() == b->shape.size(), b->name);
    PrimExpr at = index(0);
    for (size_t d = 0; d < indices.size(); ++d) at = at * b->shape[d] + indices[d];
    return at;
  }
};

// ---- Vectors and copies
// ------------------------------------------------------------------------------

class Vectorizer {
 public:
  Vectorizer(Var var, PrimExpr lanes_of_var, int lanes)
      : var_(std::move(var)), ramp_(std::move(lanes_of_var)), lanes_(lanes) {}

  // The statement for all values of the variable at once; null when it is not made of stores.
  Stmt run(const Stmt& s) {
    switch (s->kind()) {
      case StmtKind::Store: {
        auto* n = as<StoreNode>(s);
        std::vector<PrimExpr> at;
        for (const PrimExpr& i : n->indices) at.push_back(expr(i));
        PrimExpr v = expr(n->value);
        bool vector = v->dtype.lanes > 1;
        for (const PrimExpr& i : at) vector |= i->dtype.lanes > 1;
        if (!vector) return s;
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
        if (uses(f->min, var_.get()) || uses(f->extent, var_.get())) return nullptr;
        Stmt body = run(f->body);
        return body ? with_body(*f, body) : nullptr;
      }
      case StmtKind::If: {
        auto* i = as<IfNode>(s);
        if (uses(i->cond, var_.get())) return nullptr;
        Stmt a = run(i->then_body), b = i->else_body ? run(i->else_body) : nullptr;
        if (!a || (i->else_body && !b)) return nullptr;
        return if_(i->cond, a, b);
      }
      default:
        return uses(s, var_.get()) ? nullptr : s;
    }
  }

 private:
  PrimExpr widen(const PrimExpr& e) { return e->dtype.lanes > 1 ? e : broadcast(e, lanes_); }

  PrimExpr expr(const PrimExpr& root) {
    class Rewrite : public Rewriter {
     public:
      explicit Rewrite(Vectorizer& v) : Rewriter(kExprs), v_(v) {}
      NodeRef pre(const NodeRef& node) override {
        return node.get() == v_.var_.get() ? NodeRef(v_.ramp_) : nullptr;
      }
      NodeRef post(const NodeRef& original, NodeRef rebuilt) override {
        if (rebuilt == original) return rebuilt;
        return v_.rebuild(*static_cast<const PrimExprNode*>(rebuilt.get()), Expr(rebuilt));
      }
      static PrimExpr Expr(const NodeRef& r) { return PrimExpr::unchecked(r); }

     private:
      Vectorizer& v_;
    };
    return Rewrite(*this).apply(root);
  }

  // A node some of whose operands became vectors.
  PrimExpr rebuild(const PrimExprNode& n, const PrimExpr& self) {
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
        return load(l.buffer, l.indices, l.predicate ? widen(l.predicate) : nullptr);
      }
      default:
        return self;
    }
  }

  Var var_;
  PrimExpr ramp_;
  int lanes_;
};

// Vectorised loops first (innermost), then copies.
Stmt expand(const Stmt& s) {
  switch (s->kind()) {
    case StmtKind::For: {
      auto* f = as<ForNode>(s);
      Stmt body = expand(f->body);
      auto extent = as_int(f->extent);
      if (f->loop_kind == ForKind::Vectorized && extent && *extent > 1 && *extent <= 64) {
        Vectorizer v(f->var, ramp(f->min, index(1), static_cast<int>(*extent)),
                     static_cast<int>(*extent));
        if (Stmt vector = v.run(body)) return vector;
      }
      if ((f->loop_kind == ForKind::Vectorized || f->loop_kind == ForKind::Unrolled) && extent &&
          *extent == 1) {
        return replace(body, {{f->var.get(), f->min}});
      }
      if (f->loop_kind == ForKind::Unrolled && extent && *extent <= 1024) {
        std::vector<Stmt> copies;
        for (int64_t i = 0; i < *extent; ++i)
          copies.push_back(replace(body, {{f->var.get(), f->min + i}}));
        return seq(std::move(copies));
      }
      ForKind kind = f->loop_kind == ForKind::Parallel ? ForKind::Parallel : ForKind::Serial;
      auto unroll = f->annotations.find("unroll");
      if (unroll != f->annotations.end() && extent) {
        int64_t factor = std::atoll(unroll->second.c_str());
        if (factor > 1 && factor <= *extent) {
          // Whole groups of copies, then what is left.
          int64_t groups = *extent / factor, rest = *extent % factor;
          Var v = var(f->var->name, f->var->dtype);
          std::vector<Stmt> copies, out;
          for (int64_t i = 0; i < factor; ++i)
            copies.push_back(replace(body, {{f->var.get(), f->min + v * factor + i}}));
          out.push_back(for_(v, index(0), index(groups), seq(std::move(copies)), kind));
          for (int64_t i = 0; i < rest; ++i)
            out.push_back(replace(body, {{f->var.get(), f->min + groups * factor + i}}));
          return seq(std::move(out));
        }
      }
      return for_(f->var, f->min, f->extent, body, kind);
    }
    case StmtKind::Seq: {
      std::vector<Stmt> out;
      for (const Stmt& inner : as<SeqNode>(s)->stmts) out.push_back(expand(inner));
      return seq(std::move(out));
    }
    case StmtKind::If: {
      auto* i = as<IfNode>(s);
      return if_(i->cond, expand(i->then_body), i->else_body ? expand(i->else_body) : nullptr);
    }
    case StmtKind::Allocate: {
      auto* a = as<AllocateNode>(s);
      return allocate(a->buffer, expand(a->body));
    }
    case StmtKind::LetStmt: {
      auto* l = as<LetStmtNode>(s);
      return let_stmt(l->var, l->value, expand(l->body));
    }
    default:
      return s;
  }
}

// ---- Simplification
// ------------------------------------------------------------------------------------

class Simplification {
 public:
  explicit Simplification(const PrimFunc& f) { analyzer_.bind_dims(f); }

  Stmt run(const Stmt& s) {
    switch (s->kind()) {
      case StmtKind::For: {
        auto* f = as<ForNode>(s);
        PrimExpr min = expr(f->min), extent = expr(f->extent);
        auto n = as_int(extent);
        if (n && *n <= 0) return seq({});
        if (n && *n == 1 && f->loop_kind != ForKind::Parallel)
          return run(replace(f->body, {{f->var.get(), min}}));
        analyzer_.bind(f->var, min, extent);
        return make<ForNode>([&](ForNode& out) {
          out.var = f->var;
          out.min = min;
          out.extent = extent;
          out.loop_kind = f->loop_kind;
          out.thread_tag = f->thread_tag;
          out.annotations = f->annotations;
          out.body = run(f->body);
        });
      }
      case StmtKind::Seq: {
        std::vector<Stmt> out;
        for (const Stmt& inner : as<SeqNode>(s)->stmts) out.push_back(run(inner));
        return seq(std::move(out));
      }
      case StmtKind::If: {
        auto* i = as<IfNode>(s);
        PrimExpr cond = expr(i->cond);
        if (as_int(cond) == 1) return run(i->then_body);
        if (as_int(cond) == 0) return i->else_body ? run(i->else_body) : seq({});
        Stmt then_body;
        {
          auto scope = analyzer_.assume(cond);
          then_body = run(i->then_body);
        }
        return if_(cond, then_body, i->else_body ? run(i->else_body) : nullptr);
      }
      case StmtKind::Allocate: {
        auto* a = as<AllocateNode>(s);
        return allocate(a->buffer, run(a->body));
      }
      case StmtKind::LetStmt: {
        auto* l = as<LetStmtNode>(s);
        return let_stmt(l->var, expr(l->value), run(l->body));
      }
      case StmtKind::Store: {
        auto* n = as<StoreNode>(s);
        std::vector<PrimExpr> at;
        for (const PrimExpr& i : n->indices) at.push_back(expr(i));
        return store(n->buffer, std::move(at), expr(n->value),
                     n->predicate ? expr(n->predicate) : nullptr);
      }
      default:
        return s;
    }
  }

 private:
  PrimExpr expr(const PrimExpr& e) { return analyzer_.simplify(e); }
  Analyzer analyzer_;
};

PrimFunc with_body(const PrimFunc& f, Stmt body) {
  return make<PrimFuncNode>([&](PrimFuncNode& n) {
    n.name = f->name;
    n.params = f->params;
    n.num_inputs = f->num_inputs;
    n.dims = f->dims;
    n.attrs = f->attrs;
    n.body = std::move(body);
  });
}

}  // namespace

PrimFunc lower_loops(const PrimFunc& f) {
  Stmt body = BlockLowering().lower(f->body);  // no blocks are left
  body = Compaction().run(body);               // scratch is as large as one tile
  body = Flattening().apply(body);             // every access has one index
  body = Simplification(f).run(body);
  body = expand(body);  // only serial and parallel loops are left
  body = Simplification(f).run(body);
  return with_body(f, body);
}

}  // namespace relay::tir
