// Operators that are written in others, written out.
#pragma once

#include "ir/module.h"

namespace relay {

// Whether the program calls operators that are nothing but their definition.
bool has_definitions(const NodeRef& program);

// The program with each such call replaced by its definition (OpInfo::definition), until none is left.
// Types are kept. A definition uses an argument as often as it likes: in graph form it is computed
// once. Throws UserError for a call whose known arguments are wrong.
Module expand_definitions(const Module& mod);
Expr expand_definitions(const Expr& expr);

// The same for those calls alone that have a gradient by their definition only: what is differentiated.
Module expand_for_gradients(const Module& mod);
Function expand_for_gradients(const Function& f);

}  // namespace relay
