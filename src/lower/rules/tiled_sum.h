// Sums of products - matrix products, convolutions, depthwise ones - by a register tile.
#pragma once

#include "lower/rules/common.h"

namespace relay {

// A tile of results stays in registers over the whole reduction, lanes over the last axis, and what
// follows is applied before it is stored. The tile's shape is the one with the least work among
// those that leave registers for one vector of each column and one element of a row; tiles at the
// ends that are smaller are peeled off into loops of their own. Empty when the kernel is no such
// sum.
std::string schedule_tiled_sum(tir::Schedule& s, const Target& target);

// The same for one sum of a kernel: `sum` is computed in tiles over the last two loops of `out`,
// the only block that reads it, inside that block's `around` outermost loops. `whole_tiles`: tiles
// divide a loop that runs over a part of the rows or columns only. Empty when the block is
// no such sum.
std::string tile_sum(tir::Schedule& s, const tir::BlockRV& sum, const tir::BlockRV& out,
                     size_t around, bool whole_tiles, const Target& target);

}  // namespace relay
