// Statements of one work item as OpenCL C: loops, stores, checks and memory.
#pragma once

#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "codegen/opencl/print_expressions.h"
#include "runtime/device_source.h"

namespace relay::codegen {

class StatementPrinter : protected ExpressionPrinter {
 protected:
  struct Place {
    std::string name;
    std::string first;  // what is added to an index; empty: nothing
  };

  explicit StatementPrinter(const tir::PrimFuncNode& f) : ExpressionPrinter(f) {}
  ~StatementPrinter() = default;

  // The expression as a formula of the call's sizes; nothing for one that is none.
  std::optional<std::string> formula(const tir::PrimExpr& e) const;
  runtime::SizeFormula bytes_of(const tir::BufferNode& b) const;
  // A buffer that a launch may take, with the next number.
  void add_buffer(const tir::BufferNode* b) { numbers_.emplace(b, numbers_.size()); }
  void statement(const tir::StmtNode& s);
  // What is around a launch holds for all its items.
  void open(const tir::StmtNode& s);
  void loop(const tir::ForNode& f);
  // The line of a loop, whose block `close` ends.
  void open_loop(const tir::ForNode& f);
  // Nothing for more than kMostElements, or a number that is not a constant.
  static std::optional<int64_t> constant_elements(const tir::BufferNode& b);
  // Whether the buffer is the item's own memory.
  static bool is_small(const tir::BufferNode& b);
  void allocate(const tir::BufferNode& b);
  // Where the buffer is; a global one becomes a parameter of the launch.
  const Place& place(const tir::BufferNode& b);
  void store(const tir::StoreNode& s);
  std::string element(const tir::BufferNode& b, const std::vector<tir::PrimExpr>& indices) override;

  runtime::DeviceSource source_;
  std::unordered_map<const tir::BufferNode*, size_t> numbers_;
  // Of the launch that is printed: where its buffers are; those of which each item has a slice of working memory, with the
  // number of that memory; and the formula of its number of items.
  std::unordered_map<const tir::BufferNode*, Place> places_;
  std::unordered_map<const tir::BufferNode*, size_t> slices_;
  std::string all_items_;
};

}  // namespace relay::codegen
