// Values that the importer knows while it reads a model: shapes, axes, slice bounds, scales.
//
// Models compute such values with ordinary operators (Shape, Gather, Concat, ...). They are
// evaluated here, element by element, where an integer element is a dimension expression (so a
// symbolic batch size survives) and a float element is a double.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "ir/type.h"
#include "runtime/core/tensor.h"

namespace relay::importer {

inline constexpr int64_t kMaxKnownElements = 4096;

struct Known {
  runtime::DType dtype;
  std::vector<int64_t> shape;
  std::vector<Dim> ints;       // of integers and bools, in row-major order
  std::vector<double> floats;  // of floats

  bool is_int() const { return !dtype.is_floating(); }
  int64_t size() const { return static_cast<int64_t>(is_int() ? ints.size() : floats.size()); }
  // No element is symbolic.
  bool is_constant() const;
  // The element as a number; it must be constant.
  int64_t int_at(int64_t i) const;
  double float_at(int64_t i) const;
};

// The elements of a constant; nullopt when it has more than kMaxKnownElements.
std::optional<Known> known_from(const runtime::Tensor& t);
// The constant with these elements; all must be constant.
runtime::Tensor tensor_from(const Known& k);

// Integers along one axis.
Known known_ints(std::vector<Dim> values, runtime::DType dtype = runtime::DType::Int(64));
Known known_ints(const std::vector<int64_t>& values,
                 runtime::DType dtype = runtime::DType::Int(64));
Known known_scalar(Dim value, runtime::DType dtype = runtime::DType::Int(64));

// The numpy shape of two operands; nullopt when they do not broadcast.
std::optional<std::vector<int64_t>> broadcast_shape(const std::vector<int64_t>& a,
                                                    const std::vector<int64_t>& b);
// The flat index into a tensor of `shape` for flat index `i` of the shape `out` it broadcasts to.
int64_t broadcast_index(int64_t i, const std::vector<int64_t>& out,
                        const std::vector<int64_t>& shape);

}  // namespace relay::importer
