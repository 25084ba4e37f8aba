// The gradient of one operator call.
#pragma once

#include <vector>

#include "ir/expr.h"

namespace relay {

// Whether a gradient with respect to a value of this type can be asked for: there is a floating
// tensor in it, tuples and references entered, and so may be in data and behind type variables.
bool has_floats(const Type& type);
// A tensor of floats, or of a dtype that is a variable.
bool is_floating(const Type& type);

// The adjoints of the tensors of a call's arguments, tuples flattened, from those of its result; null
// where the end result does not depend on one or it holds no floats. Each has the type of its tensor.
// `result` is the call's value, and `adjoints` has an entry for each tensor of it, not all of them
// null. Throws UserError, at the call's place, E1002 for an operator without a gradient, E1003 when
// it has none for these attributes, E1004 for one that draws random numbers from no key.
std::vector<Expr> call_gradient(const CallNode& call, const Expr& result,
                                std::vector<Expr> adjoints);

}  // namespace relay
