// Products of many rows by more weights than stay in the caches, some columns after the others.
#include <algorithm>

#include "lower/rules/contraction_loops.h"

namespace relay {

using tir::BlockRV;
using tir::LoopRV;
using tir::Schedule;

// Rows a multiple of 4 KB apart lie in one set of L1, so those of a tile have to stay in half of it: on a Xeon with 2 MB of L2,
// 256 x 2048 x 1024, whose tile reads 6 rows of 8 KB, takes 1.2 times as long.
int64_t tiles_of_block(const Sum& sum, const Tile& tile, const Target& target) {
  const double half = static_cast<double>(target.l2_bytes) / 2;
  const double line = sum.reduction * static_cast<double>(sum.dtype.bytes());
  const double column = sum.reduction * static_cast<double>(sum.weight_bytes);
  const bool rows_stay = sum.rows() != kOpen && line * static_cast<double>(sum.rows()) <= half;
  if (rows_stay || (sum.row_stride % 4096 == 0 && line * static_cast<double>(tile.height) >
                                                      static_cast<double>(target.l1_bytes) / 2)) {
    return 1;
  }
  // An open number of rows may be few. Of a large matrix these wait for L3 or memory; of a smaller one panels that stay in less
  // of L2 are read faster.
  const bool waits = column * static_cast<double>(sum.columns()) > 4 * half;
  const double kept = sum.rows() == kOpen && !waits ? half / 2 : half;
  return std::max<int64_t>(static_cast<int64_t>(kept / column) / tile.columns, 1);
}

namespace {

// Columns whose weights stay in half of L2 while all rows pass by, in whole tiles; 0 where all do, and where one tile's are as
// good. On a Xeon with 1 MB of L2, 1024 x 768 x 768 takes 0.92 of the time and 1576 x 384 x 384 0.89.
int64_t columns_of_block(const Sum& sum, const Target& target) {
  const Tile tile = choose_tile(sum, target);
  const double weights = sum.reduction * static_cast<double>(sum.columns() * sum.weight_bytes);
  if (weights <= static_cast<double>(target.l2_bytes) / 2) return 0;
  const int64_t tiles = tiles_of_block(sum, tile, target);
  return tiles > 1 ? tiles * tile.columns : 0;
}

// The loops of a nest in this order, with the sum inside all of them.
tir::StepResult<> sink(Schedule& s, const BlockRV& sum, const std::vector<LoopRV>& order) {
  RELAY_TRY(s.reorder(order));
  return s.compute_at(sum, order.back());
}

// The loops over `columns` of the columns at a time, the outermost loop of `out`, and the tiles inside.
Outcome tile_blocks(Schedule& s, Sum sum, const BlockRV& block, const BlockRV& out, int64_t columns,
                    TilePlans& plans, Decider& decide) {
  sum.block = block;
  sum.extents.back() = columns;
  sum.in_blocks = true;
  std::vector<LoopRV> loops = s.get_loops(out);
  const std::vector<LoopRV> blocks = RELAY_TRY(s.split(loops[0], {-1, columns}));
  RELAY_TRY(sink(s, block, {blocks[0], loops[1], blocks[1]}));
  return tile_loops(s, sum, out, 1, plans, decide);
}

// All columns of `out`, whose `loops` are rows and columns, `width` at a time.
Outcome tile_all_blocks(Schedule& s, const Sum& sum, const BlockRV& out,
                        const std::vector<LoopRV>& loops, int64_t width, TilePlans& plans,
                        Decider& decide) {
  RELAY_TRY(sink(s, sum.block, {loops[1], loops[0]}));
  if (const int64_t rest = sum.columns() % width; rest != 0) {
    const tir::Partition cut = RELAY_TRY(s.partition(loops[1], sum.columns() - rest));
    const Outcome left =
        tile_blocks(s, sum, cut.copy_of(sum.block), cut.copy_of(out), rest, plans, decide);
    if (!took(left)) return left;
  }
  return tile_blocks(s, sum, sum.block, out, width, plans, decide);
}

}  // namespace

Outcome tile_column_blocks(Schedule& s, const Sum& sum, const BlockRV& out, int64_t& width,
                           TilePlans& plans, Decider& decide) {
  if (sum.is_open() || sum.in_parts || sum.matrix || sum.depthwise || sum.group != 0 ||
      sum.spatial.size() != 2) {
    return Declined{};
  }
  decide.number(width, {0, sum.columns()},
                [&](const Target& target) { return columns_of_block(sum, target); });
  if (width <= 0) return Declined{};
  const std::vector<LoopRV> loops = s.get_loops(out);
  if (loops.size() != 2) return Declined{};
  const size_t before = plans.used();
  Schedule tiled = s;
  const Outcome out_of_tiles = tile_all_blocks(tiled, sum, out, loops, width, plans, decide);
  if (!took(out_of_tiles)) {
    plans.rewind(before);
    if (decide.chooses()) width = 0;
    return out_of_tiles;
  }
  s = tiled;
  return Report{text_of(out_of_tiles) + ", columns in blocks of " + std::to_string(width)};
}

}  // namespace relay
