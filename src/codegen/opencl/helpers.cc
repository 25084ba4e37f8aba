#include "codegen/opencl/helpers.h"

#include <string_view>

#include "base/diagnostic.h"

namespace relay::codegen {
namespace {

struct Helper {
  std::string_view name;
  std::string_view code;
};

// A function is behind those that it calls.
constexpr Helper kHelpers[] = {
    {"relay_fail", R"(
void relay_fail(volatile __global int* failed, int number, int code) {
  if (atomic_cmpxchg(failed, 0, code) == 0) failed[1] = number;
}
)"},
    {"relay_index_in", R"(
long relay_index_in(long index, long size, volatile __global int* failed, int number) {
  const long place = index < 0 ? index + size : index;
  if (place >= 0 && place < size) return place;
  if (atomic_cmpxchg(failed, 0, 1) == 0) failed[1] = number;
  return 0;
}
)"},
    // Quotients by 0, and of the least integer by -1, are by 1 instead.
    {"relay_div_i", R"(
int relay_div_i(int a, int b) { return b == 0 || (b == -1 && a == INT_MIN) ? a : a / b; }
)"},
    {"relay_rem_i", R"(
int relay_rem_i(int a, int b) { return b == 0 || b == -1 ? 0 : a % b; }
)"},
    {"relay_div_l", R"(
long relay_div_l(long a, long b) { return b == 0 || (b == -1 && a == LONG_MIN) ? a : a / b; }
)"},
    {"relay_rem_l", R"(
long relay_rem_l(long a, long b) { return b == 0 || b == -1 ? 0 : a % b; }
)"},
    {"relay_floordiv_i", R"(
int relay_floordiv_i(int a, int b) {
  if (b == 0 || (b == -1 && a == INT_MIN)) return a;
  const int q = a / b, r = a % b;
  return r != 0 && (r ^ b) < 0 ? q - 1 : q;
}
)"},
    {"relay_floormod_i", R"(
int relay_floormod_i(int a, int b) {
  if (b == 0 || b == -1) return 0;
  const int r = a % b;
  return r != 0 && (r ^ b) < 0 ? r + b : r;
}
)"},
    {"relay_floordiv_l", R"(
long relay_floordiv_l(long a, long b) {
  if (b == 0 || (b == -1 && a == LONG_MIN)) return a;
  const long q = a / b, r = a % b;
  return r != 0 && (r ^ b) < 0 ? q - 1 : q;
}
)"},
    {"relay_floormod_l", R"(
long relay_floormod_l(long a, long b) {
  if (b == 0 || b == -1) return 0;
  const long r = a % b;
  return r != 0 && (r ^ b) < 0 ? r + b : r;
}
)"},
    {"relay_divu_l", R"(
ulong relay_divu_l(ulong a, ulong b) { return b == 0 ? a : a / b; }
)"},
    {"relay_remu_l", R"(
ulong relay_remu_l(ulong a, ulong b) { return b == 0 ? 0 : a % b; }
)"},
    {"relay_pow_l", R"(
long relay_pow_l(long x, long n) {
  if (n < 0) return x == 1 ? 1 : x == -1 ? ((n & 1) != 0 ? -1 : 1) : 0;
  ulong result = 1, square = (ulong)x;
  for (ulong rest = (ulong)n; rest != 0; rest >>= 1) {
    if ((rest & 1) != 0) result *= square;
    square *= square;
  }
  return (long)result;
}
)"},
    {"relay_powu_l", R"(
ulong relay_powu_l(ulong x, ulong n) {
  ulong result = 1;
  for (ulong rest = n; rest != 0; rest >>= 1) {
    if ((rest & 1) != 0) result *= x;
    x *= x;
  }
  return result;
}
)"},
    // NaN where either is NaN.
    {"relay_min_f", R"(
float relay_min_f(float a, float b) { return a < b || a != a ? a : b; }
)"},
    {"relay_max_f", R"(
float relay_max_f(float a, float b) { return a > b || a != a ? a : b; }
)"},
    {"relay_add_product", R"(
#ifdef FP_FAST_FMAF
#define relay_add_product(sum, a, b) fma(a, b, sum)
#else
#define relay_add_product(sum, a, b) ((sum) + (a) * (b))
#endif
)"},
    {"relay_floormod_f", R"(
float relay_floormod_f(float a, float b) {
  const float r = fmod(a, b);
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}
)"},
    {"relay_sigmoid_f", R"(
float relay_sigmoid_f(float x) { return 1.0f / (1.0f + exp(-x)); }
)"},
    {"relay_min_d", R"(
double relay_min_d(double a, double b) { return a < b || a != a ? a : b; }
)"},
    {"relay_max_d", R"(
double relay_max_d(double a, double b) { return a > b || a != a ? a : b; }
)"},
    {"relay_floormod_d", R"(
double relay_floormod_d(double a, double b) {
  const double r = fmod(a, b);
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}
)"},
    {"relay_sigmoid_d", R"(
double relay_sigmoid_d(double x) { return 1.0 / (1.0 + exp(-x)); }
)"},
    // Values of 16-bit floats are in float, rounded; their bits are in memory.
    {"relay_bits_f16", R"(
ushort relay_bits_f16(float x) {
  ushort bits;
  vstore_half_rte(x, 0, (half*)&bits);
  return bits;
}
)"},
    {"relay_of_f16", R"(
float relay_of_f16(ushort bits) { return vload_half(0, (const half*)&bits); }
)"},
    {"relay_round_f16", R"(
float relay_round_f16(float x) {
  ushort bits;
  vstore_half_rte(x, 0, (half*)&bits);
  return vload_half(0, (const half*)&bits);
}
)"},
    {"relay_round_f16_d", R"(
float relay_round_f16_d(double x) {
  ushort bits;
  vstore_half_rte(x, 0, (half*)&bits);
  return vload_half(0, (const half*)&bits);
}
)"},
    {"relay_bits_bf16", R"(
ushort relay_bits_bf16(float x) {
  const uint bits = as_uint(x);
  if (x != x) return (ushort)(bits >> 16 | 0x40u);
  return (ushort)((bits + 0x7FFFu + (bits >> 16 & 1u)) >> 16);
}
)"},
    {"relay_of_bf16", R"(
float relay_of_bf16(ushort bits) { return as_float((uint)bits << 16); }
)"},
    {"relay_round_bf16", R"(
float relay_round_bf16(float x) {
  const uint bits = as_uint(x);
  if (x != x) return x;
  return as_float((bits + 0x7FFFu + (bits >> 16 & 1u)) & 0xFFFF0000u);
}
)"},
};

}  // namespace

std::string opencl_helpers(const std::set<std::string>& names) {
  std::string out;
  size_t found = 0;
  for (const Helper& h : kHelpers) {
    if (!names.contains(std::string(h.name))) continue;
    ++found;
    out += h.code.substr(1);
  }
  RELAY_CHECK(found == names.size(), "a printed kernel calls a helper that does not exist");
  return out;
}

}  // namespace relay::codegen
