// Copies in a program whose values are not where they are used.
#pragma once

#include <vector>

#include "ir/module.h"

namespace relay {

// The program with the copies that Placement::propose tells; of a program whose operators are fused they are primitive functions,
// and copies that are there stay.
Module with_device_copies(const Module& mod, const std::vector<Function>& entries, bool fused);

}  // namespace relay
