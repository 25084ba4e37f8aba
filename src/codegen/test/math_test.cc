// Inline mathematics: accuracy over sampled and special values, and lanes that agree with scalars.
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <random>

#include "codegen/test/kernel_harness.h"

namespace relay::codegen_test {
namespace {

struct Function {
  const char* name;
  long double (*exact)(long double);
  double max_ulp;
  float low, high;  // sampled range
};

long double sigmoid(long double x) { return 1.0L / (1.0L + expl(-x)); }

const Function kFunctions[] = {
    {"exp", expl, 1.25, -87.0f, 88.7f},  {"log", logl, 1.0, 1e-37f, 1e30f},
    {"tanh", tanhl, 6.0, -20.0f, 20.0f}, {"sigmoid", sigmoid, 3.0, -80.0f, 80.0f},
    {"erf", erfl, 2.0, -5.0f, 5.0f},     {"sin", sinl, 2.0, -1000.0f, 1000.0f},
    {"cos", cosl, 2.0, -10.0f, 10.0f},   {"tan", tanl, 4.0, -100.0f, 100.0f},
    {"sin", sinl, 2.0, -2e6f, 2e6f},     {"cos", cosl, 2.0, -1e30f, 1e30f},
    {"asinh", asinhl, 3.0, -9.0f, 9.0f}, {"asinh", asinhl, 3.0, -3e38f, 3e38f},
    {"acosh", acoshl, 3.0, 1.0f, 4.0f},  {"acosh", acoshl, 3.0, 1.0f, 3e38f},
    {"atanh", atanhl, 3.0, -1.0f, 1.0f}, {"cosh", coshl, 2.0, -89.4f, 89.4f},
    {"sinh", sinhl, 3.0, -89.4f, 89.4f}, {"sinh", sinhl, 3.0, -2.0f, 2.0f},
    {"atan", atanl, 2.0, -30.0f, 30.0f}, {"asin", asinl, 2.5, -1.0f, 1.0f},
    {"acos", acosl, 2.0, -1.0f, 1.0f},
};

template <class T>
std::vector<T> apply(const char* name, DType dtype, const std::vector<T>& x, int lanes,
                     const Target& target) {
  int64_t n = static_cast<int64_t>(x.size());
  Buffer in = buffer("in", dtype, {index(n)}), out = buffer("out", dtype, {index(n)});
  Var i = var("i");
  PrimExpr at = lanes == 1 ? PrimExpr(i) : ramp(i * lanes, index(1), lanes);
  Stmt body = for_(i, index(0), index(n / lanes),
                   store(out, {at}, call(name, dtype.with_lanes(lanes), {load(in, {at})})));
  LoadedKernels jit = load_kernels({kernel("math", {in}, {out}, body)}, target);
  std::vector<T> y(x.size());
  void* buffers[] = {const_cast<T*>(x.data()), y.data()};
  TestContext context;
  EXPECT_EQ(context.run(jit.functions()[0], buffers), 0);
  return y;
}

std::vector<float> run(const char* name, const std::vector<float>& x, int lanes,
                       const Target& target) {
  return apply(name, DType::Float(32), x, lanes, target);
}
std::vector<double> run_double(const char* name, const std::vector<double>& x, int lanes,
                               const Target& target) {
  return apply(name, DType::Float(64), x, lanes, target);
}

double ulp_error(float got, long double exact) {
  float nearest = static_cast<float>(exact);
  float next = std::nextafterf(std::fabs(nearest), HUGE_VALF);
  long double unit = static_cast<long double>(next) - std::fabs(nearest);
  return static_cast<double>(fabsl(got - exact) / unit);
}

TEST(Math, error_is_within_the_stated_bounds_and_lanes_agree_with_scalars) {
  for (const Function& f : kFunctions) {
    std::vector<float> x;
    for (int i = 0; i < 1 << 14; ++i) {
      float t = static_cast<float>(i) / static_cast<float>((1 << 14) - 1);
      // Even across the range, and geometric towards zero.
      x.push_back(f.low + (f.high - f.low) * t);
      float small = f.high * std::exp2(-30.0f * t);
      x.push_back(f.low < 0 && i % 2 == 0 ? -small : small);
    }
    for (const Target& target : runnable_targets()) {
      std::vector<float> wide = run(f.name, x, 16, target), narrow = run(f.name, x, 1, target);
      double worst = 0;
      float at = 0;
      for (size_t i = 0; i < x.size(); ++i) {
        ASSERT_EQ(std::bit_cast<uint32_t>(wide[i]), std::bit_cast<uint32_t>(narrow[i]))
            << f.name << "(" << x[i] << ") for " << target.name;
        double error = ulp_error(wide[i], f.exact(x[i]));
        if (error > worst) worst = error, at = x[i];
      }
      EXPECT_LE(worst, f.max_ulp) << f.name << "(" << at << ") for " << target.name;
    }
  }
}

// sqrt(1 - y * y) and the gradient of tanh need |y| <= 1: every float from 4 to 9, where tanh approaches 1.
TEST(Math, tanh_of_every_float_is_at_most_one) {
  std::vector<float> x;
  for (float t = 4; t < 9; t = std::nextafterf(t, HUGE_VALF)) x.push_back(t);
  while (x.size() % 16 != 0) x.push_back(9);
  std::vector<double> exact(x.size());
  std::ranges::transform(x, exact.begin(), [](float t) { return std::tanh(double{t}); });
  for (const Target& target : runnable_targets()) {
    const std::vector<float> y = run("tanh", x, 16, target);
    double worst = 0;
    for (size_t i = 0; i < x.size(); ++i) {
      ASSERT_LE(y[i], 1.0f) << "tanh(" << x[i] << ") for " << target.name;
      worst = std::max(worst, std::fabs(y[i] - exact[i]));
    }
    // These results lie in [1/2, 1].
    EXPECT_LE(worst * 0x1p24, 6.0) << target.name;
  }
}

// The same in float64.
TEST(Math, of_float64_is_within_the_stated_bounds_and_lanes_agree_with_scalars) {
  struct Wide {
    const char* name;
    long double (*exact)(long double);
    double max_ulp, low, high;
  };
  const Wide functions[] = {{"exp", expl, 1.0, -708.0, 709.7},      {"exp", expl, 1.0, -2.0, 2.0},
                            {"log", logl, 1.0, 1e-300, 1e300},      {"log", logl, 1.0, 0.4, 3.0},
                            {"tanh", tanhl, 2.0, -20.0, 20.0},      {"tanh", tanhl, 2.0, -1.0, 1.0},
                            {"sigmoid", sigmoid, 2.0, -40.0, 700.0}};
  const double inf = HUGE_VAL, nan = std::nan("");
  for (const Wide& f : functions) {
    std::vector<double> x;
    for (int i = 0; i < 1 << 14; ++i) {
      double t = i / static_cast<double>((1 << 14) - 1);
      x.push_back(f.low + (f.high - f.low) * t);
      double small = f.high * std::exp2(-60.0 * t);
      x.push_back(f.low < 0 && i % 2 == 0 ? -small : small);
    }
    for (double special : {0.0, inf, -inf, nan, 1.0, -1.0, 5e-324, 1000.0}) x.push_back(special);
    for (const Target& target : runnable_targets()) {
      std::vector<double> wide = run_double(f.name, x, 8, target);
      std::vector<double> narrow = run_double(f.name, x, 1, target);
      double worst = 0, at = 0;
      for (size_t i = 0; i < x.size(); ++i) {
        ASSERT_TRUE(std::bit_cast<uint64_t>(wide[i]) == std::bit_cast<uint64_t>(narrow[i]) ||
                    (std::isnan(wide[i]) && std::isnan(narrow[i])))
            << f.name << "(" << x[i] << ") for " << target.name;
        long double exact = f.exact(x[i]);
        auto nearest = static_cast<double>(exact);
        if (std::isnan(nearest) || std::isinf(nearest) || nearest == 0) {
          EXPECT_TRUE(std::isnan(nearest) ? std::isnan(wide[i]) : wide[i] == nearest)
              << f.name << "(" << x[i] << ") is " << wide[i];
          continue;
        }
        long double unit =
            static_cast<long double>(std::nextafter(std::fabs(nearest), inf)) - std::fabs(nearest);
        auto error = static_cast<double>(fabsl(wide[i] - exact) / unit);
        if (error > worst) worst = error, at = x[i];
      }
      EXPECT_LE(worst, f.max_ulp) << f.name << "(" << at << ") for " << target.name;
    }
  }
}

// A product that is written and one that is computed anew are the same number.
TEST(Math, a_difference_of_equal_products_is_zero) {
  DType f32 = DType::Float(32);
  Buffer in = buffer("in", f32, {index(64)}), product = buffer("product", f32, {index(64)}),
         out = buffer("out", f32, {index(64)});
  Var i = var("i");
  PrimExpr x = load(in, {i});
  Stmt body = seq({for_(i, index(0), index(64), store(product, {i}, x * x)),
                   for_(i, index(0), index(64), store(out, {i}, x * x - load(product, {i})))});
  for (const Target& target : runnable_targets()) {
    LoadedKernels jit = load_kernels({kernel("squares", {in}, {product, out}, body)}, target);
    std::vector<float> given(64), squares(64), differences(64, 1.0f);
    for (size_t k = 0; k < 64; ++k) given[k] = std::sqrt(static_cast<float>(k) + 0.1f);
    void* buffers[] = {given.data(), squares.data(), differences.data()};
    TestContext context;
    EXPECT_EQ(context.run(jit.functions()[0], buffers), 0);
    for (float d : differences) EXPECT_EQ(d, 0) << target.name;
  }
}

// Vectors of numbers, divided by one that a loop keeps: as a constant, and read from memory.
template <class T>
void expect_exact_quotients(DType dtype, const std::vector<T>& x, T divisor, const Target& target) {
  constexpr int kLanes = 16;
  const auto n = static_cast<int64_t>(x.size());
  for (bool is_constant : {false, true}) {
    Buffer in = buffer("in", dtype, {index(n)}), by = buffer("by", dtype, {index(1)}),
           out = buffer("out", dtype, {index(n)});
    Var i = var("i");
    PrimExpr at = ramp(i * kLanes, index(1), kLanes);
    PrimExpr one =
        is_constant ? imm_float(dtype, static_cast<double>(divisor)) : load(by, {index(0)});
    Stmt body = for_(i, index(0), index(n / kLanes),
                     store(out, {at}, div(load(in, {at}), broadcast(one, kLanes))));
    LoadedKernels jit = load_kernels({kernel("quotients", {in, by}, {out}, body)}, target);
    std::vector<T> y(x.size());
    void* buffers[] = {const_cast<T*>(x.data()), &divisor, y.data()};
    TestContext context;
    ASSERT_EQ(context.run(jit.functions()[0], buffers), 0);
    for (size_t k = 0; k < x.size(); ++k) {
      const T exact = x[k] / divisor;
      const bool same = std::isnan(exact)
                            ? std::isnan(y[k])
                            : y[k] == exact && std::signbit(y[k]) == std::signbit(exact);
      ASSERT_TRUE(same) << target.name << ": " << x[k] << " / " << divisor << " is " << exact
                        << ", not " << y[k];
    }
  }
}

template <class T>
void expect_exact_quotients(DType dtype) {
  using Limits = std::numeric_limits<T>;
  const T huge = Limits::max(), inf = Limits::infinity();
  std::vector<T> x{0, -T(0), 1, -1, inf, -inf, Limits::quiet_NaN(), huge, -huge};
  std::mt19937 random(7);
  std::uniform_real_distribution<T> mantissa(1, 2);
  while (x.size() < 1 << 14) {
    x.push_back(std::ldexp(mantissa(random), static_cast<int>(x.size() % 40) - 20));
  }
  std::vector<T> divisors{0, 1, -1, inf, huge, -huge, Limits::min(), 3, T(0.04), T(1) / 3};
  for (int k = 0; k < 4; ++k) divisors.push_back(std::ldexp(mantissa(random), 3 * k - 5));
  // Mantissas of ones and of few ones.
  divisors.push_back(std::nextafter(T(2), T(1)));
  divisors.push_back(std::nextafter(T(1), T(2)));
  for (const Target& target : runnable_targets()) {
    for (T divisor : divisors) {
      // Quotients that are denormal, or rounded to infinity, are left out.
      std::vector<T> mine = x;
      for (T& v : mine) {
        const T q = std::fabs(v / divisor);
        const bool is_denormal = q != 0 && q < Limits::min();
        const bool overflows = std::isfinite(v) && divisor != 0 && q > huge / 2;
        if (is_denormal || overflows) v = 0;
      }
      expect_exact_quotients(dtype, mine, divisor, target);
    }
  }
}

TEST(Math, quotients_by_what_a_loop_keeps_are_rounded_as_divisions) {
  expect_exact_quotients<float>(DType::Float(32));
  expect_exact_quotients<double>(DType::Float(64));
}

// Quantisation: vectors take another way than single numbers.
template <class T>
void expect_rounded(DType to, double offset) {
  constexpr int kLanes = 16;
  const float inf = std::numeric_limits<float>::infinity();
  std::vector<float> x{0,       -0.0f,    0.5f,         1.5f,
                       2.5f,    -0.5f,    -1.5f,        1e30f,
                       -1e30f,  inf,      -inf,         std::numeric_limits<float>::quiet_NaN(),
                       8388609, -8388609, 2147483648.0f};
  for (int k = 0; x.size() < 4096; ++k) {
    x.push_back(static_cast<float>((k - 2040) * 0.25 * (to.bits == 16 ? 90 : 1)));
  }
  const auto n = static_cast<int64_t>(x.size());
  auto run_in_lanes = [&](int lanes, const Target& target) {
    Buffer in = buffer("in", DType::Float(32), {index(n)}), out = buffer("out", to, {index(n)});
    Var i = var("i");
    PrimExpr at = lanes == 1 ? PrimExpr(i) : ramp(i * lanes, index(1), lanes);
    PrimExpr c = imm_float(DType::Float(32), offset);
    PrimExpr rounded = call("round", DType::Float(32).with_lanes(lanes), {load(in, {at})});
    PrimExpr moved = rounded + (lanes == 1 ? c : broadcast(c, lanes));
    Stmt body =
        for_(i, index(0), index(n / lanes), store(out, {at}, cast(to.with_lanes(lanes), moved)));
    LoadedKernels jit = load_kernels({kernel("rounded", {in}, {out}, body)}, target);
    std::vector<T> y(x.size());
    void* buffers[] = {x.data(), y.data()};
    TestContext context;
    EXPECT_EQ(context.run(jit.functions()[0], buffers), 0);
    return y;
  };
  for (const Target& target : runnable_targets()) {
    const std::vector<T> wide = run_in_lanes(kLanes, target), narrow = run_in_lanes(1, target);
    for (size_t k = 0; k < x.size(); ++k) {
      ASSERT_EQ(wide[k], narrow[k]) << target.name << ": " << x[k] << " + " << offset;
    }
    EXPECT_EQ(wide[3], static_cast<T>(2 + offset));
    EXPECT_EQ(wide[4], static_cast<T>(2 + offset));
  }
}

TEST(Math, rounded_numbers_saturate_in_vectors_as_alone) {
  for (double offset : {0.0, 5.0, 117.0}) {
    expect_rounded<uint8_t>(DType::UInt(8), offset);
    expect_rounded<int8_t>(DType::Int(8), offset);
    expect_rounded<uint16_t>(DType::UInt(16), offset);
    expect_rounded<int16_t>(DType::Int(16), -offset);
  }
}

TEST(Math, approximations_are_within_the_stated_bounds) {
  struct Approximation {
    const char* name;
    long double (*exact)(long double);
    double absolute, relative;
    float low, high;
  };
  const Approximation approximations[] = {{"fast_exp", expl, 0, 4e-6, -87.0f, 88.7f},
                                          {"fast_tanh", tanhl, 3e-6, 0, -20.0f, 20.0f},
                                          {"fast_erf", erfl, 5e-6, 0, -5.0f, 5.0f}};
  for (const Approximation& f : approximations) {
    std::vector<float> x;
    for (int i = 0; i < 1 << 15; ++i) {
      x.push_back(f.low + (f.high - f.low) * static_cast<float>(i) / static_cast<float>(1 << 15));
    }
    for (const Target& target : runnable_targets()) {
      std::vector<float> wide = run(f.name, x, 16, target), narrow = run(f.name, x, 1, target);
      double worst = 0;
      for (size_t i = 0; i < x.size(); ++i) {
        ASSERT_EQ(std::bit_cast<uint32_t>(wide[i]), std::bit_cast<uint32_t>(narrow[i]))
            << f.name << "(" << x[i] << ") for " << target.name;
        long double exact = f.exact(x[i]), bound = f.absolute + f.relative * fabsl(exact);
        worst = std::max(worst, static_cast<double>(fabsl(wide[i] - exact) / bound));
      }
      EXPECT_LE(worst, 1) << f.name << " for " << target.name;
    }
  }
}

TEST(Math, special_values) {
  float inf = HUGE_VALF, nan = std::nanf("");
  struct Case {
    const char* name;
    float x, want;
  };
  std::vector<Case> cases{{"exp", inf, inf},
                          {"exp", -inf, 0},
                          {"exp", 0, 1},
                          {"exp", 100, inf},
                          {"log", 0, -inf},
                          {"log", inf, inf},
                          {"log", -1, nan},
                          {"log", 1, 0},
                          {"tanh", inf, 1},
                          {"tanh", -inf, -1},
                          {"tanh", 0, 0},
                          {"tanh", -0.0f, -0.0f},
                          {"tanh", 3e38f, 1},
                          {"tanh", nan, nan},
                          {"sigmoid", inf, 1},
                          {"sigmoid", -inf, 0},
                          {"sigmoid", 0, 0.5f},
                          {"erf", inf, 1},
                          {"erf", -inf, -1},
                          {"erf", 0, 0},
                          {"erf", 4, 1},
                          {"erf", -3e38f, -1},
                          {"fast_exp", inf, inf},
                          {"fast_exp", -inf, 0},
                          {"fast_exp", 0, 1},
                          {"fast_tanh", inf, 1},
                          {"fast_tanh", -inf, -1},
                          {"fast_tanh", 0, 0},
                          {"fast_erf", inf, 1},
                          {"fast_erf", -inf, -1},
                          {"fast_erf", 0, 0},
                          {"sin", 0, 0},
                          {"sin", inf, nan},
                          {"cos", 0, 1},
                          {"cos", -inf, nan},
                          {"tan", 0, 0},
                          {"tan", inf, nan},
                          {"atan", 0, 0},
                          {"atan", -0.0f, -0.0f},
                          {"asin", -0.0f, -0.0f},
                          {"asin", 1.5f, nan},
                          {"acos", 1, 0},
                          {"acos", -1.5f, nan},
                          {"acos", inf, nan},
                          {"atan", inf, std::atan(inf)},
                          {"asin", -1, std::asin(-1.0f)},
                          {"acos", -1, std::acos(-1.0f)},
                          {"acos", 0, std::acos(0.0f)},
                          {"cosh", 0, 1},
                          {"cosh", -inf, inf},
                          {"cosh", 100, inf},
                          {"sinh", -0.0f, -0.0f},
                          {"sinh", -inf, -inf},
                          {"sinh", 100, inf},
                          {"asinh", -0.0f, -0.0f},
                          {"asinh", -inf, -inf},
                          {"acosh", 1, 0},
                          {"acosh", inf, inf},
                          {"acosh", 0.5f, nan},
                          {"acosh", -inf, nan},
                          {"atanh", -0.0f, -0.0f},
                          {"atanh", -1, -inf},
                          {"atanh", 1, inf},
                          {"atanh", 1.5f, nan}};
  for (const char* name :
       {"exp", "log", "tanh", "sigmoid", "erf", "sin", "cos", "tan", "fast_exp", "fast_tanh",
        "fast_erf", "atan", "asin", "acos", "cosh", "sinh", "asinh", "acosh", "atanh"})
    cases.push_back({name, nan, nan});
  for (const Case& c : cases) {
    float got = run(c.name, std::vector<float>(16, c.x), 16, native_target())[0];
    if (std::isnan(c.want)) {
      EXPECT_TRUE(std::isnan(got)) << c.name << "(" << c.x << ") = " << got;
    } else {
      EXPECT_EQ(got, c.want) << c.name << "(" << c.x << ")";
    }
  }
}

std::vector<float> run_power(const std::vector<float>& x, const std::vector<float>& y, int lanes,
                             const Target& target) {
  DType f32 = DType::Float(32);
  auto n = static_cast<int64_t>(x.size());
  Buffer a = buffer("a", f32, {index(n)}), b = buffer("b", f32, {index(n)});
  Buffer out = buffer("out", f32, {index(n)});
  Var i = var("i");
  PrimExpr at = lanes == 1 ? PrimExpr(i) : ramp(i * lanes, index(1), lanes);
  PrimExpr value = call("pow", f32.with_lanes(lanes), {load(a, {at}), load(b, {at})});
  Stmt body = for_(i, index(0), index(n / lanes), store(out, {at}, value));
  LoadedKernels jit = load_kernels({kernel("power", {a, b}, {out}, body)}, target);
  std::vector<float> result(x.size());
  void* buffers[] = {const_cast<float*>(x.data()), const_cast<float*>(y.data()), result.data()};
  TestContext context;
  EXPECT_EQ(context.run(jit.functions()[0], buffers), 0);
  return result;
}

TEST(Math, powers_are_within_one_unit_of_the_last_place) {
  std::vector<float> x, y;
  uint32_t seed = 1;
  auto next = [&](float low, float high) {
    seed = seed * 1664525u + 1013904223u;
    return low + (high - low) * static_cast<float>(seed >> 8) / static_cast<float>(1 << 24);
  };
  for (int i = 0; i < 1 << 15; ++i) {
    x.push_back(std::exp2(next(-60, 60)));
    float most = 120 / std::max(std::fabs(std::log2(x.back())), 1e-3f);
    y.push_back(i % 3 == 0 ? std::round(next(-3, 4)) : next(-most, most));
    if (i % 3 == 0) x.back() = -next(0.01f, 100);
  }
  for (const Target& target : runnable_targets()) {
    std::vector<float> wide = run_power(x, y, 16, target), narrow = run_power(x, y, 1, target);
    for (size_t i = 0; i < x.size(); ++i) {
      ASSERT_EQ(std::bit_cast<uint32_t>(wide[i]), std::bit_cast<uint32_t>(narrow[i]))
          << x[i] << " to the power " << y[i] << " for " << target.name;
      long double exact = powl(x[i], y[i]);
      if (fabsl(exact) > 3e38L || fabsl(exact) < 1e-37L) continue;
      ASSERT_LE(ulp_error(wide[i], exact), 0.75)
          << x[i] << " to the power " << y[i] << " for " << target.name;
    }
  }
}

TEST(Math, powers_of_special_values) {
  float inf = HUGE_VALF, nan = std::nanf("");
  const float values[] = {0,     -0.0f, 1,   -1,    0.5f,   -0.5f, 2,   -2,   3,   -3,         1.5f,
                          -1.5f, 40,    -41, 1e30f, -1e30f, 3e38f, inf, -inf, nan, 16777217.0f};
  std::vector<float> x, y;
  for (float a : values) {
    for (float b : values) x.push_back(a), y.push_back(b);
  }
  while (x.size() % 16 != 0) x.push_back(1), y.push_back(1);
  std::vector<float> got = run_power(x, y, 16, native_target());
  for (size_t i = 0; i < x.size(); ++i) {
    float want = std::pow(x[i], y[i]);
    if (std::isnan(want)) {
      EXPECT_TRUE(std::isnan(got[i])) << x[i] << " to the power " << y[i] << " = " << got[i];
    } else {
      if (std::isinf(want)) {
        EXPECT_EQ(got[i], want) << x[i] << " to the power " << y[i];
      } else {
        EXPECT_NEAR(got[i], want, std::fabs(want) * 1e-7) << x[i] << " to the power " << y[i];
      }
      EXPECT_EQ(std::signbit(got[i]), std::signbit(want)) << x[i] << " to the power " << y[i];
    }
  }
}

}  // namespace
}  // namespace relay::codegen_test
