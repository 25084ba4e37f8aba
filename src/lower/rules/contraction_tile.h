// Which register tile a sum of products gets, and where tiles differ from each other.
#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "lower/rules/contraction_plan.h"
#include "lower/rules/contraction_sum.h"

namespace relay {

// A register tile: `height` values of the second last spatial axis for each of `outer` values of
// the one before, by `columns`.
struct Tile {
  int64_t outer = 1;
  int64_t height = 1;
  int64_t columns = 1;
  // What all tiles take for each element of the sum, in cycles.
  double cycles = 0;
};

// An open axis is taken to have so many values: every height of a tile divides them.
inline constexpr int64_t kManyTiles = 360360;

// Whether a tile has an axis before the rows.
bool has_outer_axis(const Sum& sum);

// The tile with the least work, by performance.md's rule: as many results as there are registers
// beside one vector for each column and one for a row's element. An open axis is as long as can be.
// `share`: how much of all the busiest of the threads that share such tiles has; without, the same of all. On two cores of a
// Zen 4, 512 x 1024 with sums of 256 takes 0.94 of the time in 32 tiles of 32 columns, of that in 21 of 48 and one of 16.
using TileShare = std::function<double(const Tile&)>;
Tile choose_tile(const Sum& sum, const Target& target, const TileShare& share = nullptr);

// Registers that turns of several steps of a sum have to fit in, where the steps share elements of neighbouring rows: these stay
// in registers from step to step, and drive the results out of them where there are few. 0: turns may have several steps. The
// gradients of convolutions' weights run at 0.8 of the peak by single steps on a Zen 3, at 0.41 by turns of four.
int64_t registers_for_steps(const Sum& sum, const Target& target);

// How much of an axis the busiest thread has where threads share its whole tiles, and then what is left over, which one has.
double busiest_share(int64_t extent, int64_t tile, int64_t threads);

// Where the loop over tiles of columns stands, and how much of the work the busiest thread has then (1 without threads). One
// panel of weights serves all rows before the next is read, unless all weights stay in half of L2: then a row is read once.
// Threads share the outermost axis, so that the one of a single matrix is that which they share better.
std::pair<ColumnLoop, double> loop_of_columns(const Sum& sum, const Tile& tile,
                                              const Target& target, bool threads);

// Where a select that fills the border of an operand decides, for one spatial iteration: values in
// [low, high) read no border, whatever the reduction does.
struct Interior {
  int64_t low = 0;
  int64_t high = 0;
  std::vector<tir::Var> sums;  // the reduction's iterations in the same conditions
};

// For conditions that are linear in the iterations; they hold at all values if at the extreme ones.
Interior interior_of(const tir::Block& b, const tir::IterVar& axis);

// An axis of the tile in one nest: the loop over tiles and the loop inside a tile (none for tiles
// of one value).
struct TileAxis {
  tir::LoopRV outer;
  tir::LoopRV inner;
  int64_t extent;
  int64_t tile;
  // Tiles before which the loop is cut, in order: code on both sides differs.
  std::vector<int64_t> cuts;
  // Tiles in [low, high) read no border; the others decide for each element.
  int64_t low = 0;
  int64_t high = 0;
  std::vector<tir::Var> sums;
  int64_t begin = 0;  // the first tile of this nest

  int64_t tiles() const { return (extent + tile - 1) / tile; }
};

TileAxis make_axis(const tir::LoopRV& outer, const tir::LoopRV& inner, int64_t extent, int64_t tile,
                   const Interior& interior);

}  // namespace relay
