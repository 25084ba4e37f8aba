// Parts of tensors along an axis, and diagonals: read, and replaced.
#pragma once

#include <vector>

#include "frontend/torch/node_context.h"

namespace relay::frontend::torch {

// The elements begin, begin + step, ... below end of an axis, all within the tensor.
struct Part {
  int64_t axis = 0;
  Dim begin, end;
  int64_t step = 1;
  // Both, as int64 scalars, where the graph computes one of them; `begin` and `end` are `?` then. Null otherwise.
  Expr begin_at = nullptr, end_at = nullptr;
};

// The parts that the arguments of slice, select and narrow say.
Part part_of_slice(NodeContext& ctx, const Expr& x);
Part part_of_select(NodeContext& ctx, const Expr& x);
Part part_of_narrow(NodeContext& ctx, const Expr& x);

Expr read_part(const Builder& build, const Expr& x, const Part& part);
// `x` with other elements in the part.
Expr write_part(const Builder& build, const Expr& x, const Expr& elements, const Part& part);

// The elements whose places along two axes differ by an offset; they become the last axis.
struct Diagonal {
  int64_t rows = 0, columns = 1;  // axes
  std::vector<int64_t> places;    // in the matrix of both axes, in row-major order
  int64_t height = 0, width = 0;
};

// The diagonal that "offset", "dim1" and "dim2" say; the axes are these where they are left out.
Diagonal diagonal_of(NodeContext& ctx, const Expr& x, int64_t rows = 0, int64_t columns = 1);
Expr read_diagonal(const Builder& build, const Expr& x, const Diagonal& d);
Expr write_diagonal(const Builder& build, const Expr& x, const Expr& elements, const Diagonal& d);

}  // namespace relay::frontend::torch
