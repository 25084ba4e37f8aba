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

// Of all iterations of the sum the outermost one is cut that can be, so that the weights of a part are long lines: on a Zen 3
// (512 KB of L2), 3x3 convolutions of 512 channels at 4x4 places take 1.57 times as long with halves of the channels as with
// lines of the window, which take 1.03 times as long as the whole sum; of 256 channels at 7x7 places 1.3 times as long.
SumCut choose_cut(const Schedule& s, const Sum& sum, const Target& target) {
  if (sum.is_open() || sum.matrix || sum.extents.size() < 3) return {};
  double rows = 1;
  for (size_t d = 0; d + 1 < sum.extents.size(); ++d) rows *= static_cast<double>(sum.extents[d]);
  if (sum.reduction <= rows) return {};
  const Tile tile = choose_tile(sum, target);
  const double kept = static_cast<double>(target.l2_bytes) / 2;
  const double panel = sum.reduction * static_cast<double>(tile.columns * sum.weight_bytes);
  if (panel <= kept || rows <= static_cast<double>(tile.outer * tile.height)) return {};
  for (const IterVar& i : s.block(sum.block)->iters) {
    auto extent = i->kind == IterKind::Reduce ? tir::as_int(i->extent) : std::nullopt;
    if (!extent) continue;
    for (int64_t parts = 2; parts <= *extent; ++parts) {
      if (*extent % parts != 0) continue;
      if (sum.reduction / static_cast<double>(parts) < kLeastSteps) break;
      if (panel / static_cast<double>(parts) <= kept) return {i, parts};
    }
  }
  return {};
}

}  // namespace

SumCut cut_of_sum(const Schedule& s, const Sum& sum, SumCutPlan& plan, Decider& decide) {
  const std::vector<IterVar>& iters = s.block(sum.block)->iters;
  plan = decide.value(plan, [&](const Target& target) {
    const SumCut best = choose_cut(s, sum, target);
    if (best.parts == 1) return SumCutPlan{};
    return SumCutPlan{std::find(iters.begin(), iters.end(), best.at) - iters.begin(), best.parts};
  });
  if (plan.parts == 1) return {};
  const bool inside = plan.iteration >= 0 && plan.iteration < static_cast<int64_t>(iters.size());
  const IterVar at = inside ? iters[static_cast<size_t>(plan.iteration)] : nullptr;
  auto extent = at ? tir::as_int(at->extent) : std::nullopt;
  if (plan.parts < 1 || !extent || at->kind != IterKind::Reduce || *extent % plan.parts != 0 ||
      sum.is_open() || sum.matrix) {
    decide.refuse("the sum cannot be cut in " + std::to_string(plan.parts) + " parts");
    return {};
  }
  return {at, plan.parts};
}

tir::StepResult<Sum> part_of_sum(Schedule& s, const Sum& sum, const SumCut& cut) {
  Block b = s.block(sum.block);
  const auto at = std::find(b->iters.begin(), b->iters.end(), cut.at) - b->iters.begin();
  std::vector<LoopRV> loops = s.get_loops(sum.block);
  auto loop = std::find_if(loops.begin(), loops.end(), [&](const LoopRV& l) {
    return tir::uses_var(b->bindings[static_cast<size_t>(at)], l.var.get());
  });
  // All loops inside the one over parts are the parts' own.
  std::rotate(loops.begin(), loop, loop + 1);
  RELAY_TRY(s.reorder(loops));
  Sum out = sum;
  out.block = RELAY_TRY(s.rfactor(sum.block, RELAY_TRY(s.split(loops[0], {cut.parts, -1}))[0]));
  RELAY_TRY(s.set_scope(out.block, tir::Scope::Register));
  out.reduction /= static_cast<double>(cut.parts);
  out.in_parts = true;
  out.spatial.clear();
  for (const IterVar& i : s.block(out.block)->iters) {
    if (i->kind != IterKind::Reduce) out.spatial.push_back(i);
  }
  out.spatial.pop_back();  // which part it is
  loops = s.get_loops(sum.block);
  std::rotate(loops.begin(), loops.end() - 1, loops.end());
  RELAY_TRY(s.reorder(loops));
  RELAY_TRY(s.decompose_reduction(sum.block, loops[0]));
  return out;
}

}  // namespace relay
