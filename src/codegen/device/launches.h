// A lowered kernel as launches: functions of a device that run one after the other.
//
// The nests at the top of the kernel are a launch each, as a device synchronises its work items only at the end of a launch.
// The loops that are outermost in a nest and bound to work items or to groups of them (tir/thread_nests.h), or parallel, are its
// items; what has none runs in one item. Buffers around several nests are working memory.
#pragma once

#include <array>
#include <vector>

#include "tir/stmt.h"

namespace relay::codegen {

struct LaunchPart {
  // Variables that are bound and conditions that hold around it, outermost first.
  std::vector<const tir::StmtNode*> around;
  // The loop over the items, or groups, of each axis; null: the axis has one.
  std::array<const tir::ForNode*, 3> axes{};
  std::vector<tir::Stmt> body;
  // Items of a group; 0: the axes count items, and the driver chooses groups.
  std::array<int64_t, 3> group{0, 0, 0};

  bool has_groups() const { return group[0] > 0; }
  bool has_items() const { return axes[0] != nullptr || axes[1] != nullptr || axes[2] != nullptr; }
};

struct KernelLaunches {
  std::vector<tir::Buffer> workspace;
  std::vector<LaunchPart> parts;
};

KernelLaunches launches_of(const tir::PrimFuncNode& f);

}  // namespace relay::codegen
