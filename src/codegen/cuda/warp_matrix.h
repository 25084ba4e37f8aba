// PTX's instructions for products of matrices by a warp (tir/warp_nest.h): mma.sync, and ldmatrix for their operands.
//
// A register of an operand has 32 bits. Of `a`, the item (x, y) has the elements of row i * 8 + y, and of `b` those of column
// y, at the terms half * 4 * E + x * E on, where E is the number of elements in a register.
#pragma once

#include <llvm/IR/IRBuilder.h>

#include <optional>
#include <span>
#include <vector>

#include "tir/expr.h"

namespace relay::codegen {

struct WarpInstruction {
  tir::DType a, b;
  int64_t rows, terms;
  llvm::Intrinsic::ID id;

  int64_t elements() const { return 32 / a.bits; }
  // Registers of an operand along the terms, and those of `a` along its rows.
  int64_t halves() const { return terms / (4 * elements()); }
  int64_t item_rows() const { return rows / 8; }
};
// Null where PTX has none.
const WarpInstruction* warp_instruction(tir::DType a, tir::DType b, int64_t rows, int64_t terms);

// The sums with the product added. Registers of `a` are in the order (half, row), of 32 bits each.
std::vector<llvm::Value*> multiply_by_warp(llvm::IRBuilder<>& b, const WarpInstruction& by,
                                           std::span<llvm::Value* const> a_registers,
                                           std::span<llvm::Value* const> b_registers,
                                           std::span<llvm::Value* const> sums);

// `count` registers, 1, 2 or 4, of which item 8 * i + r of the warp points at the 16 bytes that are row r of the i-th.
std::vector<llvm::Value*> load_by_warp(llvm::IRBuilder<>& b, size_t count, llvm::Value* pointer);

}  // namespace relay::codegen
