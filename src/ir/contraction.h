// What a sum of products does with the dimensions of its operands: the column `contraction` of an operator's row.
//
//   result[..] = sum over the reduced and window dimensions of operands[0][..] * operands[1][..] * ...
//
// The dimensions are listed once, each with its role; every axis of every tensor says which of them run along it.
//
//   nn.dense, data (b, s, k) and weight (n, k):
//     dims        0 row b, 1 row s, 2 column n, 3 reduced k
//     operands    {0} {1} {3}    and    {2} {3}
//     result      {0} {1} {2}
//   nn.conv2d in NCHW with two groups, stride 2, and a kernel of OIHW:
//     dims        0 row n, 1 group g, 2 column o, 3 row y, 4 row x, 5 window r, 6 window s, 7 reduced i
//     operands    {0} {1, 7} {3, 5 in windows} {4, 6 in windows}    and    {1, 2} {7} {5} {6}
//     result      {0} {1, 2} {3} {4}
#pragma once

#include <optional>
#include <vector>

#include "base/contraction_role.h"
#include "ir/expr.h"

namespace relay {

struct Contraction {
  struct Dimension {
    ContractionRole role = ContractionRole::Row;
    Dim extent;
  };
  // index = position * stride + tap * dilation - padding.
  struct Window {
    int64_t stride = 1;
    int64_t dilation = 1;
    int64_t padding = 0;
  };
  struct Axis {
    // Slowest first: the index is theirs in mixed radix, before blocks are cut. Empty: the axis has one element, which
    // is read at every index. With a window: the position, then the tap.
    std::vector<size_t> dims;
    std::optional<Window> window = {};
    // A layout with blocks has two axes for one dimension: the number of the block, with `divide`, and the place in it,
    // with `modulo`.
    int64_t divide = 1;
    int64_t modulo = 0;

    bool has(size_t dim) const;
    bool blocked() const { return divide != 1 || modulo != 0; }
  };
  using Tensor = std::vector<Axis>;

  // What is summed over stands in the order of the compute rule's sum.
  std::vector<Dimension> dims;
  std::vector<Tensor> operands;
  Tensor result;

  size_t count(ContractionRole role) const;
  // The only dimension of a role; nullopt when there are none or several.
  std::optional<size_t> only(ContractionRole role) const;
  // The axes along which a dimension runs.
  std::vector<size_t> axes_of(const Tensor& tensor, size_t dim) const;
  // Whether windows are on the result: a transposed convolution.
  bool transposed() const;
  // What the index of an axis of the result is in the sum: its column where it has one of more than one element.
  ContractionRole role_of(const Axis& axis) const;
  // The roles of the result's axes, then of what is summed over.
  std::vector<ContractionRole> iteration_roles() const;
};

// What a call is as a contraction; nullopt where its operator is none, or where these attributes make it none.
std::optional<Contraction> contraction_of(const CallNode& c);

// Multiplications and additions of a contraction, 0 where a size is open: for the column `cost`.
double contraction_cost(const CallNode& c);

}  // namespace relay
