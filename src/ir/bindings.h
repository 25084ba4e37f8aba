// Which variables of an expression nothing binds. Text cannot have any; expressions that a program
// builds can: a variable left out of the parameters, or used outside of its `let`.
#pragma once

#include <vector>

#include "ir/expr.h"

namespace relay {

// The variables that are used, somewhere in the expression, where nothing binds them; in the order
// in which they first appear. A shared expression is below whatever all its uses are below.
// Iterative; time N log N.
std::vector<Var> free_vars(const Expr& expr);

// Throws UserError E0103 when a variable is free in the expression, E0104 when two places bind one.
void check_bindings(const Expr& expr);

}  // namespace relay
