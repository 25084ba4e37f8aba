// Element types of tensors, as plain values.
//
//   DType t = DType::Float(32);
//   t.to_string();                    // "float32"
//   DType::parse("bfloat16");         // DType::BFloat16()
//   DType::Float(32).with_lanes(16);  // "float32x16", a vector register
//
// A bool is stored in one byte holding 0 or 1. Lanes are above one only inside the tensor IR;
// tensors have one lane.
//
// Narrow types (float8_e4m3fn, float4_e2m1fn, int4, ...; core/narrow.h) are stored, moved and cast but
// not computed with: neither `is_integer` nor `is_floating`. Each element has a byte of its own, which
// kernels see as the integer type `storage()`.
//
// A string is one word, where its bytes are (core/strings.h): moved and compared, nothing else.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace relay::runtime {

struct DType {
  enum Code : uint8_t {
    kInt = 0,
    kUInt = 1,
    kFloat = 2,
    kBFloat = 3,
    kBool = 4,
    kFloat8E4M3FN = 5,
    kFloat8E4M3FNUZ = 6,
    kFloat8E5M2 = 7,
    kFloat8E5M2FNUZ = 8,
    kFloat8E8M0FNU = 9,
    kFloat4E2M1FN = 10,
    kInt4 = 11,
    kUInt4 = 12,
    kInt2 = 13,
    kUInt2 = 14,
    kString = 15,
    kFloat6E2M3FN = 16,
    kFloat6E3M2FN = 17,
  };
  // Artifacts have these numbers, so they stay what they are.
  static constexpr Code kNarrow[] = {
      kFloat8E4M3FN, kFloat8E4M3FNUZ, kFloat8E5M2, kFloat8E5M2FNUZ, kFloat8E8M0FNU, kFloat4E2M1FN,
      kInt4,         kUInt4,          kInt2,       kUInt2,          kFloat6E2M3FN,  kFloat6E3M2FN};

  Code code = kFloat;
  uint8_t bits = 32;
  uint16_t lanes = 1;

  static constexpr DType Int(int bits, int lanes = 1) { return make(kInt, bits, lanes); }
  static constexpr DType UInt(int bits, int lanes = 1) { return make(kUInt, bits, lanes); }
  static constexpr DType Float(int bits, int lanes = 1) { return make(kFloat, bits, lanes); }
  static constexpr DType BFloat16(int lanes = 1) { return make(kBFloat, 16, lanes); }
  static constexpr DType Bool(int lanes = 1) { return make(kBool, 8, lanes); }
  static constexpr DType Narrow(Code code) { return make(code, 8, 1); }
  static constexpr DType String() { return make(kString, 64, 1); }

  constexpr bool is_int() const { return code == kInt; }
  constexpr bool is_uint() const { return code == kUInt; }
  // Signed or unsigned integer; a bool is not an integer.
  constexpr bool is_integer() const { return is_int() || is_uint(); }
  // IEEE float or bfloat.
  constexpr bool is_floating() const { return code == kFloat || code == kBFloat; }
  constexpr bool is_float(int width) const { return code == kFloat && bits == width; }
  constexpr bool is_bfloat16() const { return code == kBFloat; }
  constexpr bool is_bool() const { return code == kBool; }
  constexpr bool is_narrow() const {
    return code >= kFloat8E4M3FN && code <= kFloat6E3M2FN && code != kString;
  }
  constexpr bool is_string() const { return code == kString; }
  // Neither a number nor a bool that is computed with.
  constexpr bool is_only_moved() const { return code >= kFloat8E4M3FN; }
  constexpr bool is_scalar() const { return lanes == 1; }
  // The type that kernels read and write elements as.
  constexpr DType storage() const {
    if (is_string()) return Int(64);
    return !is_narrow() ? *this : code == kInt4 || code == kInt2 ? Int(8) : UInt(8);
  }

  // Bytes of one value, all lanes together.
  constexpr size_t bytes() const { return size_t{bits} / 8 * lanes; }
  constexpr DType element() const { return make(code, bits, 1); }
  constexpr DType with_lanes(int n) const { return make(code, bits, n); }

  friend constexpr bool operator==(const DType&, const DType&) = default;

  // A number that is different for different dtypes.
  constexpr uint32_t key() const {
    return uint32_t{code} << 24 | uint32_t{bits} << 16 | uint32_t{lanes};
  }

  // The inverse of key; any number gives a dtype, `valid` tells whether it is a real one.
  static constexpr DType from_key(uint32_t key) {
    return make(static_cast<Code>(key >> 24), (key >> 16) & 0xFF, key & 0xFFFF);
  }

  // "float32", "int64", "uint8", "bool", "bfloat16"; with lanes "float32x16".
  std::string to_string() const;

  // The inverse of to_string; empty for anything that is not a dtype.
  static std::optional<DType> parse(std::string_view text);

  // True for the combinations of code and width that exist: int and uint 8/16/32/64, float
  // 16/32/64, bfloat16, bool, narrow types, string. What is read from a file is checked with this.
  constexpr bool valid() const {
    if (lanes == 0) return false;
    switch (code) {
      case kInt:
      case kUInt:
        return bits == 8 || bits == 16 || bits == 32 || bits == 64;
      case kFloat:
        return bits == 16 || bits == 32 || bits == 64;
      case kBFloat:
        return bits == 16;
      case kBool:
        return bits == 8;
      case kString:
        return bits == 64 && lanes == 1;
      default:
        return is_narrow() && bits == 8 && lanes == 1;
    }
  }

 private:
  static constexpr DType make(Code code, int bits, int lanes) {
    DType t;
    t.code = code;
    t.bits = static_cast<uint8_t>(bits);
    t.lanes = static_cast<uint16_t>(lanes);
    return t;
  }
};

}  // namespace relay::runtime

namespace relay {
using runtime::DType;
}

template <>
struct std::hash<relay::runtime::DType> {
  size_t operator()(const relay::runtime::DType& t) const noexcept {
    return std::hash<uint32_t>{}(t.key());
  }
};
