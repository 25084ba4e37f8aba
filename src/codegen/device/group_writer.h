// The statements of a group of work items, in order: phases of the items, barriers, shared memory, and registers of each
// item (tir/thread_nests.h). A code generator derives from it and writes what it is called for.
#pragma once

#include <array>
#include <functional>
#include <optional>
#include <unordered_map>
#include <vector>

#include "codegen/device/device_kernel.h"
#include "tir/stmt.h"

namespace relay::codegen {

class GroupWriter {
 protected:
  explicit GroupWriter(const DeviceKernel& kernel) : kernel_(kernel) {}
  ~GroupWriter() = default;

  // Of a launch, whose groups have so many items along each axis; 0: it has no groups.
  void begin_group(const std::array<int64_t, 3>& group);
  // What a group does: its phases are its items', and a barrier is everyone's.
  void group_statement(const tir::Stmt& s);
  // The last indices of an element: those among the registers of the item that asks. Nothing for a buffer that is not
  // the registers of a group.
  std::optional<std::vector<tir::PrimExpr>> own_index(
      const tir::BufferNode& b, const std::vector<tir::PrimExpr>& indices) const;

  // The loops over items around what is written.
  const std::array<const tir::ForNode*, 3>& phase_axes() const { return phase_; }

  virtual void barrier() = 0;
  // Copies that arrive later (tir::LoopNest::Copy): those begun since the last end are one lot, and each item waits for all its
  // lots but the last `lots`.
  virtual void end_copies() = 0;
  virtual void wait_copies(int64_t lots) = 0;
  // Done by the items below `items` of each axis; 0: by all of the axis.
  virtual void phase(const std::array<const tir::ForNode*, 3>& axes,
                     const std::array<int64_t, 3>& items, const tir::StmtNode& body) = 0;
  // So many elements of the group, or of each item.
  virtual void shared_memory(const tir::BufferNode& b, int64_t elements) = 0;
  virtual void item_registers(const tir::BufferNode& b, int64_t elements) = 0;
  // What all items do alike.
  virtual void repeat(const tir::ForNode& f, const std::function<void()>& body) = 0;
  virtual void bind_for(const tir::LetStmtNode& l, const std::function<void()>& body) = 0;
  virtual void only_if(const tir::PrimExpr& cond, const std::function<void()>& body) = 0;

 private:
  void begin_phase(const std::array<const tir::ForNode*, 3>& axes, const tir::StmtNode& body);
  void allocate_in_group(const tir::BufferNode& b);
  // Axes along which the group has several items.
  size_t item_axes() const;

  const DeviceKernel& kernel_;
  std::array<int64_t, 3> group_{};
  std::array<const tir::ForNode*, 3> phase_{};
  // Registers of a group: axes that count items.
  std::unordered_map<const tir::BufferNode*, size_t> items_of_;
};

}  // namespace relay::codegen
