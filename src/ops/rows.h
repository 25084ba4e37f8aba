// The list of operator families. Each has a table of operators, one literal each, in a file of
// src/ops; `register_ops` goes through this list.
//
// A new family is a line here, and a file with
//   template <>
//   std::span<const OpInfo> rows_of<Family::NewOne>() {
//     static const OpInfo rows[] = {{.name = ...}, ...};
//     return rows;
//   }
#pragma once

#include <span>

#include "ir/op.h"

namespace relay::ops {

enum class Family {
  Unary,
  Activation,
  Binary,
  Where,
  Reduce,
  ArgReduce,
  Matmul,
  DenseBits,
  Linalg,
  Conv,
  Winograd,
  Pool,
  Norm,
  Attention,
  Shape,
  Join,
  Slice,
  Pad,
  Create,
  Index,
  Layout,
  Resize,
  Sample,
  Loss,
  Region,
  Sort,
  Scan,
  Scatter,
  Generate,
  Sequence,
  Einsum,
  Spatial,
  AdvancedIndex,
  L2Normalize,
  Random,
  Detection,
  Suppression,
  Boxes,
  Deformable,
  Annotations,
  DynamicAxes,
  Qnn,
  QnnContraction,
  Text,
  DecodeImage,
  Trees,
  Debug,
  Arrangements,
  Compositions,
  Dynamic,
  kCount,
};

// The operators of a family; they live as long as the process.
template <Family kFamily>
std::span<const OpInfo> rows_of();

}  // namespace relay::ops
