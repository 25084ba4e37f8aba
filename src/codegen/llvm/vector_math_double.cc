// Mathematical functions inline on float64. The polynomials interpolate at the Chebyshev nodes of their
// ranges, in 60 digits; each leaves less than a tenth of a unit in the last place.
#include <llvm/IR/Intrinsics.h>

#include <cmath>

#include "codegen/llvm/math_builder.h"
#include "codegen/llvm/vector_math.h"

namespace relay::codegen {
namespace {

using llvm::Value;

// Ln 2 in two parts: multiples of the first up to 2^20 are exact.
constexpr double kLn2 = 6.93147180369123816490e-01, kLn2Rest = 1.9082149292723212146e-10;
// Adding it leaves the nearest integer in the low bits of the sum.
constexpr double kRounding = 6755399441055744.0;  // 1.5 * 2^52
// Sqrt(1/2), and what a mantissa is.
constexpr uint64_t kRootHalf = 0x3fe6a09e667f3bcd, kMantissa = 0x000fffffffffffff;

class DoubleMath : MathBuilder {
 public:
  using MathBuilder::MathBuilder;

  // By range reduction to [-ln2/2, ln2/2] and a polynomial of degree 12.
  Value* exp(Value* x) {
    Value* clamped = clamp(x, -746.0, 710.0);
    Value* shifted = fma(clamped, c(1.44269504088896340736), c(kRounding));
    Value* n = b_.CreateFSub(shifted, c(kRounding));
    Value* r = fma(n, c(-kLn2), clamped);
    r = fma(n, c(-kLn2Rest), r);
    Value* p = polynomial(r, {2.0911236630261545e-09, 2.510038549551032e-08, 2.755728296954995e-07,
                              2.7557268459997064e-06, 2.4801587317144498e-05,
                              0.00019841269863053618, 0.0013888888888886552, 0.008333333333330062,
                              0.041666666666666664, 0.16666666666666669, 0.5});
    p = b_.CreateFAdd(fma(b_.CreateFMul(p, r), r, r), c(1.0));
    // 2^n in two factors, so that n from -1077 to 1025 stays representable.
    Value* whole = b_.CreateSub(b_.CreateBitCast(shifted, int_type()),
                                b_.CreateBitCast(c(kRounding), int_type()));
    Value* half = b_.CreateAShr(whole, i(1));
    Value* rest = b_.CreateSub(whole, half);
    return b_.CreateFMul(b_.CreateFMul(p, power_of_two(half)), power_of_two(rest));
  }

  // By the mantissa m in [sqrt(1/2), sqrt(2)) and the exponent: log(m) is the odd series of
  // s = (m - 1) / (m + 1), here as m - 1 less what the series leaves of it.
  Value* log(Value* x) {
    // Denormals are scaled into the normal range first.
    Value* tiny = b_.CreateFCmpOLT(x, c(0x1p-1022));
    Value* scaled = b_.CreateSelect(tiny, b_.CreateFMul(x, c(0x1p54)), x);
    Value* bits = b_.CreateBitCast(scaled, int_type());
    Value* shifted = b_.CreateSub(bits, i(kRootHalf));
    Value* exponent = b_.CreateAShr(shifted, i(52));
    Value* mantissa =
        b_.CreateBitCast(b_.CreateAdd(b_.CreateAnd(shifted, i(kMantissa)), i(kRootHalf)), type_);
    Value* e = b_.CreateSIToFP(exponent, type_);
    e = b_.CreateFAdd(e, b_.CreateSelect(tiny, c(-54.0), c(0.0)));
    Value* f = b_.CreateFSub(mantissa, c(1.0));
    Value* s = b_.CreateFDiv(f, b_.CreateFAdd(f, c(2.0)));
    Value* z = b_.CreateFMul(s, s);
    Value* series =
        b_.CreateFMul(polynomial(z, {0.14616585424888623, 0.15331710618210773, 0.18182889455674947,
                                     0.22222211130259878, 0.2857142862600327, 0.39999999999899444,
                                     0.666666666666667}),
                      z);
    // log(1 + f) = f - (f^2/2 - s * (f^2/2 + series)).
    Value* square = b_.CreateFMul(b_.CreateFMul(f, c(0.5)), f);
    Value* corrected = fma(s, b_.CreateFAdd(square, series), b_.CreateFMul(e, c(kLn2Rest)));
    Value* result = b_.CreateFSub(f, b_.CreateFSub(square, corrected));
    result = fma(e, c(kLn2), result);
    result = b_.CreateSelect(b_.CreateFCmpOEQ(x, c(0.0)), c(-HUGE_VAL), result);
    result = b_.CreateSelect(b_.CreateFCmpOEQ(x, c(HUGE_VAL)), c(HUGE_VAL), result);
    return b_.CreateSelect(b_.CreateFCmpULT(x, c(0.0)), c(NAN), result);  // also NaN
  }

  Value* sigmoid(Value* x) {
    return b_.CreateFDiv(c(1.0), b_.CreateFAdd(c(1.0), exp(b_.CreateFNeg(x))));
  }

  // A polynomial near zero, where 1 - 2/(e^2x + 1) would cancel; that elsewhere.
  Value* tanh(Value* x) {
    Value* magnitude = intrinsic(llvm::Intrinsic::fabs, {x});
    Value* z = b_.CreateFMul(x, x);
    Value* p =
        polynomial(z, {6.465788408718577e-06, -3.116122777121773e-05, 9.253580052436035e-05,
                       -0.00023757296954179255, 0.0005896551828359278, -0.0014557743260444097,
                       0.0035921216132508943, -0.008863235092362764, 0.021869488518509728,
                       -0.05396825396788533, 0.1333333333333303, -0.3333333333333333});
    Value* small = fma(b_.CreateFMul(p, z), x, x);
    Value* e = exp(b_.CreateFMul(magnitude, c(2.0)));
    Value* large = b_.CreateFSub(c(1.0), b_.CreateFDiv(c(2.0), b_.CreateFAdd(e, c(1.0))));
    large = intrinsic(llvm::Intrinsic::copysign, {large, x});
    return b_.CreateSelect(b_.CreateFCmpOLT(magnitude, c(0.625)), small, large);
  }

 private:
  llvm::Type* int_type() const { return like(b_.getInt64Ty()); }
  Value* i(uint64_t v) const { return llvm::ConstantInt::get(int_type(), v); }
  Value* power_of_two(Value* n) {
    return b_.CreateBitCast(b_.CreateShl(b_.CreateAdd(n, i(1023)), i(52)), type_);
  }
};

}  // namespace

Value* emit_double_math(llvm::IRBuilder<>& b, std::string_view name,
                        const std::vector<Value*>& args) {
  DoubleMath math(b, args[0]->getType());
  if (name == "exp") return math.exp(args[0]);
  if (name == "log") return math.log(args[0]);
  if (name == "tanh") return math.tanh(args[0]);
  if (name == "sigmoid") return math.sigmoid(args[0]);
  return nullptr;
}

}  // namespace relay::codegen
