// Branches that give values of different rank, and what comes after them.
//
//   if shape(x)[2] == 1: y = squeeze(x, 2)  else: y = x        (as PyTorch exports squeeze)
//
// No type says both. So a front end imports all operators after such a branch twice, once for each, and the
// branches meet again in the results of the graph. Where the operators make no sense behind one of them - one
// that takes no such rank - a run that gets there fails, as the model itself would.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "frontend/common/builder.h"
#include "frontend/common/open_rank.h"

namespace relay::frontend {

// The values that are chosen by a condition, one for each pair; sequences of one length element by element, others as
// what a run holds. Throws BranchesDiffer where the ranks differ.
Values join_branches(const Builder& build, const Expr& condition, Values then_values,
                     Values else_values);

// What comes after an operator whose outputs have one rank or another: `rest` imports it into a scope in which the outputs,
// of these names, have the values of one branch; then again for the other. Those of `results` that only come after the
// operator are defined in `scope`, by the branches that they meet in. Reports E0505 where neither way makes sense.
void import_both_ways(const Builder& build, const BranchesDiffer& branches,
                      const std::vector<std::string>& outputs, Scope& scope,
                      const std::vector<std::string>& results,
                      const std::function<void(Scope& scope)>& rest);

// The values where the condition is `holds`; a run in which it is not ends.
Values only_if(const Builder& build, const Expr& condition, bool holds, const Values& values);

}  // namespace relay::frontend
