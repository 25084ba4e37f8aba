// Rewrite rules that need no knowledge of ranges: a table, each row proved by exhaustive test.
#pragma once

#include <span>
#include <string>

#include "tir/expr.h"

namespace relay::tir {

// pattern -> result when the condition on its constants holds. x, y, z match any int64 expression,
// p any bool one and q any that reads no memory, c and d int64 constants.
struct Rule {
  PrimExpr pattern;
  PrimExpr result;
  bool (*condition)(int64_t c, int64_t d) = nullptr;
};

// The variables of the table.
struct RuleVars {
  Var x, y, z, p, q, c, d;
};
const RuleVars& rule_vars();
std::span<const Rule> rules();

// The result of the first rule that matches at the root of a scalar expression; null if none does.
// Equal sub-expressions are recognised when they are the same node.
PrimExpr apply_rules(const PrimExpr& e);

}  // namespace relay::tir
