#include "lower/rules/split_axes.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <set>
#include <unordered_map>

#include "lower/rules/row_ends.h"
#include "node/walk.h"
#include "tir/arith/analyzer.h"
#include "tir/schedule/loop_tree.h"

namespace relay {

using tir::BlockNode;
using tir::ForNode;
using tir::IterVar;
using tir::PrimExpr;
using tir::Var;

namespace {

// Bytes. A part of a row that is at least as long fills it.
constexpr int64_t kShortestVector = 16;
// Bits of the elements that instructions gather.
constexpr int kGatheredBits = 32;

using Read = tir::LoadNode;

// The axis v is outer * divisor + inner.
struct Split {
  size_t at;  // which iteration of the block
  int64_t divisor, parts;
  Var outer, inner;
  std::unordered_map<const Node*, std::vector<PrimExpr>> indices;  // of what is read
  const ForNode* loop;

  PrimExpr joined() const { return outer * tir::index(divisor) + inner; }
};

// The index at the parts of the axis; quotients and remainders by multiples of the divisor are those of a part.
PrimExpr parted(const PrimExpr& e, const Node* axis, const Split& s) {
  PrimExpr parts = PrimExpr::unchecked(rewrite(
      e,
      [&](const NodeRef& before, NodeRef after) -> NodeRef {
        auto* op = as<tir::BinaryNode>(before);
        const bool of_axis = op != nullptr && op->a.get() == axis;
        const int64_t by = of_axis ? tir::as_int(op->b).value_or(0) : 0;
        if (by <= 0 || by % s.divisor != 0) return after;
        const PrimExpr groups = tir::index(by / s.divisor);
        if (op->op == tir::BinaryOp::FloorDiv) return tir::floor_div(s.outer, groups);
        if (op->op != tir::BinaryOp::FloorMod) return after;
        return tir::floor_mod(s.outer, groups) * s.divisor + s.inner;
      },
      family::tir_expr));
  return PrimExpr::unchecked(substitute(parts, {{axis, s.joined()}}));
}

// The value with all that it reads at the parts of the axis.
PrimExpr value(const PrimExpr& e, const Split& s) {
  return PrimExpr::unchecked(rewrite(
      e,
      [&](const NodeRef& before, NodeRef after) -> NodeRef {
        auto* read = as<Read>(before);
        return read == nullptr ? after : NodeRef(tir::load(read->buffer, s.indices.at(read)));
      },
      family::tir_expr));
}

class Axes {
 public:
  Axes(const tir::LoopTree& tree, const BlockNode& b, const tir::StoreNode& store)
      : tree_(tree), b_(b), store_(store) {
    for (const IterVar& i : b.iters) analyzer_.bind(i->var, i->min, i->extent);
    post_order(
        store.value,
        [&](const Node& n) {
          auto* read = as<Read>(&n);
          if (read == nullptr || indices_.contains(read)) return;
          reads_.push_back(read);
          std::vector<PrimExpr>& indices = indices_[read];
          for (const PrimExpr& e : read->indices) indices.push_back(analyzer_.simplify(e));
          plain_ = plain_ && !read->predicate;
        },
        family::tir_expr);
    // An index that is read itself.
    for (const Read* read : reads_) {
      for (const PrimExpr& e : read->indices) {
        post_order(
            e, [&](const Node& n) { plain_ = plain_ && as<Read>(&n) == nullptr; },
            family::tir_expr);
      }
    }
  }

  // The axis after whose split there is nothing to be split: one of whose parts is read as neighbours, or a row of them.
  std::optional<Split> find() {
    if (reads_.empty() || !plain_) return std::nullopt;
    for (Split& split : of_moved()) {
      const Read& read = *as<Read>(store_.value);
      for (const Var& part : {split.outer, split.inner}) {
        if (!divides(split, part) && step(split, read, part) == 1) return std::move(split);
      }
    }
    return parts_of_row();
  }

  // An axis whose quotient is divided again.
  std::optional<Split> find_nested() {
    if (reads_.empty() || !plain_) return std::nullopt;
    std::vector<Split> all = of_moved();
    auto nested = std::ranges::find_if(all, [&](const Split& split) {
      return divides(split, split.outer) && !divides(split, split.inner);
    });
    return nested == all.end() ? std::nullopt : std::optional(std::move(*nested));
  }

 private:
  // The axes of a kernel that only moves elements and reads no neighbours along the last, by each constant that divides them.
  // The last itself only of narrow elements: wider ones are gathered.
  std::vector<Split> of_moved() {
    std::vector<Split> out;
    auto* read = as<Read>(store_.value);
    const size_t last = b_.iters.size() - 1;
    const size_t end = read != nullptr && read->dtype.bits < kGatheredBits ? last + 1 : last;
    for (size_t i = 0; read != nullptr && i < end; ++i) {
      for (int64_t divisor : divisors_of(b_.iters[i]->var.get())) {
        auto split = split_of(i, divisor);
        if (!split) continue;
        auto across = step(*split, *read, i == last ? split->inner : b_.iters.back()->var);
        if (across != 0 && across != 1) out.push_back(std::move(*split));
      }
    }
    return out;
  }

  // Whether some index has a quotient or a remainder of what the part is in.
  static bool divides(const Split& split, const Var& part) {
    bool found = false;
    for (const auto& [read, indices] : split.indices) {
      for (const PrimExpr& e : indices) {
        post_order(e, [&](const Node& n) {
          auto* op = as<tir::BinaryNode>(&n);
          found |= op != nullptr &&
                   (op->op == tir::BinaryOp::FloorDiv || op->op == tir::BinaryOp::FloorMod) &&
                   tir::uses_var(op->a, part.get());
        });
      }
    }
    return found;
  }

  // The last axis of parts that, with the axes behind it, are rows of neighbours wherever the block reads and writes.
  std::optional<Split> parts_of_row() {
    if (!maps_elements(tir::Block(&b_)) || !writes_rows()) return std::nullopt;
    int64_t bytes = static_cast<int64_t>(b_.writes[0]->buffer->dtype.bytes());
    for (size_t i = b_.iters.size(); i-- > 0;) {
      bool has_parts = false;
      for (int64_t divisor : divisors_of(b_.iters[i]->var.get())) {
        auto split = split_of(i, divisor);
        if (!split) continue;
        has_parts = true;
        if (divisor * bytes >= kShortestVector && is_row(*split)) return split;
      }
      auto extent = tir::as_int(b_.iters[i]->extent);
      if (has_parts || !extent) break;
      bytes *= *extent;
    }
    return std::nullopt;
  }

  bool writes_rows() const {
    return std::ranges::equal(
        store_.indices, b_.iters,
        [](const PrimExpr& at, const IterVar& axis) { return at.get() == axis->var.get(); });
  }

  // Whether each read has a step of 0 or 1 along the last axis, and begins the next row of each axis within the part where the
  // row before it ends.
  bool is_row(const Split& split) {
    return std::ranges::all_of(reads_, [&](const Read* read) {
      int64_t next = 0;
      for (size_t i = b_.iters.size(); i-- > split.at;) {
        auto along = step(split, *read, i == split.at ? split.inner : b_.iters[i]->var);
        const bool is_last = i + 1 == b_.iters.size();
        if (!along || (is_last ? *along != 0 && *along != 1 : *along != next)) return false;
        next = *along * tir::as_int(b_.iters[i]->extent).value_or(0);
      }
      return true;
    });
  }

  // The constants that indices divide the axis by, the greatest first.
  std::vector<int64_t> divisors_of(const Node* axis) const {
    std::set<int64_t, std::greater<>> out;
    for (const Read* read : reads_) {
      for (const PrimExpr& e : indices_.at(read)) {
        post_order(e, [&](const Node& n) {
          auto* op = as<tir::BinaryNode>(&n);
          if (op == nullptr || op->a.get() != axis) return;
          if (op->op == tir::BinaryOp::FloorDiv || op->op == tir::BinaryOp::FloorMod) {
            if (auto by = tir::as_int(op->b)) out.insert(*by);
          }
        });
      }
    }
    return {out.begin(), out.end()};
  }

  // The axis in parts of `divisor` elements, with all that is read at these.
  std::optional<Split> split_of(size_t i, int64_t divisor) {
    const IterVar& axis = b_.iters[i];
    auto extent = tir::as_int(axis->extent);
    auto* bound = as<tir::VarNode>(b_.bindings[i]);
    const ForNode* loop = bound == nullptr ? nullptr : tree_.find_loop(Var(bound));
    if (!extent || divisor < 2 || divisor >= *extent || *extent % divisor != 0 ||
        axis->kind != tir::IterKind::DataParallel || tir::as_int(axis->min) != 0 ||
        loop == nullptr || loop->loop_kind != tir::ForKind::Serial || tir::as_int(loop->min) != 0) {
      return std::nullopt;
    }
    Split out{i,
              divisor,
              *extent / divisor,
              tir::var(axis->var->name + "_0"),
              tir::var(axis->var->name + "_1"),
              {},
              loop};
    analyzer_.bind(out.outer, tir::index(0), tir::index(out.parts));
    analyzer_.bind(out.inner, tir::index(0), tir::index(out.divisor));
    for (const Read* read : reads_) {
      std::vector<PrimExpr>& indices = out.indices[read];  // none of a number
      for (const PrimExpr& e : indices_.at(read)) {
        indices.push_back(analyzer_.simplify(parted(e, axis->var.get(), out)));
      }
    }
    return out;
  }

  // How far apart the read's elements of neighbours along `v` are, with the axis split.
  std::optional<int64_t> step(const Split& s, const Read& read, const Var& v) {
    PrimExpr offset = tir::element_offset(*read.buffer.get(), s.indices.at(&read));
    PrimExpr next = PrimExpr::unchecked(substitute(offset, {{v.get(), v + 1}}));
    return analyzer_.constant_difference(analyzer_.simplify(next), analyzer_.simplify(offset));
  }

  const tir::LoopTree& tree_;
  const BlockNode& b_;
  const tir::StoreNode& store_;
  tir::Analyzer analyzer_;
  std::vector<const Read*> reads_;
  std::unordered_map<const Node*, std::vector<PrimExpr>> indices_;  // simplified
  bool plain_ = true;
};

// The kernel with an axis for each part of the split one.
tir::PrimFunc with_parts(const tir::PrimFunc& f, const BlockNode& b, const Split& split) {
  auto* store = as<tir::StoreNode>(b.body);
  const Var outer = tir::var(split.loop->var->name + "_0"),
            inner = tir::var(split.loop->var->name + "_1");
  auto block = [&](const BlockNode& now) {
    const IterVar& axis = b.iters[split.at];
    const PrimExpr joined = split.joined();
    std::vector<PrimExpr> to;
    for (const PrimExpr& e : store->indices) {
      to.push_back(PrimExpr::unchecked(substitute(e, {{axis->var.get(), joined}})));
    }
    const auto at = static_cast<std::ptrdiff_t>(split.at);
    return tir::with_access_regions(tir::modified(now, [&](BlockNode& n) {
      n.iters[split.at] = tir::iter_var(split.outer, tir::index(split.parts), axis->kind);
      n.iters.insert(n.iters.begin() + at + 1,
                     tir::iter_var(split.inner, tir::index(split.divisor), axis->kind));
      n.bindings[split.at] = outer;
      n.bindings.insert(n.bindings.begin() + at + 1, inner);
      n.body = tir::store(store->buffer, to, value(store->value, split));
    }));
  };
  NodeRef body = rewrite(
      f->body,
      [&](const NodeRef& before, NodeRef after) -> NodeRef {
        if (before.get() == &b) return block(static_cast<const BlockNode&>(*after.get()));
        if (before.get() != split.loop) return after;
        auto& now = static_cast<const ForNode&>(*after.get());
        return tir::for_(outer, tir::index(0), tir::index(split.parts),
                         tir::for_(inner, tir::index(0), tir::index(split.divisor), now.body));
      },
      family::tir_code);
  return tir::modified(
      *f.get(), [&](tir::PrimFuncNode& n) { n.body = tir::Stmt::unchecked(std::move(body)); });
}

}  // namespace

tir::PrimFunc split_axes(const tir::PrimFunc& f) {
  // Quotients of quotients: of so many levels at most.
  constexpr int kMostSplits = 4;
  tir::PrimFunc out = f;
  for (int splits = 0; splits < kMostSplits; ++splits) {
    const tir::LoopTree tree(out->body);
    if (!out->dims.empty() || tree.blocks().size() != 1) return f;
    const BlockNode& b = *tree.blocks()[0];
    auto* store = as<tir::StoreNode>(b.body);
    if (store == nullptr || b.iters.empty() || b.init || b.predicate || store->predicate) return f;
    Axes axes(tree, b, *store);
    if (auto split = axes.find()) return with_parts(out, b, *split);
    auto nested = axes.find_nested();
    if (!nested) return f;
    out = with_parts(out, b, *nested);
  }
  return f;
}

}  // namespace relay
