// Sums of products - matrix products, convolutions, depthwise ones - by a register tile.
#pragma once

#include "lower/rules/contraction_plan.h"

namespace relay {

// One sum of a kernel by a register tile: `sum` is computed in tiles over the last two loops of `out`,
// the only block that reads it, inside that block's `around` outermost loops. `whole_tiles`: tiles
// divide a loop that runs over a part of the rows or columns only. Rows or columns whose number only a run knows are
// tiled in steps. Declined when the block is no such sum.
Outcome tile_sum(tir::Schedule& s, const tir::BlockRV& sum, const tir::BlockRV& out, size_t around,
                 bool whole_tiles, TilePlans& plans, Decider& decide);

}  // namespace relay
