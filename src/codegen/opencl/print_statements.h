// Statements of one work item as OpenCL C: loops, stores, checks and memory.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "codegen/opencl/print_expressions.h"

namespace relay::codegen {

class StatementPrinter : protected ExpressionPrinter {
 protected:
  struct Place {
    std::string name;
    std::string first;  // what is added to an index; empty: nothing
  };

  explicit StatementPrinter(const tir::PrimFuncNode& f) : ExpressionPrinter(f) {}
  ~StatementPrinter() = default;

  void statement(const tir::StmtNode& s);
  // What is around a launch holds for all its items.
  void open(const tir::StmtNode& s);
  void loop(const tir::ForNode& f);
  // The line of a loop, whose block `close` ends.
  void open_loop(const tir::ForNode& f);
  void allocate(const tir::BufferNode& b);
  const Place& place(const tir::BufferNode& b) const;
  void store(const tir::StoreNode& s);
  std::string element(const tir::BufferNode& b, const std::vector<tir::PrimExpr>& indices) override;

  // Of the launch that is printed: where its buffers are.
  std::unordered_map<const tir::BufferNode*, Place> places_;
};

}  // namespace relay::codegen
