#include "ops/index/index_mode.h"

#include <algorithm>
#include <limits>

#include "ops/loops.h"

namespace relay::ops {
namespace {

// What the rule is made of, for numbers, for kernels and for programs. Indices are int64.
struct Numbers {
  static int64_t number(int64_t v) { return v; }
  static int64_t floor_mod(int64_t a, int64_t b) { return (a % b + b) % b; }
  static int64_t min(int64_t a, int64_t b) { return std::min(a, b); }
  static int64_t max(int64_t a, int64_t b) { return std::max(a, b); }
  static int64_t minus(int64_t a, int64_t b) { return a - b; }
  static int64_t from_end(int64_t i, int64_t size) { return i < 0 ? i + size : i; }
};

struct Kernels {
  static PrimExpr number(int64_t v) { return tir::index(v); }
  static PrimExpr floor_mod(const PrimExpr& a, const PrimExpr& b) { return tir::floor_mod(a, b); }
  static PrimExpr min(const PrimExpr& a, const PrimExpr& b) { return tir::min(a, b); }
  static PrimExpr max(const PrimExpr& a, const PrimExpr& b) { return tir::max(a, b); }
  static PrimExpr minus(const PrimExpr& a, const PrimExpr& b) { return a - b; }
  static PrimExpr from_end(const PrimExpr& i, const PrimExpr& size) {
    return tir::select(tir::lt(i, tir::index(0)), i + size, i);
  }
};

struct Programs {
  static Expr number(int64_t v) { return constant(static_cast<double>(v), DType::Int(64)); }
  static Expr floor_mod(const Expr& a, const Expr& b) { return apply("floor_mod", {a, b}); }
  static Expr min(const Expr& a, const Expr& b) { return apply("minimum", {a, b}); }
  static Expr max(const Expr& a, const Expr& b) { return apply("maximum", {a, b}); }
  static Expr minus(const Expr& a, const Expr& b) { return a - b; }
  static Expr from_end(const Expr& i, const Expr& size) {
    return choose(is_greater(number(0), i), i + size, i);
  }
};

template <class In, class N>
N place(const N& index, const N& size, IndexMode mode, bool is_unsigned) {
  if (mode == IndexMode::Wrap) return In::floor_mod(index, In::max(size, In::number(1)));
  const bool counts_back = mode != IndexMode::Clip && !is_unsigned;
  const N from_front = counts_back ? In::from_end(index, size) : index;
  if (mode == IndexMode::Checked) return from_front;
  return In::min(In::max(from_front, In::number(0)), In::minus(size, In::number(1)));
}

constexpr int64_t kLargest = std::numeric_limits<int64_t>::max();

// An index as int64. What no int64 holds is beyond any axis, too.
PrimExpr number_of(const PrimExpr& index) {
  const DType dtype = index->dtype;
  const bool is_wide = dtype == DType::UInt(64);
  return tir::cast(tir::kIndex, is_wide ? tir::min(index, tir::imm(dtype, kLargest)) : index);
}

}  // namespace

std::optional<IndexMode> index_mode(std::string_view word) {
  if (word == "clip") return IndexMode::Clip;
  if (word == "wrap") return IndexMode::Wrap;
  if (word == "fast") return IndexMode::Fast;
  return std::nullopt;
}

PrimExpr place_of(const PrimExpr& index, const PrimExpr& size, IndexMode mode) {
  return place<Kernels>(number_of(index), size, mode, index->dtype.is_uint());
}

PrimExpr index_in(const PrimExpr& index, const PrimExpr& size, const std::string& source) {
  constexpr size_t kLetters = 8;
  PrimExpr marks = tir::index(0);
  for (size_t at = 0; at < source.size(); at += kLetters) {
    uint64_t packed = 0;
    for (size_t k = std::min(source.size(), at + kLetters); k-- > at;) {
      packed = packed << 8 | static_cast<unsigned char>(source[k]);
    }
    marks = tir::call("print_mark", tir::kIndex, {tir::index(static_cast<int64_t>(packed)), marks});
  }
  return tir::call("index_in", tir::kIndex, {number_of(index), size, marks});
}

tir::Stmt check_place(const PrimExpr& place, const PrimExpr& index, const PrimExpr& size) {
  Cell outside("outside", tir::kIndex);
  return check_index(place, size, outside.in(outside.set(index_in(index, size, {}))));
}

int64_t place_of(int64_t index, int64_t size, IndexMode mode) {
  return place<Numbers>(index, size, mode, false);
}

Expr place_of(const Expr& index, const Expr& size, IndexMode mode) {
  if (mode == IndexMode::Checked) return apply("checked_index", {index, size});
  const DType dtype = type_of(index).dtype;
  const bool is_wide = dtype == DType::UInt(64);
  Expr i = index;
  if (is_wide) {
    i = apply("minimum", {i, constant(runtime::Tensor::scalar(kLargest, dtype))});
  }
  i = cast_to(i, DType::Int(64));
  return place<Programs>(i, size, mode, dtype.is_uint());
}

Expr places_in(const Expr& data, int64_t axis, const Expr& indices, IndexMode mode) {
  const Dim& size = type_of(data).shape[static_cast<size_t>(axis)];
  const Expr zero = Programs::number(0);
  if (!is_any(size)) return place_of(indices, size_as(size, zero), mode);
  Expr sizes = apply("shape_of", {data}, {{"dtype", "int64"}});
  Expr at = Programs::number(axis);
  return place_of(indices, apply("take", {sizes, at}, {{"axis", int64_t{0}}}), mode);
}

}  // namespace relay::ops
