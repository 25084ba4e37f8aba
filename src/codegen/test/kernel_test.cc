// Kernels compiled for each target that this machine runs, against the meaning of the tensor IR.

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "base/diagnostic.h"
#include "codegen/llvm/codegen.h"
#include "codegen/targets.h"
#include "codegen/test/kernel_harness.h"
#include "runtime/elf_image.h"
#include "tir/scalar.h"
#include "tir/while.h"

namespace relay::codegen_test {
namespace {

const DType f32 = DType::Float(32);
using Side = GuardedMemory::Side;

PrimExpr zero_index() { return index(0); }

// out[i] = body(in0[i], in1[i]) for n elements: vectors of `lanes`, then one predicated vector.
PrimFunc elementwise(const std::string& name, DType in, DType out, int64_t n, int lanes,
                     const std::function<PrimExpr(PrimExpr, PrimExpr)>& body) {
  Buffer a = buffer("a", in, {index(n)}), b = buffer("b", in, {index(n)});
  Buffer c = buffer("c", out, {index(n)});
  Var i = var("i");
  auto at = [&](PrimExpr base, const PrimExpr& mask) {
    PrimExpr r = lanes == 1 ? base : ramp(base, index(1), lanes);
    return store(c, {r}, body(load(a, {r}, mask), load(b, {r}, mask)), mask);
  };
  Stmt main = for_(i, zero_index(), index(n / lanes), at(i * lanes, nullptr));
  int64_t rest = n % lanes;
  if (rest == 0) return kernel(name, {a, b}, {c}, main);
  PrimExpr base = index(n - rest);
  PrimExpr mask = lt(ramp(base, index(1), lanes), broadcast(index(n), lanes));
  return kernel(name, {a, b}, {c}, seq({main, at(base, mask)}));
}

template <class T, class R>
std::vector<R> run_elementwise(const PrimFunc& f, const Target& target, const std::vector<T>& a,
                               const std::vector<T>& b, Side side) {
  LoadedKernels jit = load_kernels({f}, target);
  size_t n = a.size();
  GuardedMemory ma(n * sizeof(T), side), mb(n * sizeof(T), side), mc(n * sizeof(R), side);
  std::memcpy(ma.data(), a.data(), n * sizeof(T));
  std::memcpy(mb.data(), b.data(), n * sizeof(T));
  void* buffers[] = {ma.data(), mb.data(), mc.data()};
  TestContext context;
  EXPECT_EQ(context.run(jit.functions()[0], buffers), 0);
  std::vector<R> out(n);
  std::memcpy(out.data(), mc.data(), n * sizeof(R));
  return out;
}

template <class T>
std::vector<T> interesting_integers(size_t n, uint64_t seed) {
  std::vector<T> out;
  for (size_t i = 0; i < n; ++i) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    switch ((seed >> 60) & 3) {
      case 0:
        out.push_back(std::numeric_limits<T>::min());
        break;
      case 1:
        out.push_back(static_cast<T>(static_cast<int64_t>((seed >> 33) % 7) - 3));
        break;
      default:
        out.push_back(static_cast<T>(seed >> 20));
    }
  }
  return out;
}

template <class T>
void check_integer_operators(DType d) {
  using enum BinaryOp;
  std::vector<T> a = interesting_integers<T>(37, 1), b = interesting_integers<T>(37, 2);
  for (const Target& target : runnable_targets()) {
    for (BinaryOp op :
         {Add, Sub, Mul, Div, Mod, FloorDiv, FloorMod, Min, Max, BitAnd, BitOr, BitXor}) {
      PrimFunc f = elementwise("ints", d, d, 37, 8,
                               [&](PrimExpr x, PrimExpr y) { return binary(op, x, y); });
      std::vector<T> c = run_elementwise<T, T>(f, target, a, b, Side::Right);
      for (size_t i = 0; i < a.size(); ++i) {
        auto want = fold_int(op, d, static_cast<int64_t>(a[i]), static_cast<int64_t>(b[i]));
        if (!want) continue;  // undefined
        EXPECT_EQ(c[i], static_cast<T>(*want))
            << to_string(op) << " of " << +a[i] << " and " << +b[i] << " for " << target.name;
      }
    }
  }
}

TEST(Kernel, integer_operators_wrap_and_round_as_the_tensor_ir_says) {
  check_integer_operators<int8_t>(DType::Int(8));
  check_integer_operators<uint16_t>(DType::UInt(16));
  check_integer_operators<int32_t>(DType::Int(32));
  check_integer_operators<int64_t>(DType::Int(64));
}

TEST(Kernel, floor_division_by_powers_of_two) {
  std::vector<int32_t> a = interesting_integers<int32_t>(40, 3);
  for (bool modulo : {false, true}) {
    PrimFunc f =
        elementwise("pow2", DType::Int(32), DType::Int(32), 40, 8, [&](PrimExpr x, PrimExpr) {
          PrimExpr eight = broadcast(imm(DType::Int(32), 8), x->dtype.lanes);
          return modulo ? floor_mod(x, eight) : floor_div(x, eight);
        });
    auto c = run_elementwise<int32_t, int32_t>(f, native_target(), a, a, Side::Left);
    for (size_t i = 0; i < a.size(); ++i) {
      EXPECT_EQ(c[i], modulo ? floor_mod_int(a[i], 8) : floor_div_int(a[i], 8));
    }
  }
}

TEST(Kernel, vectors_and_their_predicated_rest_stay_inside_their_buffers) {
  for (const Target& target : runnable_targets()) {
    for (int lanes : {1, 4, 8, 16}) {
      for (Side side : {Side::Left, Side::Right}) {
        int64_t n = 16 * 5 + 3;
        std::vector<float> a, b;
        for (int64_t i = 0; i < n; ++i) {
          a.push_back(static_cast<float>(i) * 0.5f);
          b.push_back(static_cast<float>(i % 7) - 3.0f);
        }
        PrimFunc f = elementwise("add_mul", f32, f32, n, lanes,
                                 [](PrimExpr x, PrimExpr y) { return x * y - max(x, y); });
        auto c = run_elementwise<float, float>(f, target, a, b, side);
        for (size_t i = 0; i < a.size(); ++i)
          EXPECT_FLOAT_EQ(c[i], a[i] * b[i] - std::max(a[i], b[i])) << i << target.name;
      }
    }
  }
}

TEST(Kernel, minimum_and_maximum_keep_nan) {
  float nan = std::nanf("");
  std::vector<float> a{nan, 1, 2, nan}, b{1, nan, 3, nan};
  PrimFunc f =
      elementwise("nan_min", f32, f32, 4, 4, [](PrimExpr x, PrimExpr y) { return min(x, y); });
  auto c = run_elementwise<float, float>(f, native_target(), a, b, Side::Left);
  EXPECT_TRUE(std::isnan(c[0]) && std::isnan(c[1]) && std::isnan(c[3]));
  EXPECT_EQ(c[2], 2);
}

TEST(Kernel, float_to_integer_saturates_and_nan_is_zero) {
  std::vector<float> a{1e20f,         -1e20f,        std::nanf(""),  -1.9f,
                       1.9f,          300.0f,        -300.0f,        127.5f,
                       2147483648.0f, 2147483520.0f, -2147483648.0f, -2147483904.0f,
                       4294967296.0f, 4294967040.0f, HUGE_VALF,      -HUGE_VALF};
  for (const Target& target : runnable_targets()) {
    for (DType to : {DType::Int(8), DType::UInt(8), DType::Int(16), DType::UInt(16), DType::Int(32),
                     DType::UInt(32), DType::Int(64)}) {
      PrimFunc f = elementwise("saturate", f32, DType::Int(64), 16, 8, [&](PrimExpr x, PrimExpr) {
        return cast(DType::Int(64, x->dtype.lanes), cast(to.with_lanes(x->dtype.lanes), x));
      });
      auto c = run_elementwise<float, int64_t>(f, target, a, a, Side::Right);
      for (size_t i = 0; i < a.size(); ++i)
        EXPECT_EQ(c[i], float_to_int(to, a[i])) << to.to_string() << " " << a[i] << target.name;
    }
  }
}

TEST(Kernel, half_precision_rounds_to_even_on_every_target) {
  std::vector<float> a;
  for (int i = 0; i < 64; ++i) {
    a.push_back(std::ldexp(1.0f + static_cast<float>(i) / 4096.0f, i % 40 - 26));
    a.push_back(-a.back());
  }
  for (float special : {0.0f, -0.0f, HUGE_VALF, -HUGE_VALF, 65504.0f, 65519.9f, 65520.0f, 1e-8f})
    a.push_back(special);
  for (const Target& target : runnable_targets()) {
    for (DType half : {DType::Float(16), DType::BFloat16()}) {
      int64_t n = static_cast<int64_t>(a.size());
      Buffer in = buffer("in", f32, {index(n)}), mid = buffer("mid", half, {index(n)});
      Buffer out = buffer("out", f32, {index(n)});
      Var i = var("i"), j = var("j");
      Stmt body = allocate(
          mid, seq({for_(i, zero_index(), index(n / 8),
                         store(mid, {ramp(i * 8, index(1), 8)},
                               cast(half.with_lanes(8), load(in, {ramp(i * 8, index(1), 8)})))),
                    for_(j, zero_index(), index(n), store(out, {j}, cast(f32, load(mid, {j}))))}));
      LoadedKernels jit = load_kernels({kernel("half", {in}, {out}, body)}, target);
      std::vector<float> c(a.size());
      void* buffers[] = {a.data(), c.data()};
      TestContext context;
      ASSERT_EQ(context.run(jit.functions()[0], buffers), 0);
      for (size_t k = 0; k < a.size(); ++k)
        EXPECT_EQ(c[k], static_cast<float>(round_to(half, a[k]))) << half.to_string() << a[k];
    }
  }
}

// Arithmetic may take the smallest numbers for zeros and quiets NaNs; what only moves keeps its bits.
TEST(Kernel, half_precision_that_moves_keeps_every_bit) {
  constexpr int64_t n = 1 << 16;
  for (DType half : {DType::Float(16), DType::BFloat16()}) {
    Buffer in = buffer("in", half, {index(n)}), out = buffer("out", half, {index(5 * n / 2)});
    Var i = var("i");
    auto lanes = [](const PrimExpr& first, int64_t step) { return ramp(first, index(step), 16); };
    // By vectors, one by one, backwards, every second one, and under a mask.
    PrimExpr mask = lt(ramp(i * 16, index(1), 16), broadcast(index(n), 16));
    Stmt body =
        seq({for_(i, zero_index(), index(n / 16),
                  store(out, {lanes(i * 16, 1)}, load(in, {lanes(i * 16, 1)}))),
             for_(i, zero_index(), index(n / 2), store(out, {i + n}, load(in, {i * 2 + 1}))),
             for_(i, zero_index(), index(n / 32),
                  store(out, {lanes(i * 16 + 3 * n / 2, 1)}, load(in, {lanes(i * 16 + 15, -1)}))),
             for_(i, zero_index(), index(n / 64),
                  store(out, {lanes(i * 16 + 2 * n, 1)}, load(in, {lanes(i * 32, 2)}))),
             for_(i, zero_index(), index(n / 64),
                  store(out, {lanes(i * 16 + 9 * n / 4, 1)}, load(in, {lanes(i * 16, 1)}, mask)))});
    std::vector<uint16_t> a(n), c(5 * n / 2), expected;
    for (size_t k = 0; k < a.size(); ++k) a[k] = static_cast<uint16_t>(k * 40503);
    expected = a;
    for (size_t k = 0; k < n / 2; ++k) expected.push_back(a[2 * k + 1]);
    for (size_t k = 0; k < n / 2; ++k) expected.push_back(a[k / 16 * 16 + 15 - k % 16]);
    for (size_t k = 0; k < n / 4; ++k) expected.push_back(a[2 * k]);
    for (size_t k = 0; k < n / 4; ++k) expected.push_back(a[k]);
    for (const Target& target : runnable_targets()) {
      LoadedKernels jit = load_kernels({kernel("moves", {in}, {out}, body)}, target);
      void* buffers[] = {a.data(), c.data()};
      TestContext context;
      ASSERT_EQ(context.run(jit.functions()[0], buffers), 0);
      EXPECT_TRUE(c == expected) << half.to_string() << " " << target.name;
      std::ranges::fill(c, 0);
    }
  }
}

// What becomes a 16-bit float on its way to memory is rounded once.
TEST(Kernel, half_precision_is_rounded_by_one_instruction) {
  const DType half = DType::BFloat16();
  Buffer in = buffer("in", f32, {index(16)}), out = buffer("out", half, {index(16)});
  PrimExpr all = ramp(index(0), index(1), 16);
  PrimFunc f =
      kernel("round", {in}, {out}, store(out, {all}, cast(half.with_lanes(16), load(in, {all}))));
  const Target target = parse_target("x86-64-v4 -mattr=+avx512bf16");
  std::string text = backend_of(target).text(CodeText::Assembly, {f}, target);
  size_t first = text.find("\tvcvtneps2bf16");
  ASSERT_NE(first, std::string::npos) << text;
  EXPECT_EQ(text.find("\tvcvtneps2bf16", first + 1), std::string::npos) << text;
}

TEST(Kernel, a_select_reads_only_the_chosen_side) {
  // out[i] = i < 5 ? in[i] : -1, where in has five elements and ends at an unmapped page.
  for (const Target& target : runnable_targets()) {
    for (int lanes : {1, 8}) {
      Buffer in = buffer("in", f32, {index(5)}), out = buffer("out", f32, {index(16)});
      Var i = var("i");
      PrimExpr at = lanes == 1 ? PrimExpr(i) : ramp(i * lanes, index(1), lanes);
      auto wide = [&](PrimExpr e) { return lanes == 1 ? e : broadcast(e, lanes); };
      PrimExpr value = select(lt(at, wide(index(5))), load(in, {at}), wide(imm_float(f32, -1)));
      Stmt body = for_(i, zero_index(), index(16 / lanes), store(out, {at}, value));
      LoadedKernels jit = load_kernels({kernel("pad", {in}, {out}, body)}, target);
      GuardedMemory memory(5 * sizeof(float), Side::Right);
      for (int k = 0; k < 5; ++k) static_cast<float*>(memory.data())[k] = static_cast<float>(k);
      std::vector<float> c(16);
      void* buffers[] = {memory.data(), c.data()};
      TestContext context;
      ASSERT_EQ(context.run(jit.functions()[0], buffers), 0);
      for (int k = 0; k < 16; ++k)
        EXPECT_EQ(c[static_cast<size_t>(k)], k < 5 ? static_cast<float>(k) : -1.0f);
    }
  }
}

TEST(Kernel, a_while_carries_registers_and_memory) {
  // The steps from a[i] to 1 by halving even numbers and taking 3 n + 1 of odd ones, for each i.
  const DType i64 = DType::Int(64);
  Buffer a = buffer("a", i64, {index(5)}), out = buffer("out", i64, {index(5)});
  Buffer r = buffer("r", i64, {index(3)}, Scope::Register);
  PrimExpr i = load(r, {zero_index()}), n = load(r, {index(1)}), count = load(r, {index(2)});
  auto set = [&](int64_t k, const PrimExpr& v) { return store(r, {index(k)}, v); };
  Stmt step = seq({if_(eq(floor_mod(n, index(2)), zero_index()), set(1, floor_div(n, index(2))),
                       set(1, n * 3 + 1)),
                   set(2, count + 1)});
  Stmt each = seq({set(1, load(a, {i})), set(2, zero_index()), while_(ne(n, index(1)), step),
                   store(out, {i}, count), set(0, i + 1)});
  PrimFunc f = kernel("steps", {a}, {out},
                      allocate(r, seq({set(0, zero_index()), while_(lt(i, index(5)), each)})));
  for (const Target& target : runnable_targets()) {
    LoadedKernels jit = load_kernels({f}, target);
    std::vector<int64_t> given{1, 6, 27, 97, 871}, got(5);
    void* buffers[] = {given.data(), got.data()};
    TestContext context;
    EXPECT_EQ(context.run(jit.functions()[0], buffers), 0);
    EXPECT_EQ(got, (std::vector<int64_t>{0, 8, 111, 118, 178}));
  }
}

TEST(Kernel, strided_and_reversed_vectors) {
  Buffer in = buffer("in", f32, {index(32)}), out = buffer("out", f32, {index(32)});
  PrimExpr back = load(in, {ramp(index(31), index(-1), 16)});
  PrimExpr even = load(in, {ramp(index(0), index(2), 16)});
  Stmt body = seq({store(out, {ramp(index(0), index(2), 16)}, back),
                   store(out, {ramp(index(1), index(2), 16)}, even)});
  for (const Target& target : runnable_targets()) {
    LoadedKernels jit = load_kernels({kernel("strides", {in}, {out}, body)}, target);
    GuardedMemory a(32 * sizeof(float), Side::Left), c(32 * sizeof(float), Side::Right);
    for (int k = 0; k < 32; ++k) static_cast<float*>(a.data())[k] = static_cast<float>(k);
    void* buffers[] = {a.data(), c.data()};
    TestContext context;
    ASSERT_EQ(context.run(jit.functions()[0], buffers), 0);
    for (int k = 0; k < 16; ++k) {
      EXPECT_EQ(static_cast<float*>(c.data())[2 * k], static_cast<float>(31 - k));
      EXPECT_EQ(static_cast<float*>(c.data())[2 * k + 1], static_cast<float>(2 * k));
    }
  }
}

// Elements at places that are data: by one instruction where the processor is fast at it, else one after the other.
TEST(Kernel, vectors_at_places_of_their_own) {
  const DType i64 = DType::Int(64);
  Buffer in = buffer("in", f32, {index(40)}), at = buffer("at", i64, {index(16)}),
         out = buffer("out", f32, {index(16)});
  PrimExpr lanes = ramp(zero_index(), index(1), 16);
  tir::PrimFunc f =
      kernel("places", {in, at}, {out}, store(out, {lanes}, load(in, {load(at, {lanes})})));
  for (const Target& target : runnable_targets()) {
    LoadedKernels jit = load_kernels({f}, target);
    for (Side side : {Side::Left, Side::Right}) {
      GuardedMemory a(40 * sizeof(float), side), b(16 * sizeof(int64_t), side),
          c(16 * sizeof(float), side);
      for (int k = 0; k < 40; ++k) static_cast<float*>(a.data())[k] = static_cast<float>(k);
      for (int k = 0; k < 16; ++k) static_cast<int64_t*>(b.data())[k] = k * 13 % 40;
      void* buffers[] = {a.data(), b.data(), c.data()};
      TestContext context;
      ASSERT_EQ(context.run(jit.functions()[0], buffers), 0);
      for (int k = 0; k < 16; ++k) {
        EXPECT_EQ(static_cast<float*>(c.data())[k], static_cast<float>(k * 13 % 40)) << target.name;
      }
    }
  }
  auto gathers = [&](const char* cpu) {
    Target target = parse_target(std::string("llvm -mcpu=") + cpu);
    return codegen::code_text({f}, target, codegen::CodeForm::assembly).find("vgather") !=
           std::string::npos;
  };
  EXPECT_TRUE(gathers("skylake-avx512"));
  EXPECT_FALSE(gathers("znver4"));
}

TEST(Kernel, parallel_loops_with_scratch_and_run_time_sizes) {
  // out[i] = sum of a scratch row that holds i * j, rows split over chunks.
  Var n = var("n"), i = var("i"), j = var("j"), k = var("k");
  DType i64 = DType::Int(64);
  auto scratch_calls = [&](const PrimExpr& length) {
    Buffer out = buffer("out", i64, {n});
    Buffer row = buffer("row", i64, {length}, Scope::Local);
    Stmt body = for_(
        i, zero_index(), n,
        allocate(
            row,
            seq({for_(j, zero_index(), length, store(row, {j}, i * j)), store(out, {i}, index(0)),
                 for_(k, zero_index(), length, store(out, {i}, load(out, {i}) + load(row, {k})))})),
        ForKind::Parallel);
    LoadedKernels jit = load_kernels({kernel("rows", {}, {out}, body, {n})}, native_target());
    std::vector<int64_t> c(7);
    void* buffers[] = {c.data()};
    int64_t dims[] = {7};
    TestContext context;
    EXPECT_EQ(context.run(jit.functions()[0], buffers, dims), 0);
    for (int64_t r = 0; r < 7; ++r) EXPECT_EQ(c[static_cast<size_t>(r)], r * 19999 * 10000);
    return static_cast<int64_t>(context.scratch_calls);
  };
  // Once for each chunk, not for each row, where the length is known before the rows.
  EXPECT_EQ(scratch_calls(index(20000)), 2);
  EXPECT_EQ(scratch_calls(floor_div(n + 1, index(4)) * 10000), 2);
  EXPECT_EQ(scratch_calls(floor_div(n, index(3)) * 10000), 7);
}

TEST(Kernel, a_loop_variable_used_in_two_loops_is_not_carried_into_a_parallel_one) {
  Var i = var("i"), p = var("p");
  Buffer out = buffer("out", DType::Int(64), {index(8)});
  Stmt first = for_(i, zero_index(), index(8), store(out, {i}, i));
  Stmt second = for_(p, index(2), index(2),
                     for_(i, zero_index(), index(2), store(out, {p * 2 + i}, p * 100 + i)),
                     ForKind::Parallel);
  LoadedKernels jit =
      load_kernels({kernel("twice", {}, {out}, seq({first, second}))}, native_target());
  std::vector<int64_t> c(8);
  void* buffers[] = {c.data()};
  TestContext context;
  ASSERT_EQ(context.run(jit.functions()[0], buffers), 0);
  EXPECT_EQ(c, (std::vector<int64_t>{0, 1, 2, 3, 200, 201, 300, 301}));
}

TEST(Kernel, a_failed_check_is_in_the_error_word_also_from_parallel_bodies) {
  Buffer in = buffer("in", DType::Int(64), {index(4)}),
         out = buffer("out", DType::Int(64), {index(4)});
  for (ForKind kind : {ForKind::Serial, ForKind::Parallel}) {
    Var i = var("i");
    Stmt body = for_(i, zero_index(), index(4),
                     seq({check(lt(load(in, {i}), index(10)), RELAY_KERNEL_INDEX_OUT_OF_BOUNDS, ""),
                          store(out, {i}, load(in, {i}))}),
                     kind);
    LoadedKernels jit = load_kernels({kernel("checked", {in}, {out}, body)}, native_target());
    TestContext context;
    std::vector<int64_t> good{1, 2, 3, 4}, bad{1, 2, 3, 40}, c(4);
    void* buffers[] = {good.data(), c.data()};
    EXPECT_EQ(context.run(jit.functions()[0], buffers), 0);
    buffers[0] = bad.data();
    EXPECT_EQ(context.run(jit.functions()[0], buffers), RELAY_KERNEL_INDEX_OUT_OF_BOUNDS);
  }
}

TEST(Kernel, shared_expressions_are_computed_once) {
  // Sixty doublings of a shared operand would be 2^60 additions if it were not so.
  PrimFunc f = elementwise("chain", f32, f32, 16, 16, [](PrimExpr x, PrimExpr) {
    for (int i = 0; i < 60; ++i) x = x + x;
    return x;
  });
  std::vector<float> a(16, 1.0f);
  EXPECT_EQ((run_elementwise<float, float>(f, native_target(), a, a, Side::Left)[3]), 0x1p60f);
}

TEST(Kernel, a_shared_object_is_reproducible_and_loads) {
  std::vector<PrimFunc> kernels;
  for (int i = 0; i < 9; ++i) {
    // Named like a function of libm, which such a kernel calls.
    kernels.push_back(elementwise(i == 0 ? "sinf" : "k" + std::to_string(i), f32, f32, 8, 8,
                                  [&](PrimExpr x, PrimExpr y) {
                                    return call("log10", x->dtype, {x}) + y * imm_float(f32, i);
                                  }));
  }
  Target target = native_target();
  const Backend& backend = backend_of(target);
  std::string one = backend.link(backend.compile(kernels, target, 1, nullptr), kernels, target);
  std::string two = backend.link(backend.compile(kernels, target, 2, nullptr), kernels, target);
  EXPECT_EQ(one, two);

  const runtime::ElfFile file(one);
  const runtime::ElfImage image(file);
  auto place = file.find(RELAY_DESCRIPTOR_SYMBOL, sizeof(relay_artifact_descriptor_t));
  ASSERT_TRUE(place.has_value());
  auto* descriptor = static_cast<const relay_artifact_descriptor_t*>(image.at(place->address));
  EXPECT_EQ(descriptor->magic, RELAY_DESCRIPTOR_MAGIC);
  EXPECT_EQ(descriptor->num_kernels, 9u);
  std::vector<float> a(8, 0.5f), b(8, 1.0f), c(8);
  void* buffers[] = {a.data(), b.data(), c.data()};
  TestContext context;
  ASSERT_EQ(context.run(descriptor->kernels[7], buffers), 0);
  EXPECT_NEAR(c[0], std::log10(0.5f) + 7.0f, 1e-6);
}

// out[i] = in[offset + stride i], where the last element that is read is the last of `in`.
template <class T>
void check_loads_with_stride(DType d, int64_t stride, int lanes) {
  int64_t offset = 3, n = offset + (lanes - 1) * stride + 1;
  Buffer in = buffer("in", d, {index(n)}), out = buffer("out", d, {index(lanes)});
  PrimExpr at = ramp(index(offset), index(stride), lanes);
  PrimFunc f = kernel("strided", {in}, {out},
                      store(out, {ramp(zero_index(), index(1), lanes)}, load(in, {at})));
  for (const Target& target : runnable_targets()) {
    LoadedKernels jit = load_kernels({f}, target);
    for (Side side : {Side::Left, Side::Right}) {
      GuardedMemory from(static_cast<size_t>(n) * sizeof(T), side);
      std::vector<T> got(static_cast<size_t>(lanes));
      for (int64_t i = 0; i < n; ++i) static_cast<T*>(from.data())[i] = static_cast<T>(i);
      void* buffers[] = {from.data(), got.data()};
      TestContext context;
      ASSERT_EQ(context.run(jit.functions()[0], buffers), 0);
      for (int i = 0; i < lanes; ++i) {
        ASSERT_EQ(got[static_cast<size_t>(i)], static_cast<T>(offset + stride * i))
            << target.name << " stride " << stride << ", lane " << i << " of " << lanes;
      }
    }
  }
}

TEST(Kernels, loads_with_a_stride_read_nothing_else) {
  for (int64_t stride : {2, 3, 4, 5}) {
    for (int lanes : {2, 4, 8, 16, 32}) {
      check_loads_with_stride<float>(f32, stride, lanes);
      check_loads_with_stride<double>(DType::Float(64), stride, lanes);
      check_loads_with_stride<uint8_t>(DType::UInt(8), stride, lanes);
    }
  }
}

TEST(Kernels, loads_under_a_mask_read_the_lanes_that_are_on) {
  const int lanes = 16;
  Buffer in = buffer("in", f32, {index(lanes)}), where = buffer("where", kIndex, {index(lanes)});
  Buffer out = buffer("out", f32, {index(lanes)});
  PrimExpr all = ramp(zero_index(), index(1), lanes), place = load(where, {all});
  PrimExpr inside = logical_and(ge(place, zero_index()), lt(place, index(lanes)));
  PrimFunc f = kernel(
      "masked", {in, where}, {out},
      store(out, {all}, select(inside, load(in, {place}), broadcast(imm_float(f32, -1), lanes))));
  const int64_t places[lanes] = {
      3,  -1, 15, 16, int64_t{1} << 40,    INT64_MIN, 0,  7,
      14, 5,  99, 1,  -(int64_t{1} << 32), 2,         16, int64_t{1} << 32};
  for (const Target& target : runnable_targets()) {
    LoadedKernels jit = load_kernels({f}, target);
    for (Side side : {Side::Left, Side::Right}) {
      GuardedMemory from(lanes * sizeof(float), side);
      for (int i = 0; i < lanes; ++i) static_cast<float*>(from.data())[i] = static_cast<float>(i);
      std::vector<float> got(lanes);
      void* buffers[] = {from.data(), const_cast<int64_t*>(places), got.data()};
      TestContext context;
      ASSERT_EQ(context.run(jit.functions()[0], buffers), 0);
      for (size_t i = 0; i < got.size(); ++i) {
        bool is_inside = places[i] >= 0 && places[i] < lanes;
        EXPECT_EQ(got[i], is_inside ? static_cast<float>(places[i]) : -1.0f) << target.name;
      }
    }
  }
}

}  // namespace
}  // namespace relay::codegen_test
