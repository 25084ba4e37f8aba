// RemoveUnusedFunctions: drops the functions that the entry functions do not reach.
//
// before                                   after
//   def @f() { @g() }                        def @g() { 1 }
//   def @g() { 1 }                           def @main() { @g() }
//   def @main() { @g() }
//
// The entries (entry_functions.h) are @main and what is exported, unless the config names others; a
// module without entries is a library: everything stays. Legal always; never loses.
// Does not drop data types.
#pragma once

#include "passes/pass.h"

namespace relay {

extern const Pass kRemoveUnusedFunctions;

}  // namespace relay
