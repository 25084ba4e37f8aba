#include "codegen/llvm/vector_math.h"

#include <llvm/IR/Intrinsics.h>

#include <cmath>
#include <initializer_list>

#include "codegen/llvm/architecture.h"
#include "codegen/llvm/math_builder.h"

namespace relay::codegen {
namespace {

using llvm::Value;

// Up to here the quarter turns of an angle have 20 bits.
constexpr double kLargestAngle = 1 << 20;

class Math : MathBuilder {
 public:
  Math(llvm::IRBuilder<>& b, const Target& target, llvm::Type* type)
      : MathBuilder(b, type), target_(target) {}

  llvm::Type* int_type() const { return like(b_.getInt32Ty()); }
  Value* i(uint32_t v) const { return llvm::ConstantInt::get(int_type(), v); }
  Value* abs(Value* x) { return intrinsic(llvm::Intrinsic::fabs, {x}); }

  // exp by range reduction to [-ln2/2, ln2/2] and a polynomial of degree 6; the fast one's has
  // degree 4.
  Value* exp(Value* x, bool fast = false) {
    const Reduced e = reduce(x, -104.0, 89.0, kShift);
    return in_two_factors(fast ? fast_power(e.rest) : power(e.rest), e, 0);
  }

  // Half of exp, which is finite where cosh is.
  Value* half_exp(Value* x) {
    const Reduced e = reduce(x, -104.0, 90.0, kShift);
    return in_two_factors(power(e.rest), e, 1);
  }

  // Adding 1.5 * 2^23 leaves the nearest integer in the low bits of the sum.
  static constexpr double kShift = 12582912.0;

  // x between bounds as sign * (whole * ln2) + rest; shifted = whole + shift.
  struct Reduced {
    Value *shifted, *whole, *rest;
  };
  Reduced reduce(Value* x, double low, double high, double shift, double sign = 1.0) {
    Value* clamped = clamp(x, low, high);
    Value* shifted = fma(clamped, c(sign * 1.44269504088896341), c(shift));
    Value* n = b_.CreateFSub(shifted, c(shift));
    Value* r = fma(n, c(sign * -0.693359375), clamped);
    return {shifted, n, fma(n, c(sign * 2.12194440e-4), r)};
  }

  // exp(sign * r) between -ln2/2 and ln2/2.
  Value* power(Value* r, double sign = 1.0) {
    Value* p = polynomial(r, {sign * 1.9875691500e-4, 1.3981999507e-3, sign * 8.3334519073e-3,
                              4.1665795894e-2, sign * 1.6666665459e-1, 5.0000001201e-1});
    Value* one = c(1.0);
    Value* linear = sign < 0 ? b_.CreateFSub(one, r) : b_.CreateFAdd(r, one);
    return fma(b_.CreateFMul(p, r), r, linear);
  }
  // The least greatest relative error, 2.9e-6, of those that are one at zero.
  Value* fast_power(Value* r) {
    return polynomial(r, {0.04151384658, 0.1678747342, 0.5000301366, 0.9999668365, 1.0});
  }

  // p * 2^(whole - halvings).
  Value* in_two_factors(Value* p, const Reduced& e, uint32_t halvings) {
    if (Value* v = scaled(p, halvings == 0 ? e.whole : b_.CreateFSub(e.whole, c(halvings))))
      return v;
    // So that exponents from -150 to 129 stay representable.
    Value* n = b_.CreateSub(b_.CreateBitCast(e.shifted, int_type()), i(0x4b400000 + halvings));
    Value* half = b_.CreateAShr(n, i(1));
    Value* rest = b_.CreateSub(n, half);
    return b_.CreateFMul(b_.CreateFMul(p, power_of_two(half)), power_of_two(rest));
  }

  Value* power_of_two(Value* n) {
    return b_.CreateBitCast(b_.CreateShl(b_.CreateAdd(n, i(127)), i(23)), type_);
  }

  // x * 2^n by the instruction for it; null when there is none for this vector.
  Value* scaled(Value* x, Value* n) {
    const LlvmArchitecture* a = find_llvm_architecture(target_.arch);
    return a == nullptr || a->scale == nullptr ? nullptr : a->scale(b_, target_, x, n);
  }

  // log by splitting into mantissa in [sqrt(1/2), sqrt(2)) and exponent, and a polynomial of
  // degree 8.
  Value* log(Value* x) {
    // Denormals are scaled into the normal range first.
    Value* tiny = b_.CreateFCmpOLT(x, c(1.17549435e-38));
    Value* scaled = b_.CreateSelect(tiny, b_.CreateFMul(x, c(8388608.0)), x);
    Value* bits = b_.CreateBitCast(scaled, int_type());
    Value* shifted = b_.CreateSub(bits, i(0x3f3504f3));
    Value* exponent = b_.CreateAShr(shifted, i(23));
    Value* mantissa =
        b_.CreateBitCast(b_.CreateAdd(b_.CreateAnd(shifted, i(0x007fffff)), i(0x3f3504f3)), type_);
    Value* e = b_.CreateSIToFP(exponent, type_);
    e = b_.CreateFAdd(e, b_.CreateSelect(tiny, c(-23.0), c(0.0)));
    Value* f = b_.CreateFSub(mantissa, c(1.0));
    Value* z = b_.CreateFMul(f, f);
    Value* p = polynomial(
        f, {7.0376836292e-2, -1.1514610310e-1, 1.1676998740e-1, -1.2420140846e-1, 1.4249322787e-1,
            -1.6668057665e-1, 2.0000714765e-1, -2.4999993993e-1, 3.3333331174e-1});
    Value* y = b_.CreateFMul(b_.CreateFMul(p, f), z);
    y = fma(e, c(-2.12194440e-4), y);
    y = fma(z, c(-0.5), y);
    Value* result = b_.CreateFAdd(f, y);
    result = fma(e, c(0.693359375), result);
    Value* zero = b_.CreateFCmpOEQ(x, c(0.0));
    Value* infinite = b_.CreateFCmpOEQ(x, c(HUGE_VAL));
    Value* negative = b_.CreateFCmpULT(x, c(0.0));  // also NaN
    result = b_.CreateSelect(zero, c(-HUGE_VAL), result);
    result = b_.CreateSelect(infinite, c(HUGE_VAL), result);
    return b_.CreateSelect(negative, c(NAN), result);
  }

  // 1 / (1 + exp(-x)). A negation before the exponential would be one register more, and a loop over vectors has none left
  // with 16 of them.
  Value* sigmoid(Value* x) {
    // The exponent's bias, less one: the sum's low bits are the exponent of half of the exponential, which is one factor.
    const Reduced e = reduce(x, -89.4, 86.5, kShift + 126.0, -1.0);
    Value* p = power(e.rest, -1.0);
    auto inverse_of_sum = [&](double one, Value* power) {
      return b_.CreateFDiv(c(one), b_.CreateFAdd(c(one), power));
    };
    if (Value* v = scaled(p, e.whole)) return inverse_of_sum(1.0, v);
    Value* bits = b_.CreateShl(b_.CreateBitCast(e.shifted, int_type()), i(23));
    return inverse_of_sum(0.5, b_.CreateFMul(p, b_.CreateBitCast(bits, type_)));
  }

  // A quotient of polynomials, minimax over +-8 (as Eigen's). It exceeds 1 from 8.162 on (8.22 with fused multiply-adds). At
  // the bound it is exactly 1, fused or not; tanh itself is 2.9 units in the last place below.
  Value* tanh(Value* x) {
    Value* t = clamp(x, -8.1435, 8.1435);
    Value* z = b_.CreateFMul(t, t);
    Value* over =
        polynomial(z, {1.394553628e-8, 2.102733560e-5, 3.520756727e-3, 1.340216100e-1, 1.0});
    Value* under =
        polynomial(z, {8.015776984e-7, 3.326951409e-4, 2.597254514e-2, 4.673548340e-1, 1.0});
    return b_.CreateFDiv(b_.CreateFMul(over, t), under);
  }

  // With h of half_exp: e^|x| / 2 = h and e^-|x| / 2 = 1 / (4 h).
  Value* hyperbolic_cosine(Value* x) {
    Value* h = half_exp(abs(x));
    return b_.CreateFAdd(h, b_.CreateFDiv(c(0.25), h));
  }
  // The odd series to the power 11 up to one, where the difference would cancel.
  Value* hyperbolic_sine(Value* x) {
    Value* z = b_.CreateFMul(x, x);
    Value* p = polynomial(z, {1.0 / 39916800, 1.0 / 362880, 1.0 / 5040, 1.0 / 120, 1.0 / 6});
    Value* small = fma(b_.CreateFMul(p, z), x, x);
    Value* h = half_exp(abs(x));
    Value* large = b_.CreateFSub(h, b_.CreateFDiv(c(0.25), h));
    large = intrinsic(llvm::Intrinsic::copysign, {large, x});
    return b_.CreateSelect(b_.CreateFCmpOLT(abs(x), c(1.0)), small, large);
  }

  // The logarithm of a + root, and of 2 a where the root is a to the last bit and its square may overflow.
  Value* log_of_sum(Value* a, Value* root) {
    Value* far = b_.CreateFCmpOGT(a, c(1500.0));
    Value* y = log(b_.CreateSelect(far, a, b_.CreateFAdd(a, root)));
    return b_.CreateFAdd(y, b_.CreateSelect(far, c(0.69314718055994530942), c(0.0)));
  }
  // The three by the polynomials of the Cephes library where the logarithm is of nearly one.
  Value* area_sine(Value* x) {
    Value* a = abs(x);
    Value* z = b_.CreateFMul(a, a);
    Value* p =
        polynomial(z, {2.0122003309e-2, -4.2699340972e-2, 7.4847586088e-2, -1.6666288134e-1});
    Value* small = fma(b_.CreateFMul(p, z), x, x);
    Value* large = log_of_sum(a, intrinsic(llvm::Intrinsic::sqrt, {b_.CreateFAdd(z, c(1.0))}));
    large = intrinsic(llvm::Intrinsic::copysign, {large, x});
    return b_.CreateSelect(b_.CreateFCmpOLT(a, c(0.5)), small, large);
  }
  Value* area_cosine(Value* x) {
    Value* z = b_.CreateFSub(x, c(1.0));
    Value* p = polynomial(
        z, {1.7596881071e-3, -7.5272886713e-3, 2.6454905019e-2, -1.1784741703e-1, 1.4142135263});
    Value* small = b_.CreateFMul(p, intrinsic(llvm::Intrinsic::sqrt, {z}));
    Value* square = b_.CreateFMul(z, b_.CreateFAdd(x, c(1.0)));
    Value* large = log_of_sum(x, intrinsic(llvm::Intrinsic::sqrt, {square}));
    return b_.CreateSelect(b_.CreateFCmpOLT(z, c(0.5)), small, large);
  }
  Value* area_tangent(Value* x) {
    Value* a = abs(x);
    Value* z = b_.CreateFMul(x, x);
    Value* p = polynomial(z, {1.81740078349e-1, 8.24370301058e-2, 1.46691431730e-1,
                              1.99782164500e-1, 3.33337300303e-1});
    Value* small = fma(b_.CreateFMul(p, z), x, x);
    Value* quotient = b_.CreateFDiv(b_.CreateFAdd(c(1.0), a), b_.CreateFSub(c(1.0), a));
    Value* large = b_.CreateFMul(log(quotient), c(0.5));
    large = intrinsic(llvm::Intrinsic::copysign, {large, x});
    return b_.CreateSelect(b_.CreateFCmpOLT(a, c(0.5)), small, large);
  }

  // An odd polynomial near zero; elsewhere 1 - p^4, where p approximates the fourth root of erfc on [1.1, 4]: two products
  // take the place of an exponential. From 4 on it is one in float32. Both are minimax fits of the relative error of erf, in
  // x^2 on [0, 1.21] (5e-9) and in |x| (1.3e-8).
  Value* erf(Value* x) {
    Value* magnitude = abs(x);
    Value* z = b_.CreateFMul(x, x);
    Value* p = polynomial(z, {7.115243427e-05, -7.781031891e-04, 5.161720829e-03, -2.683961552e-02,
                              1.128324411e-01, -3.761259601e-01, 1.283791615e-01});
    Value* small = fma(p, x, x);
    Value* t = clamp(magnitude, 0.0, 4.0);
    Value* root =
        polynomial(t, {-1.730545725e-04, 3.144861683e-03, -2.169397207e-02, 6.447985165e-02,
                       -4.743008876e-02, -6.675432153e-02, -3.068072507e-01, 1.005004058});
    Value* square = b_.CreateFMul(root, root);
    Value* large = fma(b_.CreateFNeg(square), square, c(1.0));
    large = intrinsic(llvm::Intrinsic::copysign, {large, x});
    return b_.CreateSelect(b_.CreateFCmpOLT(magnitude, c(1.1)), small, large);
  }

  // The angle without its quarter turns, in [-pi/4, pi/4], and their number (its low bits), for
  // |x| <= kLargestAngle. In float64, by pi/2 in two parts: the number times the first part is
  // exact.
  struct Angle {
    Value* rest;
    Value* quarters;
  };
  Angle reduced(Value* x) {
    Value* angle = b_.CreateFPExt(x, f64());
    Value* shifted = fma(angle, wide(0.63661977236758134308), wide(kRounding));
    Value* count = b_.CreateFSub(shifted, wide(kRounding));
    Value* rest = fma(count, wide(-1.57079632673412561417), angle);
    rest = fma(count, wide(-6.07710050650619224932e-11), rest);
    Value* bits = b_.CreateBitCast(shifted, like(b_.getInt64Ty()));
    return {b_.CreateFPTrunc(rest, type_), b_.CreateTrunc(bits, int_type())};
  }

  // By the polynomials of the Cephes library, on [0, tan(pi/8)] and the two places that differ
  // from it by pi/4 and pi/2; these have a second part, which the first leaves out.
  Value* arc_tangent(Value* x) {
    Value* a = abs(x);
    Value* middle = b_.CreateFCmpOGT(a, c(0.41421356237309505));
    Value* large = b_.CreateFCmpOGT(a, c(2.41421356237309505));
    auto choose = [&](Value* of_large, Value* of_middle, Value* of_small) {
      return b_.CreateSelect(large, of_large, b_.CreateSelect(middle, of_middle, of_small));
    };
    Value* numerator = choose(c(-1.0), b_.CreateFSub(a, c(1.0)), a);
    Value* denominator = choose(a, b_.CreateFAdd(a, c(1.0)), c(1.0));
    Value* t = b_.CreateFDiv(numerator, denominator);
    Value* z = b_.CreateFMul(t, t);
    Value* p =
        polynomial(z, {8.05374449538e-2, -1.38776856032e-1, 1.99777106478e-1, -3.33329491539e-1});
    Value* y = fma(b_.CreateFMul(p, z), t, t);
    y = b_.CreateFAdd(y, choose(c(kHalfPiRest), c(kHalfPiRest / 2), c(0.0)));
    y = b_.CreateFAdd(y, choose(c(kHalfPi), c(kHalfPi / 2), c(0.0)));
    return intrinsic(llvm::Intrinsic::copysign, {y, x});
  }

  // asin(|x|) for |x| up to 1/2, else half of acos(|x|), by the polynomial of the Cephes library.
  struct Arc {
    Value* value;
    Value* beyond_half;
  };
  Arc arc(Value* x) {
    Value* a = abs(x);
    Value* beyond = b_.CreateFCmpOGT(a, c(0.5));
    Value* half = b_.CreateFMul(b_.CreateFSub(c(1.0), a), c(0.5));
    Value* z = b_.CreateSelect(beyond, half, b_.CreateFMul(a, a));
    Value* root = intrinsic(llvm::Intrinsic::sqrt, {half});
    Value* t = b_.CreateSelect(beyond, root, a);
    Value* p = polynomial(
        z, {4.2163199048e-2, 2.4181311049e-2, 4.5470025998e-2, 7.4953002686e-2, 1.6666752422e-1});
    return {fma(b_.CreateFMul(p, z), t, t), beyond};
  }
  Value* arc_sine(Value* x) {
    Arc part = arc(x);
    Value* twice = b_.CreateFAdd(part.value, part.value);
    Value* rest = b_.CreateFSub(c(kHalfPi), b_.CreateFSub(twice, c(kHalfPiRest)));
    Value* y = b_.CreateSelect(part.beyond_half, rest, part.value);
    return intrinsic(llvm::Intrinsic::copysign, {y, x});
  }
  Value* arc_cosine(Value* x) {
    Arc part = arc(x);
    Value* twice = b_.CreateFAdd(part.value, part.value);
    Value* mirrored = b_.CreateFSub(c(2 * kHalfPi), b_.CreateFSub(twice, c(2 * kHalfPiRest)));
    Value* near = b_.CreateSelect(b_.CreateFCmpOLT(x, c(0.0)), mirrored, twice);
    Value* sine = intrinsic(llvm::Intrinsic::copysign, {part.value, x});
    Value* middle = b_.CreateFSub(c(kHalfPi), b_.CreateFSub(sine, c(kHalfPiRest)));
    return b_.CreateSelect(part.beyond_half, near, middle);
  }

  // 2^(y log2 |x|) in float64, whose error is far below float32's last bit: the logarithm by
  // (m - 1) / (m + 1) of the mantissa m in [sqrt(1/2), sqrt(2)), its odd series to the power 15, and
  // the series of exp to the power 8. Then what the C standard says of special values.
  Value* power(Value* x, Value* y) {
    Value* a = abs(x);
    Value* bits = b_.CreateBitCast(b_.CreateFPExt(a, f64()), i64());
    Value* shifted = b_.CreateSub(bits, wide_int(0x3fe6a09e667f3bcd));
    Value* exponent = b_.CreateSIToFP(b_.CreateAShr(shifted, wide_int(52)), f64());
    Value* mantissa =
        b_.CreateBitCast(b_.CreateAdd(b_.CreateAnd(shifted, wide_int(0x000fffffffffffff)),
                                      wide_int(0x3fe6a09e667f3bcd)),
                         f64());
    Value* s = b_.CreateFDiv(b_.CreateFSub(mantissa, wide(1)), b_.CreateFAdd(mantissa, wide(1)));
    Value* z = b_.CreateFMul(s, s);
    Value* series =
        polynomial(z, {1.0 / 15, 1.0 / 13, 1.0 / 11, 1.0 / 9, 1.0 / 7, 1.0 / 5, 1.0 / 3, 1.0});
    constexpr double kLn2 = 0.69314718055994530942;
    Value* log2 = fma(b_.CreateFMul(s, wide(2 / kLn2)), series, exponent);
    log2 = b_.CreateSelect(b_.CreateFCmpOEQ(a, c(0.0)), wide(-HUGE_VAL), log2);
    log2 = b_.CreateSelect(b_.CreateFCmpUGE(a, c(HUGE_VAL)), b_.CreateFPExt(a, f64()), log2);
    Value* t = b_.CreateFMul(b_.CreateFPExt(y, f64()), log2);
    // Beyond these float32 has 0 and infinity.
    t = b_.CreateSelect(b_.CreateFCmpOLT(t, wide(-200)), wide(-200), t);
    t = b_.CreateSelect(b_.CreateFCmpOGT(t, wide(200)), wide(200), t);
    Value* rounded = b_.CreateFAdd(t, wide(kRounding));
    Value* f = b_.CreateFMul(b_.CreateFSub(t, b_.CreateFSub(rounded, wide(kRounding))), wide(kLn2));
    Value* e = polynomial(
        f, {1.0 / 40320, 1.0 / 5040, 1.0 / 720, 1.0 / 120, 1.0 / 24, 1.0 / 6, 0.5, 1.0, 1.0});
    Value* n = b_.CreateAdd(b_.CreateBitCast(rounded, i64()), wide_int(1023));
    Value* scale = b_.CreateBitCast(b_.CreateShl(n, wide_int(52)), f64());
    Value* r = b_.CreateFPTrunc(b_.CreateFMul(e, scale), type_);
    return signed_power(x, y, r);
  }

  // On [-pi/4, pi/4], by the polynomials of the Cephes library.
  Value* sine_of_rest(Value* x) {
    Value* z = b_.CreateFMul(x, x);
    Value* p = polynomial(z, {-1.9515295891e-4, 8.3321608736e-3, -1.6666654611e-1});
    return fma(b_.CreateFMul(p, z), x, x);
  }
  Value* cosine_of_rest(Value* x) {
    Value* z = b_.CreateFMul(x, x);
    Value* p = polynomial(z, {2.443315711809948e-5, -1.388731625493765e-3, 4.166664568298827e-2});
    return fma(b_.CreateFMul(p, z), z, fma(z, c(-0.5), c(1.0)));
  }
  Value* bit_set(Value* v, uint32_t bit) { return b_.CreateICmpNE(b_.CreateAnd(v, i(bit)), i(0)); }

  // sin(x + quarters * pi/2).
  Value* sine(Value* x, uint32_t quarters) {
    Angle angle = reduced(x);
    Value* turns = b_.CreateAdd(angle.quarters, i(quarters));
    Value* y =
        b_.CreateSelect(bit_set(turns, 1), cosine_of_rest(angle.rest), sine_of_rest(angle.rest));
    return b_.CreateSelect(bit_set(turns, 2), b_.CreateFNeg(y), y);
  }
  Value* tangent(Value* x) {
    Angle angle = reduced(x);
    Value *s = sine_of_rest(angle.rest), *co = cosine_of_rest(angle.rest);
    Value* odd = bit_set(angle.quarters, 1);
    return b_.CreateFDiv(b_.CreateSelect(odd, b_.CreateFNeg(co), s), b_.CreateSelect(odd, s, co));
  }

 private:
  static constexpr double kRounding =
      6755399441055744.0;  // 1.5 * 2^52 leaves an integer in low bits
  // Pi/2 as a float32, and what is left of it.
  static constexpr double kHalfPi = 1.57079637050628662109375,
                          kHalfPiRest = -4.37113900018624283e-8;

  llvm::Type* f64() const { return like(b_.getDoubleTy()); }
  llvm::Type* i64() const { return like(b_.getInt64Ty()); }
  Value* wide(double v) const { return llvm::ConstantFP::get(f64(), v); }
  Value* wide_int(int64_t v) const {
    return llvm::ConstantInt::get(i64(), static_cast<uint64_t>(v));
  }

  const Target& target_;
};

}  // namespace

Value* emit_math(llvm::IRBuilder<>& b, const Target& target, std::string_view name,
                 const std::vector<Value*>& args) {
  llvm::Type* type = args[0]->getType();
  if (type->getScalarType()->isDoubleTy()) return emit_double_math(b, name, args);
  if (!type->getScalarType()->isFloatTy()) return nullptr;
  Math math(b, target, type);
  if (name == "exp") return math.exp(args[0]);
  if (name == "log") return math.log(args[0]);
  if (name == "tanh" || name == "fast_tanh") return math.tanh(args[0]);
  if (name == "sigmoid") return math.sigmoid(args[0]);
  // No shorter formula is faster.
  if (name == "erf" || name == "fast_erf") return math.erf(args[0]);
  if (name == "sin") return math.sine(args[0], 0);
  if (name == "cos") return math.sine(args[0], 1);
  if (name == "tan") return math.tangent(args[0]);
  if (name == "atan") return math.arc_tangent(args[0]);
  if (name == "asin") return math.arc_sine(args[0]);
  if (name == "acos") return math.arc_cosine(args[0]);
  if (name == "cosh") return math.hyperbolic_cosine(args[0]);
  if (name == "sinh") return math.hyperbolic_sine(args[0]);
  if (name == "asinh") return math.area_sine(args[0]);
  if (name == "acosh") return math.area_cosine(args[0]);
  if (name == "atanh") return math.area_tangent(args[0]);
  if (name == "pow") return math.power(args[0], args[1]);
  if (name == "fast_exp") return math.exp(args[0], true);
  return nullptr;
}

std::optional<double> inline_limit(std::string_view name) {
  if (name == "sin" || name == "cos" || name == "tan") return kLargestAngle;
  return std::nullopt;
}

}  // namespace relay::codegen
