// Which parameters of loops keep their values.
#pragma once

#include "ir/expr.h"
#include "node/node_map.h"

namespace relay {

// A loop is a local function that calls itself and that one expression calls outside, the body of the let that defines it:
//
//   let %loop = fn (%i, %w) { if (..) { %loop(add(%i, 1), %w) } else { .. } };
//   %loop(0, %weight)
//
// %w is invariant: every call inside passes it on. Nothing is known of functions that are used as values. Linear.
class LoopInvariants {
 public:
  explicit LoopInvariants(const Function& f);

  // The loop of an invariant parameter; null for other expressions.
  const LetNode* loop_of(const Expr& e) const {
    const LetNode* const* found = loops_.find(e.get());
    return found == nullptr ? nullptr : *found;
  }

 private:
  NodeMap<const LetNode*> loops_;
};

}  // namespace relay
