// Relay in A-normal form to a plan.
//
// What is decided, in this order: which results the function writes into outputs (plan/outputs.h);
// which values leave it and so need objects of their own (plan/escape.h); which are computed inside
// the value that they become part of (plan/joins.h); the steps, with scalars in registers
// (plan/scalar_code.h), loops for tail calls of the function itself, and the variants of kernels that
// they call, which the provider then schedules; how long values live
// (plan/lifetimes.h); which results take the memory of an operand (plan/in_place.h); where in the
// arena every buffer is (plan/memory.h); and which values are in one register (plan/registers.h).
#pragma once

#include "ir/module.h"
#include "plan/plan.h"

namespace relay::plan {

// `mod` is checked and in A-normal form, all operator calls inside primitive functions; `lowered` are
// its kernels. Throws UserError E0401, with the place, for what cannot be planned (operators as
// values, sizes that no value tells). Functions take and give tensors by the names in their
// attributes attr::kInputNames and attr::kOutputNames.
// `schedule_steps`: see KernelProvider::schedule.
PlanProgram make_plan(const Module& mod, LoweredProgram& lowered,
                      const KernelProvider::Steps& schedule_steps = nullptr);

}  // namespace relay::plan
