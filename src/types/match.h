// Totality and redundancy of matches.
//
//   match (%l) { Nil => 0, Cons(_, Cons(%x, _)) => %x, }     E0211: `Cons(_, Nil)` is not covered
//
// Both are read off the match's decision tree (types/decision_tree.h): a way without a clause is a
// value that is not covered, a clause without a leaf is one that no value reaches. The tree's size
// is bounded, since the problem is NP-complete.
#pragma once

#include "ir/module.h"

namespace relay {

// What is wrong with the matches of a typed module, in program order: an error E0211 for each
// `match` that leaves values uncovered, with examples of such values, or that is too intricate to
// check; a warning E0211 for each clause that no value reaches. `match?` may leave values
// uncovered.
std::vector<Diagnostic> check_matches(const Module& mod);

// The same for one expression. Data types that `mod`, which may be null, does not define are taken
// to be covered by the constructors in sight.
std::vector<Diagnostic> check_matches(const Expr& expr, const Module& mod);

// The constructors of a data type by tag, as failures of a run need them: "Nil;Cons(_,*)" (runtime/core/data_text.h).
// Empty for other types, and for types that `mod`, which may be null, does not define.
std::string constructors_text(const Type& type, const Module& mod);

}  // namespace relay
