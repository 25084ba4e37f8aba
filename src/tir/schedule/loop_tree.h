// The loop tree of a function: parents, blocks and loops by name; and the edits that schedule
// steps share. Blocks are leaves: what is inside a block's body is not seen.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "node/node_map.h"
#include "node/walk.h"
#include "tir/arith/analyzer.h"
#include "tir/stmt.h"

namespace relay::tir {

class LoopTree {
 public:
  explicit LoopTree(const Stmt& root);

  const Stmt& root() const { return root_; }
  // Blocks in program order.
  const std::vector<const BlockNode*>& blocks() const { return blocks_; }
  const BlockNode* find_block(std::string_view name) const;
  const ForNode* find_loop(const Var& var) const;
  const std::vector<const ForNode*>& loops() const { return loops_; }
  const std::vector<const AllocateNode*>& allocations() const { return allocations_; }
  // The statement directly around, or null.
  const StmtNode* parent(const Node* stmt) const;
  // Loops around a statement, outermost first.
  std::vector<const ForNode*> loops_around(const Node* stmt) const;
  // Blocks and loops inside a statement, in program order (the statement itself included).
  std::vector<const BlockNode*> blocks_in(const Node* stmt) const;
  std::vector<const ForNode*> loops_in(const Node* stmt) const;
  bool contains(const Node* outer, const Node* inner) const;
  // The innermost statement that contains all of `stmts`.
  const StmtNode* common_ancestor(const std::vector<const Node*>& stmts) const;
  const AllocateNode* allocation_of(const Buffer& buffer) const;

 private:
  // Where a statement is: its number in preorder, and that behind all that is in it.
  struct Place {
    const StmtNode* parent = nullptr;
    size_t begin = 0;
    size_t end = 0;
  };

  Stmt root_;
  relay::NodeMap<Place> places_;
  std::vector<const BlockNode*> blocks_;
  std::vector<const ForNode*> loops_;
  std::vector<const AllocateNode*> allocations_;
};

// Replaces statements by others; a null replacement removes the statement, and with it loops,
// sequences and allocations that become empty.
Stmt replace_stmts(const Stmt& root, const std::unordered_map<const Node*, Stmt>& replacements);

// Puts `before` and `after` (either may be null) around the statement.
Stmt with_siblings(Stmt before, Stmt stmt, Stmt after);

using VarMap = std::unordered_map<const Node*, NodeRef>;
// Replaces variables in an expression or statement.
template <class T>
Ref<T> replace_vars(const Ref<T>& root, const VarMap& map) {
  return Ref<T>::unchecked(substitute(root, map));
}

// Ranges of the loops around a statement.
void bind_loops(Analyzer& analyzer, const std::vector<const ForNode*>& loops);

// Simplifies bindings and predicates of those blocks, given the loops around them; removes blocks
// whose predicate is false. The tree's root when nothing changes.
Stmt simplify_blocks(const LoopTree& tree, const std::function<bool(const BlockNode&)>& which);

// null is "true".
PrimExpr conjoin(PrimExpr a, PrimExpr b);
// The parts of a conjunction.
std::vector<PrimExpr> conjuncts(const PrimExpr& e);

bool uses_var(const PrimExpr& e, const Node* var);
bool uses_any_var(const PrimExpr& e, const std::vector<const Node*>& vars);

// The block's access regions, computed anew from the loads and stores of its body; a body with
// loops keeps what it has.
Block with_access_regions(const Block& block);
// The same for any body: what follows from variables of the body is the whole dimension, and memory that the body allocates is
// left out.
Block with_regions_of_body(const Block& block);

// The single store of the block's body, or null.
const StoreNode* single_store(const BlockNode& block);

// The values of the block's iteration variables as a map.
VarMap bindings_of(const BlockNode& block);

// The least box that holds `regions` (in terms of loop variables) while `inner` loops run: for
// each dimension the least index and the constant or symbolic number of indices; the whole
// dimension where that is not known.
struct Box {
  std::vector<PrimExpr> mins;
  std::vector<PrimExpr> extents;
};
Box relaxed_box(const Buffer& buffer, const std::vector<Box>& regions,
                const std::vector<const ForNode*>& outer, const std::vector<const ForNode*>& inner);

}  // namespace relay::tir
