// The steps from a schedule's blocks to the loops that the code generators of devices take.
#pragma once

#include <span>

#include "tir/lower_loops.h"

namespace relay::codegen {

std::span<const tir::LoweringPass> device_lowering();

}  // namespace relay::codegen
