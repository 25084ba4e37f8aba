#include "tir/block_contraction.h"

#include <algorithm>

#include "node/structural.h"
#include "node/walk.h"
#include "tir/schedule/loop_tree.h"

namespace relay::tir {
namespace {

// Quotients of quotients of an index that are looked into; deeper ones are irregular.
constexpr int kMaxNesting = 3;

struct SumTerm {
  PrimExpr value;
  int64_t factor = 1;
};

// The terms of a sum with constant factors, in order, and its constant. nullopt for a factor that overflows.
std::optional<std::vector<SumTerm>> terms_of_sum(const PrimExpr& e, int64_t& constant) {
  std::vector<SumTerm> out, stack{{e, 1}};
  while (!stack.empty()) {
    SumTerm t = std::move(stack.back());
    stack.pop_back();
    if (auto value = as_int(t.value)) {
      int64_t scaled = 0;
      if (__builtin_mul_overflow(*value, t.factor, &scaled) ||
          __builtin_add_overflow(constant, scaled, &constant)) {
        return std::nullopt;
      }
      continue;
    }
    auto* b = as<BinaryNode>(t.value);
    auto scale = b != nullptr && b->op == BinaryOp::Mul ? as_int(b->b) : std::nullopt;
    if (b != nullptr && (b->op == BinaryOp::Add || b->op == BinaryOp::Sub)) {
      stack.push_back({b->b, b->op == BinaryOp::Sub ? -t.factor : t.factor});
      stack.push_back({b->a, t.factor});
    } else if (int64_t factor = 0; scale) {
      if (__builtin_mul_overflow(*scale, t.factor, &factor)) return std::nullopt;
      stack.push_back({b->a, factor});
    } else {
      out.push_back(std::move(t));
    }
  }
  return out;
}

class IndexReader {
 public:
  explicit IndexReader(const std::vector<BlockDimension>& dims) : dims_(dims) {}

  BlockAxis axis(const PrimExpr& index) const {
    if (auto regular = sum(index, 0)) return *regular;
    BlockAxis out;
    out.irregular = true;
    BlockIndexTerm all;
    for (size_t d = 0; d < dims_.size(); ++d) {
      if (uses_var(index, dims_[d]->iter.get())) all.dims.push_back(static_cast<int64_t>(d));
    }
    out.terms.push_back(std::move(all));
    return out;
  }

 private:
  std::optional<int64_t> extent(int64_t d) const {
    return as_int(dims_[static_cast<size_t>(d)]->extent);
  }
  // The elements of dims[from..] of a term; nullopt where one is symbolic.
  std::optional<int64_t> count(const std::vector<int64_t>& dims, size_t from) const {
    int64_t out = 1;
    for (size_t i = from; i < dims.size(); ++i) {
      auto e = extent(dims[i]);
      if (!e || __builtin_mul_overflow(out, *e, &out)) return std::nullopt;
    }
    return out;
  }

  std::optional<BlockAxis> sum(const PrimExpr& index, int nesting) const {
    BlockAxis out;
    auto terms = terms_of_sum(index, out.offset);
    if (!terms) return std::nullopt;
    for (const SumTerm& t : *terms) {
      auto term = factor_of(t.value, nesting);
      if (!term) return std::nullopt;
      term->factor = t.factor;
      if (out.terms.empty() || !join(out.terms.back(), *term))
        out.terms.push_back(std::move(*term));
    }
    return out;
  }

  // group * columns + column: one mixed-radix number. A window's position and tap stay two terms.
  bool join(BlockIndexTerm& a, const BlockIndexTerm& b) const {
    auto plain = [](const BlockIndexTerm& t) { return t.divide == 1 && t.modulo == 0; };
    auto size = count(b.dims, 0);
    int64_t step = 0;
    if (!plain(a) || !plain(b) || !size || __builtin_mul_overflow(b.factor, *size, &step) ||
        a.factor != step) {
      return false;
    }
    for (int64_t d : b.dims) {
      if (dims_[static_cast<size_t>(d)]->role == ContractionRole::Window ||
          std::ranges::find(a.dims, d) != a.dims.end()) {
        return false;
      }
    }
    a.dims.insert(a.dims.end(), b.dims.begin(), b.dims.end());
    a.factor = b.factor;
    return true;
  }

  // An iteration, or the quotient or remainder of a term by a constant.
  std::optional<BlockIndexTerm> factor_of(const PrimExpr& e, int nesting) const {
    BlockIndexTerm out;
    if (isa<VarNode>(e)) {
      for (size_t d = 0; d < dims_.size(); ++d) {
        if (dims_[d]->iter.get() == e.get()) out.dims.push_back(static_cast<int64_t>(d));
      }
      if (out.dims.empty()) return std::nullopt;
      return out;
    }
    auto* b = as<BinaryNode>(e);
    const bool quotient = b != nullptr && b->op == BinaryOp::FloorDiv;
    if (!quotient && (b == nullptr || b->op != BinaryOp::FloorMod)) return std::nullopt;
    auto by = as_int(b->b);
    if (!by || *by <= 0 || nesting == kMaxNesting) return std::nullopt;
    auto inner = sum(b->a, nesting + 1);
    if (!inner || inner->terms.size() != 1 || inner->offset != 0) return std::nullopt;
    out = inner->terms[0];
    if (out.factor != 1) return std::nullopt;
    const bool plain = out.divide == 1 && out.modulo == 0;
    for (size_t i = 1; plain && i < out.dims.size(); ++i) {
      if (count(out.dims, i) != by) continue;
      const auto at = out.dims.begin() + static_cast<std::ptrdiff_t>(i);
      out.dims = quotient ? std::vector<int64_t>(out.dims.begin(), at)
                          : std::vector<int64_t>(at, out.dims.end());
      return out;
    }
    if (quotient) {
      if (out.modulo != 0 || __builtin_mul_overflow(out.divide, *by, &out.divide)) {
        return std::nullopt;
      }
    } else {
      if (out.modulo != 0) return std::nullopt;
      out.modulo = *by;
    }
    return out;
  }

  const std::vector<BlockDimension>& dims_;
};

const StoreNode* store_of(const Stmt& body) { return as<StoreNode>(body); }

// As many dimensions for each iteration as there were, in the order of the iterations.
std::vector<BlockDimension> fitted(const std::vector<BlockDimension>& dims,
                                   const std::vector<IterVar>& iters) {
  std::vector<BlockDimension> out;
  for (const IterVar& i : iters) {
    std::vector<BlockDimension> mine;
    int64_t size = 1;
    bool known = true;
    for (const BlockDimension& d : dims) {
      if (!(d->iter == i->var)) continue;
      auto extent = as_int(d->extent);
      known = known && extent && !__builtin_mul_overflow(size, *extent, &size);
      mine.push_back(d);
    }
    auto extent = as_int(i->extent);
    if (mine.size() == 1 && !structural_equal(mine[0]->extent, i->extent)) {
      mine = {block_dimension(i->var, i->extent, mine[0]->role)};
    } else if (mine.size() > 1 && known && extent && size != *extent) {
      mine = {block_dimension(i->var, i->extent, mine.back()->role)};
    } else if (mine.empty()) {
      mine = {block_dimension(i->var, i->extent, ContractionRole::None)};
    }
    out.insert(out.end(), mine.begin(), mine.end());
  }
  return out;
}

BlockOperand operand(const Buffer& buffer, const std::vector<PrimExpr>& indices,
                     const IndexReader& reader) {
  return make<BlockOperandNode>([&](BlockOperandNode& n) {
    n.buffer = buffer;
    for (const PrimExpr& i : indices) n.axes.push_back(reader.axis(i));
  });
}

}  // namespace

BlockDimension block_dimension(Var iter, PrimExpr extent, ContractionRole role) {
  return make<BlockDimensionNode>([&](BlockDimensionNode& n) {
    n.iter = std::move(iter);
    n.extent = std::move(extent);
    n.role = role;
  });
}

std::vector<BlockDimension> dimensions_of(const std::vector<IterVar>& iters) {
  return fitted({}, iters);
}

BlockContraction state_contraction(std::vector<BlockDimension> dims,
                                   const std::vector<IterVar>& iters, const Stmt& body) {
  const StoreNode* s = store_of(body);
  if (s == nullptr) return nullptr;
  return make<BlockContractionNode>([&](BlockContractionNode& n) {
    n.dims = fitted(dims, iters);
    IndexReader reader(n.dims);
    post_order(
        s->value,
        [&](const Node& e) {
          auto* l = as<LoadNode>(&e);
          if (l == nullptr || l->buffer == s->buffer) return;
          n.operands.push_back(operand(l->buffer, l->indices, reader));
        },
        family::tir_expr);
    n.result = operand(s->buffer, s->indices, reader);
  });
}

BlockContraction contraction_of(const BlockNode& b) {
  if (b.contraction) return b.contraction;
  return state_contraction({}, b.iters, b.body);
}

void restate_contraction(BlockNode& b) {
  if (b.contraction) b.contraction = state_contraction(b.contraction->dims, b.iters, b.body);
}

std::vector<BlockDimension> renamed_dimensions(
    const BlockNode& b, const std::unordered_map<const Node*, NodeRef>& names) {
  std::vector<BlockDimension> out;
  if (!b.contraction) return out;
  for (const BlockDimension& d : b.contraction->dims) {
    auto name = names.find(d->iter.get());
    if (name == names.end() || !isa<VarNode>(name->second)) continue;
    out.push_back(block_dimension(Var::unchecked(name->second), d->extent, d->role));
  }
  return out;
}

ContractionRole role_of(const BlockContractionNode& c, const Var& iter) {
  auto out = ContractionRole::None;
  bool first = true;
  for (const BlockDimension& d : c.dims) {
    if (!(d->iter == iter)) continue;
    if (first || as_int(d->extent) != 1) out = d->role;
    first = false;
  }
  return out;
}

ContractionRole role_of(const BlockNode& b, const Var& iter) {
  return b.contraction ? role_of(*b.contraction, iter) : ContractionRole::None;
}

bool uses_iteration(const BlockContractionNode& c, const BlockIndexTerm& term, const Var& iter) {
  return std::ranges::any_of(
      term.dims, [&](int64_t d) { return c.dims[static_cast<size_t>(d)]->iter == iter; });
}

bool uses_iteration(const BlockContractionNode& c, const BlockAxis& axis, const Var& iter) {
  return std::ranges::any_of(axis.terms,
                             [&](const BlockIndexTerm& t) { return uses_iteration(c, t, iter); });
}

bool uses_iteration(const BlockContractionNode& c, const BlockOperandNode& operand,
                    const Var& iter) {
  return std::ranges::any_of(operand.axes,
                             [&](const BlockAxis& a) { return uses_iteration(c, a, iter); });
}

std::optional<int64_t> quotient_width(const BlockContractionNode& c, const BlockIndexTerm& term,
                                      const Var& iter) {
  if (term.modulo != 0) return std::nullopt;
  if (term.divide != 1) return term.divide;
  // The leading dimensions of the iteration alone.
  int64_t width = 1, left_out = 0;
  for (size_t d = 0; d < c.dims.size(); ++d) {
    if (!(c.dims[d]->iter == iter)) continue;
    const bool used = std::ranges::find(term.dims, static_cast<int64_t>(d)) != term.dims.end();
    if (used && left_out > 0) return std::nullopt;
    if (used) continue;
    ++left_out;
    auto extent = as_int(c.dims[d]->extent);
    if (!extent || __builtin_mul_overflow(width, *extent, &width)) return std::nullopt;
  }
  if (left_out == 0) return std::nullopt;
  return width;
}

std::string contraction_defect(const BlockNode& b) {
  if (!b.contraction) return {};
  const BlockContractionNode& c = *b.contraction;
  for (const BlockDimension& d : c.dims) {
    if (d == nullptr || !d->iter || !d->extent) return "a dimension is incomplete";
    if (std::ranges::none_of(b.iters, [&](const IterVar& i) { return i->var == d->iter; })) {
      return "dimension " + d->iter->name + " is no iteration of the block";
    }
  }
  BlockContraction derived = state_contraction(c.dims, b.iters, b.body);
  if (!derived) return "the body is not a single store";
  if (derived->dims.size() != c.dims.size()) return "an iteration has no dimension";
  for (size_t d = 0; d < c.dims.size(); ++d) {
    const BlockDimensionNode &have = *c.dims[d], &want = *derived->dims[d];
    if (!(have.iter == want.iter)) return "the dimensions are not in the order of the iterations";
    if (have.role != want.role || !structural_equal(have.extent, want.extent)) {
      return "the dimensions of " + want.iter->name + " have another extent than the iteration";
    }
    const IterVar& i =
        *std::ranges::find_if(b.iters, [&](const IterVar& v) { return v->var == want.iter; });
    const bool sums = is_summed(have.role);
    if (have.role != ContractionRole::None && sums != (i->kind == IterKind::Reduce)) {
      return "dimension " + want.iter->name + " is " + std::string(to_string(have.role)) +
             (sums ? ", but its iteration does not reduce" : ", but its iteration reduces");
    }
  }
  auto same = [](const BlockOperand& x, const BlockOperand& y) {
    return x != nullptr && x->buffer == y->buffer && x->axes == y->axes;
  };
  if (c.operands.size() != derived->operands.size()) {
    return "the body reads " + std::to_string(derived->operands.size()) + " operands, not " +
           std::to_string(c.operands.size());
  }
  for (size_t o = 0; o < c.operands.size(); ++o) {
    if (!same(c.operands[o], derived->operands[o])) {
      return "the body reads " + derived->operands[o]->buffer->name +
             " at other indices than the operand's";
    }
  }
  if (!same(c.result, derived->result)) return "the body stores to another element than the result";
  return {};
}

}  // namespace relay::tir
