// Statements of groups of work items as OpenCL C.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "codegen/device/group_writer.h"
#include "codegen/opencl/print_statements.h"

namespace relay::codegen {

class GroupPrinter : protected StatementPrinter, protected GroupWriter {
 protected:
  explicit GroupPrinter(const tir::PrimFuncNode& f) : StatementPrinter(f), GroupWriter(device_) {}
  ~GroupPrinter() = default;

  std::string element(const tir::BufferNode& b, const std::vector<tir::PrimExpr>& indices) override;

  std::vector<std::string> shared_;  // memory of a group, as it is declared

 private:
  void barrier() override;
  void end_copies() override;
  void wait_copies(int64_t lots) override;
  void phase(const std::array<const tir::ForNode*, 3>& axes, const std::array<int64_t, 3>& items,
             const tir::StmtNode& body) override;
  void shared_memory(const tir::BufferNode& b, int64_t elements) override;
  void item_registers(const tir::BufferNode& b, int64_t elements) override;
  void repeat(const tir::ForNode& f, const std::function<void()>& body) override;
  void bind_for(const tir::LetStmtNode& l, const std::function<void()>& body) override;
  void only_if(const tir::PrimExpr& cond, const std::function<void()>& body) override;
};

}  // namespace relay::codegen
