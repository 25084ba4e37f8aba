// Steps that let groups of work items share what they read: tiles of a product of matrices, and sums of a long reduction.
#pragma once

#include "target/matrix_instructions.h"
#include "target/target.h"
#include "tir/lane_reduction.h"
#include "tir/schedule/schedule.h"

namespace relay {

// So many groups are at work at a time, at least.
inline constexpr int64_t kLeastGroups = 16;

// Items of a group, rows and columns of each item's tile, the terms of the sum that a group has in shared memory at a time,
// the buffers of it that take turns, whether copies arrive there later or through registers, and the parts of the sum, each with
// groups of its own. With warps: these, below each other, and the rows and columns of
// products of instructions in each warp's tile.
struct GroupTile {
  int64_t row_items = 16, column_items = 16;
  int64_t rows = 1, columns = 1;
  int64_t depth = 1;
  int64_t slots = 1;  // 1: a group waits for what it copies
  bool later = false;
  int64_t parts = 1;
  int64_t warps = 0;
  int64_t matrix_rows = 0, matrix_terms = 0;  // of the instruction

  int64_t items() const { return warps > 0 ? warps * tir::kWarpItems : row_items * column_items; }
  int64_t group_rows() const { return rows * (warps > 0 ? warps * matrix_rows : row_items); }
  int64_t group_columns() const {
    return columns * (warps > 0 ? MatrixInstruction::kColumns : column_items);
  }
};

// Whether the items of a group surely run side by side. A kind that states no more than what any device has may be one of
// processors, which run items one after the other: barriers and copies pay there only where items would read far apart.
inline bool runs_side_by_side(const WorkItemLimits& limits) {
  return limits.item_registers > WorkItemLimits{}.item_registers;
}

// A contraction as a product of matrices (Schedule::as_product). A symbolic number of terms is -1; of other symbolic extents
// the rows and columns count as many, and the batch as one.
struct ProductExtents {
  int64_t batch = 1, rows = 1, columns = 1, terms = 1;
  int64_t row_bytes = 4, column_bytes = 4;  // of an element of each operand
  // Whether copies of the operand arrive later, on a device that has such copies.
  bool row_later = false, column_later = false;
};
// Nothing for a block that is no product of rows and columns.
std::optional<ProductExtents> product_extents(const tir::Block& b);

// States of the operands whether their copies arrive later, where warps compute the product, or items.
void find_later_copies(const tir::Schedule& s, const tir::BlockRV& rv, bool by_warps,
                       ProductExtents& product);

// Whether the terms of a contraction lie side by side in all operands, and those of the next element elsewhere: items that
// compute an element each read far apart.
bool sums_side_by_side(const tir::Block& b);

// The tile for which the device takes the least time by a model: multiply-adds of the waves of groups that run one after the
// other. Nothing where tiles would be mostly empty, or groups too few.
struct TileChoice {
  std::optional<GroupTile> tile;
  std::string why_not;
};
TileChoice choose_tile(const ProductExtents& product, const WorkItemLimits& limits);

// The operands of an instruction that adds the products of the contraction to its sums; nothing where no device has one.
struct MatrixOperand {
  std::optional<MatrixInstruction::Operand> operand;
  std::string why_not;
};
MatrixOperand matrix_operand_of(const tir::Block& b);

// The instruction of the target for the contraction, which adds products of its operands.
struct MatrixChoice {
  std::optional<MatrixInstruction> instruction;
  std::string why_not;
};
MatrixChoice matrix_instruction_of(const tir::Block& b, const Target& target);
// Whether the tile has whole instructions, and these whole rows of items.
bool fits_warps(const GroupTile& tile);
// The tile of groups whose warps compute with the instruction.
TileChoice choose_warp_tile(const ProductExtents& product, const WorkItemLimits& limits,
                            const MatrixInstruction& matrix);

// Bytes of shared memory that the tile takes.
int64_t shared_bytes_of(const ProductExtents& product, const GroupTile& tile);

// Groups compute tiles of the contraction: they copy a part of both operands to shared memory, and each item adds its
// products to its own tile in registers, alone or by the instructions of its warp. With several slots, the next terms are copied
// while the ones before are multiplied. `reader`, if there is one, reads the result element by element; items apply it
// to their tile. With parts, the block adds what groups have computed, and is left to be scheduled. Returns the block that
// stores the tiles.
tir::StepResult<tir::BlockRV> contract_in_groups(tir::Schedule& s, const tir::BlockRV& rv,
                                                 const std::optional<tir::BlockRV>& reader,
                                                 const GroupTile& tile);

// How the items of a group reduce what each of them has.
struct GroupReduction {
  int64_t items = 1;
  // Whether those of a warp exchange registers; otherwise they share memory.
  bool exchange = false;

  int64_t warps() const { return items / tir::kWarpItems; }
  // The square root of the items, rounded up to a power of two.
  int64_t few() const;
  // Elements of shared memory beside the result.
  int64_t shared_elements() const { return !exchange ? items + few() : warps() > 1 ? warps() : 0; }
};

// A group reduces each element: its items reduce every `items`-th term. With exchange, the items of a warp combine what they
// have, and the first item what the warps have; without, few() items reduce what all have, and the first one the rest.
tir::StepResult<> reduce_in_groups(tir::Schedule& s, const tir::BlockRV& rv,
                                   const GroupReduction& by);

// A group computes each row of the kernel's result: all blocks are computed where the last one needs them, with their results
// in shared memory. Reductions are the group's, as reduce_in_groups has them, and its items compute every `items`-th
// element of a row.
tir::StepResult<> rows_in_groups(tir::Schedule& s, const GroupReduction& by);

}  // namespace relay
