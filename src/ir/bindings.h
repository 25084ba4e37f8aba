// Which variables of an expression nothing binds, and which functions a module lacks. Text cannot have
// any; what a program builds can: a variable left out of the parameters, or used outside of its `let`.
#pragma once

#include <vector>

#include "ir/module.h"

namespace relay {

// The variables that are used, somewhere in the expression, where nothing binds them; in the order
// in which they first appear. A shared expression is below whatever all its uses are below.
// Iterative; time N log N.
std::vector<Var> free_vars(const Expr& expr);

// Throws UserError E0103 when a variable is free in the expression, E0104 when two places bind one.
void check_bindings(const Expr& expr);

// Throws UserError E0103 when a function of the module calls, or gives, one that the module does not
// have: modules are put together one function after the other, and are whole when they are used.
void check_calls(const Module& mod);

}  // namespace relay
