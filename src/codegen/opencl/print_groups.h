// Statements of groups of work items as OpenCL C: phases of the items, barriers, local memory, and registers of each item.
#pragma once

#include <array>
#include <string>
#include <unordered_map>
#include <vector>

#include "codegen/opencl/print_statements.h"

namespace relay::codegen {

class GroupPrinter : protected StatementPrinter {
 protected:
  explicit GroupPrinter(const tir::PrimFuncNode& f) : StatementPrinter(f) {}
  ~GroupPrinter() = default;

  // What a group does: its phases are its items', and a barrier is everyone's.
  void group_statement(const tir::Stmt& s);
  std::string element(const tir::BufferNode& b, const std::vector<tir::PrimExpr>& indices) override;

  std::array<int64_t, 3> group_{};   // items along each axis; 0: the launch has no groups
  std::vector<std::string> shared_;  // memory of a group, as it is declared

 private:
  // By the items that the axes count, of those of the group.
  void phase(const std::array<const tir::ForNode*, 3>& axes, const tir::Stmt& body);
  void allocate_in_group(const tir::BufferNode& b);
  // Axes along which the group has several items.
  size_t item_axes() const;
  // Of a register of a group: the item is the one that asks.
  std::string own_element(const tir::BufferNode& b, size_t axes,
                          const std::vector<tir::PrimExpr>& indices);

  std::array<const tir::ForNode*, 3> phase_{};  // the loops over items around what is printed
  // Registers of a group: axes that count items.
  std::unordered_map<const tir::BufferNode*, size_t> items_of_;
};

}  // namespace relay::codegen
