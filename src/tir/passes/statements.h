// What lowering passes share: one descent over statements, and small edits.
#pragma once

#include <functional>
#include <unordered_map>
#include <vector>

#include "tir/stmt.h"

namespace relay::tir {

// The statement with each statement directly inside it replaced by what `f` makes of it; the
// identical handle when none differs. Loops nest as deep as a schedule made them, so passes call
// themselves through this.
Stmt map_inner(const Stmt& s, const std::function<Stmt(const Stmt&)>& f);
// Calls `f` for each statement directly inside, in program order.
void for_each_inner(const StmtNode& s, const std::function<void(const Stmt&)>& f);

// Whether it is a sequence of no statements.
bool is_empty(const Stmt& s);
// A statement whose inside was rewritten, without the empty ones directly inside it; itself empty where nothing is left.
// Other nodes stay what they are.
NodeRef without_empty(const NodeRef& rebuilt);

// The loop with another body.
Stmt with_body(const ForNode& f, Stmt body);
PrimFunc with_body(const PrimFunc& f, Stmt body);

// Whether the variable or buffer stands anywhere below `root`.
bool uses(const NodeRef& root, const Node* what);

using NodeMap = std::unordered_map<const Node*, NodeRef>;
NodeRef replace_nodes(const NodeRef& root, const NodeMap& map);
template <class T>
Ref<T> replace(const Ref<T>& root, const NodeMap& map) {
  return Ref<T>::unchecked(replace_nodes(root, map));
}

// Whether the block reduces along the loop.
bool reduces_along(const BlockNode& b, const ForNode& loop);

// A block that initialises what it reduces to, and the loops around it from some loop on, outermost
// first.
struct ReductionNest {
  const BlockNode* block;
  std::vector<const ForNode*> loops;

  // Whether the loops that reduce may have no iteration, for some sizes of the function. What the
  // block reduces to must then be initialised outside of them.
  bool may_be_empty() const;
  // Whether a condition of the block's predicate is about loops that reduce and about others.
  bool has_mixed_condition() const;
  // The initialisation in loops of its own over those of `loops` that do not reduce, for every
  // element that the nest computes. Conditions on the loops that reduce say nothing about it; those
  // that are about others as well hold or not as they do at the first iteration.
  Stmt initialisation() const;
};

// The nests of all blocks below the loop that have an initialisation, in program order, with the
// loop itself as the first of `loops`. Blocks below a condition or a LetStmt are left out: what
// stands there cannot move in front of the loop.
std::vector<ReductionNest> reduction_nests(const ForNode& f);

}  // namespace relay::tir
