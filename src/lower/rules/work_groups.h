// Steps that let groups of work items share what they read: tiles of a contraction, and sums of a long reduction.
#pragma once

#include "tir/schedule/schedule.h"

namespace relay {

// Items of a group, rows and columns of each item's tile, and the terms of the sum that a group has in shared memory at
// a time.
struct GroupTile {
  int64_t row_items = 1, column_items = 1;
  int64_t rows = 1, columns = 1;
  int64_t depth = 1;
};

// The loops of a contraction by what groups do with them.
struct GroupAxes {
  size_t row = 0, column = 0;  // of the data-parallel iterations
};
// Nothing for blocks whose operands groups do not read in tiles: one that sums along several axes, or has one operand.
std::optional<GroupAxes> group_axes(const tir::Block& b);

// Groups compute tiles of the contraction: they copy a part of both operands to shared memory, and each item adds its
// products to its own tile in registers. `reader` reads the result element by element; items apply it to their tile.
tir::StepResult<> contract_in_groups(tir::Schedule& s, const tir::BlockRV& rv,
                                     const tir::BlockRV& reader, const GroupAxes& axes,
                                     const GroupTile& tile);

// The square root of the items of a group, rounded up to a power of two.
int64_t few_of(int64_t items);

// A group reduces each element: its items reduce every `items`-th term, few_of(items) of them reduce what these have, and
// the first one the rest.
tir::StepResult<> reduce_in_groups(tir::Schedule& s, const tir::BlockRV& rv, int64_t items);

}  // namespace relay
