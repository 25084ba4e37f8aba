// Nests of loops that a matrix unit does at once: sums of products of tiles, which stay in the unit's registers.
//
// A schedule marks the loops with LoopNest::Matrix. They mean what they say, so that everything else - proofs of
// accesses, the interpreter - takes them as the loops over elements that they are; code generation for a target with such a
// unit recognises three forms of a perfect nest of loops of constant extents around one store:
//
//   sums[..] = 0
//   sums[..] = sums[..] + cast(a[..]) * cast(b[..])
//   memory[..] = sums[..]
//
// where `sums` is a buffer of scope register that nothing else touches. Rows of a register of `a` run along sums' rows, and
// its words along the sum; rows of one of `b` along the sum, and its words along the columns:
//
//   for row_tile, column_tile, row, column, word, element:
//     sums[row_tile, row, column_tile, column] += a[row_tile, row, word, element] * b[word, column_tile, column, element]
//
// The operand that a StreamedOperand names is read so that it does not drive the other one out of the cache next to the
// unit.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "tir/stmt.h"

namespace relay::tir {

// Whether it is the outermost loop, or one of the loops, of a nest for the unit.
bool in_matrix_nest(const ForNode& loop);

// How a buffer of sums is cut into registers.
struct MatrixSums {
  const BufferNode* buffer = nullptr;
  int64_t rows = 1, columns = 1;          // of a register
  int64_t row_step = 0, column_step = 0;  // elements of the buffer between them
  std::vector<int64_t> tiles;             // the element that each register begins with
};

struct MatrixProduct {
  // Where a register begins: so many rows, and then elements, behind the first element.
  struct Begin {
    int64_t rows = 0;
    int64_t elements = 0;
    friend bool operator==(const Begin&, const Begin&) = default;
  };
  struct Operand {
    const LoadNode* load = nullptr;
    PrimExpr first;  // the index of the first element
    PrimExpr step;   // elements between the rows of a register
    std::vector<Begin> tiles;
    bool streamed = false;
  };
  struct Dot {
    size_t sum, a, b;  // registers
  };
  MatrixSums sums;
  int64_t words = 1, word_elements = 1;  // of a row of `a`
  Operand a, b;
  std::vector<Dot> dots;

  size_t registers() const { return sums.tiles.size() + a.tiles.size() + b.tiles.size(); }
};

// The second form, after lowering: indices are flat. Nullopt when the statement is not of it.
std::optional<MatrixProduct> matrix_product(const Stmt& nest);

// The third form.
struct MatrixStore {
  const StoreNode* store = nullptr;
  PrimExpr first;
  int64_t step = 0;  // elements between rows in memory
  std::vector<std::pair<size_t, int64_t>>
      tiles;  // registers, and where each is stored behind the first
};
std::optional<MatrixStore> matrix_store(const Stmt& nest, const MatrixSums& sums);

// The first form, for all of the sums.
bool is_matrix_zero(const Stmt& nest, const MatrixSums& sums);

}  // namespace relay::tir
