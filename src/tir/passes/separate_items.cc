#include "tir/passes/separate_items.h"

#include <algorithm>
#include <optional>

#include "base/codes/lowering.h"
#include "node/walk.h"
#include "tir/arith/analyzer.h"
#include "tir/passes/statements.h"
#include "tir/thread_nests.h"

namespace relay::tir {
namespace {

// How an index along one axis of the buffer depends on items: by a factor for each axis of these.
using ItemFactors = std::array<int64_t, 3>;

class Separation {
 public:
  Separation(const PrimFunc& f, const Buffer& b, const std::array<int64_t, 3>& group)
      : f_(f), buffer_(b), group_(group) {}

  Stmt run(const Stmt& body) {
    for_each_phase(body, [&](const ThreadNest& phase) { learn(phase); });
    if (dims_.empty()) return body;
    const Buffer to = separated();
    return change(body, to);
  }
  const Buffer& result() const { return result_; }

 private:
  struct Dim {
    ItemFactors factors{};
    int64_t reach = 0;   // from the first element of an item to behind its last
    int64_t period = 0;  // 0: an item's elements are one run; else a run of `run` in each period
    int64_t run = 0;

    int64_t elements() const { return period == 0 ? reach : (reach + period - 1) / period * run; }
    PrimExpr place(const PrimExpr& rest) const {
      if (period == 0) return rest;
      return floor_div(rest, index(period)) * run + floor_mod(rest, index(period));
    }
  };

  [[noreturn]] void refuse() const {
    throw UserError(Diagnostic(codes::lower_unsupported, {},
                               "in kernel " + f_->name + ", items of a group access registers of " +
                                   buffer_->name + " that other items of the group have")
                        .help("keep the buffer in shared memory"));
  }

  // The indices of each access in the phase.
  template <class F>
  void for_each_access(const Stmt& s, F f) const {
    post_order(
        s,
        [&](const Node& n) {
          if (auto* l = as<LoadNode>(&n); l != nullptr && l->buffer == buffer_) f(l->indices);
          if (auto* t = as<StoreNode>(&n); t != nullptr && t->buffer == buffer_) f(t->indices);
        },
        family::tir);
  }

  void bind_loops(Analyzer& analyzer, const ThreadNest& phase) const {
    analyzer.bind_function(f_);
    post_order(
        phase.body,
        [&](const Node& n) {
          if (auto* l = as<ForNode>(&n)) analyzer.bind(l->var, l->min, l->extent);
        },
        family::tir_stmt);
  }

  void learn(const ThreadNest& phase) {
    Analyzer analyzer;
    bind_loops(analyzer, phase);
    for_each_access(phase.body, [&](const std::vector<PrimExpr>& indices) {
      const bool first = dims_.empty();
      if (first) dims_.resize(indices.size());
      for (size_t d = 0; d < indices.size(); ++d) {
        const ItemFactors factors = factors_of(analyzer, phase, indices[d]);
        if (!first && factors != dims_[d].factors) refuse();
        dims_[d].factors = factors;
        const PrimExpr e = rest_of(analyzer, phase, indices[d]);
        const Bounds rest = analyzer.bounds(e);
        if (!rest.has_min() || !rest.has_max() || rest.min < 0) refuse();
        Dim& dim = dims_[d];
        dim.reach = std::max(dim.reach, rest.max + 1);
        dim.period = period_of(dim.factors);
        if (dim.period == 0) continue;
        const Bounds run = analyzer.bounds(analyzer.simplify(floor_mod(e, index(dim.period))));
        if (!run.has_max()) refuse();
        dim.run = std::max(dim.run, run.max + 1);
      }
      for (size_t i = 0; i < group_.size(); ++i) {
        if (phase.axes[i] != nullptr && group_[i] > 1 && !has_axis(i)) refuse();
      }
    });
  }

  ItemFactors factors_of(Analyzer& analyzer, const ThreadNest& phase, const PrimExpr& e) const {
    ItemFactors out{};
    for (size_t i = 0; i < out.size(); ++i) {
      const ForNode* axis = phase.axes[i];
      if (axis == nullptr || !uses(e, axis->var.get())) continue;
      const PrimExpr next = replace(e, {{axis->var.get(), axis->var + 1}});
      auto factor = analyzer.constant_difference(next, e);
      if (!factor || *factor <= 0) refuse();
      out[i] = *factor;
    }
    return out;
  }
  // After how many elements the runs of the items along the axis of the least factor repeat; 0 where other items do not begin
  // at such a distance.
  int64_t period_of(const ItemFactors& factors) const {
    int64_t least = 0, out = 0;
    for (size_t i = 0; i < factors.size(); ++i) {
      if (factors[i] == 0 || (least != 0 && factors[i] >= least)) continue;
      least = factors[i];
      out = factors[i] * group_[i];
    }
    const bool repeats = std::ranges::all_of(
        factors, [&](int64_t f) { return f == 0 || f == least || f % out == 0; });
    return repeats ? out : 0;
  }
  // The index of the first item.
  PrimExpr rest_of(Analyzer& analyzer, const ThreadNest& phase, const PrimExpr& e) const {
    NodeMap zero;
    for (const ForNode* axis : phase.axes) {
      if (axis != nullptr) zero[axis->var.get()] = index(0);
    }
    return analyzer.simplify(replace(e, zero));
  }

  // The runs of two items do not meet.
  bool are_apart(const Dim& dim) const {
    std::vector<std::pair<int64_t, int64_t>> steps;  // factor, items
    for (size_t i = 0; i < dim.factors.size(); ++i) {
      if (dim.factors[i] > 0) steps.emplace_back(dim.factors[i], group_[i]);
    }
    std::ranges::sort(steps);
    int64_t reach = dim.period == 0 ? dim.reach : dim.run;
    for (const auto& [factor, items] : steps) {
      if (factor < reach) return false;
      reach = std::max(factor * items, dim.elements() / std::max<int64_t>(dim.run, 1) * dim.period);
    }
    return true;
  }

  bool has_axis(size_t axis) const {
    return std::ranges::any_of(dims_, [&](const Dim& d) { return d.factors[axis] > 0; });
  }

  Buffer separated() {
    if (!std::ranges::all_of(dims_, [&](const Dim& d) { return are_apart(d); })) refuse();
    result_ = modified(*buffer_, [&](BufferNode& n) {
      n.shape.clear();
      for (size_t i = group_.size(); i-- > 0;) {
        if (group_[i] > 1) n.shape.push_back(index(group_[i]));
      }
      for (const Dim& d : dims_) n.shape.push_back(index(d.elements()));
    });
    return result_;
  }

  Stmt change(const Stmt& s, const Buffer& to) const {
    auto nest = thread_nest(s);
    if (!nest || nest->level != ThreadLevel::Item) {
      return map_inner(s, [&](const Stmt& inner) { return change(inner, to); });
    }
    Analyzer analyzer;
    bind_loops(analyzer, *nest);
    auto moved = [&](const std::vector<PrimExpr>& indices) {
      std::vector<PrimExpr> out;
      for (size_t i = group_.size(); i-- > 0;) {
        if (group_[i] == 1) continue;
        // A phase of one item along the axis is the first item's.
        out.push_back(nest->axes[i] == nullptr ? index(0) : PrimExpr(nest->axes[i]->var));
      }
      for (size_t d = 0; d < indices.size(); ++d) {
        out.push_back(analyzer.simplify(dims_[d].place(rest_of(analyzer, *nest, indices[d]))));
      }
      return out;
    };
    return Stmt::unchecked(rewrite(
        s,
        [&](const NodeRef&, NodeRef rebuilt) -> NodeRef {
          if (auto* l = as<LoadNode>(rebuilt); l != nullptr && l->buffer == buffer_) {
            return load(to, moved(l->indices), l->predicate);
          }
          if (auto* t = as<StoreNode>(rebuilt); t != nullptr && t->buffer == buffer_) {
            return store(to, moved(t->indices), t->value, t->predicate);
          }
          return rebuilt;
        },
        family::tir_code));
  }

  const PrimFunc& f_;
  Buffer buffer_, result_;
  std::vector<Dim> dims_;
  std::array<int64_t, 3> group_;
};

Stmt separate(const PrimFunc& f, const Stmt& s, const std::array<int64_t, 3>& group) {
  if (auto nest = thread_nest(s); nest && nest->level == ThreadLevel::Item) return s;
  Stmt rebuilt = map_inner(s, [&](const Stmt& inner) { return separate(f, inner, group); });
  auto* a = as<AllocateNode>(rebuilt);
  if (a == nullptr || a->buffer->scope != Scope::Register || !has_phases(a->body)) return rebuilt;
  Separation separation(f, a->buffer, group);
  const Stmt body = separation.run(a->body);
  return body == a->body ? rebuilt : allocate(separation.result(), body);
}

}  // namespace

PrimFunc separate_items(const PrimFunc& f) {
  return with_body(f, map_groups(f->body, [&](const ThreadNest& group) {
                     const auto size = group_size(group.body);
                     return size ? separate(f, group.body, *size) : group.body;
                   }));
}

}  // namespace relay::tir
