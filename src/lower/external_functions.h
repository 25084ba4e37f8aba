// Kernels of external code generators: primitive functions that say which code computes them (ir/external.h).
#pragma once

#include <memory>

#include "lower/kernel_body.h"

namespace relay {

// Offers that code. It gets the sizes of all inputs and results behind the buffers, in their order.
std::shared_ptr<const KernelSource> external_functions();

}  // namespace relay
