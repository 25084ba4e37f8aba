// The register tile of a matrix product: right, free of spills, and its share of the machine's
// peak printed (not judged: machines are shared).
#include <chrono>
#include <cstdio>
#include <sstream>

#include "codegen/test/kernel_harness.h"

namespace relay::codegen_test {
namespace {

constexpr int kRows = 14, kVectors = 2, kLanes = 16, kDepth = 256;
constexpr int kColumns = kVectors * kLanes;

// c[14, 32] = a[14, k] * b[k, 32], accumulators in registers. With `peak` the operands stay in
// registers too, so that the loop does nothing but multiply and add.
PrimFunc tile(bool peak) {
  DType f32 = DType::Float(32);
  Buffer a = buffer("a", f32, {index(kRows * kDepth)}),
         b = buffer("b", f32, {index(kDepth * kColumns)});
  Buffer c = buffer("c", f32, {index(kRows * kColumns)});
  Buffer acc = buffer("acc", f32, {index(kRows * kColumns)}, Scope::Register);
  Var k = var("k");
  auto at = [](PrimExpr base) { return ramp(base, index(1), kLanes); };
  std::vector<Stmt> init, step, finish;
  for (int r = 0; r < kRows; ++r) {
    for (int v = 0; v < kVectors; ++v) {
      PrimExpr place = at(index(r * kColumns + v * kLanes));
      init.push_back(store(acc, {place}, broadcast(imm_float(f32, 0), kLanes)));
      PrimExpr x = broadcast(load(a, {peak ? index(0) : k + int64_t{r * kDepth}}), kLanes);
      PrimExpr y = load(b, {at(peak ? index(v * kLanes) : k * kColumns + int64_t{v * kLanes})});
      step.push_back(
          store(acc, {place}, call("fma", f32.with_lanes(kLanes), {x, y, load(acc, {place})})));
      finish.push_back(store(c, {place}, load(acc, {place})));
    }
  }
  Stmt body =
      allocate(acc, seq({seq(init), for_(k, index(0), index(kDepth), seq(step)), seq(finish)}));
  return kernel(peak ? "peak" : "tile", {a, b}, {c}, body);
}

TEST(Matmul, register_tile_is_right_and_does_not_spill) {
  Target target = native_target();
  if (target.vector_bits < 512) GTEST_SKIP() << "the tile is for 32 registers of 512 bits";
  auto begin = std::chrono::steady_clock::now();
  LoadedKernels jit = load_kernels({tile(false)}, target);
  double compile_ms =
      std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
  LoadedKernels peak = load_kernels({tile(true)}, target);
  std::vector<float> a(kRows * kDepth), b(kDepth * kColumns), c(kRows * kColumns), d(c);
  for (size_t i = 0; i < a.size(); ++i) a[i] = static_cast<float>(i % 11) - 5;
  for (size_t i = 0; i < b.size(); ++i) b[i] = static_cast<float>(i % 7) - 3;
  void* buffers[] = {a.data(), b.data(), c.data()};
  void* other[] = {a.data(), b.data(), d.data()};
  TestContext context;
  auto best = [&](relay_kernel f, void* const* args) {
    double least = 1e9;
    for (int round = 0; round < 200; ++round) {
      auto start = std::chrono::steady_clock::now();
      for (int i = 0; i < 20; ++i) f(args, nullptr, &context.context);
      least = std::min(
          least,
          std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() / 20);
    }
    return 2.0 * kRows * kColumns * kDepth / least * 1e-9;
  };
  double reached = best(jit.functions()[0], buffers), limit = best(peak.functions()[0], other);
  for (int r = 0; r < kRows; ++r) {
    for (int col = 0; col < kColumns; ++col) {
      float want = 0;
      for (int k = 0; k < kDepth; ++k)
        want += a[static_cast<size_t>(r * kDepth + k)] * b[static_cast<size_t>(k * kColumns + col)];
      ASSERT_EQ(c[static_cast<size_t>(r * kColumns + col)], want);
    }
  }
  std::printf(
      "14x32 tile: %.0f GFLOP/s, %.0f %% of a register-only loop (%.0f); compiled in %.1f ms\n",
      reached, 100 * reached / limit, limit, compile_ms);
  // A vector register and the stack in one instruction would be a spill.
  std::istringstream lines(backend_of(target).text(CodeText::Assembly, {tile(false)}, target));
  int vectors = 0;
  for (std::string line; std::getline(lines, line);) {
    if (line.find("zmm") == std::string::npos) continue;
    ++vectors;
    EXPECT_EQ(line.find("(%rsp"), std::string::npos) << line;
    EXPECT_EQ(line.find("(%rbp"), std::string::npos) << line;
  }
  EXPECT_GE(vectors, kRows * kVectors);
}

}  // namespace
}  // namespace relay::codegen_test
