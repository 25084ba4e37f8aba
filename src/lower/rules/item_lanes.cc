#include "lower/rules/item_lanes.h"

#include <algorithm>

#include "target/item_panels.h"
#include "tir/block_contraction.h"

namespace relay {
namespace {

using tir::Block;
using tir::BlockAxis;
using tir::BlockContractionNode;
using tir::BlockIndexTerm;
using tir::BlockOperandNode;
using tir::IterKind;
using tir::Var;

// A shorter axis than half of a panel makes no vector.
constexpr int64_t kLeastVectorItems = kItemPanel / 2;
// Of an axis of symbolic length.
constexpr int64_t kAssumedLength = 3 * kItemPanel + 1;

bool is_one_step(const BlockContractionNode& c, const BlockIndexTerm& term, const Var& iter) {
  // The fastest dimension that has more than one index.
  size_t fastest = term.dims.size() - 1;
  auto dimension = [&] { return c.dims[static_cast<size_t>(term.dims[fastest])]; };
  while (fastest > 0 && tir::as_int(dimension()->extent) == 1) --fastest;
  return term.divide == 1 && term.modulo % kItemPanel == 0 && term.factor == 1 &&
         dimension()->iter == iter;
}

// The index of a panel: it is that of all items of a vector.
bool is_panel(const BlockIndexTerm& term) {
  return term.divide % kItemPanel == 0 && term.modulo == 0;
}

// Whether the operand's index along its last axis grows by one with the iteration, and no other index depends on it beside that
// of a panel.
bool lies_along(const BlockContractionNode& c, const BlockOperandNode& operand, const Var& iter) {
  size_t last = operand.axes.size();
  while (last > 0 && tir::as_int(operand.buffer->shape[last - 1]) == 1) --last;
  for (size_t a = 0; a < operand.axes.size(); ++a) {
    const BlockAxis& axis = operand.axes[a];
    if (!tir::uses_iteration(c, axis, iter)) continue;
    if (axis.irregular) return false;
    for (const BlockIndexTerm& term : axis.terms) {
      if (!tir::uses_iteration(c, term, iter)) continue;
      if (a + 1 == last ? !is_one_step(c, term, iter) : !is_panel(term)) return false;
    }
  }
  return true;
}

}  // namespace

size_t axis_of_reduction(const Block& b, const Var& iter) {
  const BlockContractionNode& c = *b->contraction;
  const std::vector<BlockAxis>& axes = c.operands[0]->axes;
  size_t at = 0;
  while (at < axes.size() && !tir::uses_iteration(c, axes[at], iter)) ++at;
  return at;
}

int64_t lane_axis(const Block& b) {
  if (!b->contraction) return 0;
  const BlockContractionNode& c = *b->contraction;
  int64_t out = 0, from_end = 0;
  double most = 0;
  for (size_t i = b->iters.size(); i-- > 0;) {
    const tir::IterVar& iter = b->iters[i];
    if (iter->kind != IterKind::DataParallel) continue;
    ++from_end;
    const int64_t length = tir::as_int(iter->extent).value_or(kAssumedLength);
    if (length < kLeastVectorItems) continue;
    bool reads = false, fits = true;
    for (const auto& operand : c.operands) {
      reads |= tir::uses_iteration(c, *operand.get(), iter->var);
      fits &= lies_along(c, *operand.get(), iter->var);
    }
    if (!reads || !fits) continue;
    const int64_t vectors = (length + kItemPanel - 1) / kItemPanel;
    const double filled = static_cast<double>(length) / static_cast<double>(vectors * kItemPanel);
    if (filled > most) {
      most = filled;
      out = from_end;
    }
  }
  return out;
}

}  // namespace relay
