// Rows whose length is not a multiple of a vector's lanes, and rows of several tensors joined end to end.
#pragma once

#include "lower/rules/common.h"

namespace relay {

// Whether the block's result depends on its position only through the elements it reads there: an index that is compared or
// counted would be divided again, lane by lane, where loops are fused.
bool maps_elements(const tir::Block& b);
// The same for its position along one loop: a tensor that is joined along another one is selected once for a line.
bool maps_elements_along(const tir::Schedule& s, const tir::BlockRV& block,
                         const tir::LoopRV& loop);

// Whether the rows of the loop `row` are contiguous along the loop `rows` around it wherever the block reads and writes, so that
// both loops together are one row.
bool rows_follow(const tir::Schedule& s, const tir::BlockRV& block, const tir::LoopRV& rows,
                 const tir::LoopRV& row);

// Whether the end of a row is better a masked vector than ever shorter ones. On processors without 512-bit vectors, masked
// elements of less than 4 bytes are a branch for each lane, and masked stores of wider ones take as long as ten stores, so that
// they are used where the end has to be computed `once`.
bool masks_lanes(const tir::Block& b, int64_t vector_bytes, bool once);

// A row of constant length in vectors of `lanes`, then in ever fewer lanes down to one. The loop over the first vectors; null
// where they are one.
tir::StepResult<tir::LoopRV> vectorize_in_halves(tir::Schedule& s, const tir::LoopRV& row,
                                                 int64_t lanes);

// The iterations of the loop, whose length is a constant, at which the block begins to read the next one of the tensors that it
// joins along it: what its selections compare the loop with. Empty where there are more of them than are worth a loop each.
std::vector<int64_t> joints_along(const tir::Schedule& s, const tir::BlockRV& block,
                                  const tir::LoopRV& loop);

// The row cut at the joints, each part as vectorize_in_halves: no lane selects its tensor.
tir::StepResult<> vectorize_between(tir::Schedule& s, const tir::LoopRV& row,
                                    const std::vector<int64_t>& joints, int64_t lanes);

}  // namespace relay
