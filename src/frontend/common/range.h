// Numbers at equal steps.
#pragma once

#include "frontend/common/operands.h"

namespace relay::frontend {

// start, start + step, ... up to the limit, which is left out; the inputs are start, limit and step, one number each.
// Known numbers give a constant, terms over open sizes an open length, and others what a run computes.
ValuePtr range_of(const Operands& ctx);

}  // namespace relay::frontend
