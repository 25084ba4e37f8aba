#include "codegen/cuda/device_math.h"

#include <llvm/IR/IRBuilder.h>

#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "codegen/llvm/math_builder.h"
#include "codegen/llvm/vector_math.h"

namespace relay::codegen {
namespace {

using llvm::BasicBlock;
using llvm::Value;

constexpr double kHalfPi = 1.57079632679489655800, kHalfPiRest = 6.12323399573676603587e-17,
                 kHalfPiLast = -1.49738490485916983e-33;
constexpr double kLn2 = 6.93147180369123816490e-01, kLn2Rest = 1.90821492927058770002e-10;

// 64 zeros, then the bits of 2 / pi.
constexpr uint64_t kTwoOverPi[] = {
    0,
    0xa2f9836e4e441529,
    0xfc2757d1f534ddc0,
    0xdb6295993c439041,
    0xfe5163abdebbc561,
    0xb7246e3a424dd2e0,
    0x06492eea09d1921c,
    0xfe1deb1cb129a73e,
    0xe88235f52ebb4484,
    0xe99c7026b45f7e41,
    0x3991d639835339f4,
    0x9c845f8bbdf9283b,
    0x1ff897ffde05980f,
    0xef2f118b5a0a6d1f,
    0x6d367ecf27cb09b7,
    0x4f463f669e5fea2d,
    0x7527bac7ebe5f17b,
    0x3d0739f78a5292ea,
    0x6bfb5fb11f8d5d08,
    0x56033046fc7b6bab,
};

// On float64; polynomials and divisions of the ranges are those of Sun's library (fdlibm) unless said otherwise.
class DeviceMath : MathBuilder {
 public:
  DeviceMath(llvm::IRBuilder<>& b, llvm::Function* f) : MathBuilder(b, b.getDoubleTy()), f_(f) {}

  Value* sine(Value* x, uint64_t quarters) {
    const Turned t = turned(x);
    Value* turns = b_.CreateAdd(t.quarters, i(quarters));
    Value* y = b_.CreateSelect(bit_set(turns, 1), cosine_of_rest(t.rest), sine_of_rest(t.rest));
    return b_.CreateSelect(bit_set(turns, 2), b_.CreateFNeg(y), y);
  }
  Value* tangent(Value* x) {
    const Turned t = turned(x);
    Value *s = sine_of_rest(t.rest), *co = cosine_of_rest(t.rest);
    Value* odd = bit_set(t.quarters, 1);
    return b_.CreateFDiv(b_.CreateSelect(odd, b_.CreateFNeg(co), s), b_.CreateSelect(odd, s, co));
  }

  // The angle of the point (x, y).
  Value* angle(Value* y, Value* x) {
    Value *ax = abs(x), *ay = abs(y);
    Value* steep = b_.CreateFCmpOGT(ay, ax);
    Value* less = b_.CreateSelect(steep, ax, ay);
    Value* more = b_.CreateSelect(steep, ay, ax);
    Value* q = b_.CreateFDiv(less, more);
    // Of zeros and of infinities, too.
    Value* whole = b_.CreateSelect(b_.CreateFCmpOEQ(more, c(0.0)), c(0.0), c(1.0));
    q = b_.CreateSelect(b_.CreateFCmpOEQ(less, more), whole, q);
    Value* a = small_arc_tangent(q);
    Value* rest = b_.CreateFSub(a, c(kHalfPiRest));
    a = b_.CreateSelect(steep, b_.CreateFSub(c(kHalfPi), rest), a);
    Value* back = b_.CreateFSub(c(2 * kHalfPi), b_.CreateFSub(a, c(2 * kHalfPiRest)));
    Value* negative = b_.CreateICmpSLT(b_.CreateBitCast(x, b_.getInt64Ty()), i(0));
    return with_sign(b_.CreateSelect(negative, back, a), y);
  }
  Value* arc_tangent(Value* x) { return angle(x, c(1.0)); }
  Value* arc_sine(Value* x) {
    Value* square = b_.CreateFMul(b_.CreateFSub(c(1.0), x), b_.CreateFAdd(c(1.0), x));
    return angle(x, root(square));
  }
  Value* arc_cosine(Value* x) {
    Value* half = angle(root(b_.CreateFSub(c(1.0), x)), root(b_.CreateFAdd(c(1.0), x)));
    return b_.CreateFMul(half, c(2.0));
  }

  Value* hyperbolic_cosine(Value* x) {
    const Exponential e = exponential(abs(x));
    return b_.CreateSelect(e.is_large, e.half, b_.CreateFAdd(e.half, e.inverse));
  }
  // The odd series to the power 19 up to one, where the difference would cancel.
  Value* hyperbolic_sine(Value* x) {
    Value* z = b_.CreateFMul(x, x);
    Value* p =
        polynomial(z, {8.22063524662432972e-18, 2.81145725434552076e-15, 7.64716373181981648e-13,
                       1.60590438368216146e-10, 2.50521083854417188e-08, 2.75573192239858907e-06,
                       1.98412698412698413e-04, 8.33333333333333333e-03, 1.66666666666666667e-01});
    Value* small = fma(b_.CreateFMul(p, z), x, x);
    const Exponential e = exponential(abs(x));
    Value* large = b_.CreateSelect(e.is_large, e.half, b_.CreateFSub(e.half, e.inverse));
    return b_.CreateSelect(b_.CreateFCmpOLT(abs(x), c(1.0)), small, with_sign(large, x));
  }
  Value* area_sine(Value* x) {
    Value* a = abs(x);
    Value* z = b_.CreateFMul(a, a);
    Value* below = b_.CreateFAdd(c(1.0), root(b_.CreateFAdd(z, c(1.0))));
    Value* y = log_of_one_and(b_.CreateFAdd(a, b_.CreateFDiv(z, below)));
    return with_sign(b_.CreateSelect(is_far(a), log_of_twice(a), y), x);
  }
  Value* area_cosine(Value* x) {
    Value* t = b_.CreateFSub(x, c(1.0));
    Value* square = b_.CreateFMul(t, b_.CreateFAdd(t, c(2.0)));
    Value* y = log_of_one_and(b_.CreateFAdd(t, root(square)));
    y = b_.CreateSelect(is_far(x), log_of_twice(x), y);
    return b_.CreateSelect(b_.CreateFCmpOLT(x, c(1.0)), c(NAN), y);
  }
  Value* area_tangent(Value* x) {
    Value* a = abs(x);
    Value* q = b_.CreateFDiv(b_.CreateFMul(a, c(2.0)), b_.CreateFSub(c(1.0), a));
    return with_sign(b_.CreateFMul(log_of_one_and(q), c(0.5)), x);
  }

  Value* log2(Value* x) {
    const Split s = split(x);
    return of_special(x, fma(log(s.mantissa), c(1.44269504088896340736), s.exponent));
  }
  Value* log10(Value* x) {
    const Split s = split(x);
    Value* y = b_.CreateFMul(log(s.mantissa), c(4.34294481903251816668e-01));
    y = fma(s.exponent, c(3.69423907715893078616e-13), y);
    return of_special(x, fma(s.exponent, c(3.01029995663611771306e-01), y));
  }

  Value* erf(Value* x) {
    Value* a = abs(x);
    Value* z = b_.CreateFMul(x, x);
    Value* p = polynomial(
        z, {-2.37630166566501626084e-05, -5.77027029648944159157e-03, -2.84817495755985104766e-02,
            -3.25042107247001499370e-01, 1.28379167095512558561e-01});
    Value* q = polynomial(
        z, {-3.96022827877536812320e-06, 1.32494738004321644526e-04, 5.08130628187576562776e-03,
            6.50222499887672944485e-02, 3.97917223959155352819e-01, 1.0});
    Value* small = fma(b_.CreateFDiv(p, q), x, x);

    Value* s = b_.CreateFSub(a, c(1.0));
    p = polynomial(
        s, {-2.16637559486879084300e-03, 3.54783043256182359371e-02, -1.10894694282396677476e-01,
            3.18346619901161753674e-01, -3.72207876035701323847e-01, 4.14856118683748331666e-01,
            -2.36211856075265944077e-03});
    q = polynomial(s, {1.19844998467991074170e-02, 1.36370839120290507362e-02,
                       1.26171219808761642112e-01, 7.18286544141962662868e-02,
                       5.40397917702171048937e-01, 1.06420880400844228286e-01, 1.0});
    Value* middle = b_.CreateFAdd(c(8.45062911510467529297e-01), b_.CreateFDiv(p, q));

    s = b_.CreateFDiv(c(1.0), z);
    Value* far_p = polynomial(
        s, {-4.83519191608651397019e+02, -1.02509513161107724954e+03, -6.37566443368389627722e+02,
            -1.60636384855821916062e+02, -1.77579549177547519889e+01, -7.99283237680523006574e-01,
            -9.86494292470009928597e-03});
    Value* far_q = polynomial(
        s, {-2.24409524465858183362e+01, 4.74528541206955367215e+02, 2.55305040643316442583e+03,
            3.19985821950859553908e+03, 1.53672958608443695994e+03, 3.25792512996573918826e+02,
            3.03380607434824582924e+01, 1.0});
    p = polynomial(
        s, {-9.81432934416914548592e+00, -8.12874355063065934246e+01, -1.84605092906711035994e+02,
            -1.62396669462573470355e+02, -6.23753324503260060396e+01, -1.05586262253232909814e+01,
            -6.93858572707181764372e-01, -9.86494403484714822705e-03});
    q = polynomial(
        s, {-6.04244152148580987438e-02, 6.57024977031928170135e+00, 1.08635005541779435134e+02,
            4.29008140027567833386e+02, 6.45387271733267880336e+02, 4.34565877475229228821e+02,
            1.37657754143519042600e+02, 1.96512716674392571292e+01, 1.0});
    Value* beyond = b_.CreateFCmpOGE(a, c(1 / 0.35));
    Value* ratio =
        b_.CreateFDiv(b_.CreateSelect(beyond, far_p, p), b_.CreateSelect(beyond, far_q, q));
    // The square of the first half of the bits is exact.
    Value* front = b_.CreateBitCast(
        b_.CreateAnd(b_.CreateBitCast(a, b_.getInt64Ty()), i(0xffffffff00000000)), type_);
    Value* rest = b_.CreateFMul(b_.CreateFSub(front, a), b_.CreateFAdd(front, a));
    Value* square = b_.CreateFSub(c(-0.5625), b_.CreateFMul(front, front));
    Value* tail = b_.CreateFMul(exp(square), exp(b_.CreateFAdd(rest, ratio)));
    Value* large = b_.CreateFSub(c(1.0), b_.CreateFDiv(tail, a));

    Value* y = b_.CreateSelect(b_.CreateFCmpOLT(a, c(1.25)), middle, large);
    y = b_.CreateSelect(b_.CreateFCmpOGE(a, c(6.0)), c(1.0), y);
    return b_.CreateSelect(b_.CreateFCmpOLT(a, c(0.84375)), small, with_sign(y, x));
  }

  // exp(y log |x|), of a logarithm in two numbers: 2s with s = (m - 1) / (m + 1) of the mantissa m, and the rest of its odd
  // series to the power 19.
  Value* power(Value* x, Value* y) {
    const Split parts = split(abs(x));
    Value* over = b_.CreateFSub(parts.mantissa, c(1.0));
    Value* under = b_.CreateFAdd(parts.mantissa, c(1.0));
    Value* under_rest = b_.CreateFSub(parts.mantissa, b_.CreateFSub(under, c(1.0)));
    Value* s = b_.CreateFDiv(over, under);
    Value* s_rest = exact(b_.CreateFNeg(s), under, over);
    s_rest = b_.CreateFDiv(exact(b_.CreateFNeg(s), under_rest, s_rest), under);
    Value* z = b_.CreateFMul(s, s);
    Value* series = polynomial(
        z, {2.0 / 19, 2.0 / 17, 2.0 / 15, 2.0 / 13, 2.0 / 11, 2.0 / 9, 2.0 / 7, 2.0 / 5, 2.0 / 3});
    Value* low = fma(b_.CreateFMul(series, z), s, b_.CreateFMul(s_rest, c(2.0)));
    low = fma(parts.exponent, c(kLn2Rest), low);
    const Pair large = sum(b_.CreateFMul(parts.exponent, c(kLn2)), b_.CreateFMul(s, c(2.0)));
    const Pair log = sum(large.high, b_.CreateFAdd(large.low, low));

    Value* high = b_.CreateFMul(y, log.high);
    Value* rest = exact(y, log.low, exact(y, log.high, b_.CreateFNeg(high)));
    Value* e = exp(high);
    Value* r = fma(e, rest, e);
    // A product that overflows has no rest.
    Value* far = b_.CreateFCmpUGE(abs(high), c(750.0));
    r = b_.CreateSelect(far, e, r);
    // Of 0 and of infinities, the power of their logarithm.
    Value* special = exp(b_.CreateFMul(y, this->log(abs(x))));
    return signed_power(x, y, b_.CreateSelect(is_normal(abs(x)), r, special));
  }

 private:
  Value* i(uint64_t v) const { return b_.getInt64(v); }
  Value* abs(Value* x) { return intrinsic(llvm::Intrinsic::fabs, {x}); }
  Value* root(Value* x) { return intrinsic(llvm::Intrinsic::sqrt, {x}); }
  Value* with_sign(Value* x, Value* of) { return intrinsic(llvm::Intrinsic::copysign, {x, of}); }
  // x * y + z, rounded once.
  Value* exact(Value* x, Value* y, Value* z) { return intrinsic(llvm::Intrinsic::fma, {x, y, z}); }
  Value* exp(Value* x) { return emit_double_math(b_, "exp", {x}); }
  Value* log(Value* x) { return emit_double_math(b_, "log", {x}); }
  Value* bit_set(Value* v, uint64_t bit) { return b_.CreateICmpNE(b_.CreateAnd(v, i(bit)), i(0)); }

  // A number and what is left of a sum.
  struct Pair {
    Value *high, *low;
  };
  Pair sum(Value* a, Value* b) {
    Value* high = b_.CreateFAdd(a, b);
    Value* of_b = b_.CreateFSub(high, a);
    Value* of_a = b_.CreateFSub(high, of_b);
    return {high, b_.CreateFAdd(b_.CreateFSub(a, of_a), b_.CreateFSub(b, of_b))};
  }

  // A mantissa in [sqrt(1/2), sqrt(2)) and an exponent, of positive numbers.
  struct Split {
    Value *mantissa, *exponent;
  };
  Split split(Value* x) {
    Value* tiny = b_.CreateFCmpOLT(x, c(0x1p-1022));
    Value* scaled = b_.CreateSelect(tiny, b_.CreateFMul(x, c(0x1p54)), x);
    constexpr uint64_t kRootHalf = 0x3fe6a09e667f3bcd, kMantissa = 0x000fffffffffffff;
    Value* shifted = b_.CreateSub(b_.CreateBitCast(scaled, b_.getInt64Ty()), i(kRootHalf));
    Value* e = b_.CreateSIToFP(b_.CreateAShr(shifted, i(52)), type_);
    Value* m = b_.CreateAdd(b_.CreateAnd(shifted, i(kMantissa)), i(kRootHalf));
    e = b_.CreateFAdd(e, b_.CreateSelect(tiny, c(-54.0), c(0.0)));
    return {b_.CreateBitCast(m, type_), e};
  }
  Value* is_normal(Value* x) {
    return b_.CreateAnd(b_.CreateFCmpOGT(x, c(0.0)), b_.CreateFCmpOLT(x, c(HUGE_VAL)));
  }
  // The logarithm of what is not positive and finite is the same to every base.
  Value* of_special(Value* x, Value* y) { return b_.CreateSelect(is_normal(x), y, log(x)); }

  // log(1 + y), by the quotient that the rounding of the sum changes.
  Value* log_of_one_and(Value* y) {
    Value* u = b_.CreateFAdd(c(1.0), y);
    Value* change = b_.CreateFDiv(y, b_.CreateFSub(u, c(1.0)));
    Value* l = log(u);
    Value* r = b_.CreateFMul(l, change);
    r = b_.CreateSelect(b_.CreateFCmpOEQ(abs(u), c(HUGE_VAL)), l, r);
    return b_.CreateSelect(b_.CreateFCmpOEQ(u, c(1.0)), y, r);
  }
  Value* is_far(Value* x) { return b_.CreateFCmpOGT(x, c(0x1p28)); }
  Value* log_of_twice(Value* x) { return b_.CreateFAdd(log(x), c(kLn2 + kLn2Rest)); }

  // e^x / 2 and e^-x / 2 for x >= 0; where it is large, the second is nothing beside the first.
  struct Exponential {
    Value *half, *inverse, *is_large;
  };
  Exponential exponential(Value* x) {
    Value* large = b_.CreateFCmpOGT(x, c(22.0));
    Value* e = exp(b_.CreateSelect(large, b_.CreateFMul(x, c(0.5)), x));
    Value* half = b_.CreateFMul(e, c(0.5));
    return {b_.CreateSelect(large, b_.CreateFMul(half, e), half), b_.CreateFDiv(c(0.5), e), large};
  }

  // Of [0, 1].
  Value* small_arc_tangent(Value* q) {
    Value* middle = b_.CreateFCmpOGE(q, c(0.4375));
    Value* large = b_.CreateFCmpOGE(q, c(0.6875));
    auto choose = [&](Value* of_large, Value* of_middle, Value* of_small) {
      return b_.CreateSelect(large, of_large, b_.CreateSelect(middle, of_middle, of_small));
    };
    Value* twice = b_.CreateFMul(q, c(2.0));
    Value* over = choose(b_.CreateFSub(q, c(1.0)), b_.CreateFSub(twice, c(1.0)), q);
    Value* under = choose(b_.CreateFAdd(q, c(1.0)), b_.CreateFAdd(q, c(2.0)), c(1.0));
    Value* t = b_.CreateFDiv(over, under);
    Value* z = b_.CreateFMul(t, t);
    Value* p = polynomial(
        z, {1.62858201153657823623e-02, -3.65315727442169155270e-02, 4.97687799461593236017e-02,
            -5.83357013379057348645e-02, 6.66107313738753120669e-02, -7.69187620504482999495e-02,
            9.09088713343650656196e-02, -1.11111104054623557880e-01, 1.42857142725034663711e-01,
            -1.99999999998764832476e-01, 3.33333333333329318027e-01});
    Value* less = b_.CreateFMul(b_.CreateFMul(p, z), t);
    Value* rest = choose(c(kHalfPiRest / 2), c(2.26987774529616870924e-17), c(0.0));
    Value* whole = choose(c(kHalfPi / 2), c(4.63647609000806093515e-01), c(0.0));
    return b_.CreateFSub(whole, b_.CreateFSub(b_.CreateFSub(less, rest), t));
  }

  // An angle without its quarter turns, in [-pi/4, pi/4], and their number (its low bits).
  struct Turned {
    Value *rest, *quarters;
  };
  Turned turned(Value* x) {
    // Up to here, the number times each part of pi/2 but the last is taken off exactly.
    constexpr double kNear = 1e5;
    auto& context = b_.getContext();
    auto* near = BasicBlock::Create(context, "near", f_);
    auto* far = BasicBlock::Create(context, "far", f_);
    auto* next = BasicBlock::Create(context, "next", f_);
    b_.CreateCondBr(b_.CreateFCmpOLT(abs(x), c(kNear)), near, far);
    b_.SetInsertPoint(near);
    Value* count = intrinsic(llvm::Intrinsic::rint, {b_.CreateFMul(x, c(1 / kHalfPi))});
    Value* back = b_.CreateFNeg(count);
    Value* rest = exact(back, c(kHalfPi), x);
    rest = exact(back, c(kHalfPiRest), rest);
    rest = exact(back, c(kHalfPiLast), rest);
    const Turned a{rest, b_.CreateFPToSI(count, b_.getInt64Ty())};
    b_.CreateBr(next);
    b_.SetInsertPoint(far);
    const Turned b = turned_far(x);
    b_.CreateBr(next);
    b_.SetInsertPoint(next);
    auto either = [&](Value* of_near, Value* of_far) {
      auto* phi = b_.CreatePHI(of_near->getType(), 2);
      phi->addIncoming(of_near, near);
      phi->addIncoming(of_far, far);
      return phi;
    };
    Value* r = either(a.rest, b.rest);
    return {r, either(a.quarters, b.quarters)};
  }

  // By the 192 bits of 2 / pi that matter (Payne and Hanek): the mantissa times the bits from two before the one that makes 1
  // of the last bit of the mantissa, in units of 2^-190 without multiples of 4.
  Turned turned_far(Value* x) {
    llvm::Type* word = b_.getInt64Ty();
    auto* type = llvm::ArrayType::get(word, std::size(kTwoOverPi));
    llvm::Module& module = *f_->getParent();
    auto* table =
        llvm::cast<llvm::GlobalVariable>(module.getOrInsertGlobal("relay_two_over_pi", type, [&] {
          return new llvm::GlobalVariable(
              module, type, true, llvm::GlobalValue::InternalLinkage,
              llvm::ConstantDataArray::get(b_.getContext(), llvm::ArrayRef(kTwoOverPi)),
              "relay_two_over_pi", nullptr, llvm::GlobalValue::NotThreadLocal, kConstant);
        }));
    constexpr uint64_t kMantissaBits = 52, kLastExponent = 2046;
    Value* bits = b_.CreateBitCast(abs(x), word);
    Value* exponent = b_.CreateLShr(bits, i(kMantissaBits));
    exponent =
        b_.CreateSelect(b_.CreateICmpUGT(exponent, i(kLastExponent)), i(kLastExponent), exponent);
    constexpr uint64_t kImplied = uint64_t{1} << kMantissaBits;
    Value* mantissa = b_.CreateOr(b_.CreateAnd(bits, i(kImplied - 1)), i(kImplied));
    // The exponent of the last bit is 1075 less.
    Value* first = b_.CreateSub(exponent, i(1075 + 2 - 64));
    Value* at = b_.CreateLShr(first, i(6));
    Value* shift = b_.CreateAnd(first, i(63));
    std::array<Value*, 4> read{};
    for (uint64_t k = 0; k < read.size(); ++k) {
      read[k] = b_.CreateLoad(word, b_.CreateInBoundsGEP(word, table, b_.CreateAdd(at, i(k))));
    }
    auto joined = [&](Value* high, Value* low, Value* by) {
      return b_.CreateIntrinsic(llvm::Intrinsic::fshl, {word}, {high, low, by});
    };
    llvm::Type* twice = b_.getIntNTy(128);
    auto product = [&](Value* v) {
      return b_.CreateNUWMul(b_.CreateZExt(mantissa, twice), b_.CreateZExt(v, twice));
    };
    auto high = [&](Value* v) { return b_.CreateTrunc(b_.CreateLShr(v, 64), word); };
    Value* low = product(joined(read[2], read[3], shift));
    Value* middle = product(joined(read[1], read[2], shift));
    Value* bits1 = b_.CreateAdd(b_.CreateTrunc(middle, word), high(low));
    Value* carry = b_.CreateZExt(b_.CreateICmpULT(bits1, high(low)), word);
    Value* bits0 = b_.CreateMul(mantissa, joined(read[0], read[1], shift));
    bits0 = b_.CreateAdd(b_.CreateAdd(bits0, high(middle)), carry);
    // The fraction is that of the nearest whole number.
    Value* f0 = joined(bits0, bits1, i(2));
    Value* f1 = joined(bits1, b_.CreateTrunc(low, word), i(2));
    Value* quarters = b_.CreateAdd(b_.CreateLShr(bits0, i(62)), b_.CreateLShr(f0, i(63)));
    Value* fraction = b_.CreateFAdd(b_.CreateFMul(b_.CreateSIToFP(f0, type_), c(0x1p-64)),
                                    b_.CreateFMul(b_.CreateUIToFP(f1, type_), c(0x1p-128)));
    Value* rest = b_.CreateFMul(fraction, c(kHalfPi));
    Value* negative = b_.CreateFCmpOLT(x, c(0.0));
    rest = b_.CreateSelect(negative, b_.CreateFNeg(rest), rest);
    Value* finite = b_.CreateFCmpOLT(abs(x), c(HUGE_VAL));
    return {b_.CreateSelect(finite, rest, c(NAN)),
            b_.CreateSelect(negative, b_.CreateNeg(quarters), quarters)};
  }

  Value* sine_of_rest(Value* x) {
    Value* z = b_.CreateFMul(x, x);
    Value* p = polynomial(
        z, {1.58969099521155010221e-10, -2.50507602534068634195e-08, 2.75573137070700676789e-06,
            -1.98412698298579493134e-04, 8.33333333332248946124e-03, -1.66666666666666324348e-01});
    return fma(b_.CreateFMul(p, z), x, x);
  }
  Value* cosine_of_rest(Value* x) {
    Value* z = b_.CreateFMul(x, x);
    Value* p = polynomial(
        z, {-1.13596475577881948265e-11, 2.08757232129817482790e-09, -2.75573143513906633035e-07,
            2.48015872894767294178e-05, -1.38888888888741095749e-03, 4.16666666666666019037e-02});
    Value* half = b_.CreateFMul(z, c(0.5));
    Value* front = b_.CreateFSub(c(1.0), half);
    Value* lost = b_.CreateFSub(b_.CreateFSub(c(1.0), front), half);
    return b_.CreateFAdd(front, fma(b_.CreateFMul(p, z), z, lost));
  }

  static constexpr unsigned kConstant = 4;  // PTX's state space

  llvm::Function* f_;
};

Value* double_math(llvm::IRBuilder<>& b, llvm::Function* f, std::string_view name,
                   const std::vector<Value*>& args) {
  DeviceMath math(b, f);
  Value *x = args[0], *y = args.back();
  if (name == "sin") return math.sine(x, 0);
  if (name == "cos") return math.sine(x, 1);
  if (name == "tan") return math.tangent(x);
  if (name == "asin") return math.arc_sine(x);
  if (name == "acos") return math.arc_cosine(x);
  if (name == "atan") return math.arc_tangent(x);
  if (name == "atan2") return math.angle(x, y);
  if (name == "sinh") return math.hyperbolic_sine(x);
  if (name == "cosh") return math.hyperbolic_cosine(x);
  if (name == "asinh") return math.area_sine(x);
  if (name == "acosh") return math.area_cosine(x);
  if (name == "atanh") return math.area_tangent(x);
  if (name == "log2") return math.log2(x);
  if (name == "log10") return math.log10(x);
  if (name == "erf") return math.erf(x);
  if (name == "pow") return math.power(x, y);
  return nullptr;
}

// Takes the largest product of |y| by a power of two that is not above it off |x|, as long as what is left is not below |y|.
Value* remainder(llvm::IRBuilder<>& b, llvm::Function* f, Value* x, Value* y) {
  llvm::Type* type = x->getType();
  const unsigned width = type->getScalarSizeInBits(), mantissa = width == 64 ? 52 : 23;
  llvm::Type* word = b.getIntNTy(width);
  auto absolute = [&](Value* v) { return b.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, v); };
  auto constant = [&](double v) { return llvm::ConstantFP::get(type, v); };
  Value *a = absolute(x), *divisor = absolute(y);
  Value* valid =
      b.CreateAnd(b.CreateFCmpOLT(a, constant(HUGE_VAL)),
                  b.CreateFCmpOGE(divisor, constant(width == 64 ? 0x1p-1022 : 0x1p-126)));
  Value* first = b.CreateSelect(valid, a, constant(NAN));
  auto& context = f->getContext();
  auto* before = b.GetInsertBlock();
  auto* head = BasicBlock::Create(context, "head", f);
  auto* body = BasicBlock::Create(context, "body", f);
  auto* next = BasicBlock::Create(context, "next", f);
  b.CreateBr(head);
  b.SetInsertPoint(head);
  auto* rest = b.CreatePHI(type, 2);
  rest->addIncoming(first, before);
  b.CreateCondBr(b.CreateFCmpOGE(rest, divisor), body, next);
  b.SetInsertPoint(body);
  const auto low = llvm::APInt::getLowBitsSet(width, mantissa);
  Value* number = b.CreateAnd(b.CreateBitCast(divisor, word), llvm::ConstantInt::get(word, low));
  Value* exponent = b.CreateAnd(b.CreateBitCast(rest, word), llvm::ConstantInt::get(word, ~low));
  Value* multiple = b.CreateBitCast(b.CreateOr(number, exponent), type);
  Value* above = b.CreateFCmpOGT(multiple, rest);
  multiple = b.CreateSelect(above, b.CreateFMul(multiple, constant(0.5)), multiple);
  rest->addIncoming(b.CreateFSub(rest, multiple), body);
  b.CreateBr(head);
  b.SetInsertPoint(next);
  Value* r = b.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, rest, x);
  // By an infinity.
  Value* whole = b.CreateAnd(b.CreateFCmpOEQ(divisor, constant(HUGE_VAL)),
                             b.CreateFCmpOLT(a, constant(HUGE_VAL)));
  return b.CreateSelect(whole, x, r);
}

}  // namespace

llvm::Function* device_function(llvm::Module& module, const Target& target, std::string_view name,
                                llvm::Type* number, size_t count) {
  const std::string symbol =
      "relay_" + std::string(name) + "_f" + std::to_string(number->getScalarSizeInBits());
  if (llvm::Function* known = module.getFunction(symbol)) return known;
  auto* f = llvm::Function::Create(
      llvm::FunctionType::get(number, std::vector<llvm::Type*>(count, number), false),
      llvm::GlobalValue::InternalLinkage, symbol, module);
  f->addFnAttr("target-cpu", target.cpu);
  f->addFnAttr(llvm::Attribute::NoUnwind);
  llvm::IRBuilder<> b(BasicBlock::Create(module.getContext(), "entry", f));
  llvm::FastMathFlags flags;
  flags.setAllowContract(true);
  b.setFastMathFlags(flags);
  std::vector<Value*> args;
  for (llvm::Argument& a : f->args()) args.push_back(&a);
  Value* result = nullptr;
  if (name == "fmod") {
    result = remainder(b, f, args[0], args[1]);
  } else {
    std::vector<Value*> wide;
    for (Value* a : args) wide.push_back(b.CreateFPCast(a, b.getDoubleTy()));
    result = double_math(b, f, name, wide);
    if (result != nullptr) result = b.CreateFPCast(result, number);
  }
  if (result == nullptr) {
    f->eraseFromParent();
    return nullptr;
  }
  b.CreateRet(result);
  return f;
}

}  // namespace relay::codegen
