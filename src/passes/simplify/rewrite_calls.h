// The form of most passes: each call of a function is looked at once, operands first.
#pragma once

#include <functional>

#include "ir/expr.h"

namespace relay {

// The function with each call replaced by what `replace` makes of it, whose operands are replaced already; null leaves it as
// it is. The identical handle when nothing changed.
Function rewrite_calls(const Function& f, const std::function<Expr(const CallNode&)>& replace);
// The same for a pass that knows the calls of the given function: `original` is what `c` was before its operands changed.
Function rewrite_calls(
    const Function& f,
    const std::function<Expr(const CallNode& original, const CallNode& c)>& replace);

}  // namespace relay
