// Checks that a plan can be carried out as it stands.
//
// - Indices are in range; a step takes and gives what its row says (plan/step_table.h).
// - A parameter's register belongs to it and its views alone; any other is read only as long as no
//   other value is written there.
// - Parts are closed in order; nothing follows a step that leaves; every path through a function ends
//   in one; `next` has a loop.
// - Values are on the devices of their memory and of the steps that use them; no step uses what a transfer still copies
//   (plan/verify_devices.h).
// - Every value is defined before it is used, on every path there; a branch gives all its values.
// - A kernel's buffers are as many and as large as it takes them to be, with the gaps that it knows of,
//   and on its device.
// - A sub-buffer is inside its whole, and every buffer inside the arena.
// - A lifetime contains all uses; what is alive at once does not overlap in memory; a result that takes
//   the memory of an operand does so where the kernel allows it and nothing reads the operand later.
// - A value of an open size fits into its place, and is read only as long as no other is written there.
// - Every output is written before it is returned.
// - A parameter that is donated in place is written over at most once, by a kernel that may, and no step reads
//   the old value afterwards; its function is called by callers of the program only.
//
// O(n log n) in the steps and values of a function.
#pragma once

#include "plan/plan.h"

namespace relay::plan {

// Throws InternalError, with the function and the step, for what does not hold.
void verify(const PlanProgram& program);

}  // namespace relay::plan
