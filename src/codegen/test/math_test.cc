// Inline mathematics: accuracy over sampled and special values, and lanes that agree with scalars.
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

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
    {"tanh", tanhl, 4.0, -20.0f, 20.0f}, {"sigmoid", sigmoid, 3.0, -80.0f, 80.0f},
    {"erf", erfl, 2.0, -5.0f, 5.0f},     {"sin", sinl, 2.0, -1000.0f, 1000.0f},
    {"cos", cosl, 2.0, -10.0f, 10.0f},   {"tan", tanl, 4.0, -100.0f, 100.0f},
    {"sin", sinl, 2.0, -2e6f, 2e6f},     {"cos", cosl, 2.0, -1e30f, 1e30f},
    {"asinh", asinhl, 2.0, -9.0f, 9.0f},
};

std::vector<float> run(const char* name, const std::vector<float>& x, int lanes,
                       const Target& target) {
  DType f32 = DType::Float(32);
  int64_t n = static_cast<int64_t>(x.size());
  Buffer in = buffer("in", f32, {index(n)}), out = buffer("out", f32, {index(n)});
  Var i = var("i");
  PrimExpr at = lanes == 1 ? PrimExpr(i) : ramp(i * lanes, index(1), lanes);
  Stmt body = for_(i, index(0), index(n / lanes),
                   store(out, {at}, call(name, f32.with_lanes(lanes), {load(in, {at})})));
  LoadedKernels jit = load_kernels({kernel("math", {in}, {out}, body)}, target);
  std::vector<float> y(x.size());
  void* buffers[] = {const_cast<float*>(x.data()), y.data()};
  TestContext context;
  EXPECT_EQ(context.run(jit.functions()[0], buffers), 0);
  return y;
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
  std::vector<Case> cases{
      {"exp", inf, inf},      {"exp", -inf, 0},        {"exp", 0, 1},         {"exp", 100, inf},
      {"log", 0, -inf},       {"log", inf, inf},       {"log", -1, nan},      {"log", 1, 0},
      {"tanh", inf, 1},       {"tanh", -inf, -1},      {"tanh", 0, 0},        {"sigmoid", inf, 1},
      {"sigmoid", -inf, 0},   {"sigmoid", 0, 0.5f},    {"erf", inf, 1},       {"erf", -inf, -1},
      {"erf", 0, 0},          {"fast_exp", inf, inf},  {"fast_exp", -inf, 0}, {"fast_exp", 0, 1},
      {"fast_tanh", inf, 1},  {"fast_tanh", -inf, -1}, {"fast_tanh", 0, 0},   {"fast_erf", inf, 1},
      {"fast_erf", -inf, -1}, {"fast_erf", 0, 0},      {"sin", 0, 0},         {"sin", inf, nan},
      {"cos", 0, 1},          {"cos", -inf, nan},      {"tan", 0, 0},         {"tan", inf, nan}};
  for (const char* name : {"exp", "log", "tanh", "sigmoid", "erf", "sin", "cos", "tan", "fast_exp",
                           "fast_tanh", "fast_erf"})
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

}  // namespace
}  // namespace relay::codegen_test
