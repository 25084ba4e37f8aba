// Nests of loops that the 32 items of a warp do with one instruction: a product of matrices, whose sums lie in the items'
// registers.
//
//   for z in thread_bound(4, threadIdx.z):           # warps
//     for y in thread_bound(8, threadIdx.y):
//       for x in thread_bound(4, threadIdx.x):
//         for k in range(16):  # nest = matrix
//           for i in range(2):  # nest = matrix
//             for j in range(2):  # nest = matrix
//               sums[z, y, x, i, j] = sums[z, y, x, i, j] + float32(a[(z * 16 + i * 8 + y) * 24 + k]) *
//                                                           float32(b[(x * 2 + j) * 24 + k])
//
// The loops mean what they say: each item adds the products of its own elements, and proofs, the interpreter and its
// search for races take them so. Code generation lets the warp read each operand once. That is legal because the rows (y and
// i) alone select elements of `a` besides the terms, and the columns (x and j) those of `b`: the instruction's element in
// row i * 8 + y and column x * 2 + j is that of item (x, y).
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "tir/stmt.h"
#include "tir/thread_nests.h"

namespace relay::tir {

// The items of a warp along x and y, and the columns of an item.
inline constexpr int64_t kWarpColumns = 4, kWarpRows = 8, kItemColumns = 2;

// `sums[..] = sums[..] + a[..] * b[..]`, where operands may be cast to dtypes that have all their values.
struct SumOfProducts {
  const LoadNode *a = nullptr, *b = nullptr;
};
std::optional<SumOfProducts> sum_of_products(const StoreNode& store);

struct WarpProduct {
  const StoreNode* store = nullptr;  // to the sums
  const LoadNode *a = nullptr, *b = nullptr;
  const ForNode *term = nullptr, *row = nullptr, *column = nullptr;  // row: null where it is one
  const ForNode *item_row = nullptr, *item_column = nullptr;

  int64_t terms() const { return *as_int(term->extent); }
  int64_t item_rows() const { return row == nullptr ? 1 : *as_int(row->extent); }
  // The indices of an element: its row is i * 8 + y, its column is below 8.
  std::vector<PrimExpr> a_at(const PrimExpr& i, const PrimExpr& y, const PrimExpr& k) const;
  std::vector<PrimExpr> b_at(const PrimExpr& k, const PrimExpr& j) const;
  // Of this item.
  std::vector<PrimExpr> sum_at(int64_t i, int64_t j) const;
};

// The product that a nest in the phase is, or why it is none.
std::variant<WarpProduct, std::string> warp_product(const ForNode& nest, const ThreadNest& phase);

// What is wrong with the matrix nests in phases of a kernel without blocks; empty: nothing.
std::string warp_nest_defect(const Stmt& body);

}  // namespace relay::tir
