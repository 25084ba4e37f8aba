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

}  // namespace

SumCut cut_of_sum(const Schedule& s, const Sum& sum, const Target& target) {
  if (sum.is_open() || sum.matrix || sum.extents.size() < 3) return {};
  double rows = 1;
  for (size_t d = 0; d + 1 < sum.extents.size(); ++d) rows *= static_cast<double>(sum.extents[d]);
  if (sum.reduction <= rows) return {};
  const Tile tile = choose_tile(sum, target);
  const auto l2 = static_cast<double>(target.l2_bytes);
  const double panel = sum.reduction * static_cast<double>(tile.columns * sum.weight_bytes);
  if (panel <= l2 / 4 || rows <= static_cast<double>(tile.outer * tile.height)) return {};
  SumCut best;
  for (const IterVar& i : s.block(sum.block)->iters) {
    auto extent = i->kind == IterKind::Reduce ? tir::as_int(i->extent) : std::nullopt;
    if (!extent) continue;
    for (int64_t parts = 2; parts <= *extent; ++parts) {
      if (*extent % parts != 0) continue;
      if (sum.reduction / static_cast<double>(parts) < kLeastSteps) break;
      if (panel / static_cast<double>(parts) > l2 / 4) continue;
      if (!best.at || parts < best.parts) best = {i, parts};
      break;
    }
  }
  return best;
}

Sum part_of_sum(Schedule& s, const Sum& sum, const SumCut& cut) {
  Block b = s.block(sum.block);
  const auto at = std::find(b->iters.begin(), b->iters.end(), cut.at) - b->iters.begin();
  std::vector<LoopRV> loops = s.get_loops(sum.block);
  auto loop = std::find_if(loops.begin(), loops.end(), [&](const LoopRV& l) {
    return tir::uses_var(b->bindings[static_cast<size_t>(at)], l.var.get());
  });
  // All loops inside the one over parts are the parts' own.
  std::rotate(loops.begin(), loop, loop + 1);
  s.reorder(loops);
  Sum out = sum;
  out.block = s.rfactor(sum.block, s.split(loops[0], {cut.parts, -1})[0]);
  s.set_scope(out.block, tir::Scope::Register);
  out.reduction /= static_cast<double>(cut.parts);
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
