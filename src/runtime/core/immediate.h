// Scalars without an object.
//
// Where a pointer to an object can be - a register of the virtual machine, a field of a data value,
// what a closure captured, the content of a reference - the word may itself be a bool, int32,
// float32, or an int64 of at most 61 bits: an immediate. Objects are aligned, so the lowest bit
// tells the two apart. An immediate and the tensor of rank 0 with its element are one value in two
// forms, and whoever takes a value takes both: its kind is that of a tensor, and tensor_of() makes
// the tensor.
//
//   Object* word = make_immediate(7, DType::Int(32));
//   immediate_bits(word);    // 7
//   tensor_of(word);         // Tensor[(), int32]
#pragma once

#include "runtime/core/dtype.h"
#include "runtime/core/object.h"
#include "runtime/core/tensor.h"

namespace relay::runtime {

// Whether the word holds a scalar and does not point to an object.
inline bool is_immediate(const Object* word) {
  return (reinterpret_cast<uintptr_t>(word) & 1) != 0;
}
// Whether there is an object behind the word, which may be null.
inline bool is_object(const Object* word) { return word != nullptr && !is_immediate(word); }
// Of a value, which is not null.
inline ObjectKind kind_of(const Object* word) {
  return is_immediate(word) ? ObjectKind::tensor : word->kind;
}

// As retain and release, for any word.
inline void retain_value(Object* word) {
  if (!is_immediate(word)) retain(word);
}
inline void release_value(Object* word) noexcept {
  if (!is_immediate(word)) release(word);
}

// The payload is above three bits: two that say the dtype, and the lowest.
inline constexpr int kImmediateShift = 3;
inline constexpr DType kImmediateDtypes[4] = {DType::Bool(), DType::Int(32), DType::Int(64),
                                              DType::Float(32)};

constexpr bool is_immediate_dtype(DType t) {
  return t == DType::Bool() || t == DType::Int(32) || t == DType::Int(64) || t == DType::Float(32);
}

// Bits have the form that an integer register of the machine has them in: of an integer or bool its
// value, of a float32 its bits with the sign extended.
constexpr bool fits_immediate(int64_t bits) {
  return static_cast<int64_t>(static_cast<uint64_t>(bits) << kImmediateShift) >> kImmediateShift ==
         bits;
}

// For a dtype of immediates, and bits that fit.
inline Object* make_immediate(int64_t bits, DType t) {
  uint64_t code = t.code == DType::kFloat ? 3 : t.bits == 64 ? 2 : t.bits == 32 ? 1 : 0;
  return reinterpret_cast<Object*>(static_cast<uint64_t>(bits) << kImmediateShift | code << 1 | 1);
}
inline int64_t immediate_bits(const Object* word) {
  return static_cast<int64_t>(reinterpret_cast<uintptr_t>(word)) >> kImmediateShift;
}
inline DType immediate_dtype(const Object* word) {
  return kImmediateDtypes[reinterpret_cast<uintptr_t>(word) >> 1 & 3];
}

// A tensor of rank 0 with the element. RuntimeError E0604 when memory is exhausted.
Tensor box_scalar(int64_t bits, DType dtype);

// The tensor that a value of kind tensor is; a new one for an immediate.
Tensor tensor_of(Object* word);

}  // namespace relay::runtime
