// Kernels with their inputs and the output that plain loops give, run as their rule schedules them.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include "codegen/test/kernel_harness.h"
#include "lower/rules/rules.h"
#include "tir/compute.h"
#include "tir/lower_loops.h"
#include "tir/schedule_report.h"

namespace relay::lower_test {

using namespace tir;  // NOLINT: tests are about nothing else
using codegen_test::GuardedMemory;
using codegen_test::TestContext;
using Floats = std::vector<float>;

inline const DType f32 = DType::Float(32);

// Its vectors, on two cores with caches that are the same wherever the tests run.
inline Target with_fixed_caches(const Target& t) {
  Target out;
  out.features = t.features;
  out.vector_bits = t.vector_bits;
  out.num_vector_registers = t.num_vector_registers;
  out.num_cores = 2;
  return out;
}

inline Floats random_floats(size_t n, uint32_t seed) {
  Floats out(n);
  for (float& v : out) {
    seed = seed * 1664525u + 1013904223u;
    v = static_cast<float>(seed >> 8) / static_cast<float>(1 << 23) - 1.0f;
  }
  return out;
}

// A kernel of float32 tensors with its inputs and the output that plain loops give.
struct Case {
  PrimFunc func;
  std::vector<Floats> inputs;
  Floats expected;
  std::vector<int64_t> dims = {};  // the values of func->dims
};

inline PrimFunc scheduled(const PrimFunc& f, const Target& target) {
  return schedule_kernel(f, with_fixed_caches(target), 3);
}

inline std::string rule_of(const PrimFunc& f, const Target& target = codegen_test::text_target()) {
  return tir::report_of(*scheduled(f, target)).sentence;
}

// Every buffer lies right before, or right behind, memory that cannot be touched.
inline Floats run(const LoadedKernels& jit, const Case& c, GuardedMemory::Side side) {
  std::vector<std::unique_ptr<GuardedMemory>> memory;
  std::vector<void*> buffers;
  auto add = [&](size_t n) {
    memory.push_back(std::make_unique<GuardedMemory>(n * sizeof(float), side));
    buffers.push_back(memory.back()->data());
  };
  for (const Floats& x : c.inputs) {
    add(x.size());
    std::ranges::copy(x, static_cast<float*>(buffers.back()));
  }
  Floats out(c.expected.size(), std::numeric_limits<float>::quiet_NaN());
  add(out.size());
  std::ranges::copy(out, static_cast<float*>(buffers.back()));
  TestContext context;
  EXPECT_EQ(context.run(jit.functions()[0], buffers.data(), c.dims.data()), 0);
  std::copy_n(static_cast<const float*>(buffers.back()), out.size(), out.begin());
  return out;
}

// The kernel takes the rule whose sentence starts with `rule`, and is right on every target.
inline void expect_right(const Case& c, const std::string& rule) {
  EXPECT_TRUE(rule_of(c.func).starts_with(rule)) << rule_of(c.func);
  for (const Target& target : codegen_test::runnable_targets()) {
    LoadedKernels jit = load_kernels({lower_loops(scheduled(c.func, target))}, target);
    for (auto side : {GuardedMemory::Side::Left, GuardedMemory::Side::Right}) {
      Floats got = run(jit, c, side);
      for (size_t i = 0; i < got.size(); ++i) {
        if (std::isnan(c.expected[i]) && std::isnan(got[i])) continue;
        ASSERT_NEAR(got[i], c.expected[i], 2e-5 * (1 + std::fabs(c.expected[i])))
            << target.name << " element " << i << "\n"
            << to_string(scheduled(c.func, target));
      }
    }
  }
}

inline void expect_tiled(const Case& c) { expect_right(c, "sum:"); }

}  // namespace relay::lower_test
