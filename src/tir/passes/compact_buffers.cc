#include "tir/passes/compact_buffers.h"

#include <algorithm>
#include <unordered_set>

#include "node/walk.h"
#include "tir/arith/analyzer.h"
#include "tir/passes/statements.h"
#include "tir/thread_nests.h"
#include "tir/while.h"

namespace relay::tir {
namespace {

bool is_scratch(const Buffer& b) { return b->scope != Scope::Global; }

class Compaction {
 public:
  explicit Compaction(const PrimFunc& f) : f_(f) {}

  Stmt run() {
    Stmt out = take_allocations(f_->body);
    for (const Buffer& b : buffers_) {
      around_.clear();
      find_holders(out, b);
      out = place(out, b);
    }
    return out;
  }

 private:
  Stmt take_allocations(const Stmt& s) {
    auto* a = as<AllocateNode>(s);
    if (a == nullptr || !is_scratch(a->buffer)) {
      return map_inner(s, [&](const Stmt& inner) { return take_allocations(inner); });
    }
    Stmt body = take_allocations(a->body);
    if (uses(body, a->buffer.get())) buffers_.push_back(a->buffer);
    return body;
  }

  // All that has the buffer somewhere inside, found once: on the way to its place every statement is asked.
  void find_holders(const Stmt& s, const Buffer& b) {
    holders_ = {b.get()};
    post_order(
        s,
        [&](const Node& n) {
          bool found = false;
          for_each_child(n, [&](const NodeRef& c) { found |= c && holds(c); });
          if (found) holders_.insert(&n);
        },
        family::tir);
  }
  bool holds(const NodeRef& n) const { return holders_.contains(n.get()); }

  // The innermost statement that holds every access of the buffer, wrapped.
  Stmt place(const Stmt& s, const Buffer& b) {
    // A group has its memory once, whichever items access it.
    const auto nest = b->scope == Scope::Shared ? thread_nest(s) : std::nullopt;
    if ((nest && nest->level == ThreadLevel::Item) || !can_enter(*s.get())) return shrink(s, b);
    if (auto* f = as<ForNode>(s)) around_.push_back(f);
    return map_inner(s, [&](const Stmt& inner) { return holds(inner) ? place(inner, b) : inner; });
  }

  // Whether all accesses lie in one of the statements inside, which then holds the allocation.
  bool can_enter(const StmtNode& s) const {
    size_t holders = 0;
    for_each_inner(s, [&](const Stmt& inner) { holders += holds(inner); });
    if (holders != 1) return false;
    switch (s.kind()) {
      case StmtKind::For: {
        auto& f = static_cast<const ForNode&>(s);
        return !holds(f.min) && !holds(f.extent) && !starts_once(f) &&
               first_access(f.body) != Access::Load;
      }
      // What an iteration leaves in the buffer, the next may read.
      case StmtKind::While:
        return false;
      case StmtKind::If:
        return !holds(static_cast<const IfNode&>(s).cond);
      case StmtKind::LetStmt:
        return !holds(static_cast<const LetStmtNode&>(s).value);
      default:
        return true;
    }
  }

  // How the statement first touches the buffer, in program order. An iteration that begins with a load
  // reads what an earlier one has stored.
  enum class Access { None, Load, Store };
  Access first_access(const Stmt& s) const {
    if (!holds(s)) return Access::None;
    bool reads = false;
    switch (s->kind()) {
      case StmtKind::Store: {
        auto& n = *as<StoreNode>(s);
        reads = holds(n.value) || (n.predicate && holds(n.predicate)) ||
                std::ranges::any_of(n.indices, [&](const PrimExpr& e) { return holds(e); });
        return reads ? Access::Load : Access::Store;
      }
      case StmtKind::For:
        reads = holds(as<ForNode>(s)->min) || holds(as<ForNode>(s)->extent);
        break;
      case StmtKind::While:
        reads = holds(as<WhileNode>(s)->cond);
        break;
      case StmtKind::If:
        reads = holds(as<IfNode>(s)->cond);
        break;
      case StmtKind::LetStmt:
        reads = holds(as<LetStmtNode>(s)->value);
        break;
      case StmtKind::Check:
      case StmtKind::Evaluate:
        return Access::Load;
      default:
        break;
    }
    if (reads) return Access::Load;
    Access first = Access::None;
    for_each_inner(*s.get(), [&](const Stmt& inner) {
      if (first == Access::None) first = first_access(inner);
    });
    return first;
  }

  // Whether only one iteration of the loop initialises the buffer: `if (k == 0) acc = 0` is how a
  // block starts a reduction, and what it starts lives through the whole loop.
  bool starts_once(const ForNode& f) const {
    bool once = false;
    post_order(
        f.body,
        [&](const Node& n) {
          auto* i = as<IfNode>(&n);
          if (i == nullptr || once || !holds(i->then_body)) return;
          post_order(i->cond, [&](const Node& c) {
            auto* e = as<BinaryNode>(&c);
            once |= e != nullptr && e->op == BinaryOp::Eq && uses(relay::ref(*e), f.var.get());
          });
        },
        family::tir_stmt);
    return once;
  }

  // What one visit of a statement touches of a buffer's dimension: [base, base + size), or all of
  // it when base is null.
  struct Part {
    PrimExpr base;
    int64_t low = 0;
    int64_t high = 0;
  };

  // Loops inside the statement vary during one visit; variables around it are fixed, but what is
  // known of them holds: a loop of one iteration is a constant.
  class Touched {
   public:
    Touched(const PrimFunc& f, const Stmt& s, const std::vector<const ForNode*>& around) {
      analyzer_.bind_function(f);
      for (const ForNode* l : around) analyzer_.bind(l->var, l->min, l->extent);
      bind_inside(s);
    }

    void add(const Buffer& b, const std::vector<PrimExpr>& indices) {
      if (parts_.empty()) {
        for (const PrimExpr& i : indices) parts_.push_back({first_value(i)});
      }
      for (size_t d = 0; d < indices.size(); ++d) {
        Part& p = parts_[d];
        if (!p.base) continue;
        Bounds range = analyzer_.bounds(indices[d] - p.base);
        bool known = range.has_min() && range.has_max();
        if (known) {
          p.low = std::min(p.low, range.min);
          p.high = std::max(p.high, range.max);
        }
        auto whole = as_int(b->shape[d]);
        if (!known || (whole && p.high - p.low + 1 >= *whole)) p.base = nullptr;
      }
    }

    Buffer smaller(const Buffer& b) const {
      return make<BufferNode>([&](BufferNode& n) {
        n.name = b->name;
        n.dtype = b->dtype;
        n.scope = b->scope;
        n.alignment = b->alignment;
        for (size_t d = 0; d < parts_.size(); ++d) {
          const Part& p = parts_[d];
          n.shape.push_back(p.base ? index(p.high - p.low + 1) : b->shape[d]);
        }
      });
    }

    std::vector<PrimExpr> moved(const std::vector<PrimExpr>& indices) {
      std::vector<PrimExpr> out;
      for (size_t d = 0; d < indices.size(); ++d) {
        const Part& p = parts_[d];
        out.push_back(p.base ? analyzer_.simplify(indices[d] - (p.base + p.low)) : indices[d]);
      }
      return out;
    }

    bool shrinks() const {
      return std::any_of(parts_.begin(), parts_.end(), [](const Part& p) { return !!p.base; });
    }

   private:
    void bind_inside(const Stmt& s) {
      if (auto* f = as<ForNode>(s)) {
        PrimExpr min = replace(f->min, at_start_);
        // Loops beside each other: that one runs says nothing of the next.
        auto inside = analyzer_.inside(f->var, f->min, f->extent);
        at_start_[f->var.get()] = min;
      } else if (auto* l = as<LetStmtNode>(s)) {
        fixed_nowhere_.push_back(l->var.get());
      }
      for_each_inner(*s.get(), [&](const Stmt& inner) { bind_inside(inner); });
    }

    // The index in the first iteration of the loops inside; null when it has no value outside.
    PrimExpr first_value(const PrimExpr& i) {
      PrimExpr e = analyzer_.simplify(replace(i, at_start_));
      bool varies = false;
      post_order(e, [&](const Node& n) {
        varies |= n.kind() == ExprKind::Load || n.kind() == ExprKind::Let ||
                  std::count(fixed_nowhere_.begin(), fixed_nowhere_.end(), &n) != 0;
      });
      return varies ? nullptr : e;
    }

    Analyzer analyzer_;
    NodeMap at_start_;
    std::vector<const Node*> fixed_nowhere_;
    std::vector<Part> parts_;
  };

  Stmt shrink(const Stmt& s, const Buffer& b) {
    Touched touched(f_, s, around_);
    post_order(
        s,
        [&](const Node& n) {
          if (auto* l = as<LoadNode>(&n); l != nullptr && l->buffer == b)
            touched.add(b, l->indices);
          if (auto* t = as<StoreNode>(&n); t != nullptr && t->buffer == b) {
            touched.add(b, t->indices);
          }
        },
        family::tir);
    if (!touched.shrinks()) return allocate(b, s);
    Buffer small = touched.smaller(b);
    NodeRef body = rewrite(
        s,
        [&](const NodeRef&, NodeRef rebuilt) -> NodeRef {
          if (auto* l = as<LoadNode>(rebuilt); l != nullptr && l->buffer == b) {
            return load(small, touched.moved(l->indices), l->predicate);
          }
          if (auto* t = as<StoreNode>(rebuilt); t != nullptr && t->buffer == b) {
            return store(small, touched.moved(t->indices), t->value, t->predicate);
          }
          return rebuilt;
        },
        family::tir_code);
    return allocate(small, Stmt::unchecked(std::move(body)));
  }

  const PrimFunc& f_;
  std::vector<Buffer> buffers_;
  std::unordered_set<const Node*> holders_;
  std::vector<const ForNode*> around_;  // loops around the current statement
};

}  // namespace

PrimFunc compact_buffers(const PrimFunc& f) { return with_body(f, Compaction(f).run()); }

}  // namespace relay::tir
