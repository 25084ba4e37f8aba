#include "lower/rules/split_axes.h"

#include <optional>

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

constexpr uint32_t kCode = family::tir_expr | family::tir_stmt;

// The axis v is outer * divisor + inner.
struct Split {
  size_t at;  // which iteration of the block
  int64_t divisor, parts;
  Var outer, inner;
  std::vector<PrimExpr> indices;  // of what is read
  const ForNode* loop;
};

// The index with the quotient and the remainder of the axis as variables.
PrimExpr parted(const PrimExpr& e, const Node* axis, const Split& s) {
  return PrimExpr::unchecked(rewrite(
      e,
      [&](const NodeRef& before, NodeRef after) -> NodeRef {
        auto* op = as<tir::BinaryNode>(before);
        if (op == nullptr || op->a.get() != axis || tir::as_int(op->b) != s.divisor) return after;
        if (op->op == tir::BinaryOp::FloorDiv) return s.outer;
        return op->op == tir::BinaryOp::FloorMod ? NodeRef(s.inner) : after;
      },
      family::tir_expr));
}

// What an index of this kind is divided by.
std::optional<int64_t> divisor_of(const std::vector<PrimExpr>& indices, const Node* axis) {
  std::optional<int64_t> out;
  for (const PrimExpr& e : indices) {
    post_order(e, [&](const Node& n) {
      auto* op = as<tir::BinaryNode>(&n);
      if (op != nullptr && op->a.get() == axis && op->op == tir::BinaryOp::FloorDiv) {
        out = tir::as_int(op->b);
      }
    });
  }
  return out;
}

std::optional<Split> find_split(const tir::LoopTree& tree, const BlockNode& b,
                                const tir::LoadNode& read) {
  tir::Analyzer analyzer;
  for (const IterVar& i : b.iters) analyzer.bind(i->var, i->min, i->extent);
  std::vector<PrimExpr> indices;
  for (const PrimExpr& e : read.indices) indices.push_back(analyzer.simplify(e));
  auto step = [&](const std::vector<PrimExpr>& at, const Var& v) {
    PrimExpr offset = tir::element_offset(*read.buffer.get(), at);
    PrimExpr next = PrimExpr::unchecked(substitute(offset, {{v.get(), v + 1}}));
    return analyzer.constant_difference(analyzer.simplify(next), analyzer.simplify(offset));
  };
  for (size_t i = 0; i + 1 < b.iters.size(); ++i) {
    const IterVar& axis = b.iters[i];
    auto extent = tir::as_int(axis->extent);
    auto divisor = divisor_of(indices, axis->var.get());
    auto* bound = as<tir::VarNode>(b.bindings[i]);
    const ForNode* loop = bound == nullptr ? nullptr : tree.find_loop(Var(bound));
    if (!extent || !divisor || *divisor < 2 || *divisor >= *extent || *extent % *divisor != 0 ||
        axis->kind != tir::IterKind::DataParallel || tir::as_int(axis->min) != 0 ||
        loop == nullptr || loop->loop_kind != tir::ForKind::Serial || tir::as_int(loop->min) != 0) {
      continue;
    }
    Split out{i,
              *divisor,
              *extent / *divisor,
              tir::var(axis->var->name + "_0"),
              tir::var(axis->var->name + "_1"),
              {},
              loop};
    analyzer.bind(out.outer, tir::index(0), tir::index(out.parts));
    analyzer.bind(out.inner, tir::index(0), tir::index(out.divisor));
    bool whole = true;
    for (const PrimExpr& e : indices) {
      out.indices.push_back(analyzer.simplify(parted(e, axis->var.get(), out)));
      whole = whole && !tir::uses_var(out.indices.back(), axis->var.get());
    }
    if (!whole) continue;
    auto across = step(out.indices, b.iters.back()->var);
    const bool near = across == 0 || across == 1;
    if (!near && (step(out.indices, out.outer) == 1 || step(out.indices, out.inner) == 1)) {
      return out;
    }
  }
  return std::nullopt;
}

}  // namespace

tir::PrimFunc split_axes(const tir::PrimFunc& f) {
  const tir::LoopTree tree(f->body);
  if (!f->dims.empty() || tree.blocks().size() != 1) return f;
  const BlockNode& b = *tree.blocks()[0];
  auto* store = as<tir::StoreNode>(b.body);
  auto* read = store == nullptr ? nullptr : as<tir::LoadNode>(store->value);
  if (read == nullptr || b.init || b.predicate || read->predicate || store->predicate) return f;
  auto split = find_split(tree, b, *read);
  if (!split) return f;
  const Var outer = tir::var(split->loop->var->name + "_0"),
            inner = tir::var(split->loop->var->name + "_1");
  auto block = [&](const BlockNode& now) {
    const IterVar& axis = b.iters[split->at];
    PrimExpr joined = split->outer * tir::index(split->divisor) + split->inner;
    std::vector<PrimExpr> to;
    for (const PrimExpr& e : store->indices) {
      to.push_back(PrimExpr::unchecked(substitute(e, {{axis->var.get(), joined}})));
    }
    const auto at = static_cast<std::ptrdiff_t>(split->at);
    return tir::with_access_regions(tir::modified(now, [&](BlockNode& n) {
      n.iters[split->at] = tir::iter_var(split->outer, tir::index(split->parts), axis->kind);
      n.iters.insert(n.iters.begin() + at + 1,
                     tir::iter_var(split->inner, tir::index(split->divisor), axis->kind));
      n.bindings[split->at] = outer;
      n.bindings.insert(n.bindings.begin() + at + 1, inner);
      n.body = tir::store(store->buffer, to, tir::load(read->buffer, split->indices));
    }));
  };
  NodeRef body = rewrite(
      f->body,
      [&](const NodeRef& before, NodeRef after) -> NodeRef {
        if (before.get() == &b) return block(static_cast<const BlockNode&>(*after.get()));
        if (before.get() != split->loop) return after;
        auto& now = static_cast<const ForNode&>(*after.get());
        return tir::for_(outer, tir::index(0), tir::index(split->parts),
                         tir::for_(inner, tir::index(0), tir::index(split->divisor), now.body));
      },
      kCode);
  return tir::modified(
      *f.get(), [&](tir::PrimFuncNode& n) { n.body = tir::Stmt::unchecked(std::move(body)); });
}

}  // namespace relay
