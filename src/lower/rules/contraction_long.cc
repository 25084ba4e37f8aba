// Sums that are longer than the caches are large, part by part.
#include <algorithm>

#include "lower/rules/contraction_loops.h"
#include "tir/schedule/loop_tree.h"

namespace relay {

using tir::Block;
using tir::BlockRV;
using tir::IterKind;
using tir::IterVar;
using tir::LoopRV;
using tir::Schedule;

namespace {

// Steps of a part, beside which adding a tile to the result in memory costs nothing.
constexpr double kLeastSteps = 256;

// The outermost iteration of the reduction, where that is a window with more taps than there are rows; null otherwise.
IterVar long_window(const Sum& sum, const Block& b) {
  auto first = std::find_if(b->iters.begin(), b->iters.end(),
                            [](const IterVar& i) { return i->kind == IterKind::Reduce; });
  if (first == b->iters.end() || (*first)->role != ContractionRole::Window) return nullptr;
  auto taps = tir::as_int((*first)->extent);
  return taps && *taps > sum.rows() ? *first : nullptr;
}

}  // namespace

int64_t parts_of_sum(const Schedule& s, const Sum& sum, const Target& target) {
  if (sum.is_open() || sum.matrix || sum.depthwise || sum.extents.size() < 3) return 1;
  IterVar window = long_window(sum, s.block(sum.block));
  if (!window) return 1;
  const Tile tile = choose_tile(sum, target);
  const auto l2 = static_cast<double>(target.l2_bytes);
  const double panel = sum.reduction * static_cast<double>(tile.columns * sum.weight_bytes);
  if (panel <= l2 / 4) return 1;
  const int64_t taps = *tir::as_int(window->extent);
  for (int64_t parts = 2; parts <= taps; ++parts) {
    if (taps % parts != 0) continue;
    if (sum.reduction / static_cast<double>(parts) < kLeastSteps) return 1;
    if (panel / static_cast<double>(parts) <= l2 / 4) return parts;
  }
  return 1;
}

Sum part_of_sum(Schedule& s, const Sum& sum, int64_t parts) {
  Block b = s.block(sum.block);
  const IterVar window = long_window(sum, b);
  const auto at = std::find(b->iters.begin(), b->iters.end(), window) - b->iters.begin();
  std::vector<LoopRV> loops = s.get_loops(sum.block);
  auto loop = std::find_if(loops.begin(), loops.end(), [&](const LoopRV& l) {
    return tir::uses_var(b->bindings[static_cast<size_t>(at)], l.var.get());
  });
  // All loops inside the one over parts are the parts' own.
  std::rotate(loops.begin(), loop, loop + 1);
  s.reorder(loops);
  Sum out = sum;
  out.block = s.rfactor(sum.block, s.split(loops[0], {parts, -1})[0]);
  s.set_scope(out.block, tir::Scope::Register);
  out.reduction /= static_cast<double>(parts);
  out.in_parts = true;
  out.spatial.clear();
  for (const IterVar& i : s.block(out.block)->iters) {
    if (i->kind != IterKind::Reduce) out.spatial.push_back(i);
  }
  out.spatial.pop_back();  // which part it is
  loops = s.get_loops(sum.block);
  std::rotate(loops.begin(), loops.end() - 1, loops.end());
  s.reorder(loops);
  s.decompose_reduction(sum.block, loops[0]);
  return out;
}

}  // namespace relay
