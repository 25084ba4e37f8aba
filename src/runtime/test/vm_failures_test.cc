// What a run refuses, and how it says so.
#include <chrono>
#include <functional>
#include <thread>

#include "base/budget.h"
#include "runtime/test/vm_program.h"

namespace relay::runtime {
namespace {

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
  EXPECT_NE(text.find("lies outside the tensor"), std::string::npos) << text;
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

TEST_F(VmTest, must_fail_E0615_time_of_a_loop_and_of_kernels) {
  for (bool slow : {false, true}) {
    program.functions.clear();
    FunctionBuilder f("main");
    f.returns_tuple();
    auto loop = f.label();
    f.bind(loop);
    if (slow) f.invoke_kernel(kStrange, {});
    f.jump(loop);
    f.ret_outputs();
    put(std::move(f));
    kernels[kStrange] = [](void* const*, const int64_t*, const relay_kernel_context*) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    };
    RunOptions options;
    options.time_limit = 0.05;
    auto begin = std::chrono::steady_clock::now();
    fails("E0615", {}, options);
    std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    EXPECT_GE(took.count(), 0.05);
    EXPECT_LT(took.count(), 0.5);
    // The limits of the thread are those of its runs.
    BudgetScope scope({.seconds = 0.05});
    fails("E0304");
  }
}

TEST_F(VmTest, must_fail_E0606_fuel_under_a_time_limit) {
  for (int64_t fuel : {0, 1, 4095, 4096, 4097, 10000}) {
    program.functions.clear();
    FunctionBuilder f("main");
    int32_t n = f.param("n", kScalar);
    f.result("n", kScalar);
    int32_t i = f.int_reg(), one = f.int_reg(), r = f.reg();
    auto loop = f.label(), end = f.label();
    f.load_scalar(i, DType::Int(64), Operand::reg(n));
    f.load_int(one, 1);
    f.bind(loop);
    f.if_zero(i, end);
    f.int_op(IntOp::sub, i, i, one);
    f.jump(loop);
    f.bind(end);
    f.box(r, i, DType::Int(64));
    f.ret(r);
    put(std::move(f));
    RunOptions options;
    options.time_limit = 1000;
    // The call of main, and a jump back for each step.
    options.fuel = fuel + 1;
    EXPECT_EQ(module().run("main", std::vector<Tensor>{integer(fuel)}, options).size(), 1u) << fuel;
    options.fuel = fuel;
    fails("E0606", {integer(fuel)}, options);
  }
}

TEST_F(VmTest, must_fail_E0604_working_memory_of_a_kernel) {
  FunctionBuilder f("main");
  dynamic_copy(f);
  put(std::move(f));
  RunOptions options;
  Tensor x = Tensor::zeros(DType::Float(32), {1 << 16});
  options.memory_limit = 1 << 20;
  EXPECT_EQ(module().run("main", {{x}}, options).size(), 1u);
  options.memory_limit = (1 << 19) + 8192;
  EXPECT_EQ(module().run("main", {{x}}, options).size(), 1u);
  kernels[kCopy] = [](void* const*, const int64_t*, const relay_kernel_context* ctx) {
    if (ctx->scratch(ctx, 1 << 19) == nullptr) *ctx->error = RELAY_KERNEL_OUT_OF_MEMORY;
  };
  fails("E0604", {x}, options);
  // It is held together with the result, at first and where it is kept for the next kernel.
  for (int run = 0; run < 3; ++run) {
    options.memory_limit = (1 << 18) + (1 << 19) - 4096;
    fails("E0604", {x}, options);
    options.memory_limit = (1 << 18) + (1 << 19) + 16384;
    EXPECT_EQ(module().run("main", {{x}}, options).size(), 1u);
  }
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
  FunctionBuilder numbers("main");
  const int32_t two = numbers.int_reg(), three = numbers.int_reg();
  numbers.load_int(two, 2);
  numbers.load_int(three, 3);
  numbers.fatal(message, place, Regs{two, three});
  put(std::move(numbers));
  text = fails("E0607");
  EXPECT_NE(text.find("found:    2 and 3"), std::string::npos) << text;
  program.functions.clear();
  FunctionBuilder g("main");
  g.match_fail(place);
  put(std::move(g));
  fails("E0607");
  program.functions.clear();
  const int32_t constructors = string("Nil;Cons(_,*);Other(_,_)");
  auto found = [&](int length, int32_t tag) {
    FunctionBuilder list("main");
    int32_t at = list.reg();
    const int32_t value = list.reg(), n = list.int_reg();
    list.load_int(n, 7);
    list.box(value, n, DType::Int(32));
    list.alloc_adt(at, 0, Regs{});
    for (int i = 0; i < length; ++i) {
      const int32_t next = list.reg();
      list.alloc_adt(next, tag, Regs{value, at});
      at = next;
    }
    list.match_fail(place, constructors, at);
    put(std::move(list));
    std::string out = fails("E0607");
    program.functions.clear();
    const size_t begin = out.find("found:");
    return begin == std::string::npos ? ""
                                      : out.substr(begin + 10, out.find('\n', begin) - begin - 10);
  };
  EXPECT_EQ(found(0, 1), "Nil");
  EXPECT_EQ(found(2, 1), "Cons(7, Cons(7, Nil))");
  EXPECT_EQ(found(1, 2), "Other(7, _)");
  EXPECT_EQ(found(1, 3), "");  // a damaged program
  EXPECT_EQ(found(100, 1).substr(40), "Cons(7, Cons(7, Cons(7, ..." + std::string(8, ')'));
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

}  // namespace
}  // namespace relay::runtime
