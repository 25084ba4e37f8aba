// Transformations of types recurse: they are for programs whose types are not nested deep.
#pragma once

#include "ir/expr.h"

namespace relay {

// Throws UserError `code`, at its place, when the type of an expression in the function is nested too
// deep. Iterative; linear.
void check_type_depth(const Function& f, const DiagnosticCode& code);

}  // namespace relay
