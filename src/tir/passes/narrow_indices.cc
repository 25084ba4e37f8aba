#include "tir/passes/narrow_indices.h"

#include <limits>
#include <unordered_map>
#include <unordered_set>

#include "node/structural.h"
#include "node/walk.h"
#include "runtime/core/kernel_abi.h"
#include "tir/arith/analyzer.h"
#include "tir/matrix_nest.h"
#include "tir/passes/statements.h"
#include "tir/transposed_nest.h"
#include "tir/while.h"

namespace relay::tir {
namespace {

constexpr DType kNarrow = DType::Int(32);
constexpr int64_t kLeast = std::numeric_limits<int32_t>::min();
constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
// A check that sizes up to this one fail is not added: every run would end there.
constexpr int64_t kSmallSize = 128;

// An index expression in 32 bits, and int64 expressions of the function's sizes that it lies between.
struct Narrow {
  PrimExpr value;
  PrimExpr low, high;
};

class Narrowing {
 public:
  explicit Narrowing(const PrimFunc& f) : f_(f) {}

  PrimFunc run() {
    post_order(
        f_->body,
        [&](const Node& n) {
          auto* a = as<AllocateNode>(&n);
          if (a == nullptr) return;
          for (const PrimExpr& d : a->buffer->shape) {
            post_order(d, [&](const Node& v) { in_shapes_.insert(&v); });
          }
        },
        family::tir_stmt);
    std::vector<std::pair<Var, PrimExpr>> sizes;
    for (const Var& d : f_->dims) {
      if (!(d->dtype == kIndex)) continue;
      analyzer_.bind(d, Bounds{0, kMost});
      small_.bind(d, Bounds{0, kSmallSize});
      checks_.push_back(le(d, index(kMost)));
      Var narrow = var(d->name + "_32", kNarrow);
      sizes.emplace_back(narrow, cast(kNarrow, d));
      vars_[d.get()] = {narrow, d, d};
    }
    Stmt body = statement(f_->body);
    for (size_t i = sizes.size(); i-- > 0;) {
      body = let_stmt(sizes[i].first, sizes[i].second, body);
    }
    // In their order: each relies on those before it.
    std::vector<Stmt> all;
    for (const PrimExpr& c : checks_) {
      all.push_back(check(c, RELAY_KERNEL_INDEX_WIDTH, "sizes need indices of more than 32 bits"));
    }
    all.push_back(std::move(body));
    return with_body(f_, seq(std::move(all)));
  }

 private:
  // Expressions of one statement.
  class Expressions : public Rewriter {
   public:
    explicit Expressions(Narrowing& all) : Rewriter(family::tir_expr), all_(all) {}

    const Narrow* narrow(const PrimExpr& original) const {
      auto it = known_.find(original.get());
      return it == known_.end() ? nullptr : &it->second;
    }

    NodeRef post(const NodeRef& original, NodeRef rebuilt) override {
      auto& e = static_cast<const PrimExprNode&>(*original.get());
      const bool is_index = e.dtype.element() == kIndex;
      switch (e.kind()) {
        case ExprKind::Var: {
          auto it = all_.vars_.find(&e);
          if (it == all_.vars_.end()) return rebuilt;
          note(e, it->second);
          return cast(kIndex, it->second.value);
        }
        case ExprKind::IntImm: {
          auto& n = static_cast<const IntImmNode&>(e);
          if (is_index && n.value >= kLeast && n.value <= kMost) {
            note(e, {imm(kNarrow, n.value), index(n.value), index(n.value)});
          }
          return rebuilt;
        }
        case ExprKind::Binary: {
          auto& n = static_cast<const BinaryNode&>(e);
          const Narrow *a = narrow(n.a), *b = narrow(n.b);
          if (a == nullptr || b == nullptr) return rebuilt;
          if (is_comparison(n.op)) return binary(n.op, a->value, b->value);
          auto out = all_.combined(n.op, *a, *b);
          return out ? noted(e, *out) : rebuilt;
        }
        case ExprKind::Select: {
          auto& n = static_cast<const SelectNode&>(e);
          const Narrow *a = narrow(n.true_value), *b = narrow(n.false_value);
          if (a == nullptr || b == nullptr) return rebuilt;
          return noted(
              e, {select(static_cast<const SelectNode&>(*rebuilt.get()).cond, a->value, b->value),
                  min(a->low, b->low), max(a->high, b->high)});
        }
        case ExprKind::Cast: {
          auto& n = static_cast<const CastNode&>(e);
          const DType from = n.value->dtype.element();
          if (const Narrow* a = narrow(n.value)) return cast(e.dtype, a->value);
          const bool fits = from.is_bool() || (from.is_int() && from.bits <= 32) ||
                            (from.is_integer() && from.bits < 32);
          if (!is_index || !fits) return rebuilt;
          const PrimExpr& value = static_cast<const CastNode&>(*rebuilt.get()).value;
          return noted(e, {cast(kNarrow.with_lanes(e.dtype.lanes), value),
                           index(*as_int(min_value(from))), index(*as_int(max_value(from)))});
        }
        case ExprKind::Ramp: {
          auto& n = static_cast<const RampNode&>(e);
          const Narrow* base = narrow(n.base);
          auto step = as_int(n.stride);
          if (base == nullptr || !step) return rebuilt;
          const int64_t last = *step * (e.dtype.lanes - 1);
          const PrimExpr low = last < 0 ? base->low + last : base->low,
                         high = last > 0 ? base->high + last : base->high;
          if (*step < kLeast || *step > kMost || !all_.admit(low, high)) return rebuilt;
          // As an index it stays a ramp.
          note(e, {ramp(base->value, imm(kNarrow, *step), e.dtype.lanes), low, high});
          return rebuilt;
        }
        case ExprKind::Broadcast: {
          const Narrow* value = narrow(static_cast<const BroadcastNode&>(e).value);
          if (value != nullptr) {
            note(e, {broadcast(value->value, e.dtype.lanes), value->low, value->high});
          }
          return rebuilt;
        }
        default:
          return rebuilt;
      }
    }

   private:
    void note(const Node& original, Narrow n) {
      if (!all_.wide_) known_.emplace(&original, std::move(n));
    }
    PrimExpr noted(const PrimExprNode& original, Narrow n) {
      PrimExpr out = cast(original.dtype, n.value);
      note(original, std::move(n));
      return out;
    }

    Narrowing& all_;
    std::unordered_map<const Node*, Narrow> known_;
  };

  bool is_least(const PrimExpr& e, int64_t value) { return analyzer_.bounds(e).min >= value; }

  // Whether the value lies within 32 bits if the checks hold, to which it adds those that are missing.
  bool admit(const PrimExpr& low, const PrimExpr& high) {
    if (small_.bounds(low).min < kLeast || small_.bounds(high).max > kMost) return false;
    if (analyzer_.bounds(high).max > kMost) demand(le(high, index(kMost)));
    if (analyzer_.bounds(low).min < kLeast) demand(ge(low, index(kLeast)));
    return true;
  }

  void demand(const PrimExpr& cond) {
    for (const PrimExpr& c : checks_) {
      if (structural_equal(c, cond)) return;
    }
    checks_.push_back(cond);
  }

  std::optional<Narrow> combined(BinaryOp op, const Narrow& a, const Narrow& b) {
    PrimExpr low, high;
    const auto divisor = as_int(b.low);
    const bool positive = is_least(b.low, 1), counts = is_least(a.low, 0);
    switch (op) {
      case BinaryOp::Add:
        low = a.low + b.low;
        high = a.high + b.high;
        break;
      case BinaryOp::Sub:
        low = a.low - b.high;
        high = a.high - b.low;
        break;
      case BinaryOp::Mul:
        if (auto k = as_int(a.value)) return scaled(b, *k, a);
        if (auto k = as_int(b.value)) return scaled(a, *k, b);
        if (counts && is_least(b.low, 0)) {
          low = a.low * b.low;
          high = a.high * b.high;
          break;
        }
        if (auto both = constant_product(a, b))
          return admitted(a.value * b.value, both->low, both->high);
        return std::nullopt;
      case BinaryOp::Div:
      case BinaryOp::FloorDiv:
        if (!positive || !(counts || (op == BinaryOp::FloorDiv && as_int(b.value)))) {
          return std::nullopt;
        }
        low = as_int(b.value) ? floor_div(a.low, index(*divisor)) : index(0);
        high = as_int(b.value) ? floor_div(a.high, index(*divisor)) : a.high;
        break;
      case BinaryOp::Mod:
      case BinaryOp::FloorMod:
        if (!positive || !(counts || op == BinaryOp::FloorMod)) return std::nullopt;
        low = index(0);
        high = b.high - 1;
        break;
      case BinaryOp::Min:
        low = min(a.low, b.low);
        high = min(a.high, b.high);
        break;
      case BinaryOp::Max:
        low = max(a.low, b.low);
        high = max(a.high, b.high);
        break;
      default:
        return std::nullopt;
    }
    return admitted(binary(op, a.value, b.value), low, high);
  }

  // The bounds of a product of factors of any sign between constants.
  std::optional<Narrow> constant_product(const Narrow& a, const Narrow& b) {
    const Bounds x{analyzer_.bounds(a.low).min, analyzer_.bounds(a.high).max},
        y{analyzer_.bounds(b.low).min, analyzer_.bounds(b.high).max};
    const Bounds both = x * y;
    if (!both.within(kLeast, kMost)) return std::nullopt;
    return Narrow{nullptr, index(both.min), index(both.max)};
  }

  std::optional<Narrow> scaled(const Narrow& x, int64_t k, const Narrow& factor) {
    return admitted(x.value * factor.value, (k < 0 ? x.high : x.low) * k,
                    (k < 0 ? x.low : x.high) * k);
  }

  std::optional<Narrow> admitted(PrimExpr value, const PrimExpr& low, const PrimExpr& high) {
    Narrow out{std::move(value), analyzer_.simplify(low), analyzer_.simplify(high)};
    if (!admit(out.low, out.high)) return std::nullopt;
    return out;
  }

  bool may_change(const Var& v) const {
    return v->dtype == kIndex && !in_shapes_.contains(v.get());
  }

  Stmt statement(const Stmt& s) {
    switch (s->kind()) {
      case StmtKind::For:
        return loop(*as<ForNode>(s));
      case StmtKind::If: {
        auto* n = as<IfNode>(s);
        PrimExpr cond = Expressions(*this).apply(n->cond);
        Stmt then_body = statement(n->then_body);
        return if_(cond, then_body, n->else_body ? statement(n->else_body) : nullptr);
      }
      case StmtKind::While: {
        auto* n = as<WhileNode>(s);
        return while_(Expressions(*this).apply(n->cond), statement(n->body));
      }
      case StmtKind::LetStmt: {
        auto* n = as<LetStmtNode>(s);
        Expressions all(*this);
        PrimExpr value = all.apply(n->value);
        const Narrow* narrow = all.narrow(n->value);
        if (narrow == nullptr || !may_change(n->var)) {
          return let_stmt(n->var, value, statement(n->body));
        }
        Var v = var(n->var->name + "_32", kNarrow);
        return let_stmt(v, narrow->value, within(n->var, {v, narrow->low, narrow->high}, n->body));
      }
      case StmtKind::Store: {
        auto* n = as<StoreNode>(s);
        Expressions all(*this);
        std::vector<PrimExpr> at;
        for (const PrimExpr& i : n->indices) at.push_back(all.apply(i));
        PrimExpr value = all.apply(n->value);
        return store(n->buffer, std::move(at), value,
                     n->predicate ? all.apply(n->predicate) : nullptr);
      }
      case StmtKind::Check: {
        auto* n = as<CheckNode>(s);
        return check(Expressions(*this).apply(n->cond), n->error, n->message);
      }
      case StmtKind::Evaluate:
        return evaluate(Expressions(*this).apply(as<EvaluateNode>(s)->value));
      default:
        return map_inner(s, [&](const Stmt& inner) { return statement(inner); });
    }
  }

  Stmt loop(const ForNode& l) {
    if (!in_nest_ && (in_matrix_nest(l) || in_transposed_nest(l))) return nest(l);
    Expressions all(*this);
    // In the order of the fields.
    std::vector<NodeRef> parts = children_of(l);
    parts[1] = all.apply(l.min);
    parts[2] = all.apply(l.extent);
    const Narrow *min = all.narrow(l.min), *extent = all.narrow(l.extent);
    const bool fits = may_change(l.var) && min != nullptr && extent != nullptr &&
                      admit(min->low, analyzer_.simplify(min->high + extent->high));
    if (!fits) {
      parts[3] = statement(l.body);
      return Stmt::unchecked(with_children(ref(l), parts));
    }
    Var v = var(l.var->name + "_32", kNarrow);
    parts[0] = v;
    parts[1] = min->value;
    parts[2] = extent->value;
    parts[3] =
        within(l.var, {v, min->low, analyzer_.simplify(min->high + extent->high - 1)}, l.body);
    return Stmt::unchecked(with_children(ref(l), parts));
  }

  // A nest is recognised by its indices: all of them are narrow, or none.
  Stmt nest(const ForNode& l) {
    in_nest_ = true;
    const size_t checks = checks_.size();
    Stmt out = loop(l);
    if (has_wide_access(out)) {
      checks_.resize(checks);
      wide_ = true;
      out = loop(l);
      wide_ = false;
    }
    in_nest_ = false;
    return out;
  }

  static bool has_wide_access(const Stmt& s) {
    bool wide = false;
    auto look = [&](const std::vector<PrimExpr>& indices) {
      for (const PrimExpr& i : indices) {
        auto* widened = as<CastNode>(i);
        wide |= !as_int(i) && !(widened != nullptr && widened->value->dtype == kNarrow);
      }
    };
    post_order(
        s,
        [&](const Node& n) {
          if (auto* load = as<LoadNode>(&n)) look(load->indices);
          if (auto* store = as<StoreNode>(&n)) look(store->indices);
        },
        family::tir_expr | family::tir_stmt);
    return wide;
  }

  // The statement with the variable in 32 bits.
  Stmt within(const Var& v, Narrow narrow, const Stmt& body) {
    vars_[v.get()] = std::move(narrow);
    Stmt out = statement(body);
    vars_.erase(v.get());
    return out;
  }

  const PrimFunc& f_;
  Analyzer analyzer_;
  Analyzer small_;  // of small sizes
  std::unordered_map<const Node*, Narrow> vars_;
  std::unordered_set<const Node*> in_shapes_;  // of allocations, whose sizes are those of memory
  std::vector<PrimExpr> checks_;
  bool wide_ = false;     // only variables change
  bool in_nest_ = false;  // of loops that become instructions
};

}  // namespace

PrimFunc narrow_indices(const PrimFunc& f) { return Narrowing(f).run(); }

std::optional<LargeBuffer> buffer_beyond(const PrimFunc& f, int index_bits, int pointer_bits) {
  auto most = [](int bits) { return std::numeric_limits<int64_t>::max() >> (64 - bits); };
  std::vector<Buffer> all = f->params;
  post_order(
      f->body,
      [&](const Node& n) {
        if (auto* a = as<AllocateNode>(&n)) all.push_back(a->buffer);
      },
      family::tir_stmt);
  for (const Buffer& b : all) {
    auto bytes = bytes_in_memory(*b.get());
    if (!bytes) continue;
    const int64_t elements = *bytes / static_cast<int64_t>(b->dtype.element().bytes());
    if (elements > most(index_bits) || *bytes > most(pointer_bits)) {
      return LargeBuffer{b, elements};
    }
  }
  return std::nullopt;
}

}  // namespace relay::tir
