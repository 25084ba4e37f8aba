// Ranks that only a run knows.
#pragma once

#include <vector>

#include "base/diagnostic.h"
#include "frontend/common/model_value.h"

namespace relay::frontend {

// Thrown by an operator whose results have one rank or another.
struct BranchesDiffer {
  Expr condition;
  Values then_values, else_values;
};

// E0505: which of two ranks a value has, only a run knows.
Diagnostic rank_is_open(const BranchesDiffer& branches, const Span& span);

// Whether the errors say that the program makes no sense, and not that something of it cannot be imported.
bool are_type_errors(const std::vector<Diagnostic>& found);

}  // namespace relay::frontend
