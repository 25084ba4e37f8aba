// Which register tile a sum of products gets, and where tiles differ from each other.
#pragma once

#include <vector>

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

// The tile with the least work, by performance.md's rule: as many results as there are registers
// beside one vector for each column and one for a row's element. An open axis is as long as can be.
Tile choose_tile(const Sum& sum, const Target& target);

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
