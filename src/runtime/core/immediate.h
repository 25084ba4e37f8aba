// Scalars, and data without fields, without an object.
//
// Where a pointer to an object can be - a register of the virtual machine, a field of a data value,
// what a closure captured, the content of a reference - the word may itself be a bool, int32,
// float32, an int64 of at most 60 bits, or nearly any float64: an immediate. Objects are aligned to
// 16 bytes, so the lowest four bits tell the two apart. An immediate and the tensor of rank 0 with
// its element are one value in two forms, and whoever takes a value takes both: its kind is that of
// a tensor, and tensor_of() makes the tensor. Likewise data of one of the first tags without fields,
// such as the end of a list, and the empty tuple: cell_of() gives the cell, one for all.
//
//   Object* word = make_immediate(7, DType::Int(32));
//   immediate_bits(word);    // 7
//   tensor_of(word);         // Tensor[(), int32]
//
// A float64 has 64 bits, of which one is left out: as Ruby's flonum does, from what is common.
//
//   ....1   magnitudes from 2^-511 to 2^513: the exponent's first two bits differ, one is kept
//   .1010   else, where the last four bits are 0: zeros, infinities, NaN, small powers of two
//   .0000   the rest is a tensor
//
// No value is lost: every word gives back the bits that it was made of.
//
// A word of 32 bits holds bools, integers of at most 28 bits and no float64.
#pragma once

#include <bit>

#include "runtime/core/dtype.h"
#include "runtime/core/object.h"
#include "runtime/core/tensor.h"

namespace relay::runtime {

// Whether the word holds a scalar and does not point to an object.
inline bool is_immediate(const Object* word) {
  return (reinterpret_cast<uintptr_t>(word) & 15) != 0;
}
// Whether there is an object behind the word, which may be null.
inline bool is_object(const Object* word) { return word != nullptr && !is_immediate(word); }
// Whether the word is data or a tuple without fields.
inline bool is_empty_cell(const Object* word) {
  return (reinterpret_cast<uintptr_t>(word) & 13) == 12;
}
// Of a value, which is not null.
inline ObjectKind kind_of(const Object* word) {
  if (!is_immediate(word)) return word->kind;
  if (!is_empty_cell(word)) return ObjectKind::tensor;
  return (reinterpret_cast<uintptr_t>(word) & 2) != 0 ? ObjectKind::tuple : ObjectKind::adt;
}

// As retain and release, for any word.
inline void retain_value(Object* word) {
  if (!is_immediate(word)) retain(word);
}
inline void release_value(Object* word) noexcept {
  if (!is_immediate(word)) release(word);
}

inline constexpr DType kImmediateDtypes[5] = {DType::Bool(), DType::Int(32), DType::Int(64),
                                              DType::Float(32), DType::Float(64)};

constexpr bool is_immediate_dtype(DType t) {
  return t == DType::Bool() || t == DType::Int(32) || t == DType::Int(64) ||
         t == DType::Float(32) || t == DType::Float(64);
}

namespace detail {

// But for the common float64, the payload is above four bits: the dtype's place among
// kImmediateDtypes, from 1 on, and the lowest bit, which is 0.
inline constexpr int kImmediateShift = 4;
inline constexpr int kWordBits = 8 * sizeof(uintptr_t);
inline constexpr uint64_t kImmediateMask = 15;
inline constexpr uint64_t kOtherDouble = 5 << 1;
// The exponent's first two bits are 01 or 10: less this, the first is 0.
inline constexpr uint64_t kLeastExponent = uint64_t{1} << 61;

constexpr bool is_common_double(uint64_t bits) {
  return ((bits - kLeastExponent) & (uint64_t{1} << 62)) == 0;
}

}  // namespace detail

// Bits have the form that an integer register of the machine has them in: of an integer or bool its
// value, of a float32 its bits with the sign extended, of a float64 its bits. The dtype is one of
// immediates.
constexpr bool fits_immediate(int64_t bits, DType t) {
  const auto word = static_cast<uint64_t>(bits);
  if (t == DType::Float(64)) {
    return detail::kWordBits == 64 &&
           (detail::is_common_double(word) || (word & detail::kImmediateMask) == 0);
  }
  constexpr int kAround = 64 - detail::kWordBits + detail::kImmediateShift;
  return static_cast<int64_t>(word << kAround) >> kAround == bits;
}

// For a dtype of immediates, and bits that fit.
inline Object* make_immediate(int64_t bits, DType t) {
  auto word = static_cast<uint64_t>(bits);
  if (t == DType::Float(64)) {
    word = detail::is_common_double(word) ? std::rotl(word - detail::kLeastExponent, 2) | 1
                                          : word | detail::kOtherDouble;
  } else {
    uint64_t code = t.code == DType::kFloat ? 4 : t.bits == 64 ? 3 : t.bits == 32 ? 2 : 1;
    word = word << detail::kImmediateShift | code << 1;
  }
  return reinterpret_cast<Object*>(static_cast<uintptr_t>(word));
}
inline int64_t immediate_bits(const Object* object) {
  const auto word = static_cast<uint64_t>(static_cast<int64_t>(reinterpret_cast<intptr_t>(object)));
  if ((word & 1) != 0) {
    return static_cast<int64_t>(std::rotr(word ^ 1, 2) + detail::kLeastExponent);
  }
  if ((word & detail::kImmediateMask) == detail::kOtherDouble) {
    return static_cast<int64_t>(word ^ detail::kOtherDouble);
  }
  return static_cast<int64_t>(word) >> detail::kImmediateShift;
}
inline DType immediate_dtype(const Object* object) {
  const auto word = static_cast<uint64_t>(reinterpret_cast<uintptr_t>(object));
  return (word & 1) != 0 ? DType::Float(64)
                         : kImmediateDtypes[((word & detail::kImmediateMask) >> 1) - 1];
}

// Data and tuples without fields: of data the tag is above the four bits.
inline constexpr int32_t kEmptyCellTags = 64;
constexpr bool has_empty_form(ObjectKind kind, int32_t tag) {
  return kind == ObjectKind::tuple || (kind == ObjectKind::adt && tag >= 0 && tag < kEmptyCellTags);
}
// For a kind and tag that have the form.
inline Object* make_empty_cell(ObjectKind kind, int32_t tag) {
  uint64_t word = kind == ObjectKind::tuple ? 14 : static_cast<uint64_t>(tag) << 4 | 12;
  return reinterpret_cast<Object*>(static_cast<uintptr_t>(word));
}
inline int32_t empty_cell_tag(const Object* word) {
  return static_cast<int32_t>(reinterpret_cast<uintptr_t>(word) >> 4);
}
// The cell that stands for the word; it lives as long as the process.
const Cell& empty_cell(const Object* word);
// Of a value that is not a tensor.
inline const Cell& cell_of(const Object* word) {
  return is_immediate(word) ? empty_cell(word) : *static_cast<const Cell*>(word);
}

// A tensor of rank 0 with the element. RuntimeError E0604 when memory is exhausted.
Tensor box_scalar(int64_t bits, DType dtype);

// The tensor that a value of kind tensor is; a new one for an immediate.
Tensor tensor_of(Object* word);

}  // namespace relay::runtime
