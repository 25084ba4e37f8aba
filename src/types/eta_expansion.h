// A function that does nothing but call another.
#pragma once

#include <vector>

#include "ir/expr.h"

namespace relay {

// fn [type parameters](%p0, %p1, ...) { callee[type_args](%p0, %p1, ...) }, of the given type.
// `callee` is an operator, a constructor or a value of function type; `type_args` are those of its
// type parameters, if it has any, in terms of the given type. An operator gets default attributes.
Function eta_expansion(const Expr& callee, const FuncType& type, std::vector<Type> type_args = {});

}  // namespace relay
