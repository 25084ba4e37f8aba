// What schedules for devices share: the loops of a block, and binding them to work items or to groups of these.
#pragma once

#include <optional>
#include <vector>

#include "tir/schedule/schedule.h"
#include "tir/thread_tags.h"

namespace relay {

struct BlockLoops {
  std::vector<tir::LoopRV> parallel, reduction;
};
// Nothing for a block whose order matters, or that does not stand in loops of its own.
std::optional<BlockLoops> loops_of(const tir::Schedule& s, const tir::BlockRV& rv);

// The product of the extents; -1 where one is symbolic.
int64_t iterations(const tir::Schedule& s, const std::vector<tir::LoopRV>& loops);

// The loops, a perfect nest from the outermost of their block on, bound to the axes of these tags; the innermost axis
// last.
tir::StepResult<std::vector<tir::LoopRV>> bind_loops(tir::Schedule& s,
                                                     const std::vector<tir::LoopRV>& loops,
                                                     const tir::ThreadTags& tags);

// Independent loops outside, reductions inside.
tir::StepResult<> order_loops(tir::Schedule& s, const tir::BlockRV& rv, const BlockLoops& loops);

// The block that reads the reduction element by element; nothing where there is none.
std::optional<tir::BlockRV> reader_of(const tir::Schedule& s, const tir::BlockRV& rv);

}  // namespace relay
