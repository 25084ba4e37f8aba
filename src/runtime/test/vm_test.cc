// Bytecode, verifier, interpreter, modules and profiler, on kernels written by hand.
#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <functional>
#include <thread>

#include "base/diagnostic_codes.h"
#include "runtime/module.h"
#include "runtime/profiler.h"
#include "runtime/vm/verify.h"

namespace relay::runtime {
namespace {

using Regs = std::vector<int32_t>;

const TensorSpec kScalar{DType::Int(64), {}, {}};
const TensorSpec kVector{DType::Float(32), {8}, {}};

// --- Kernels -------------------------------------------------------------------------------

// y = 2 x, 8 floats
int32_t twice(void* const* b, const int64_t*, const relay_kernel_context*) {
  for (int i = 0; i < 8; ++i) static_cast<float*>(b[1])[i] = 2 * static_cast<const float*>(b[0])[i];
  return 0;
}
// z = x + y, 8 floats
int32_t add(void* const* b, const int64_t*, const relay_kernel_context*) {
  for (int i = 0; i < 8; ++i) {
    static_cast<float*>(b[2])[i] =
        static_cast<const float*>(b[0])[i] + static_cast<const float*>(b[1])[i];
  }
  return 0;
}
// Copies dims[0] floats, in parallel, by way of scratch memory.
int32_t copy_parallel(void* const* b, const int64_t* dims, const relay_kernel_context* ctx) {
  struct Env {
    const float* x;
    float* y;
    float* scratch;
  } env{static_cast<const float*>(b[0]), static_cast<float*>(b[1]),
        static_cast<float*>(ctx->scratch(ctx, dims[0] * 4))};
  if (env.scratch == nullptr) return RELAY_KERNEL_OUT_OF_MEMORY;
  return ctx->parallel_for(
      ctx,
      [](void* e, int64_t begin, int64_t end) -> int32_t {
        auto* v = static_cast<Env*>(e);
        for (int64_t i = begin; i < end; ++i) v->scratch[i] = v->x[i];
        for (int64_t i = begin; i < end; ++i) v->y[i] = v->scratch[i];
        return 0;
      },
      &env, dims[0]);
}
// Writes nothing: what is in its output comes from poisoning.
int32_t lazy(void* const*, const int64_t*, const relay_kernel_context*) { return 0; }
// Reads its 8-byte scratch without writing it.
int32_t reads_scratch(void* const* b, const int64_t*, const relay_kernel_context* ctx) {
  std::memcpy(b[0], ctx->scratch(ctx, 8), 8);
  return 0;
}
int32_t bad_index(void* const*, const int64_t*, const relay_kernel_context*) {
  return RELAY_KERNEL_INDEX_OUT_OF_BOUNDS;
}
int32_t strange(void* const*, const int64_t*, const relay_kernel_context*) { return 77; }

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

Tensor vector8(float first) {
  Tensor t = Tensor::empty(DType::Float(32), {8});
  for (int i = 0; i < 8; ++i) t.set_from_double(i, first + i);
  return t;
}

Tensor integer(int64_t value) { return Tensor::scalar(value, DType::Int(64)); }

// --- Static regions ------------------------------------------------------------------------

TEST_F(VmTest, static_region) {
  static_program();
  Module m = module();
  std::vector<Tensor> out = m.run("main", {vector8(1)});
  ASSERT_EQ(out.size(), 1u);
  EXPECT_EQ(out[0].get_as_double(7), 116);
  EXPECT_EQ(m.function_names(), (std::vector<std::string>{"main"}));

  Tensor target = Tensor::empty(DType::Float(32), {8});
  Tensor x = vector8(2);
  m.run_into("main", std::span(&x, 1), std::span(&target, 1));
  EXPECT_EQ(target.get_as_double(0), 104);
}

TEST_F(VmTest, static_function_called_from_another) {
  static_program();
  FunctionBuilder f("outer");
  int32_t x = f.param("x", kVector);
  f.result("a", kVector);
  f.result("b", kVector);
  f.returns_tuple();
  int32_t a = f.reg(), b = f.reg(), t = f.reg();
  f.call(a, 0, Regs{x});
  f.call(b, 0, Regs{a});
  f.alloc_tuple(t, Regs{a, b});
  f.ret(t);
  put(std::move(f));
  std::vector<Tensor> out = module().run("outer", {vector8(0)});
  ASSERT_EQ(out.size(), 2u);
  EXPECT_EQ(out[0].get_as_double(1), 102);
  EXPECT_EQ(out[1].get_as_double(1), 304);
}

TEST_F(VmTest, copy_makes_identity_and_constant_outputs) {
  int32_t c = constant(vector8(5));
  FunctionBuilder f("main");
  f.param("x", kVector);
  f.result("a", kVector);
  f.result("b", kVector);
  f.returns_tuple();
  f.copy(Operand::output(0), Operand::reg(0));
  f.copy(Operand::output(1), Operand::constant(c));
  f.ret_outputs();
  put(std::move(f));
  Tensor x = vector8(3);
  std::vector<Tensor> out = module().run("main", {x});
  EXPECT_TRUE(bit_equal(out[0], x));
  EXPECT_NE(out[0].data(), x.data());
  EXPECT_TRUE(bit_equal(out[1], program.constants[0]));
}

TEST_F(VmTest, empty_tuple_result) {
  FunctionBuilder f("main");
  f.returns_tuple();
  f.ret_outputs();
  put(std::move(f));
  EXPECT_TRUE(module().run("main", {}).empty());
}

TEST_F(VmTest, poison_reaches_outputs_arena_and_scratch) {
  FunctionBuilder f("main");
  f.result("a", kVector);
  f.result("b", TensorSpec{DType::UInt(8), {8}, {}});
  f.returns_tuple();
  f.invoke_kernel(kLazy, {Operand::output(0)});
  f.invoke_kernel(kScratch, {Operand::output(1)});
  f.ret_outputs();
  put(std::move(f));
  Module m = module();
  for (uint8_t pattern : {0xAA, 0x55}) {
    RunOptions options;
    options.poison = pattern;
    for (const Tensor& t : m.run("main", {}, options)) {
      for (size_t i = 0; i < t.byte_size(); ++i) ASSERT_EQ(t.data<uint8_t>()[i], pattern);
    }
  }
}

TEST_F(VmTest, poison_spares_in_place_buffers) {
  FunctionBuilder f("main");
  f.param("x", kVector);
  f.result("y", kVector);
  int64_t a = f.arena(32);
  f.invoke_kernel(kTwice, {Operand::reg(0), Operand::arena(a, 32)});
  f.invoke_kernel(kTwice, {Operand::arena(a, 32), Operand::arena(a, 32)});
  f.copy(Operand::output(0), Operand::arena(a, 32));
  f.ret_outputs();
  put(std::move(f));
  RunOptions options;
  options.poison = 0xFF;
  EXPECT_EQ(module().run("main", {vector8(1)}, options)[0].get_as_double(0), 4);
}

// --- Dynamic shapes and threads --------------------------------------------------------------

void dynamic_copy(FunctionBuilder& f) {
  int32_t x = f.param("x", TensorSpec{DType::Float(32), {-1}, {"n"}});
  f.result("y", TensorSpec{DType::Float(32), {-1}, {"n"}});
  int32_t n = f.int_reg(), y = f.reg();
  f.shape_of(n, x, 0);
  f.alloc_tensor(y, DType::Float(32), Regs{n});
  f.invoke_kernel(kCopy, {Operand::reg(x), Operand::reg(y), Operand::dim(n)});
  f.ret(y);
}

TEST_F(VmTest, dynamic_shapes_and_any_number_of_threads_are_bit_equal) {
  FunctionBuilder f("main");
  dynamic_copy(f);
  put(std::move(f));
  Module m = Module::from_kernels(program, kernels, "{}", {}, LoadOptions{2, false});
  for (int64_t n : {0, 1, 2, 1000, 100001}) {
    Tensor x = Tensor::empty(DType::Float(32), {n});
    for (int64_t i = 0; i < n; ++i) x.set_from_int(i, i);
    RunOptions serial;
    serial.num_threads = 1;
    Tensor one = m.run("main", {x}, serial)[0];
    Tensor two = m.run("main", {x})[0];
    EXPECT_TRUE(bit_equal(one, two));
    EXPECT_TRUE(bit_equal(one, x));
    Tensor target = Tensor::empty(DType::Float(32), {n});
    m.run_into("main", std::span(&x, 1), std::span(&target, 1));
    EXPECT_TRUE(bit_equal(target, x));
  }
}

TEST_F(VmTest, several_threads_run_one_module) {
  FunctionBuilder f("main");
  dynamic_copy(f);
  put(std::move(f));
  Module m = module();
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([m, t] {
      Tensor x = Tensor::empty(DType::Float(32), {100 + t});
      for (int i = 0; i < 100 + t; ++i) x.set_from_int(i, i * t);
      for (int i = 0; i < 50; ++i) ASSERT_TRUE(bit_equal(m.run("main", {x})[0], x));
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_F(VmTest, shape_instructions) {
  FunctionBuilder f("main");
  int32_t x = f.param("x", TensorSpec{DType::Float(32), {-1, -1}, {}});
  f.result("shape", TensorSpec{DType::Int(32), {2}, {}});
  f.result("flat", TensorSpec{DType::Float(32), {-1}, {}});
  f.result("rank", kScalar);
  f.result("like", TensorSpec{DType::Bool(), {-1, -1}, {}});
  f.returns_tuple();
  int32_t shape = f.reg(), flat = f.reg(), rank = f.reg(), like = f.reg(), t = f.reg();
  int32_t a = f.int_reg(), b = f.int_reg(), r = f.int_reg();
  f.shape_tensor(shape, x, DType::Int(32));
  f.shape_of(a, x, 0);
  f.shape_of(b, x, 1);
  f.int_op(IntOp::mul, a, a, b);
  f.reshape(flat, x, Regs{a});
  f.rank_of(r, x);
  f.box(rank, r, DType::Int(64));
  f.alloc_from_shape(like, DType::Bool(), shape);
  f.alloc_tuple(t, Regs{shape, flat, rank, like});
  f.ret(t);
  put(std::move(f));
  Tensor input = Tensor::zeros(DType::Float(32), {3, 5});
  std::vector<Tensor> out = module().run("main", {input});
  EXPECT_EQ(out[0].get_as_int(1), 5);
  EXPECT_EQ(shape_to_string(out[1].shape()), "(15,)");
  EXPECT_EQ(out[1].data(), input.data());
  EXPECT_EQ(out[2].get_as_int(0), 2);
  EXPECT_EQ(type_string(out[3].dtype(), out[3].shape()), "Tensor[(3, 5), bool]");
}

TEST_F(VmTest, integer_operations) {
  auto eval = [&](IntOp op, int64_t a, int64_t b) {
    program.functions.clear();
    FunctionBuilder f("main");
    f.result("y", kScalar);
    int32_t x = f.int_reg(), y = f.int_reg(), r = f.reg();
    f.load_int(x, a);
    f.load_int(y, b);
    f.int_op(op, x, x, y);
    f.box(r, x, DType::Int(64));
    f.ret(r);
    put(std::move(f));
    return module().run("main", {})[0].get_as_int(0);
  };
  EXPECT_EQ(eval(IntOp::add, INT64_MAX, 1), INT64_MIN);
  EXPECT_EQ(eval(IntOp::sub, -5, 7), -12);
  EXPECT_EQ(eval(IntOp::mul, int64_t{1} << 40, 8), int64_t{1} << 43);
  EXPECT_EQ(eval(IntOp::floor_div, -7, 2), -4);
  EXPECT_EQ(eval(IntOp::floor_div, 7, -2), -4);
  EXPECT_EQ(eval(IntOp::floor_div, INT64_MIN, -1), INT64_MIN);
  EXPECT_EQ(eval(IntOp::floor_mod, -7, 3), 2);
  EXPECT_EQ(eval(IntOp::floor_mod, INT64_MIN, -1), 0);
  EXPECT_EQ(eval(IntOp::min, 3, -4), -4);
  EXPECT_EQ(eval(IntOp::max, 3, -4), 3);
  EXPECT_EQ(eval(IntOp::eq, 3, 3), 1);
  EXPECT_EQ(eval(IntOp::ne, 3, 3), 0);
  EXPECT_EQ(eval(IntOp::lt, 3, 3), 0);
  EXPECT_EQ(eval(IntOp::le, 3, 3), 1);
  EXPECT_EQ(eval(IntOp::both, 3, 0), 0);
  EXPECT_EQ(eval(IntOp::either, 3, 0), 1);
  EXPECT_THROW(eval(IntOp::floor_div, 1, 0), RuntimeError);
}

// --- Control, closures, data types, references -------------------------------------------------

// sum(n) = if n == 0 then 0 else n + sum(n - 1), not a tail call
int32_t recursive_sum(FunctionBuilder& f, int32_t self) {
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

TEST_F(VmTest, million_deep_recursion_uses_constant_stack_deep) {
  FunctionBuilder f("main");
  recursive_sum(f, 0);
  put(std::move(f));
  Module m = module();
  EXPECT_EQ(m.run("main", {integer(1000000)})[0].get_as_int(0), int64_t{1000000} * 1000001 / 2);
  EXPECT_EQ(m.run("main", {integer(3)})[0].get_as_int(0), 6);
}

TEST_F(VmTest, frames_have_arenas_of_their_own) {
  // f(n, x) = if n == 0 then x else twice(x) + f(n - 1, x): the arena holds twice(x) over the call.
  FunctionBuilder f("main");
  int32_t n = f.param("n", kScalar), x = f.param("x", kVector);
  f.result("y", kVector);
  int32_t i = f.int_reg(), one = f.int_reg(), r = f.reg(), y = f.reg();
  auto zero = f.label();
  int64_t a = f.arena(32);
  f.load_scalar(i, DType::Int(64), Operand::reg(n));
  f.if_zero(i, zero);
  f.invoke_kernel(kTwice, {Operand::reg(x), Operand::arena(a, 32)});
  f.load_int(one, 1);
  f.int_op(IntOp::sub, one, i, one);
  f.box(r, one, DType::Int(64));
  f.call(r, 0, Regs{r, x});
  f.alloc_static(y, kVector);
  f.invoke_kernel(kAdd, {Operand::arena(a, 32), Operand::reg(r), Operand::reg(y)});
  f.ret(y);
  f.bind(zero);
  f.ret(x);
  put(std::move(f));
  EXPECT_EQ(module().run("main", {integer(20000), vector8(1)})[0].get_as_double(0), 40001);
}

TEST_F(VmTest, tail_calls_need_constant_memory) {
  // count(n, list) = if n == 0 then list else count(n - 1, list)
  FunctionBuilder f("main");
  int32_t n = f.param("n", kScalar), x = f.param("x", kVector);
  f.result("y", kVector);
  int32_t i = f.int_reg(), one = f.int_reg(), r = f.reg();
  auto zero = f.label();
  f.load_scalar(i, DType::Int(64), Operand::reg(n));
  f.if_zero(i, zero);
  f.load_int(one, 1);
  f.int_op(IntOp::sub, i, i, one);
  f.box(r, i, DType::Int(64));
  f.tail_call(0, Regs{r, x});
  f.bind(zero);
  f.ret(x);
  put(std::move(f));
  RunOptions options;
  options.memory_limit = 1 << 20;
  Tensor x0 = vector8(1);
  EXPECT_TRUE(bit_equal(module().run("main", {integer(300000), x0}, options)[0], x0));
}

TEST_F(VmTest, lists_match_and_are_folded) {
  // build(n, acc): tail-recursive Cons; length(list, n): by tag
  constexpr int kNil = 0, kCons = 1;
  FunctionBuilder build("build");
  {
    build.internal();
    int32_t n = build.param("n", kScalar), acc = build.param("acc", "List[Tensor]");
    build.result("list", "List[Tensor]");
    int32_t i = build.int_reg(), one = build.int_reg(), r = build.reg(), c = build.reg();
    auto zero = build.label();
    build.load_scalar(i, DType::Int(64), Operand::reg(n));
    build.if_zero(i, zero);
    build.load_int(one, 1);
    build.int_op(IntOp::sub, i, i, one);
    build.box(r, i, DType::Int(64));
    build.alloc_adt(c, kCons, Regs{n, acc});
    build.tail_call(0, Regs{r, c});
    build.bind(zero);
    build.ret(acc);
  }
  put(std::move(build));
  FunctionBuilder length("length");
  {
    length.internal();
    int32_t list = length.param("list", "List[Tensor]"), n = length.param("n", kScalar);
    length.result("n", kScalar);
    int32_t tag = length.int_reg(), i = length.int_reg(), r = length.reg(), tail = length.reg();
    auto nil = length.label(), cons = length.label();
    length.get_tag(tag, list);
    FunctionBuilder::Label targets[] = {nil, cons};
    length.jump_table(tag, targets);
    length.match_fail();
    length.bind(cons);
    length.get_field(tail, list, 1);
    length.load_scalar(i, DType::Int(64), Operand::reg(n));
    length.load_int(tag, 1);
    length.int_op(IntOp::add, i, i, tag);
    length.box(r, i, DType::Int(64));
    length.kill(Regs{list});
    length.tail_call(1, Regs{tail, r});
    length.bind(nil);
    length.ret(n);
  }
  put(std::move(length));
  FunctionBuilder f("main");
  int32_t n = f.param("n", kScalar);
  f.result("length", kScalar);
  int32_t list = f.reg(), zero = f.reg(), i = f.int_reg();
  f.alloc_adt(list, kNil, {});
  f.call(list, 0, Regs{n, list});
  f.load_int(i, 0);
  f.box(zero, i, DType::Int(64));
  f.tail_call(1, Regs{list, zero});
  put(std::move(f));
  Module m = module();
  int64_t before = thread_object_bytes();
  EXPECT_EQ(m.run("main", {integer(1000000)})[0].get_as_int(0), 1000000);
  EXPECT_EQ(thread_object_bytes(), before);
  EXPECT_EQ(m.function_names(), (std::vector<std::string>{"main"}));
}

TEST_F(VmTest, closures_capture_and_references_change) {
  // counter = ref(x); inc = fn () { counter := twice(counter) }; inc(); inc(); !counter
  FunctionBuilder inc("inc");
  inc.internal();
  int32_t counter = inc.param("counter", "ref(Tensor)");
  inc.result("y", kVector);
  int32_t v = inc.reg(), y = inc.reg();
  inc.ref_read(v, counter);
  inc.alloc_static(y, kVector);
  inc.invoke_kernel(kTwice, {Operand::reg(v), Operand::reg(y)});
  inc.ref_write(counter, y);
  inc.ret(y);
  put(std::move(inc));
  FunctionBuilder f("main");
  int32_t x = f.param("x", kVector);
  f.result("y", kVector);
  int32_t ref = f.reg(), closure = f.reg(), out = f.reg();
  f.ref_new(ref, x);
  f.alloc_closure(closure, 0, Regs{ref});
  f.invoke_closure(out, closure, {});
  f.invoke_closure(out, closure, {});
  f.ref_read(out, ref);
  f.move(x, out);
  f.tail_invoke(closure, {});
  put(std::move(f));
  EXPECT_EQ(module().run("main", {vector8(1)})[0].get_as_double(0), 8);
}

TEST_F(VmTest, branches_on_tensors) {
  FunctionBuilder f("main");
  int32_t c = f.param("c", TensorSpec{DType::Bool(), {}, {}});
  f.result("y", kScalar);
  int32_t i = f.int_reg(), j = f.int_reg(), r = f.reg();
  auto otherwise = f.label(), end = f.label();
  f.if_false(c, otherwise);
  f.load_int(i, -7);
  f.jump(end);
  f.bind(otherwise);
  f.load_int(i, int64_t{1} << 40);
  f.bind(end);
  f.move_int(j, i);
  f.box(r, j, DType::Int(64));
  f.ret(r);
  put(std::move(f));
  Module m = module();
  EXPECT_EQ(m.run("main", {Tensor::scalar(1, DType::Bool())})[0].get_as_int(0), -7);
  EXPECT_EQ(m.run("main", {Tensor::scalar(0, DType::Bool())})[0].get_as_int(0), int64_t{1} << 40);
}

TEST_F(VmTest, values_go_in_and_out) {
  FunctionBuilder f("main");
  int32_t p = f.param("pair", "(Tensor, List)");
  f.result("swapped", "(List, Tensor)");
  int32_t a = f.reg(), b = f.reg();
  f.get_field(a, p, 0);
  f.get_field(b, p, 1);
  f.alloc_tuple(p, Regs{b, a});
  f.ret(p);
  put(std::move(f));
  Module m = module();
  Value pair = Value::tuple({integer(4), Value::adt(9, {})});
  Value out = m.run_values("main", std::span(&pair, 1));
  EXPECT_EQ(out.field(0).tag(), 9);
  EXPECT_EQ(out.field(1).tensor().get_as_int(0), 4);
}

// --- Failures --------------------------------------------------------------------------------

TEST_F(VmTest, must_fail_E0603_inputs) {
  static_program();
  std::string text = fails("E0603", {Tensor::empty(DType::Float(32), {7})});
  EXPECT_NE(text.find("'x'"), std::string::npos) << text;
  EXPECT_NE(text.find("Tensor[(8,), float32]"), std::string::npos) << text;
  EXPECT_NE(text.find("Tensor[(7,), float32]"), std::string::npos) << text;
  fails("E0603", {Tensor::empty(DType::Float(64), {8})});
  fails("E0603", {Tensor::empty(DType::Float(32), {8, 1})});
  fails("E0603", {Tensor()});
  fails("E0603", {});
  fails("E0603", {vector8(1), vector8(1)});
}

TEST_F(VmTest, must_fail_E0603_outputs) {
  static_program();
  Module m = module();
  Tensor x = vector8(1);
  auto code = [&](Tensor out) {
    try {
      m.run_into("main", std::span(&x, 1), std::span(&out, 1));
    } catch (const UserError& error) {
      return std::string(error.diagnostics()[0].code);
    }
    return std::string();
  };
  EXPECT_EQ(code(vector8(0)), "");
  EXPECT_EQ(code(x), "E0603");
  EXPECT_EQ(code(Tensor()), "E0603");
  EXPECT_EQ(code(Tensor::empty(DType::Float(32), {9})), "E0603");
  Tensor own = vector8(0);
  EXPECT_EQ(code(Tensor::from_external(own.data(), own.dtype(), own.shape(), nullptr, true)),
            "E0603");
}

TEST_F(VmTest, must_fail_E0603_symbolic_dimensions_disagree) {
  FunctionBuilder f("main");
  int32_t x = f.param("x", TensorSpec{DType::Float(32), {-1, 2}, {"n", ""}});
  f.param("y", TensorSpec{DType::Float(32), {-1}, {"n"}});
  f.result("z", TensorSpec{DType::Float(32), {-1, 2}, {"n", ""}});
  f.ret(x);
  put(std::move(f));
  std::string text = fails(
      "E0603", {Tensor::zeros(DType::Float(32), {3, 2}), Tensor::zeros(DType::Float(32), {4})});
  EXPECT_NE(text.find("n = 3, as in 'x'"), std::string::npos) << text;
  Tensor ok = Tensor::zeros(DType::Float(32), {3, 2});
  EXPECT_EQ(module().run("main", {ok, Tensor::zeros(DType::Float(32), {3})}).size(), 1u);
}

TEST_F(VmTest, must_fail_E0603_result_that_is_no_tensor) {
  FunctionBuilder f("main");
  f.result("list", "List");
  int32_t r = f.reg();
  f.alloc_adt(r, 0, {});
  f.ret(r);
  put(std::move(f));
  fails("E0603");
}

TEST_F(VmTest, must_fail_E0604_memory_limit) {
  // A list that grows without end.
  FunctionBuilder f("main");
  int32_t r = f.reg();
  f.result("list", "List");
  auto loop = f.label();
  f.alloc_adt(r, 0, {});
  f.bind(loop);
  f.alloc_adt(r, 1, Regs{r});
  f.jump(loop);
  put(std::move(f));
  RunOptions options;
  options.memory_limit = 4 << 20;
  int64_t before = thread_object_bytes();
  fails("E0604", {}, options);
  EXPECT_EQ(thread_object_bytes(), before);
}

TEST_F(VmTest, must_fail_E0604_endless_recursion) {
  FunctionBuilder f("main");
  f.result("y", kScalar);
  int32_t r = f.reg();
  f.call(r, 0, {});
  f.ret(r);
  put(std::move(f));
  std::string text = fails("E0604");
  EXPECT_NE(text.find("too deep"), std::string::npos) << text;
  RunOptions options;
  options.memory_limit = 1 << 20;
  fails("E0604", {}, options);
}

TEST_F(VmTest, must_fail_E0604_huge_tensor) {
  FunctionBuilder f("main");
  f.result("y", TensorSpec{DType::Float(32), {-1}, {}});
  int32_t r = f.reg(), n = f.int_reg();
  f.load_int(n, int64_t{1} << 50);
  f.alloc_tensor(r, DType::Float(32), Regs{n});
  f.ret(r);
  put(std::move(f));
  fails("E0604");
}

TEST_F(VmTest, must_fail_E0605_kernel_errors) {
  FunctionBuilder f("main");
  f.returns_tuple();
  f.invoke_kernel(kBadIndex, {});
  f.ret_outputs();
  put(std::move(f));
  std::string text = fails("E0605");
  EXPECT_NE(text.find("gather1"), std::string::npos) << text;
  EXPECT_NE(text.find("out of bounds"), std::string::npos) << text;
  program.functions[0].code[0].a = kStrange;
  fails("E0605");
}

TEST_F(VmTest, must_fail_E0606_fuel) {
  FunctionBuilder f("main");
  f.returns_tuple();
  auto loop = f.label();
  f.bind(loop);
  f.jump(loop);
  f.ret_outputs();
  put(std::move(f));
  RunOptions options;
  options.fuel = 1000;
  fails("E0606", {}, options);
}

TEST_F(VmTest, must_fail_E0607_fatal_and_match) {
  int32_t message = string("the list is empty");
  int32_t place = string("model.relay:3:7");
  FunctionBuilder f("main");
  f.fatal(message, place);
  put(std::move(f));
  std::string text = fails("E0607");
  EXPECT_NE(text.find("the list is empty, at model.relay:3:7"), std::string::npos) << text;
  program.functions.clear();
  FunctionBuilder g("main");
  g.match_fail(place);
  put(std::move(g));
  fails("E0607");
  program.functions.clear();
  FunctionBuilder h("main");
  int32_t x = h.param("x", kVector), n = h.int_reg();
  h.result("y", kVector);
  h.load_int(n, 7);
  h.reshape(x, x, Regs{n});
  h.ret(x);
  put(std::move(h));
  fails("E0607", {vector8(1)});
}

TEST_F(VmTest, must_fail_E0612_function_names) {
  static_program();
  program.functions[0].internal = true;
  fails("E0612", {vector8(1)});
  program.functions[0].internal = false;
  program.functions[0].name = "other";
  std::string text = fails("E0612", {vector8(1)});
  EXPECT_NE(text.find("other"), std::string::npos) << text;
}

TEST_F(VmTest, a_context_is_usable_after_a_failure) {
  FunctionBuilder f("main");
  recursive_sum(f, 0);
  put(std::move(f));
  Module m = module();
  RunOptions options;
  for (int i = 1; i < 200; ++i) {
    options.fuel = i;
    EXPECT_THROW(m.run("main", {integer(1000)}, options), RuntimeError);
    if (i % 50 == 0) {
      EXPECT_EQ(m.run("main", {integer(4)})[0].get_as_int(0), 10);
    }
  }
}

// Values of a wrong kind, and null registers, end in E0613 and never in a bad access.
TEST_F(VmTest, must_fail_E0613_wrong_kinds_at_run_time) {
  using Emit = std::function<void(FunctionBuilder&, int32_t null, int32_t tuple, int32_t tensor)>;
  const Emit cases[] = {
      [](auto& f, int32_t null, int32_t, int32_t) { f.ret(null); },
      [](auto& f, int32_t, int32_t tuple, int32_t) { f.get_tag(0, tuple); },
      [](auto& f, int32_t, int32_t, int32_t tensor) { f.get_field(tensor, tensor, 0); },
      [](auto& f, int32_t, int32_t tuple, int32_t) { f.get_field(tuple, tuple, 5); },
      [](auto& f, int32_t null, int32_t, int32_t) { f.ref_read(null, null); },
      [](auto& f, int32_t, int32_t tuple, int32_t t) { f.ref_write(tuple, t); },
      [](auto& f, int32_t, int32_t tuple, int32_t) { f.shape_of(0, tuple, 0); },
      [](auto& f, int32_t, int32_t, int32_t tensor) { f.shape_of(0, tensor, 1); },
      [](auto& f, int32_t, int32_t, int32_t tensor) {
        f.load_scalar(0, DType::Int(64), Operand::reg(tensor));
      },
      [](auto& f, int32_t null, int32_t, int32_t) {
        f.load_scalar(0, DType::Int(64), Operand::reg(null));
      },
      [](auto& f, int32_t, int32_t, int32_t tensor) { f.invoke_closure(tensor, tensor, {}); },
      [](auto& f, int32_t null, int32_t, int32_t tensor) {
        f.alloc_closure(null, 0, {});
        f.invoke_closure(tensor, null, Regs{tensor, tensor});
      },
      [](auto& f, int32_t null, int32_t, int32_t tensor) {
        f.invoke_kernel(kTwice, {Operand::reg(tensor), Operand::reg(null)});
      },
      [](auto& f, int32_t null, int32_t, int32_t tensor) {
        f.alloc_static(null, TensorSpec{DType::Float(32), {7}, {}});
        f.invoke_kernel(kTwice, {Operand::reg(tensor), Operand::reg(null)});
      },
      [](auto& f, int32_t, int32_t tuple, int32_t tensor) {
        f.copy(Operand::reg(tensor), Operand::reg(tuple));
      },
  };
  for (const Emit& emit : cases) {
    program.functions.clear();
    FunctionBuilder f("main");
    int32_t tensor = f.param("x", kVector);
    f.result("y", kVector);
    int32_t null = f.reg(), tuple = f.reg();
    f.int_reg();
    f.alloc_tuple(tuple, Regs{tensor});
    emit(f, null, tuple, tensor);
    f.ret(tensor);
    put(std::move(f));
    fails("E0613", {vector8(1)});
  }
}

// Every index of a good program is moved out of range, one at a time: the verifier refuses or the
// program still runs safely.
TEST_F(VmTest, must_fail_E0613_verifier_survives_every_mutation) {
  static_program();
  FunctionBuilder f("dynamic");
  dynamic_copy(f);
  put(std::move(f));
  FunctionBuilder g("sum");
  recursive_sum(g, 2);
  put(std::move(g));
  verify_program(program);
  int refused = 0;
  const int32_t values[] = {-1, 1 << 30, 1000, INT32_MIN, 1};
  for (size_t fn = 0; fn < program.functions.size(); ++fn) {
    for (size_t pc = 0; pc < program.functions[fn].code.size(); ++pc) {
      for (int field = 0; field < 6; ++field) {
        for (int32_t value : values) {
          Program changed = program;
          Instruction& in = changed.functions[fn].code[pc];
          if (field == 0) in.dst = value;
          if (field == 1) in.a = value;
          if (field == 2) in.b = value;
          if (field == 3) in.count = static_cast<uint32_t>(value);
          if (field == 4) in.op = static_cast<Opcode>(value & 0xFF);
          if (field == 5) in.sub = static_cast<uint8_t>(value);
          try {
            Module m = Module::from_kernels(changed, kernels);
            RunOptions options;
            options.fuel = 1000;
            options.memory_limit = 1 << 20;
            m.run("main", {vector8(1)}, options);
            m.run("sum", {integer(3)}, options);
            m.run("dynamic", {vector8(1)}, options);
          } catch (const Error& error) {
            refused += error.diagnostics().at(0).code == "E0613";
          }
        }
      }
    }
    for (Operand& o : program.functions[fn].operands) {
      Operand good = o;
      for (int64_t value : {int64_t{-1}, int64_t{1} << 40, int64_t{63}, int64_t{64}}) {
        o.index = value;
        EXPECT_THROW(verify_program(program), UserError) << value;
        o = good;
      }
      if (o.kind == Operand::kArena) {
        for (int64_t value : {int64_t{-1}, int64_t{1} << 62, int64_t{31}}) {
          o.bytes = value;
          EXPECT_THROW(verify_program(program), UserError);
        }
      }
      o = good;
      o.kind = static_cast<Operand::Kind>(9);
      EXPECT_THROW(verify_program(program), UserError);
      o = good;
    }
  }
  EXPECT_GT(refused, 100);
}

TEST_F(VmTest, must_fail_E0613_running_off_the_end) {
  static_program();
  program.functions[0].code.pop_back();
  EXPECT_THROW(verify_program(program), UserError);
  program.functions[0].code.clear();
  EXPECT_THROW(verify_program(program), UserError);
}

// --- Stored form, text, profile, speed ----------------------------------------------------------

TEST_F(VmTest, programs_survive_writing_and_reading) {
  static_program();
  FunctionBuilder f("dynamic");
  dynamic_copy(f);
  put(std::move(f));
  string("a message");
  std::string bytes = write_program(program);
  Program back = read_program(bytes);
  EXPECT_EQ(back.functions, program.functions);
  EXPECT_EQ(back.kernels, program.kernels);
  EXPECT_EQ(back.strings, program.strings);
  EXPECT_EQ(write_program(back), bytes);
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_THROW(read_program(std::string_view(bytes).substr(0, size)), UserError) << size;
  }
}

TEST_F(VmTest, disassembly) {
  static_program();
  EXPECT_EQ(to_string(program),
            "fn main(x: Tensor[(8,), float32]) -> (y: Tensor[(8,), float32])  // registers 1, "
            "integers 0, arena 64\n"
            "  0: invoke_kernel twice(r0, arena[0+32])\n"
            "  1: invoke_kernel add(arena[0+32], const0, out0)\n"
            "  2: ret_outputs\n");
}

TEST_F(VmTest, profile_counts_kernels_and_makes_a_trace) {
  static_program();
  Module m = module();
  Profiler profiler;
  RunOptions options;
  options.profiler = &profiler;
  for (int i = 0; i < 3; ++i) m.run("main", {vector8(1)}, options);
  EXPECT_EQ(profiler.num_runs(), 3);
  std::vector<Profiler::Row> rows = profiler.rows(m.program());
  ASSERT_EQ(rows.size(), 2u);
  int64_t total = 0;
  for (const Profiler::Row& row : rows) {
    EXPECT_EQ(row.calls, 3);
    EXPECT_EQ(row.flops, 8);
    total += row.total_ns;
  }
  EXPECT_LE(total, profiler.run_ns());
  std::string trace = profiler.chrome_trace(m.program());
  EXPECT_NE(trace.find("\"origin\": \"add1 + relu1\""), std::string::npos);
  EXPECT_NE(trace.find("\"ph\": \"X\""), std::string::npos);
}

// The cost of a kernel call in a static region; the bound is loose because machines are shared.
TEST_F(VmTest, kernel_calls_are_cheap) {
  FunctionBuilder f("main");
  f.param("x", kVector);
  f.result("y", kVector);
  int64_t a = f.arena(32);
  constexpr int kCalls = 1000;
  for (int i = 0; i < kCalls; ++i) {
    f.invoke_kernel(kAdd, {Operand::reg(0), Operand::arena(a, 32), Operand::arena(a, 32)});
  }
  f.copy(Operand::output(0), Operand::arena(a, 32));
  f.ret_outputs();
  put(std::move(f));
  Module m = module();
  Tensor x = vector8(1);
  double best = 1e9;
  for (int i = 0; i < 20; ++i) {
    auto begin = std::chrono::steady_clock::now();
    m.run("main", {x});
    auto ns = std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - begin);
    best = std::min(best, ns.count() / kCalls);
  }
  RecordProperty("ns_per_kernel", std::to_string(best));
  EXPECT_LT(best, 2000) << "nanoseconds per kernel call";
}

}  // namespace
}  // namespace relay::runtime
