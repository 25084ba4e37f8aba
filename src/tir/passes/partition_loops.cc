#include "tir/passes/partition_loops.h"

#include <algorithm>
#include <cstdlib>

#include "node/structural.h"
#include "node/walk.h"
#include "tir/arith/analyzer.h"
#include "tir/passes/statements.h"
#include "tir/scalar.h"
#include "tir/schedule/loop_tree.h"

namespace relay::tir {
namespace {

// Stores that copies may add to a function: about 16 KB of vector code.
constexpr int64_t kMaxCopiedStores = 512;
constexpr int64_t kMinIterations = 4;

// [from, to).
struct Interval {
  int64_t from;
  int64_t to;
  int64_t size() const { return std::max<int64_t>(0, to - from); }
};

Interval intersect(const Interval& a, const Interval& b) {
  return {std::max(a.from, b.from), std::min(a.to, b.to)};
}

// How many stores the statement becomes when its loops are unrolled as they are marked.
int64_t stores_of(const Stmt& s) {
  if (s->kind() == StmtKind::Store) return 1;
  int64_t count = 0;
  for_each_inner(*s.get(), [&](const Stmt& inner) { count += stores_of(inner); });
  auto* f = as<ForNode>(s);
  if (f == nullptr) return count;
  int64_t copies = 1;
  if (f->loop_kind == ForKind::Unrolled) copies = as_int(f->extent).value_or(1);
  if (f->hints.unroll > 0) copies = f->hints.unroll;
  return std::min<int64_t>(count, kMaxCopiedStores + 1) * std::min(copies, kMaxCopiedStores + 1);
}

class LoopPartition {
 public:
  explicit LoopPartition(const PrimFunc& f) : dims_(f->dims) { analyzer_.bind_function(f); }

  Stmt run(const Stmt& s) {
    auto* f = as<ForNode>(s);
    if (f == nullptr) {
      return map_inner(s, [&](const Stmt& inner) { return run(inner); });
    }
    auto min = as_int(f->min), extent = as_int(f->extent);
    bool plain = f->loop_kind == ForKind::Serial && f->var->dtype == kIndex;
    if (plain && min && extent && *extent >= kMinIterations) {
      Interval whole{*min, *min + *extent};
      Interval steady = steady_part(*f, whole);
      int64_t parts = (steady.from > whole.from) + (steady.to < whole.to);
      int64_t copied = parts == 0 ? 0 : parts * stores_of(f->body);
      if (parts > 0 && copied <= budget_) {
        budget_ -= copied;
        return seq({part(*f, {whole.from, steady.from}, "_head"), part(*f, steady, ""),
                    part(*f, {steady.to, whole.to}, "_tail")});
      }
    }
    if (plain && min == 0 && !extent) {
      int64_t copied = stores_of(f->body);
      PrimExpr steady = copied <= budget_ ? open_steady_part(*f) : nullptr;
      if (steady) {
        budget_ -= copied;
        auto cut = [&] {
          return seq({open_part(*f, index(0), steady, ""),
                      open_part(*f, steady, analyzer_.simplify(f->extent - steady), "_tail")});
        };
        if (analyzer_.can_prove(ge(steady, index(0)))) return cut();
        // Known of a loop that runs at all: of one without iterations the tail would begin before 0.
        PrimExpr runs = gt(f->extent, index(0));
        auto assumed = analyzer_.assume(runs);
        return if_(runs, cut());
      }
    }
    if (PrimExpr known = plain ? settled(*f) : nullptr) {
      budget_ -= stores_of(f->body);
      auto inside = analyzer_.inside(f->var, f->min, f->extent);
      return with_body(*f, if_(known, run(f->body), f->body));
    }
    auto inside = analyzer_.inside(f->var, f->min, f->extent);
    return map_inner(s, [&](const Stmt& inner) { return run(inner); });
  }

 private:
  // The loop over some of the iterations of one whose extent is not a constant.
  Stmt open_part(const ForNode& f, const PrimExpr& min, const PrimExpr& extent,
                 const std::string& suffix) {
    Var v = var(f.var->name + suffix);
    auto inside = analyzer_.inside(v, min, extent);
    Stmt body = replace(f.body, {{f.var.get(), v}});
    body = map_inner(body, [&](const Stmt& inner) { return run(inner); });
    return make<ForNode>([&](ForNode& n) {
      n.var = v;
      n.min = min;
      n.extent = extent;
      n.loop_kind = f.loop_kind;
      n.hints = f.hints;
      // What is left over are few iterations.
      if (!suffix.empty()) n.hints.unroll = 0;
      n.body = body;
    });
  }

  // The number of first iterations in which a condition `v * step + x < y` holds for all x of the loops inside, given that
  // the loop has iterations; null when there is no such condition.
  PrimExpr open_steady_part(const ForNode& f) {
    auto inside = analyzer_.inside(f.var, f.min, f.extent);
    NodeMap ends;
    take_ends(f.body, ends);
    for (const PrimExpr& c : conditions_in(f.body)) {
      auto* b = as<BinaryNode>(c);
      if (b == nullptr || b->op != BinaryOp::Lt || !(b->a->dtype == kIndex)) continue;
      // Free elements behind the last that iteration v touches; the last iteration inside touches the most.
      PrimExpr rest = analyzer_.simplify(b->b - b->a);
      PrimExpr next = replace(rest, {{f.var.get(), f.var + 1}});
      auto slope = analyzer_.constant_difference(next, rest);
      if (!slope || *slope >= 0 || !is_affine(rest, f.var)) continue;
      bool falls = true;
      for (const auto& [variable, end] : ends) {
        Var v(static_cast<const VarNode*>(variable));
        if (!uses(rest, v.get())) continue;
        auto step = analyzer_.constant_difference(replace(rest, {{v.get(), v + 1}}), rest);
        falls = falls && step && *step <= 0 && is_affine(rest, v);
      }
      if (!falls) continue;
      ends[f.var.get()] = index(0);
      PrimExpr space = analyzer_.simplify(replace(rest, ends) - 1 - *slope);
      ends.erase(f.var.get());
      PrimExpr steady = analyzer_.simplify(floor_div(space, index(-*slope)));
      // Loads and variables of the loops inside have no value out here.
      bool known = analyzer_.can_prove(ge(space, index(0))) &&
                   is_quotient_from(space, -*slope, f.extent) && !as_int(steady);
      post_order(steady, [&](const Node& n) { known = known && n.kind() != ExprKind::Load; });
      for (const auto& [variable, end] : ends) known = known && !uses(steady, variable);
      if (known) return steady;
    }
    return nullptr;
  }

  // Whether the extent is a quotient by `step` of as much as `space` or more.
  bool is_quotient_from(const PrimExpr& space, int64_t step, const PrimExpr& extent) {
    PrimExpr e = analyzer_.simplify(extent);
    auto* q = as<BinaryNode>(e);
    if (q == nullptr || q->op != BinaryOp::FloorDiv)
      return step == 1 && analyzer_.can_prove(ge(e, space));
    return as_int(q->b) == step && analyzer_.can_prove(ge(q->a, space));
  }

  // All that Selects in the loop ask of it and of sizes that a run gives, and that the loops inside do not change, such as
  // whether a line of an image is inside; null when there is nothing of the kind, or no room for a copy.
  PrimExpr settled(const ForNode& f) {
    if (dims_.empty() || stores_of(f.body) > budget_) return nullptr;
    std::vector<const Node*> changing;
    std::vector<PrimExpr> found;
    post_order(
        f.body,
        [&](const Node& n) {
          if (auto* l = as<ForNode>(&n)) changing.push_back(l->var.get());
          auto* choice = as<SelectNode>(&n);
          if (choice == nullptr) return;
          for (const PrimExpr& c : conjuncts(choice->cond)) {
            auto same = [&](const PrimExpr& e) { return structural_equal(e, c); };
            if (uses(c, f.var.get()) && std::ranges::none_of(found, same)) found.push_back(c);
          }
        },
        family::tir_code);
    std::erase_if(found, [&](const PrimExpr& c) {
      bool reads = false;
      post_order(c, [&](const Node& n) { reads |= n.kind() == ExprKind::Load; });
      return reads || std::ranges::any_of(changing, [&](const Node* v) { return uses(c, v); });
    });
    const bool open = std::ranges::any_of(found, [&](const PrimExpr& c) {
      return std::ranges::any_of(dims_, [&](const Var& d) { return uses(c, d.get()); });
    });
    if (!open || changing.empty()) return nullptr;
    PrimExpr all = found[0];
    for (size_t i = 1; i < found.size(); ++i) all = logical_and(all, found[i]);
    return all;
  }

  // The conjuncts of the conditions in the statement.
  static std::vector<PrimExpr> conditions_in(const Stmt& s) {
    std::vector<PrimExpr> out;
    auto take = [&](const PrimExpr& cond) {
      for (const PrimExpr& e : conjuncts(cond)) out.push_back(e);
    };
    post_order(
        s,
        [&](const Node& n) {
          if (auto* choice = as<SelectNode>(&n)) take(choice->cond);
          if (auto* i = as<IfNode>(&n)) take(i->cond);
        },
        family::tir_code);
    return out;
  }

  // The last values of the variables of loops of constant extent inside.
  void take_ends(const Stmt& s, NodeMap& ends) {
    if (auto* f = as<ForNode>(s)) {
      auto min = as_int(f->min), extent = as_int(f->extent);
      if (min && extent && *extent > 0) {
        ends[f->var.get()] = index(*min + *extent - 1);
        analyzer_.bind(f->var, f->min, f->extent);
      }
    }
    for_each_inner(*s.get(), [&](const Stmt& inner) { take_ends(inner, ends); });
  }

  // The loop over some of its iterations, cut further inside; null for none.
  Stmt part(const ForNode& f, const Interval& over, const std::string& suffix) {
    if (over.size() == 0) return nullptr;
    Var v = var(f.var->name + suffix);
    auto inside = analyzer_.inside(v, index(over.from), index(over.size()));
    Stmt body = run(replace(f.body, {{f.var.get(), v}}));
    return make<ForNode>([&](ForNode& n) {
      n.var = v;
      n.min = index(over.from);
      n.extent = index(over.size());
      n.loop_kind = f.loop_kind;
      n.hints = f.hints;
      n.body = body;
    });
  }

  // Where most of the conditions in the body hold; all of the loop when there are none.
  Interval steady_part(const ForNode& f, const Interval& whole) {
    std::vector<PrimExpr> conditions;
    post_order(
        f.body,
        [&](const Node& n) {
          if (auto* s = as<SelectNode>(&n)) conditions.push_back(s->cond);
          if (auto* i = as<IfNode>(&n)) conditions.push_back(i->cond);
        },
        family::tir_code);
    if (conditions.empty()) return whole;
    // What is known of the loops inside holds only together: it chooses where to cut, and proves nothing.
    auto inside = analyzer_.inside(f.var, f.min, f.extent);
    bind_inside(f.body);
    Interval steady = whole;
    while (!conditions.empty()) {
      PrimExpr c = analyzer_.simplify(conditions.back());
      conditions.pop_back();
      auto* b = as<BinaryNode>(c);
      if (b == nullptr) continue;
      if (b->op == BinaryOp::And) {
        conditions.push_back(b->a);
        conditions.push_back(b->b);
        continue;
      }
      Interval holds = intersect(steady, where_true(*b, f.var, whole));
      if (holds.size() * 2 >= whole.size()) steady = holds;
    }
    return steady;
  }

  void bind_inside(const Stmt& s) {
    if (auto* f = as<ForNode>(s)) analyzer_.bind(f->var, f->min, f->extent);
    for_each_inner(*s.get(), [&](const Stmt& inner) { bind_inside(inner); });
  }

  // The values of the variable for which the comparison holds whatever the other variables are;
  // all of them when that cannot be told.
  Interval where_true(const BinaryNode& b, const Var& v, const Interval& whole) {
    bool less = b.op == BinaryOp::Lt || b.op == BinaryOp::Le;
    bool greater = b.op == BinaryOp::Gt || b.op == BinaryOp::Ge;
    if ((!less && !greater) || !(b.a->dtype == kIndex) || !uses(relay::ref(b), v.get())) {
      return whole;
    }
    // difference >= 0, affine in v.
    PrimExpr difference = less ? b.b - b.a : b.a - b.b;
    if (b.op == BinaryOp::Lt || b.op == BinaryOp::Gt) difference = difference - 1;
    auto slope = analyzer_.constant_difference(replace(difference, {{v.get(), v + 1}}), difference);
    Bounds rest = analyzer_.bounds(replace(difference, {{v.get(), index(0)}}));
    if (!slope || *slope == 0 || !rest.has_min() || rest.min == -Bounds::kNoMax) return whole;
    // A slope that holds between neighbours holds everywhere only for a sum of products.
    if (!is_affine(difference, v)) return whole;
    if (*slope > 0) return {-floor_div_int(rest.min, *slope), whole.to};
    return {whole.from, floor_div_int(rest.min, -*slope) + 1};
  }

  bool is_affine(const PrimExpr& e, const Var& v) {
    bool affine = true;
    post_order(analyzer_.simplify(e), [&](const Node& n) {
      auto* b = as<BinaryNode>(&n);
      bool linear = b != nullptr &&
                    (b->op == BinaryOp::Add || b->op == BinaryOp::Sub || b->op == BinaryOp::Mul);
      bool leaf = n.kind() == ExprKind::Var || n.kind() == ExprKind::IntImm;
      affine &= linear || leaf || !uses(NodeRef(&n), v.get());
    });
    return affine;
  }

  std::vector<Var> dims_;
  Analyzer analyzer_;
  int64_t budget_ = kMaxCopiedStores;
};

}  // namespace

PrimFunc partition_loops(const PrimFunc& f) { return with_body(f, LoopPartition(f).run(f->body)); }

}  // namespace relay::tir
