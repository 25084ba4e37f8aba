// Functions that do nothing but call another.
#pragma once

#include <vector>

#include "ir/module.h"

namespace relay {

// fn [type parameters](%p0, %p1, ...) { callee[type_args](%p0, %p1, ...) }, of the given type.
// `callee` is an operator, a constructor or a value of function type; `type_args` are those of its
// type parameters, if it has any, in terms of the given type. An operator gets default attributes.
Function eta_expansion(const Expr& callee, const FuncType& type, std::vector<Type> type_args = {});

// The module with such functions in the place of constructors and functions of the module that are
// used as values, each with the callee's own type, which may be polymorphic. Callees stay.
Module eta_expand(const Module& mod, bool constructors, bool globals);

}  // namespace relay
