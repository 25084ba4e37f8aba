// Chains of Lets in a function, rewritten one after the other.
//
//   let %a = ..; let %b = ..; ..; result
#pragma once

#include <functional>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "ir/expr.h"

namespace relay {

using Lets = std::vector<std::pair<Var, Expr>>;

class LetChains {
 public:
  explicit LetChains(const Function& f);

  // The function with each chain, from its first Let on, as `rewrite` makes it: those inside of the
  // values come first. Iterative; linear.
  Function rewritten(const std::function<Lets(Lets chain)>& rewrite) const;

  // How many places in the function refer to a variable, its Let among them, or to an expression.
  int uses(const Node* n) const;

 private:
  Function function_;
  std::unordered_map<const Node*, int> edges_;  // to a node, from all others
  std::unordered_set<const Node*> inner_;       // Lets that go on a chain
};

}  // namespace relay
