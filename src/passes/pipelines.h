// The pipelines: which passes run, in which order. Read here what happens to a program.
#pragma once

#include "passes/pass.h"

namespace relay {

// From a checked module to fused primitive functions in A-normal form.
std::span<const Pass* const> optimize_pipeline();

}  // namespace relay
