// The functions of a module that somebody outside may call.
#pragma once

#include <vector>

#include "passes/pass.h"

namespace relay {

// Those named in `relay.RemoveUnusedFunctions.entry_functions` (a list of names) of the context's
// config; without it @main and every function that carries a global_symbol; of a module that has
// none of these, a library, all.
std::vector<Function> entry_functions(const Module& mod, const PassContext& ctx);

}  // namespace relay
