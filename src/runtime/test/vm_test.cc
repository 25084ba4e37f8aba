// Static regions, memory, shapes and threads, on kernels written by hand.
#include <thread>

#include "runtime/test/vm_program.h"

namespace relay::runtime {
namespace {

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
  EXPECT_EQ(eval(IntOp::bit_and, -6, 11), 10);
  EXPECT_EQ(eval(IntOp::bit_or, -8, 5), -3);
  EXPECT_EQ(eval(IntOp::bit_xor, -1, 5), -6);
  EXPECT_EQ(eval(IntOp::shift_left, -3, 62), int64_t{1} << 62);
  EXPECT_EQ(eval(IntOp::shift_right, -5, 1), -3);
  EXPECT_THROW(eval(IntOp::floor_div, 1, 0), RuntimeError);
}

}  // namespace
}  // namespace relay::runtime
