#include "tir/scalar.h"

#include <cmath>
#include <limits>

#include "runtime/core/float16.h"

namespace relay::tir {
namespace {

uint64_t u(int64_t v) { return static_cast<uint64_t>(v); }
int64_t s(uint64_t v) { return static_cast<int64_t>(v); }

std::optional<int64_t> fold_unsigned(BinaryOp op, DType dtype, uint64_t a, uint64_t b) {
  switch (op) {
    case BinaryOp::Div:
    case BinaryOp::FloorDiv:
      if (b == 0) return std::nullopt;
      return s(a / b);
    case BinaryOp::Mod:
    case BinaryOp::FloorMod:
      if (b == 0) return std::nullopt;
      return s(a % b);
    case BinaryOp::Min:
      return s(a < b ? a : b);
    case BinaryOp::Max:
      return s(a < b ? b : a);
    case BinaryOp::Lt:
      return a < b;
    case BinaryOp::Le:
      return a <= b;
    case BinaryOp::Gt:
      return a > b;
    case BinaryOp::Ge:
      return a >= b;
    case BinaryOp::Shr:
      if (b >= dtype.bits) return std::nullopt;
      return s(a >> b);
    default:
      return std::nullopt;
  }
}

std::optional<int64_t> fold_signed(BinaryOp op, DType dtype, int64_t a, int64_t b) {
  switch (op) {
    case BinaryOp::Div:
      if (b == 0) return std::nullopt;
      if (b == -1) return wrap_to(dtype, s(0 - u(a)));
      return a / b;
    case BinaryOp::Mod:
      if (b == 0) return std::nullopt;
      return b == -1 ? 0 : a % b;
    case BinaryOp::FloorDiv:
      if (b == 0) return std::nullopt;
      if (b == -1) return wrap_to(dtype, s(0 - u(a)));
      return floor_div_int(a, b);
    case BinaryOp::FloorMod:
      if (b == 0) return std::nullopt;
      return b == -1 ? 0 : floor_mod_int(a, b);
    case BinaryOp::Min:
      return a < b ? a : b;
    case BinaryOp::Max:
      return a < b ? b : a;
    case BinaryOp::Lt:
      return a < b;
    case BinaryOp::Le:
      return a <= b;
    case BinaryOp::Gt:
      return a > b;
    case BinaryOp::Ge:
      return a >= b;
    case BinaryOp::Shr:
      if (b < 0 || b >= dtype.bits) return std::nullopt;
      return a >> b;
    default:
      return std::nullopt;
  }
}

}  // namespace

int64_t wrap_to(DType dtype, int64_t value) {
  if (dtype.is_bool()) return value != 0;
  if (dtype.bits >= 64) return value;
  int shift = 64 - dtype.bits;
  if (dtype.is_uint()) return s(u(value) << shift >> shift);
  return s(u(value) << shift) >> shift;
}

double round_to(DType dtype, double value) {
  if (dtype.is_bfloat16()) {
    return runtime::bfloat16_to_float(runtime::float_to_bfloat16(static_cast<float>(value)));
  }
  if (dtype.bits == 64) return value;
  float f = static_cast<float>(value);
  if (dtype.bits == 32) return f;
  return runtime::float16_to_float(runtime::float_to_float16(f));
}

bool is_denormal(DType dtype, double value) {
  // Floats of 16 bits are computed in float32.
  const double least = dtype.bits == 64 ? std::numeric_limits<double>::min()
                                        : double{std::numeric_limits<float>::min()};
  return value != 0 && std::abs(value) < least;
}

int64_t float_to_int(DType dtype, double value) {
  if (dtype.is_bool()) return value != 0;
  if (std::isnan(value)) return 0;
  value = std::trunc(value);
  if (dtype.is_uint()) {
    if (value <= 0) return 0;
    double limit = std::ldexp(1.0, dtype.bits);
    if (value >= limit) return wrap_to(dtype, -1);
    return s(static_cast<uint64_t>(value));
  }
  double limit = std::ldexp(1.0, dtype.bits - 1);
  int64_t greatest = s((uint64_t{1} << (dtype.bits - 1)) - 1);
  if (value >= limit) return greatest;
  if (value < -limit) return -greatest - 1;
  return static_cast<int64_t>(value);
}

std::optional<int64_t> fold_int(BinaryOp op, DType dtype, int64_t a, int64_t b) {
  switch (op) {
    case BinaryOp::Add:
      return wrap_to(dtype, s(u(a) + u(b)));
    case BinaryOp::Sub:
      return wrap_to(dtype, s(u(a) - u(b)));
    case BinaryOp::Mul:
      return wrap_to(dtype, s(u(a) * u(b)));
    case BinaryOp::Eq:
      return a == b;
    case BinaryOp::Ne:
      return a != b;
    case BinaryOp::And:
      return a != 0 && b != 0;
    case BinaryOp::Or:
      return a != 0 || b != 0;
    case BinaryOp::BitAnd:
      return a & b;
    case BinaryOp::BitOr:
      return a | b;
    case BinaryOp::BitXor:
      return a ^ b;
    case BinaryOp::Shl:
      if (b < 0 || b >= dtype.bits) return std::nullopt;
      return wrap_to(dtype, s(u(a) << b));
    default:
      return dtype.is_int() ? fold_signed(op, dtype, a, b) : fold_unsigned(op, dtype, u(a), u(b));
  }
}

std::optional<double> fold_float(BinaryOp op, DType dtype, double a, double b) {
  switch (op) {
    case BinaryOp::Add:
      return round_to(dtype, a + b);
    case BinaryOp::Sub:
      return round_to(dtype, a - b);
    case BinaryOp::Mul:
      return round_to(dtype, a * b);
    case BinaryOp::Div:
      return round_to(dtype, a / b);
    case BinaryOp::Mod:
      return round_to(dtype, std::fmod(a, b));
    case BinaryOp::FloorDiv:
      return round_to(dtype, std::floor(a / b));
    case BinaryOp::FloorMod: {
      double r = std::fmod(a, b);
      return round_to(dtype, r != 0 && (r < 0) != (b < 0) ? r + b : r);
    }
    case BinaryOp::Min:
      return std::isnan(a) || a < b ? a : b;
    case BinaryOp::Max:
      return std::isnan(a) || a > b ? a : b;
    default:
      return std::nullopt;
  }
}

std::optional<bool> fold_float_compare(BinaryOp op, double a, double b) {
  switch (op) {
    case BinaryOp::Eq:
      return a == b;
    case BinaryOp::Ne:
      return a != b;
    case BinaryOp::Lt:
      return a < b;
    case BinaryOp::Le:
      return a <= b;
    case BinaryOp::Gt:
      return a > b;
    case BinaryOp::Ge:
      return a >= b;
    default:
      return std::nullopt;
  }
}

}  // namespace relay::tir
