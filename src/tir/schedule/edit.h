// What the schedule steps share: the tree of the function as it is, checks and errors.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tir/schedule/loop_tree.h"
#include "tir/schedule/schedule.h"

namespace relay::tir {

class ScheduleEdit {
  // The tree that the step began with, also when the step has given the schedule another body.
  std::shared_ptr<const LoopTree> held_;

 public:
  ScheduleEdit(const Schedule& s, std::string step);

  // The reason in the words of the step.
  Illegal fail(const std::string& reason, const std::string& help = {}) const;
  StepResult<const BlockNode*> block(const BlockRV& rv) const;
  StepResult<const ForNode*> loop(const LoopRV& rv) const;

  std::vector<const BlockNode*> producers(const BlockNode& b) const;
  std::vector<const BlockNode*> consumers(const BlockNode& b) const;
  std::vector<const BlockNode*> writers(const Buffer& buffer) const;
  std::vector<const BlockNode*> users(const Buffer& buffer) const;
  // The one buffer that the block writes; illegal when there are several.
  StepResult<Buffer> written_buffer(const BlockNode& b) const;
  // Illegal unless the iterations of the loop may run in any order and at the same time.
  StepResult<> check_data_parallel(const ForNode& f) const;

  // Illegal when the block's predicate says more than that its iterations are in their ranges.
  StepResult<> check_guarded_by_ranges(const BlockNode& b) const;

  static bool touches(const std::vector<Region>& regions, const Buffer& buffer);
  static bool is_reduction(const BlockNode& b);
  // Whether the loop's variable stands in the binding of an iteration variable of that kind.
  static bool bound_to(const ForNode& f, const BlockNode& b, IterKind kind);
  // The update `result = result op value` of a reduction that is a single store; illegal for others.
  struct Update {
    const StoreNode* store;
    BinaryOp op;
    PrimExpr old;  // a load of the result
    PrimExpr value;
  };
  StepResult<Update> update_of(const BlockNode& b) const;
  // Moves the buffer's allocation to the innermost statement around all its uses.
  static Stmt place_allocation(const Stmt& body, const Buffer& buffer);
  // The same for the buffers of a block that has moved, where it left an allocation.
  static Stmt reach_moved(Stmt body, const BlockNode& moved);

  // The block in new loops over a part of its iterations, data-parallel ones first; guarded where
  // the part may reach out of the block's own ranges.
  static Stmt loops_over_box(Schedule& s, const BlockNode& b, const std::vector<PrimExpr>& mins,
                             const std::vector<PrimExpr>& extents,
                             const std::vector<const ForNode*>& around);
  // The statement of the outermost sequence (below allocations) that holds `stmt`.
  static const Node* top_level(const LoopTree& tree, const Node* stmt);
  static std::string fresh_name(Schedule& s, const std::string& base) { return s.fresh_name(base); }

  const Schedule& schedule;
  const LoopTree& tree;

 private:
  std::string step_;
};

// A string as an argument of a trace line.
std::string quoted(const std::string& text);

}  // namespace relay::tir
