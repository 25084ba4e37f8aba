// Kind checking: what each type variable stands for fits the place where it is used.
#pragma once

#include "ir/module.h"

namespace relay {

// Checks every type that is written in a module: the arguments of data types in number and kind,
// and that types, dimensions, shapes and base types stand where such are due. Reports E0210 with
// the place of use and the place of declaration.
void check_kinds(const Module& mod, Diagnostics& diags);

// The same for the types written in one expression; `mod`, which may be null, defines the data
// types.
void check_kinds(const Expr& expr, const Module& mod, Diagnostics& diags);

}  // namespace relay
