// What the contraction rule has to know of a sum of products.
#pragma once

#include <optional>
#include <vector>

#include "lower/rules/contraction_plan.h"

namespace relay {

// An extent that only a run knows.
inline constexpr int64_t kOpen = -1;

// A sum by a matrix unit, which takes `words` words of both operands at once.
struct MatrixStep {
  MatrixFactors factors;
  MatrixUnit unit;
  int64_t words;
  Streamed streamed = Streamed::Neither;
};

struct Sum {
  tir::BlockRV block;
  // Spatial iterations before those in `spatial`: fixed by loops that stay around the tiles.
  size_t fixed = 0;
  // Tiles divide the rows, or the columns, which are a part of all: none may reach over the end.
  bool whole_rows = false, whole_columns = false;
  std::vector<tir::IterVar> spatial;
  std::vector<ContractionRole> roles;  // of the spatial iterations, as the block states them
  std::vector<int64_t> extents;  // of the spatial iterations, kOpen where it is not a constant
  double reduction = 1;          // products in one sum; a guess where it is open
  bool open_sum = false;         // how many products one sum has is not a constant
  tir::DType dtype;              // in which the sum is taken
  bool bytes = false;            // products of bytes, four of which stand together in the weights
  bool pairs = false;            // products of bfloat16, two of which stand together in the weights
  bool halves = false;           // which the target multiplies at once
  std::optional<MatrixStep> matrix = {};  // what does it, where that is a matrix unit
  int64_t weight_bytes = 4;               // of an element of the operand with the columns
  double widening =
      0;  // instructions that make a vector of factors of what the weights hold, as of those with few bits
  bool in_parts = false;   // one part of a longer sum, inside a loop over the parts
  bool in_blocks = false;  // some of the columns, inside a loop over such blocks
  bool depthwise = false;  // every operand has the columns: there is nothing to reuse
  // The operand with the columns (the weights) is the same for all of the second last but one axis,
  // so that a tile may span several of its values.
  bool rows_span_two_axes = false;
  int64_t panel = 0;      // columns that packed weights hold together, 0: not packed
  int64_t group = 0;      // columns that read the same elements, 0: all
  bool streamed = false;  // packed weights that few rows may be multiplied with: they come from far
  int64_t row_stride = 0;     // bytes between neighbouring rows of the other operand
  bool rows_overlap = false;  // a row's next element is its neighbour's, as of windows along a line

  // Elements of the sum that one instruction of vectors multiplies in each lane.
  int64_t word_elements() const { return bytes ? 4 : halves ? 2 : 1; }
  int64_t columns() const { return extents.back(); }
  int64_t rows() const { return extents[extents.size() - 2]; }
  bool is_open() const;
};

// A sum where lanes over the last axis read neighbouring elements or one element.
std::optional<Sum> describe_sum(const tir::Schedule& s, const tir::BlockRV& rv);

// The kernel's only sum.
std::optional<Sum> find_sum(const tir::Schedule& s);

// The elements that a vector register holds of the sum's dtype.
int64_t lanes_of(const Sum& sum, const Target& target);

// What multiplies and adds: "float32 by fused multiply-add", where the target has such instructions.
std::string arithmetic_of(const Sum& sum, const Decider& decide);

}  // namespace relay
