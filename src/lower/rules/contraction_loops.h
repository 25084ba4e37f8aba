// The loops of register tiles: what tiles of constant and of open sizes share, and each kind.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "lower/rules/contraction_tile.h"

namespace relay {

// A block of a tile, with its loops over the tile's axes in order (rows, then columns); an axis of
// one value has none.
struct TilePart {
  tir::BlockRV block;
  std::vector<tir::LoopRV> loops;
  std::vector<std::pair<tir::Var, tir::LoopRV>> sums;  // loops over the reduction
  bool by_matrix_unit = false;
};

// A block that computes a tile inside `depth` loops, with its loops; `axes` are the last so many spatial iterations.
TilePart tile_part(tir::Schedule& s, const Sum& sum, const tir::BlockRV& block, size_t depth,
                   size_t axes);

// The sizes of the tiles along an axis, largest first; each covers what the larger ones leave over. A constant extent needs
// `tile` and the remainder. An open extent needs, below `tile`:
//   step > 1: the powers of `step`, down to 1
//   step 1, few rows: every smaller size, as a small tile waits for its sums and takes nearly as long as a large one
//   step 1, many rows: every size up to one more than half of `tile`, so that two tiles cover any rest
std::vector<int64_t> tile_sizes_of(int64_t extent, int64_t tile, int64_t step);

// The parts that compute a tile, when `block`, a copy of the sum's block, stands inside `depth` loops and below them
// computes the iterations of one tile: zeros, then the sum with its reduction outside. `axes` are the last so many spatial
// iterations. Empty when nothing is summed.
tir::StepResult<std::vector<TilePart>> sum_parts(tir::Schedule& s, const Sum& sum,
                                                 const tir::BlockRV& block, size_t depth,
                                                 size_t axes);

// Finishes the tiles whose parts they are.
class Tiling {
 public:
  Tiling(tir::Schedule& s, const Sum& sum, const TilePlan& plan)
      : s_(s), sum_(sum), lanes_(plan.lanes), registers_(plan.registers) {}

  // Cuts the loops over tiles and finishes each kind of tile. `nesting` has the axes in the order
  // of their loops, outermost first: what is inside a loop is copied with it.
  tir::StepResult<> peel(std::vector<TileAxis> axes, std::vector<TilePart> parts,
                         std::span<const size_t> nesting);
  // Rows are copies, columns are lanes: whole vectors, then one shorter vector.
  tir::StepResult<> finish(const std::vector<TileAxis>& axes, const TilePart& p);

 private:
  // Loops over registers of the matrix unit, then those that it does at once.
  tir::StepResult<> finish_matrix(const TilePart& p);
  // The vectors of results that a part keeps in registers.
  int64_t vectors_of(const TilePart& p) const { return rows_of(p) * column_vectors_of(p); }
  int64_t rows_of(const TilePart& p) const;
  int64_t column_vectors_of(const TilePart& p) const;
  // Whether several steps of the sum keep what they share in registers, beside the results and the weights of a step.
  bool has_registers_for_steps(const TilePart& p) const;

  tir::Schedule& s_;
  const Sum& sum_;
  int64_t lanes_;
  int64_t registers_;
};

// Tiles over the loops of `out`, which stores the sum, but for its `around` outermost ones. A block `copy` between the two,
// where there is one, copies the sum. The tiles' axes have constant extents. Declined when there would be too many kinds of
// tiles.
Outcome tile_loops(tir::Schedule& s, const Sum& sum, const tir::BlockRV& out, size_t around,
                   TilePlans& plans, Decider& decide, const tir::BlockRV& copy = {});

// Tiles of columns whose weights stay in half of L2 while all rows pass by. 1 where the rows stay there themselves and meet the
// weights of one tile after the other at no cost.
int64_t tiles_of_block(const Sum& sum, const Tile& tile, const Target& target);

// The same over all loops of `out` for a product of so many rows by so many columns that neither stays in the caches, where
// there is nothing else: columns in blocks whose weights do, around the rows. A row of results is written as one, and rows are
// read once for each block, not once for each tile's columns. Declined, and `s` as it was, where that is no such product;
// `width`: the columns of a block, 0 where there are none.
//
//   for block of columns: for rows of a tile: for columns of a tile: { registers = 0; for k: registers += a * b; store }
Outcome tile_column_blocks(tir::Schedule& s, const Sum& sum, const tir::BlockRV& out,
                           int64_t& width, TilePlans& plans, Decider& decide);

// The same over all loops of `out`, for rows or columns whose number only a run knows, or by a matrix unit.
Outcome tile_open_loops(tir::Schedule& s, const Sum& sum, const tir::BlockRV& out, TilePlans& plans,
                        Decider& decide, const tir::BlockRV& copy = {});

// The same for a sum that is one part of a kernel: over the last two loops of `out`, with fewer kinds of tiles and
// without threads.
Outcome tile_open_part(tir::Schedule& s, const Sum& sum, const tir::BlockRV& out, TilePlans& plans,
                       Decider& decide);

// The same over all loops of `out` for a sum over blocks whose terms are sums themselves, those of `terms`: a tile takes
// one block after the other, and its sums stay in registers too. The axes' extents may be constants.
Outcome tile_block_loops(tir::Schedule& s, const Sum& sum, const Sum& terms,
                         const tir::BlockRV& out, TilePlans& plans, Decider& decide);

// The same for a sum whose weights `made` computes: for the columns of a tile at once, in memory, before all rows pass by; of
// `several` tiles where the rows do not stay in L2, so that each row is read once for all of them.
// `finish` schedules the loops of a part of `made` below the loop over its tiles. `copy` as above.
using FinishMade =
    std::function<Outcome(const tir::BlockRV& made, const tir::LoopRV& tiles, const TilePlan&)>;
Outcome tile_made_loops(tir::Schedule& s, const Sum& sum, const tir::BlockRV& made,
                        const tir::BlockRV& out, bool several, TilePlans& plans, Decider& decide,
                        const FinishMade& finish, const tir::BlockRV& copy = {});

// In how many parts a long sum is cut, and which iteration of its block is. 1: it is not cut.
struct SumCutPlan {
  int64_t iteration = 0;
  int64_t parts = 1;

  static constexpr auto members() {
    return std::tuple{member("iteration", &SumCutPlan::iteration),
                      member("parts", &SumCutPlan::parts)};
  }
  friend bool operator==(const SumCutPlan&, const SumCutPlan&) = default;
};
struct SumCut {
  tir::IterVar at;
  int64_t parts = 1;
};

// A sum is taken in parts where its weights, those of one tile's columns, would leave L2 between one tile and the next: the
// gradient of a convolution's weights sums over all places of all images, and has few rows.
//
//   for part: for tile: { registers = 0; for the part's products: registers += a * b; result += registers }
SumCut cut_of_sum(const tir::Schedule& s, const Sum& sum, SumCutPlan& plan, Decider& decide);

// Cuts the sum, which no block reads: the part inside a loop over the parts, whose block adds to the result in memory and is
// the block of `sum` still.
tir::StepResult<Sum> part_of_sum(tir::Schedule& s, const Sum& sum, const SumCut& cut);

}  // namespace relay
