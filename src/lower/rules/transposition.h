// Elements of 8 to 64 bits that change places in blocks: rows of one tensor are columns of the other.
#pragma once

#include "lower/rules/common.h"

namespace relay {

// Whether an axis of this extent is long enough to be turned.
bool is_long_line(const tir::PrimExpr& extent);

// Schedules a block of data-parallel loops that reads elements along one axis and writes along another: what it reads is
// transposed in blocks of a register by shuffles (tir/transposed_nest.h), and the rest goes by vectors. A tensor of the kernel's own that
// is turned is made line by line before. Declined, with nothing done, when the block is no such.
tir::StepResult<Outcome> schedule_transposition(tir::Schedule& s, const tir::BlockRV& block,
                                                BlockPlan& plan, Decider& decide);

// The same for what the loops below `at` compute, without threads.
tir::StepResult<Outcome> schedule_transposition_below(tir::Schedule& s, const tir::BlockRV& block,
                                                      const tir::LoopRV& at, BlockPlan& plan,
                                                      Decider& decide);

}  // namespace relay
