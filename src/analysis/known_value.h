// The elements of a small tensor, as far as they are known.
//
// An integer element is a dimension: a number, a term over named dimensions (`n`, `2 * n + 1`), or
// `?` where it is not known. A float element is a number.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "ir/type.h"
#include "runtime/core/tensor.h"

namespace relay {

// Tensors with more elements are data rather than sizes; of floats, which cannot be sizes, fewer
// count.
inline constexpr int64_t kMaxKnownElements = 4096;
inline constexpr int64_t kMaxKnownFloats = 64;

struct KnownValue {
  runtime::DType dtype;
  std::vector<int64_t> shape;
  std::vector<Dim> ints;       // of integers and bools, in row-major order
  std::vector<double> floats;  // of floats

  bool is_int() const { return !dtype.is_floating(); }
  int64_t size() const { return static_cast<int64_t>(is_int() ? ints.size() : floats.size()); }
  // Every element is known: a number or a term.
  bool is_complete() const;
  // Every element is a number.
  bool is_constant() const;
  // The element as a number, which it must be.
  int64_t int_at(int64_t i) const;
  double float_at(int64_t i) const;
};

// The elements of a constant; nullopt when it has more than kMaxKnownElements, or a dtype in which
// an element may be no int64 or double.
std::optional<KnownValue> known_from(const runtime::Tensor& t);
// The constant with these elements; all must be numbers.
runtime::Tensor tensor_from(const KnownValue& k);

// Integers along one axis.
KnownValue known_ints(std::vector<Dim> values, runtime::DType dtype = runtime::DType::Int(64));
KnownValue known_ints(const std::vector<int64_t>& values,
                      runtime::DType dtype = runtime::DType::Int(64));
KnownValue known_scalar(Dim value, runtime::DType dtype = runtime::DType::Int(64));

// ---- Arithmetic on elements --------------------------------------------------------------------

// What an operator of two broadcast tensors does to one element of each; null functions where only
// the operator itself can say.
struct BinaryElement {
  // Of numbers; nullopt where the result is not defined or does not fit an int64.
  std::optional<int64_t> (*numbers)(int64_t a, int64_t b);
  // Of terms, at least one of which is not a number; `?` where no term says the result.
  Dim (*terms)(const Dim& a, const Dim& b) = nullptr;
  double (*floats)(double a, double b) = nullptr;
  // The truth value of one operand that is the result whatever the other is.
  std::optional<bool> decides = std::nullopt;
  // The same operator on truth values, where that is another element; null: this one.
  const BinaryElement* on_bools = nullptr;

  const BinaryElement& on(runtime::DType dtype) const {
    return dtype.is_bool() && on_bools != nullptr ? *on_bools : *this;
  }
};

// For rows; `quotient` and `remainder` are those towards zero.
namespace binary_elements {

extern const BinaryElement add, subtract, multiply, maximum, minimum;
extern const BinaryElement divide, quotient, floor_quotient, remainder, floor_remainder;
extern const BinaryElement equal, not_equal, less, less_equal, greater, greater_equal;
extern const BinaryElement logical_and, logical_or, logical_xor;

}  // namespace binary_elements

// The element of an integer or bool tensor of dtype `from`, whose operator gives dtype `to`: `?`
// where it is not known, does not fit, or would be a term of unreasonable size.
Dim combine(const BinaryElement& rule, const Dim& a, const Dim& b, runtime::DType from,
            runtime::DType to);
// The number as the dtype holds it; nullopt for dtypes that are not computed with here.
std::optional<double> rounded(double value, runtime::DType dtype);
// Whether an integer or bool dtype holds the number.
bool holds(runtime::DType dtype, int64_t value);
// An integer element in another integer or bool dtype.
Dim converted(const Dim& value, runtime::DType to);
// The least value of a term whose names stand for sizes of 0 or more; nullopt when there is none,
// or it is not found.
std::optional<int64_t> least_value(const Dim& d);

}  // namespace relay
