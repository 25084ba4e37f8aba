// Reductions across the items of a warp, which exchange registers in place of memory.
//
//   for y in thread_bound(4, threadIdx.y):                # warps
//     for x in thread_bound(32, threadIdx.x):  # nest = lanes
//       if x == 0:
//         sums[y] = 0f
//       sums[y] = sums[y] + own[y, x, 0]
//
// The loops mean what they say: an item after the other adds its register to the element that they share. Code generation lets
// the warp combine the registers in pairs, and its first item store the result; the search for races takes the stores for
// that item's. Legal where all that is stored is the one element, which does not depend on the item of the warp, by an
// operator whose operands may be combined in any order; the order of a sum changes.
#pragma once

#include <string>
#include <variant>

#include "tir/stmt.h"
#include "tir/thread_nests.h"

namespace relay::tir {

// The items of a warp: neighbours along x, which are all that a group has along that axis.
inline constexpr int64_t kWarpItems = 32;

struct LaneReduction {
  const StoreNode* store = nullptr;  // of the combined values
  BinaryOp op = BinaryOp::Add;
  PrimExpr own;  // what an item has
  const StoreNode* init =
      nullptr;  // of the value from which the element starts; null: of what it is
};

// Whether the phase is marked as one (LoopNest::Lanes).
bool reduces_lanes(const ThreadNest& phase);
// What the phase reduces, or why no warp can.
std::variant<LaneReduction, std::string> lane_reduction(const ThreadNest& phase);

}  // namespace relay::tir
