#include "lower/rules/contraction_loops.h"

#include <algorithm>

#include "lower/rules/contraction_matrix.h"
#include "lower/rules/lanes.h"
#include "tir/matrix_nest.h"
#include "tir/schedule/loop_tree.h"

namespace relay {

using tir::Block;
using tir::BlockRV;
using tir::IterKind;
using tir::LoopRV;
using tir::Schedule;

namespace {

// Kinds of tiles that a kernel may have: the code of each is its own.
constexpr int64_t kMaxKinds = 30;
// How many times as long as others an open sum is taken to be where everything else is constant: it is that of a weight's
// gradient, over all positions of a batch.
constexpr double kSumOfGradient = 16;
// How far ahead packed weights are asked for, in the order in which they are read: on a Xeon with AVX-512, 17 rows by a
// 768 x 768 matrix from L3 take 0.82 of the time without at 2 KB, 0.84 at 1 KB.
constexpr int64_t kPrefetchBytes = 2048;
// So many steps of a sum are one turn of its loop: on a Xeon with two multiply-adds of AVX-512 a cycle, products of
// 2048 x 256 x 1024 and 256 x 2048 x 1024 take 0.95 and 0.90 of the time of turns of one step, and as long by turns of eight.
constexpr int64_t kStepsInTurn = 4;
// Below the loops of a window, a tile of so many vectors takes as long by turns of two steps: 1.003 of the time of 60 convolutions
// of 3 x 3 to 12 channels, 1.006 of ResNet-50's. Compiling the 60 takes 0.82 of the time. Products of matrices take up to 1.03.
constexpr int64_t kLargeTile = 24;
constexpr int64_t kStepsOfLargeTile = 2;
// Vectors of results that a tile may have: more than any target has registers.
constexpr int64_t kMostRegisters = 128;

}  // namespace

TilePart tile_part(Schedule& s, const Sum& sum, const BlockRV& block, size_t depth, size_t axes) {
  Block b = s.block(block);
  std::vector<LoopRV> all = s.get_loops(block);
  TilePart out{block, std::vector<LoopRV>(axes), {}};
  size_t spatial = 0, first = sum.fixed + sum.spatial.size() - axes;
  for (size_t i = 0; i < b->iters.size(); ++i) {
    bool sums = b->iters[i]->kind == IterKind::Reduce;
    for (size_t l = depth; l < all.size(); ++l) {
      if (!tir::uses_var(b->bindings[i], all[l].var.get())) continue;
      if (sums) {
        out.sums.emplace_back(b->iters[i]->var, all[l]);
      } else if (spatial >= first) {
        out.loops[spatial - first] = all[l];
      }
    }
    if (!sums) ++spatial;
  }
  return out;
}

tir::StepResult<std::vector<TilePart>> sum_parts(Schedule& s, const Sum& sum, const BlockRV& block,
                                                 size_t depth, size_t axes) {
  TilePart update = tile_part(s, sum, block, depth, axes);
  if (update.sums.empty()) return std::vector<TilePart>{};
  update.by_matrix_unit = sum.matrix.has_value();
  std::vector<LoopRV> nest;
  for (const auto& [var, loop] : update.sums) nest.push_back(loop);
  for (const LoopRV& l : update.loops) {
    if (l.var) nest.push_back(l);
  }
  RELAY_TRY(s.reorder(nest));
  TilePart zeros{RELAY_TRY(s.decompose_reduction(block, nest[0])),
                 std::vector<LoopRV>(axes),
                 {},
                 update.by_matrix_unit};
  std::vector<LoopRV> zero_loops = s.get_loops(zeros.block);
  for (size_t i = axes, at = zero_loops.size(); i-- > 0;) {
    if (update.loops[i].var) zeros.loops[i] = zero_loops[--at];
  }
  return std::vector<TilePart>{zeros, update};
}

tir::StepResult<> Tiling::peel(std::vector<TileAxis> axes, std::vector<TilePart> parts,
                               std::span<const size_t> nesting) {
  while (!nesting.empty() && axes[nesting[0]].cuts.empty()) nesting = nesting.subspan(1);
  if (nesting.empty()) {
    for (const TilePart& p : parts) RELAY_TRY(finish(axes, p));
    return {};
  }
  size_t a = nesting[0];
  tir::Partition cut = RELAY_TRY(s_.partition(axes[a].outer, axes[a].cuts[0] - axes[a].begin));
  auto copied = [&](const LoopRV& l) {
    for (const auto& [head, tail] : cut.loops) {
      if (head == l) return tail;
    }
    return l;
  };
  std::vector<TileAxis> tail_axes = axes;
  for (TileAxis& x : tail_axes) x.outer = copied(x.outer);
  tail_axes[a].outer = cut.tail;
  tail_axes[a].begin = axes[a].cuts[0];
  tail_axes[a].cuts.erase(tail_axes[a].cuts.begin());
  axes[a].cuts.clear();
  std::vector<TilePart> tail_parts = parts;
  for (TilePart& p : tail_parts) {
    p.block = cut.copy_of(p.block);
    for (LoopRV& l : p.loops) {
      if (l.var) l = copied(l);
    }
    for (auto& [var, loop] : p.sums) loop = copied(loop);
  }
  int64_t rest = axes[a].extent % axes[a].tile;
  if (rest != 0 && tail_axes[a].begin == axes[a].extent / axes[a].tile) {
    for (const TilePart& p : tail_parts) RELAY_TRY(s_.partition(p.loops[a], rest));
  }
  RELAY_TRY(peel(std::move(axes), std::move(parts), nesting.subspan(1)));
  return peel(std::move(tail_axes), std::move(tail_parts), nesting);
}

tir::StepResult<> Tiling::finish_matrix(const TilePart& p) {
  const MatrixUnit& unit = sum_.matrix->unit;
  std::vector<LoopRV> tiles, inside;
  for (size_t i = 0; i < p.loops.size(); ++i) {
    if (!p.loops[i].var) continue;
    bool is_column = i + 1 == p.loops.size();
    if (!is_column && i + 2 < p.loops.size()) {
      tiles.push_back(p.loops[i]);
      continue;
    }
    int64_t most = is_column ? unit.words : unit.rows, extent = s_.extent(p.loops[i]);
    int64_t count = (extent + most - 1) / most;
    RELAY_CHECK(extent % count == 0, "a tile is no whole number of registers");
    std::vector<LoopRV> parts = RELAY_TRY(s_.split(p.loops[i], {count, -1}));
    tiles.push_back(parts[0]);
    inside.push_back(parts[1]);
  }
  if (!p.sums.empty()) {
    std::vector<LoopRV> parts =
        RELAY_TRY(s_.split(p.sums.back().second, {-1, sum_.matrix->words, unit.word_elements}));
    inside.insert(inside.end(), parts.begin() + 1, parts.end());
  }
  tiles.insert(tiles.end(), inside.begin(), inside.end());
  RELAY_TRY(s_.reorder(tiles));
  const Streamed streamed = p.sums.empty() ? Streamed::Neither : sum_.matrix->streamed;
  const auto operand = streamed == Streamed::Data      ? tir::StreamedOperand::A
                       : streamed == Streamed::Weights ? tir::StreamedOperand::B
                                                       : tir::StreamedOperand::Neither;
  for (const LoopRV& l : tiles) RELAY_TRY(s_.nest(l, tir::LoopNest::Matrix, operand));
  return {};
}

int64_t Tiling::rows_of(const TilePart& p) const {
  int64_t out = 1;
  for (size_t i = 0; i + 1 < p.loops.size(); ++i) out *= p.loops[i].var ? s_.extent(p.loops[i]) : 1;
  return out;
}

int64_t Tiling::column_vectors_of(const TilePart& p) const {
  return p.loops.back().var ? (s_.extent(p.loops.back()) + lanes_ - 1) / lanes_ : 1;
}

bool Tiling::has_registers_for_steps(const TilePart& p) const {
  return registers_ == 0 || vectors_of(p) + column_vectors_of(p) + rows_of(p) <= registers_;
}

tir::StepResult<> Tiling::finish(const std::vector<TileAxis>& axes, const TilePart& p) {
  if (p.by_matrix_unit) return finish_matrix(p);
  // Weights hold the last of the sums in words.
  if (sum_.word_elements() > 1 && !p.sums.empty()) {
    RELAY_TRY(s_.word_dot(p.block, p.sums.back().second));
  }
  for (const auto& [var, loop] : p.sums) {
    bool border = std::any_of(axes.begin(), axes.end(), [&](const TileAxis& x) {
      bool inside = x.begin >= x.low && x.begin < x.high;
      return !inside && std::find(x.sums.begin(), x.sums.end(), var) != x.sums.end();
    });
    bool last = &var == &p.sums.back().first;
    // All elements of a word of few bits are taken of one register.
    if (border || (last && (sum_.depthwise || sum_.widening > 0))) RELAY_TRY(s_.unroll(loop));
  }
  if (sum_.streamed && sum_.widening == 0 && !p.sums.empty()) {
    RELAY_TRY(s_.prefetch(p.sums.back().second, kPrefetchBytes));
  }
  // Words of few bits, and what is unrolled as a whole, have long turns as they are.
  if (!p.sums.empty() && !sum_.depthwise && sum_.widening == 0) {
    const LoopRV& last = p.sums.back().second;
    const int64_t steps =
        p.sums.size() > 1 && vectors_of(p) >= kLargeTile ? kStepsOfLargeTile : kStepsInTurn;
    const bool whole = s_.extent(last) == kOpen && s_.has_whole_tiles(last, steps);
    const bool several = whole || s_.extent(last) >= 2 * steps;
    if (several && has_registers_for_steps(p)) RELAY_TRY(s_.unroll(last, steps));
  }
  for (size_t i = 0; i + 1 < p.loops.size(); ++i) {
    if (p.loops[i].var) RELAY_TRY(s_.unroll(p.loops[i]));
  }
  LoopRV column = p.loops.back();
  if (!column.var) return {};
  int64_t extent = s_.extent(column), rest = extent % lanes_;
  if (extent > lanes_ && rest != 0) {
    tir::Partition cut = RELAY_TRY(s_.partition(column, extent - rest));
    RELAY_TRY(s_.vectorize(cut.tail));
    extent -= rest;
  }
  if (extent > lanes_) {
    std::vector<LoopRV> parts = RELAY_TRY(s_.split(column, {-1, lanes_}));
    RELAY_TRY(s_.unroll(parts[0]));
    column = parts[1];
  }
  return s_.vectorize(column);
}

namespace {

// The tile of constant extents, and where the loop over its columns stands.
void choose_tile_plan(const Sum& sum, const Target& target, TilePlan& plan) {
  auto share = [&](const Tile& t) {
    return loop_of_columns(sum, t, target, plan.threads && !sum.streamed).second;
  };
  const Tile tile = sum.matrix ? *choose_matrix_tile(sum) : choose_tile(sum, target, share);
  plan.lanes = lanes_of(sum, target);
  plan.registers = registers_for_steps(sum, target);
  plan.outer = tile.outer;
  plan.rows = {tile.height};
  plan.columns = {tile.columns};
  plan.column_loop = loop_of_columns(sum, tile, target, plan.threads).first;
}

// Whether a given tile is one of the sum's.
bool is_tile_of(const Sum& sum, const TilePlan& plan) {
  if (plan.rows.size() != 1 || plan.columns.size() != 1 || plan.panels != 1 ||
      plan.lanes < kLanes.least || plan.lanes > kLanes.most) {
    return false;
  }
  const int64_t height = plan.rows[0], width = plan.columns[0];
  const int64_t extent = sum.extents.size() > 2 ? sum.extents[sum.extents.size() - 3] : 1;
  const int64_t before = extent == kOpen ? kManyTiles : extent;
  const bool sides =
      height >= 1 && height <= sum.rows() && width >= 1 && width <= sum.columns() &&
      plan.outer >= 1 && plan.outer <= before &&
      plan.outer * height * ((width + plan.lanes - 1) / plan.lanes) <= kMostRegisters;
  const bool wholes = (!sum.whole_rows || sum.rows() % height == 0) &&
                      (!sum.whole_columns || sum.columns() % width == 0);
  return sides && wholes && (!sum.matrix || fits_unit(sum, plan.outer, height, width));
}

}  // namespace

Outcome tile_loops(Schedule& s, const Sum& sum, const BlockRV& out, size_t around, TilePlans& plans,
                   Decider& decide, const BlockRV& copy) {
  std::vector<LoopRV> loops = s.get_loops(out);
  if (loops.size() != around + sum.spatial.size()) return Declined{};
  loops.erase(loops.begin(), loops.begin() + static_cast<std::ptrdiff_t>(around));

  // Some 3 us of multiply-adds: products of a microsecond, one after the other, take up to 1.7 times
  // as long on two threads, by how far the cores are apart (measured).
  double work = sum.reduction;
  for (int64_t e : sum.extents) work *= static_cast<double>(typical_extent(e));
  if (sum.open_sum && !sum.is_open()) work *= kSumOfGradient;
  const bool alone = around == 0 || sum.in_parts || sum.in_blocks;

  // The tile's axes: columns, rows, and the axis before the rows when one line of rows is short or
  // its ends read a border.
  const size_t at = plans.next();
  decide.value(plans[at], [&](const Target& target) {
    TilePlan plan;
    plan.threads = alone && pays_threads(target, work, 16 * kMinParallelWork);
    choose_tile_plan(sum, target, plan);
    return plan;
  });
  const TilePlan plan = plans[at];
  if (!decide.chooses() && !is_tile_of(sum, plan)) {
    decide.refuse("a tile does not fit its sum");
    return Declined{};
  }
  const Tile tile{plan.outer, plan.rows[0], plan.columns[0], 0};
  Block b = s.block(sum.block);
  std::vector<int64_t> sizes{tile.height, tile.columns};
  if (has_outer_axis(sum)) sizes.insert(sizes.begin(), tile.outer);
  size_t first = loops.size() - sizes.size();
  std::vector<TileAxis> axes;
  for (size_t i = 0; i < sizes.size(); ++i) {
    const tir::IterVar& iter = sum.spatial[first + i];
    std::vector<LoopRV> parts{loops[first + i], LoopRV{}};
    if (sizes[i] > 1 || i > 0) parts = RELAY_TRY(s.split(loops[first + i], {-1, sizes[i]}));
    axes.push_back(
        make_axis(parts[0], parts[1], sum.extents[first + i], sizes[i], interior_of(b, iter)));
  }
  int64_t kinds = 1;
  for (const TileAxis& a : axes) kinds *= static_cast<int64_t>(a.cuts.size()) + 1;
  if (kinds > kMaxKinds) return Declined{"there would be too many kinds of tiles"};
  std::vector<LoopRV> order(loops.begin(), loops.begin() + static_cast<std::ptrdiff_t>(first));
  LoopRV columns = axes.back().outer;
  if (plan.column_loop == ColumnLoop::Outermost) order.insert(order.begin(), columns);
  if (axes.size() > 2) order.push_back(axes[0].outer);
  if (plan.column_loop == ColumnLoop::Between) order.push_back(columns);
  order.push_back(axes[axes.size() - 2].outer);
  if (std::find(order.begin(), order.end(), columns) == order.end()) order.push_back(columns);
  size_t outside = order.size();
  std::vector<size_t> nesting;
  for (const LoopRV& l : order) {
    for (size_t i = 0; i < axes.size(); ++i) {
      if (axes[i].outer == l) nesting.push_back(i);
    }
  }
  for (const TileAxis& a : axes) {
    if (a.inner.var) order.push_back(a.inner);
  }
  RELAY_TRY(s.reorder(order));
  if (!copy.name.empty()) RELAY_TRY(s.compute_at(copy, order[outside - 1]));
  RELAY_TRY(s.compute_at(sum.block, order[outside - 1]));

  std::vector<TilePart> parts =
      RELAY_TRY(sum_parts(s, sum, sum.block, around + outside, axes.size()));
  if (parts.empty()) return Declined{};
  const bool windows = parts[1].sums.size() > 1;
  if (!copy.name.empty()) {
    parts.push_back(tile_part(s, sum, copy, around + outside, axes.size()));
    parts.back().by_matrix_unit = true;
  }
  TilePart epilogue{out, {}, {}, sum.matrix && copy.name.empty()};
  for (const TileAxis& a : axes) epilogue.loops.push_back(a.inner);
  parts.push_back(epilogue);

  bool bordered = std::any_of(axes.begin(), axes.end(),
                              [](const TileAxis& a) { return a.low > 0 || a.high < a.tiles(); });
  std::string text = "sum: " + arithmetic_of(sum, decide) + ", " +
                     std::to_string(tile.outer * tile.height) + "x" + std::to_string(tile.columns) +
                     " register tile, " + (order[0] == axes.back().outer ? "columns" : "rows") +
                     " outside";
  if (bordered) text += ", border in tiles of its own";
  if (plan.threads) {
    // Loops that are not cut share the work in fine portions; pieces of one that is are shared
    // each.
    std::vector<LoopRV> shared;
    int64_t portions = 1;
    for (size_t i = 0; i < outside; ++i) {
      bool cut = std::any_of(axes.begin(), axes.end(), [&](const TileAxis& a) {
        return a.outer == order[i] && !a.cuts.empty();
      });
      if (cut && portions > 1) break;
      if (cut) shared.clear();
      shared.push_back(order[i]);
      portions *= typical_extent(s.extent(order[i]));
      if (cut) break;
    }
    RELAY_TRY(s.parallel(shared.size() > 1 ? RELAY_TRY(s.fuse(shared)) : shared[0]));
    text += ", threads over tiles";
  }
  Sum tiled = sum;
  if (sum.matrix) {
    tiled.matrix->streamed = decide.value(plans[at].streamed, [&](const Target& target) {
      return streamed_operand(sum, tile, order[0] == axes.back().outer, windows, target);
    });
  }
  RELAY_TRY(Tiling(s, tiled, plan).peel(axes, std::move(parts), nesting));
  return Report{text};
}

}  // namespace relay
