// Branches that give values of different rank, and what comes after them.
//
//   if shape(x)[2] == 1: y = squeeze(x, 2)  else: y = x        (as PyTorch exports squeeze)
//
// No type says both. So all nodes after such an If are imported twice, once for each branch, and the
// branches meet again in the results of the graph. Where the nodes make no sense behind one of them - an
// operator that takes no such rank - a run that gets there fails, as the model itself would.
#pragma once

#include <string>
#include <vector>

#include "base/diagnostic.h"
#include "frontend/onnx/importer.h"

namespace relay::importer {

// Thrown by a node whose outputs have one rank or another.
struct BranchesDiffer {
  Expr condition;
  Values then_values, else_values;
};

// The values that are chosen by a condition, one for each pair; sequences of one length element by element, others as
// what a run holds. Throws BranchesDiffer where the ranks differ.
Values join_branches(NodeContext& ctx, const Expr& condition, Values then_values,
                     Values else_values);

// The values where the condition is `holds`; a run in which it is not ends.
Values only_if(NodeContext& ctx, const Expr& condition, bool holds, const Values& values);

// E0505: which of two ranks a value has, only a run knows.
Diagnostic rank_is_open(const BranchesDiffer& branches, const Span& span);

// Whether the errors say that the program makes no sense, and not that something of it cannot be imported.
bool are_type_errors(const std::vector<Diagnostic>& found);

}  // namespace relay::importer
