// CompileMatch: makes decision trees of matches with patterns inside patterns.
//
// before                                   after
//   match (%l) {                             match (%l) {
//     Cons(_, Cons(%y, _)) => { %y },          Cons(_, %t) => { match (%t) {
//     Cons(%x, Nil) => { %x },                   Cons(%y, _) => { %y },
//     Nil => { 0f }, }                           Nil => { %x }, } },
//                                              Nil => { 0f }, }
//
// (`%x` is then named beside `%t`.) Afterwards a match looks at one constructor, and no way through
// the program asks the same question twice (types/decision_tree.h). A right side that several ways
// lead to becomes a local function that they call; leaves are copied. A match of a tuple that is
// written where it stands makes no tuple. What no clause covers (`match?`) fails as before, with
// the place of the match as it was written. Legal always. Loses when patterns overlap so much that
// the tree would be far larger than the match: such a match stays as it is.
#pragma once

#include "passes/pass.h"

namespace relay {

extern const Pass kCompileMatch;

}  // namespace relay
