// Programs written by hand, and the kernels that they call.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "runtime/module.h"

namespace relay::runtime {

using Regs = std::vector<int32_t>;

inline const TensorSpec kScalar{DType::Int(64), {}, {}};
inline const TensorSpec kVector{DType::Float(32), {8}, {}};

// --- Kernels -------------------------------------------------------------------------------

// y = 2 x, 8 floats
inline void twice(void* const* b, const int64_t*, const relay_kernel_context*) {
  for (int i = 0; i < 8; ++i) static_cast<float*>(b[1])[i] = 2 * static_cast<const float*>(b[0])[i];
}
// z = x + y, 8 floats
inline void add(void* const* b, const int64_t*, const relay_kernel_context*) {
  for (int i = 0; i < 8; ++i) {
    static_cast<float*>(b[2])[i] =
        static_cast<const float*>(b[0])[i] + static_cast<const float*>(b[1])[i];
  }
}
// Copies dims[0] floats, in parallel, by way of scratch memory.
inline void copy_parallel(void* const* b, const int64_t* dims, const relay_kernel_context* ctx) {
  struct Env {
    const float* x;
    float* y;
    float* scratch;
  } env{static_cast<const float*>(b[0]), static_cast<float*>(b[1]),
        static_cast<float*>(ctx->scratch(ctx, dims[0] * 4))};
  if (env.scratch == nullptr) {
    *ctx->error = RELAY_KERNEL_OUT_OF_MEMORY;
    return;
  }
  int32_t code = ctx->parallel_for(
      ctx,
      [](void* e, int64_t begin, int64_t end) -> int32_t {
        auto* v = static_cast<Env*>(e);
        for (int64_t i = begin; i < end; ++i) v->scratch[i] = v->x[i];
        for (int64_t i = begin; i < end; ++i) v->y[i] = v->scratch[i];
        return 0;
      },
      &env, dims[0]);
  if (code != RELAY_KERNEL_OK) *ctx->error = code;
}
// Writes nothing: what is in its output comes from poisoning.
inline void lazy(void* const*, const int64_t*, const relay_kernel_context*) {}
// Reads its 8-byte scratch without writing it.
inline void reads_scratch(void* const* b, const int64_t*, const relay_kernel_context* ctx) {
  std::memcpy(b[0], ctx->scratch(ctx, 8), 8);
}
inline void bad_index(void* const*, const int64_t*, const relay_kernel_context* ctx) {
  *ctx->error = RELAY_KERNEL_INDEX_OUT_OF_BOUNDS;
}
inline void strange(void* const*, const int64_t*, const relay_kernel_context* ctx) {
  *ctx->error = 77;
}

enum Kernel { kTwice, kAdd, kCopy, kLazy, kScratch, kBadIndex, kStrange };

class VmTest : public testing::Test {
 protected:
  VmTest() {
    program.kernels = {{"twice", "double1", {32, 32}, 1, 0, 8, 64},
                       {"add", "add1 + relu1", {32, 32, 32}, 1, 0, 8, 96},
                       {"copy", "", {-1, -1}, 1, 1, 0, 0},
                       {"lazy", "", {32}, 1, 0, 0, 0},
                       {"reads_scratch", "", {8}, 1, 0, 0, 0},
                       {"bad_index", "gather1", {}, 0, 0, 0, 0},
                       {"strange", "", {}, 0, 0, 0, 0}};
    kernels = {twice, add, copy_parallel, lazy, reads_scratch, bad_index, strange};
  }

  int32_t put(FunctionBuilder&& f) {
    program.functions.push_back(std::move(f).finish());
    return static_cast<int32_t>(program.functions.size()) - 1;
  }
  Module module() { return Module::from_kernels(program, kernels); }
  int32_t constant(Tensor t) {
    program.constants.push_back(std::move(t));
    return static_cast<int32_t>(program.constants.size()) - 1;
  }
  int32_t string(std::string s) {
    program.strings.push_back(std::move(s));
    return static_cast<int32_t>(program.strings.size()) - 1;
  }
  // Runs "main" and expects an error of that code; returns its text.
  std::string fails(const std::string& code, std::vector<Tensor> inputs = {},
                    RunOptions options = {}) {
    try {
      module().run("main", inputs, options);
    } catch (const Error& error) {
      EXPECT_EQ(error.diagnostics().at(0).code, code) << error.what();
      return error.what();
    }
    ADD_FAILURE() << "no error, expected " << code;
    return "";
  }

  // main(x) = twice(x) + c, static, with an arena buffer.
  void static_program() {
    Tensor c = Tensor::empty(DType::Float(32), {8});
    for (int i = 0; i < 8; ++i) c.set_from_int(i, 100);
    int32_t c0 = constant(c);
    FunctionBuilder f("main");
    f.param("x", kVector);
    f.result("y", kVector);
    int64_t hidden = f.arena(32);
    f.invoke_kernel(kTwice, {Operand::reg(0), Operand::arena(hidden, 32)});
    f.invoke_kernel(kAdd, {Operand::arena(hidden, 32), Operand::constant(c0), Operand::output(0)});
    f.ret_outputs();
    put(std::move(f));
  }

  Program program;
  std::vector<relay_kernel> kernels;
};

inline Tensor vector8(float first) {
  Tensor t = Tensor::empty(DType::Float(32), {8});
  for (int i = 0; i < 8; ++i) t.set_from_double(i, first + i);
  return t;
}

inline Tensor integer(int64_t value) { return Tensor::scalar(value, DType::Int(64)); }

inline void dynamic_copy(FunctionBuilder& f) {
  int32_t x = f.param("x", TensorSpec{DType::Float(32), {-1}, {"n"}});
  f.result("y", TensorSpec{DType::Float(32), {-1}, {"n"}});
  int32_t n = f.int_reg(), y = f.reg();
  f.shape_of(n, x, 0);
  f.alloc_tensor(y, DType::Float(32), Regs{n});
  f.invoke_kernel(kCopy, {Operand::reg(x), Operand::reg(y), Operand::dim(n)});
  f.ret(y);
}

// sum(n) = if n == 0 then 0 else n + sum(n - 1), not a tail call
inline int32_t recursive_sum(FunctionBuilder& f, int32_t self) {
  int32_t n = f.param("n", kScalar);
  f.result("sum", kScalar);
  int32_t i = f.int_reg(), one = f.int_reg(), r = f.reg();
  auto zero = f.label();
  f.load_scalar(i, DType::Int(64), Operand::reg(n));
  f.if_zero(i, zero);
  f.load_int(one, 1);
  f.int_op(IntOp::sub, one, i, one);
  f.box(r, one, DType::Int(64));
  f.call(r, self, Regs{r});
  f.load_scalar(one, DType::Int(64), Operand::reg(r));
  f.int_op(IntOp::add, i, i, one);
  f.bind(zero);
  f.box(r, i, DType::Int(64));
  f.ret(r);
  return r;
}

}  // namespace relay::runtime
