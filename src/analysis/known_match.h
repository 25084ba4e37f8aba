// A match of a value whose constructor is in sight.
#pragma once

#include "ir/expr.h"

namespace relay {

// `match` with `data` as the matched value: the clause that a run would choose, the pattern's parts
// bound by Lets; null when only a run can tell. `data` is a (nested) call of constructors or tuple.
//
//   match ((Cons(%a, %t), %b)) { (Cons(%x, _), %y) => e, ... }
//   let %x = %a; let %_ = %t; let %y = %b; e
Expr known_clause(const MatchNode& match, const Expr& data);

}  // namespace relay
