// Perfect nests of marked loops of constant extents around one store, and how an index moves in them.
#pragma once

#include <optional>
#include <vector>

#include "tir/stmt.h"

namespace relay::tir {

struct ConstantNest {
  std::vector<const ForNode*> loops;
  std::vector<int64_t> extents;
  const StoreNode* store = nullptr;
};

// Nullopt unless every loop is one of such a nest and the store is of flat memory and under no mask.
std::optional<ConstantNest> constant_nest(const Stmt& s, LoopNest nest);

// An index of a nest: the first one, and what a step of each loop adds, which no loop of the nest changes.
struct LinearIndex {
  PrimExpr first;
  std::vector<PrimExpr> steps;
};

// What a step of the loop adds to an index; nullopt when that depends on a loop of the nest.
std::optional<PrimExpr> step_along(const PrimExpr& index, const ConstantNest& nest,
                                   const ForNode& loop);

// Nullopt when an index is not linear in the loops.
std::optional<LinearIndex> linear_index(const PrimExpr& index, const ConstantNest& nest);

// The same with steps that are constants.
struct Place {
  PrimExpr first;
  std::vector<int64_t> steps;
};

// Nullopt when an index is not linear in the loops, or its steps depend on sizes that a run gives.
std::optional<Place> place_of(const PrimExpr& index, const ConstantNest& nest);

}  // namespace relay::tir
