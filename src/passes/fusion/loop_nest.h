// Whether a loop, with the loops inside it, can be one kernel, and what it is made of (fusion/outline_loops.h).
#pragma once

#include <functional>
#include <string>
#include <unordered_set>
#include <vector>

#include "ir/expr.h"

namespace relay::outline {

struct LoopNest {
  // Why it is none; empty: it is one.
  std::string reason;
  Span span;
  // The function, defined outside, whose call is the reason.
  const Node* missing = nullptr;
  // What the kernel is given: expressions that are computed once, outside of the loop.
  std::vector<Expr> parameters;
  // The definitions of joins that something follows.
  std::unordered_set<const Node*> joined_inside;
  // Whether a function in it calls itself.
  bool repeats = false;
};

// The loop that a Let defines and its body enters. `called_once`: behind its definition, one expression uses it. `outside`:
// whether an expression below the loop is computed before the loop begins.
LoopNest loop_nest(const LetNode& l, bool called_once,
                   const std::function<bool(const Node&)>& outside);

}  // namespace relay::outline
