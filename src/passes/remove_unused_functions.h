// RemoveUnusedFunctions: drops the functions that the entry functions do not reach.
//
// before                                   after
//   def @f() { @g() }                        def @g() { 1 }
//   def @g() { 1 }                           def @main() { @g() }
//   def @main() { @g() }
//
// The entries are those named in `relay.RemoveUnusedFunctions.entry_functions` (a list of names) of
// the context's config; without it @main and every function that carries a global_symbol. A module
// without entries is a library: everything stays. Legal always; never loses.
// Does not drop data types.
#pragma once

#include "passes/pass.h"

namespace relay {

extern const Pass kRemoveUnusedFunctions;

}  // namespace relay
