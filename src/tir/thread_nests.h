// How a lowered kernel is divided over the work items of a device.
//
//   for by in thread_bound(4, blockIdx.y):            # a launch of 4 groups
//     allocate tile: float32[64] in shared
//     allocate acc: float32[16, 4] in register        # the first axis counts items: each has 4 elements
//     for k in range(8):                              # the whole group repeats
//       for c in thread_bound(16, threadIdx.x): ...   # items of the group: a phase
//       barrier()                                     # between phases (tir/passes/insert_barriers.h)
//       for t in thread_bound(16, threadIdx.x): ...
//
// The outermost bound loops of a nest at the top of a kernel are a launch. Inside a loop over groups, loops over items
// are phases; what stands between them is executed by the whole group alike, and a statement there that stores by the
// group's first item. Loops that are bound in any other place are loops of one item.
#pragma once

#include <array>
#include <functional>
#include <optional>
#include <unordered_set>

#include "tir/stmt.h"
#include "tir/thread_tags.h"

namespace relay::tir {

// Bound loops of one level, each the only statement of the one outside it. Those of an axis that is there already, or of an extent
// that depends on memory or on another axis, do not belong to it.
struct ThreadNest {
  ThreadLevel level = ThreadLevel::Global;
  std::array<const ForNode*, 3> axes{};  // null: the axis has one
  Stmt body;

  // The index of the loop's axis; nothing for a loop that does not belong to it.
  std::optional<size_t> axis_of(const ForNode& f) const;
};
// The nest whose outermost loop the statement is; parallel loops are bound to globalIdx.x. Nothing for other statements.
std::optional<ThreadNest> thread_nest(const Stmt& s);

// Whether the loop is bound to groups. It stays where it has one iteration: its body is a group's.
bool is_over_groups(const ForNode& f);
// Whether a loop over the items of a group stands in the statement.
bool has_phases(const Stmt& s);
// The statements below `s`, and `s` itself, that have phases.
std::unordered_set<const Node*> holders_of_phases(const Stmt& s);
// Whether the statement only has launches inside: a sequence, an allocation, or a binding or condition that reads no memory
// around loops that make launches.
bool is_around_launches(const Stmt& s);
// Whether the expression reads memory or calls.
bool reads_memory(const NodeRef& e);

// Calls `each` for the body of each nest of groups in the kernel, which makes another of it.
Stmt map_groups(const Stmt& body, const std::function<Stmt(const ThreadNest& nest)>& each);
// The phases inside a group's statement, in program order.
void for_each_phase(const Stmt& s, const std::function<void(const ThreadNest& phase)>& f);

// Buffers of a group that are registers of its items: allocated between the loops over groups and those over items.
std::unordered_set<const BufferNode*> registers_of_groups(const Stmt& body);

// The items of a group along each axis: as many as its largest phase has. Nothing where an extent is not a constant.
std::optional<std::array<int64_t, 3>> group_size(const Stmt& group);

}  // namespace relay::tir
