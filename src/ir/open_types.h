// Type variables that nothing binds. Text has none in a module, where a function declares its own; functions that a
// program builds can: a named size left out of the type parameters.
#pragma once

#include <vector>

#include "ir/expr.h"

namespace relay {

// The type variables that are used in the types of an expression where nothing within binds them, in the order in
// which they first appear.
std::vector<TypeVar> free_type_vars(const Expr& expr);

// The function with its free type variables as further type parameters; the same object where it has none.
Function with_free_type_vars(const Function& f);

}  // namespace relay
