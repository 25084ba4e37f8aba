// Type inference: fills in the types of a program that a front end or a person wrote.
//
// Hindley-Milner with a queue of type relations (Roesch et al., "Relay: A High-Level Compiler for
// Deep Learning", section 4.2): unification solves what is equal, operators' relations compute what
// is not, and a relation that cannot tell yet waits until its arguments are known. Runs once;
// afterwards constructors keep the types.
#pragma once

#include "ir/module.h"

namespace relay {

// The module with every expression typed, annotations and type arguments complete. A program that
// is typed already is the identical handle. Throws UserError with all problems found
// (E0201..E0213), or for inputs that cannot be donated as the program says (E12xx).
Module infer_types(const Module& mod);

// One closed expression or one whose free variables are typed, in the context of a module.
Expr infer_type(const Expr& expr, const Module& context = nullptr);

}  // namespace relay
