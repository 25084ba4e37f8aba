// From a schedule's blocks to the loops that code generation takes.
#pragma once

#include <functional>
#include <span>
#include <string_view>

#include "tir/stmt.h"

namespace relay::tir {

// A step of the lowering; each header in passes/ says what it does and when it is legal.
struct LoweringPass {
  std::string_view name;
  PrimFunc (*run)(const PrimFunc& f);
};
// Those for processors.
std::span<const LoweringPass> lowering_passes();

// Gets what a pass returned, and returns what the next one gets.
using LoweringObserver = std::function<PrimFunc(std::string_view pass, PrimFunc f)>;

// Runs the passes in their order. After those of processors the result computes the same in serial and parallel loops around stores and
// conditions, each access with one index. Loops nest as deep as the schedule made them, so
// statements are walked by recursion.
PrimFunc lower_loops(const PrimFunc& f, std::span<const LoweringPass> passes = lowering_passes(),
                     const LoweringObserver& observer = {});

}  // namespace relay::tir
