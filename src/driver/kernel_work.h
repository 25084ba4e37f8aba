// What reports say of kernels and arenas whose sizes a run decides.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "plan/plan.h"
#include "vm/compile.h"

namespace relay {

// Writes the work of a kernel into its description: "sizes" their names, "flops_by_sizes" and
// "bytes_by_sizes" formulas of them, as "text" and as "products" of a "number" and "sizes" in postfix
// (lower/open_work.h); what is unknown is left out. Nothing for a kernel of known sizes.
void describe_work(const plan::ProgramKernel& kernel, nlohmann::ordered_json& item);

// The arenas of functions together, as a formula of the sizes that a run decides; empty where all are numbers.
std::string working_memory(const std::vector<ArenaReport>& arenas);

}  // namespace relay
