// Sums of products by a matrix unit (target/dot_products.h): when, and in which tiles.
#pragma once

#include <optional>

#include "lower/rules/contraction_tile.h"

namespace relay {

// How a matrix unit takes the sum; nullopt where none does. It is chosen where the target has one, operands lie as it reads
// them, and vectors are not faster by the rates of the target's description.
std::optional<MatrixStep> matrix_step(const tir::Schedule& s, const Sum& sum, MatrixPlan& plan,
                                      Decider& decide);

// Whether a tile lies in whole registers of the unit, and so many as there are.
bool lies_in_registers(const Sum& sum, int64_t outer, int64_t height, int64_t width);
// The same for a tile and for what it leaves over of the sum's rows and columns.
bool fits_unit(const Sum& sum, int64_t outer, int64_t height, int64_t width);

// The tile of whole registers with the least work; nullopt when no shape divides into such.
std::optional<Tile> choose_matrix_tile(const Sum& sum);

// Sums that other blocks than a plain store follow: the unit's registers, and the block that copies them to memory of the kernel's
// own, from where what follows takes them.
tir::StepResult<tir::BlockRV> copy_from_unit(tir::Schedule& s, const tir::BlockRV& sum);

// Whether the weights of a product of two axes are too many to be read again for each tile of rows, and those of some columns are
// read so: rows that pass by once for each tile of columns come from far away.
bool pays_panels_of_unit(const Sum& sum, const Target& target);

// What passes by in the order of its tiles. The operand that tiles read again would be driven out of L1 by it: products of
// 32x768x768 and 128x768x768 in bfloat16 went from 44 and 42 to 70 and 58 % of the unit's peak.
Streamed streamed_operand(const Sum& sum, const Tile& tile, bool columns_outside, bool windows,
                          const Target& target);

}  // namespace relay
