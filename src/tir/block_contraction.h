// The sum of products that a block computes, as a typed statement: BlockNode::contraction.
//
//   T[i, j] = T[i, j] + A[i, k] * B[j // 8, k, j % 8]
//
//     dims      row i, column j, reduced k
//     operands  A[i, k] and B[j // 8, k, j % 8]: B holds the columns in panels of 8
//     result    T[i, j]
//
// Compute rules state the dimensions (`contract` in tir/compute.h); the operands are the indices of the body's loads,
// written in these dimensions. Schedule rules and code generation read the statement instead of index arithmetic.
//
// Schedule steps keep the statement: a step that changes loads (inlining, caching, a new layout) has its operands stated
// again, a step that replaces iterations replaces dimensions. Steps after which the block is no sum of products of these
// operands drop it: the initialisation that decompose_reduction separates, the sum of partial sums of rfactor, and the
// words of word_dot, whose elements no iteration counts.
#pragma once

#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "tir/stmt.h"

namespace relay::tir {

// One dimension of role None for each iteration, for blocks that state no contraction.
std::vector<BlockDimension> dimensions_of(const std::vector<IterVar>& iters);
BlockDimension block_dimension(Var iter, PrimExpr extent, ContractionRole role);

// The statement of a block with these iterations and this body: each load that is not of the written buffer is an
// operand. Dimensions of other iterations are left out, and an iteration without a dimension gets one of role None. An iteration
// with another constant extent than its dimensions gets one dimension of its role.
// Null where the body is not a single store.
BlockContraction state_contraction(std::vector<BlockDimension> dims,
                                   const std::vector<IterVar>& iters, const Stmt& body);

// What the block states; for other blocks the same with dimensions of role None. Null where the body is not a single store.
BlockContraction contraction_of(const BlockNode& b);

// States the contraction of a block again whose iterations or body changed; nothing for a block without one.
void restate_contraction(BlockNode& b);

// The block's dimensions with iterations renamed; those of other iterations are left out.
std::vector<BlockDimension> renamed_dimensions(
    const BlockNode& b, const std::unordered_map<const Node*, NodeRef>& names);

// The role of an iteration: that of its last dimension of more than one element, else of its first one. None in blocks
// without a statement.
ContractionRole role_of(const BlockNode& b, const Var& iter);
ContractionRole role_of(const BlockContractionNode& c, const Var& iter);

// Whether a term, or an index, depends on an iteration.
bool uses_iteration(const BlockContractionNode& c, const BlockIndexTerm& term, const Var& iter);
bool uses_iteration(const BlockContractionNode& c, const BlockAxis& axis, const Var& iter);
bool uses_iteration(const BlockContractionNode& c, const BlockOperandNode& operand,
                    const Var& iter);

// How many values of the iteration share one value of the term: the width of a panel, or of a group. nullopt where the
// term is no quotient of the iteration.
std::optional<int64_t> quotient_width(const BlockContractionNode& c, const BlockIndexTerm& term,
                                      const Var& iter);

// Why the statement does not fit the block; empty when it does.
std::string contraction_defect(const BlockNode& b);

}  // namespace relay::tir
