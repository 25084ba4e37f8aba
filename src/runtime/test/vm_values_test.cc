// Calls, closures, data types and references.
#include "runtime/core/object_pool.h"
#include "runtime/test/vm_program.h"

namespace relay::runtime {
namespace {

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

TEST_F(VmTest, scalars_become_tensors_where_one_is_read) {
  FunctionBuilder f("main");
  int32_t n = f.param("n", kScalar);
  f.result("y", "(Tensor, Tensor, Tensor)");
  int32_t i = f.int_reg(), rank = f.int_reg(), r = f.reg(), view = f.reg(), shape = f.reg();
  auto is_true = f.label(), is_scalar = f.label();
  f.load_scalar(i, DType::Int(64), Operand::reg(n));
  f.box(r, i, DType::Int(64));
  f.if_false(r, is_true);
  f.rank_of(rank, r);
  f.if_zero(rank, is_scalar);
  f.bind(is_true);
  f.match_fail();
  f.bind(is_scalar);
  f.reshape(view, r, {});
  f.box(shape, i, DType::Int(64));
  f.shape_tensor(shape, shape, DType::Int(64));
  f.alloc_tuple(r, Regs{r, view, shape});
  f.ret(r);
  put(std::move(f));
  ObjectCounts before = thread_object_counts();
  for (int64_t value : {int64_t{7}, INT64_MAX}) {
    Tensor given = integer(value);
    Value out = module().run_values("main", std::vector<Value>{given});
    EXPECT_TRUE(bit_equal(out.field(0).tensor(), given));
    EXPECT_TRUE(bit_equal(out.field(1).tensor(), given));
    EXPECT_EQ(out.field(2).tensor().num_elements(), 0);
  }
  EXPECT_EQ(thread_object_counts().objects, before.objects);
}

TEST_F(VmTest, doubles_pass_through_all_values) {
  // keep(x) = the closure's captured x; main(x): x in data, a tuple, a reference, a closure, a call.
  const TensorSpec kDouble{DType::Float(64), {}, {}};
  FunctionBuilder keep("keep");
  keep.internal();
  keep.param("captured", kDouble);
  keep.result("y", kDouble);
  keep.ret(0);
  int32_t id = put(std::move(keep));
  FunctionBuilder f("main");
  int32_t x = f.param("x", kDouble);
  f.result("all", "(Tensor, Tensor, Tensor, Tensor, Tensor)");
  int32_t i = f.int_reg(), r = f.reg(), whole = f.reg();
  std::vector<int32_t> out;
  auto boxed = [&] {
    f.load_scalar(i, DType::Float(64), Operand::reg(x));
    f.box(r, i, DType::Float(64));
    out.push_back(f.reg());
    return r;
  };
  f.alloc_adt(whole, 3, Regs{boxed()});
  f.get_field(out.back(), whole, 0);
  f.alloc_tuple(whole, Regs{boxed(), x});
  f.get_field(out.back(), whole, 0);
  f.ref_new(whole, boxed());
  f.ref_read(out.back(), whole);
  f.alloc_closure(whole, id, Regs{boxed()});
  f.invoke_closure(out.back(), whole, Regs{});
  const int32_t last = boxed();
  f.call(out.back(), id, Regs{last});
  f.alloc_tuple(whole, out);
  f.ret(whole);
  put(std::move(f));
  Module m = module();
  ObjectCounts before = thread_object_counts();
  for (uint64_t bits : std::vector<uint64_t>{
           0x0000000000000000, 0x8000000000000000, 0x3ff0000000000000, 0xbfb999999999999a,
           0x0000000000000001, 0x800fffffffffffff, 0x0010000000000000, 0x7fefffffffffffff,
           0x7ff0000000000000, 0xfff0000000000000, 0x7ff8000000000000, 0x7ff8000000000001,
           0xfff7ffffffffffff, 0x1fffffffffffffff, 0x2000000000000000, 0x5fffffffffffffff,
           0x6000000000000000, 0xdfffffffffffffff}) {
    Tensor given = box_scalar(static_cast<int64_t>(bits), DType::Float(64));
    Value out = m.run_values("main", std::vector<Value>{given});
    for (size_t n = 0; n < 5; ++n) {
      EXPECT_TRUE(bit_equal(out.field(n).tensor(), given)) << std::hex << bits << ", field " << n;
    }
  }
  EXPECT_EQ(thread_object_counts().objects, before.objects);
}

TEST_F(VmTest, data_without_fields_are_words) {
  FunctionBuilder f("main");
  f.result("all", "(Data, Data, (), Tensor)");
  int32_t few = f.reg(), many = f.reg(), none = f.reg(), tag = f.reg(), i = f.int_reg();
  auto other = f.label();
  f.alloc_adt(few, 5, {});
  f.alloc_adt(many, 1'000'000, {});
  f.alloc_tuple(none, {});
  f.if_not_tag(few, 5, other);
  f.if_not_tag(many, 1'000'000, other);
  f.get_tag(i, few);
  f.box(tag, i, DType::Int(32));
  f.alloc_tuple(few, Regs{few, many, none, tag});
  f.ret(few);
  f.bind(other);
  f.match_fail();
  put(std::move(f));
  Value out = module().run_values("main", {});
  EXPECT_TRUE(is_immediate(out.field(0).object()));
  EXPECT_EQ(out.field(0).kind(), ObjectKind::adt);
  EXPECT_EQ(out.field(0).tag(), 5);
  EXPECT_EQ(out.field(0).num_fields(), 0u);
  EXPECT_FALSE(out.field(0).is_tensor());
  EXPECT_EQ(out.field(1).tag(), 1'000'000);
  EXPECT_TRUE(out.field(2).is_tuple());
  EXPECT_EQ(out.field(2).num_fields(), 0u);
  EXPECT_EQ(out.field(3).tensor().get_as_int(0), 5);
}

TEST_F(VmTest, words_of_another_kind_are_refused) {
  // Data without fields, and scalars, where something else is expected.
  enum Use { as_tensor, as_closure, as_ref, as_tuple, as_data };
  for (Use use : {as_tensor, as_closure, as_ref, as_tuple, as_data}) {
    program.functions.clear();
    FunctionBuilder f("main");
    f.result("y", "Data");
    int32_t r = f.reg(), y = f.reg(), i = f.int_reg();
    use == as_data ? f.alloc_tuple(r, {}) : f.alloc_adt(r, 2, {});
    if (use == as_tensor) f.rank_of(i, r);
    if (use == as_closure) f.invoke_closure(y, r, {});
    if (use == as_ref) f.ref_read(y, r);
    if (use == as_tuple) f.get_field(y, r, 0);
    if (use == as_data) f.get_tag(i, r);
    f.ret(r);
    put(std::move(f));
    try {
      module().run_values("main", {});
      ADD_FAILURE() << "use " << use << " is not refused";
    } catch (const Error& error) {
      EXPECT_EQ(error.diagnostics().at(0).code, "E0613") << error.what();
    }
  }
}

TEST_F(VmTest, a_kernel_writes_a_scalar) {
  // y = x + 0.5, into a register of the frame
  kernels.push_back([](void* const* b, const int64_t*, const relay_kernel_context*) {
    *static_cast<double*>(b[1]) = *static_cast<const double*>(b[0]) + 0.5;
  });
  program.kernels.push_back({"half_more", "", {8, 8}, 1, 0, 1, 16});
  const TensorSpec kDouble{DType::Float(64), {}, {}};
  FunctionBuilder f("main");
  int32_t x = f.param("x", kDouble);
  f.result("y", kDouble);
  int32_t i = f.int_reg(), j = f.int_reg();
  f.load_scalar(i, DType::Float(64), Operand::reg(x));
  f.invoke_kernel(7, {Operand::scalar(i), Operand::scalar(j)});
  f.ret_scalar(j, DType::Float(64));
  put(std::move(f));
  Tensor given = Tensor::scalar(0.25, DType::Float(64));
  EXPECT_EQ(module().run("main", {given})[0].get_as_double(0), 0.75);
}

// cycle(n): n references that hold a tuple of themselves and the argument; gives the last of them.
void make_cycles(FunctionBuilder& f) {
  int32_t n = f.param("n", kScalar);
  f.result("ref", "ref");
  int32_t ref = f.reg(), tuple = f.reg(), i = f.int_reg(), one = f.int_reg();
  f.load_scalar(i, DType::Int(64), Operand::reg(n));
  f.load_int(one, 1);
  auto head = f.label(), end = f.label();
  f.bind(head);
  f.ref_new(ref, n);
  f.alloc_tuple(tuple, Regs{ref, n});
  f.ref_write(ref, tuple);
  f.int_op(IntOp::sub, i, i, one);
  f.if_zero(i, end);
  f.jump(head);
  f.bind(end);
  f.ret(ref);
}

TEST_F(VmTest, cycles_are_freed_with_their_context_and_before) {
  FunctionBuilder f("main");
  make_cycles(f);
  put(std::move(f));
  ObjectCounts before = thread_object_counts();
  {
    Module m = module();
    m.run_values("main", std::vector<Value>{integer(10)});
    EXPECT_GE(thread_object_counts().objects - before.objects, 20);
    // Many of them are not waited for.
    for (int i = 0; i < 100; ++i) m.run_values("main", std::vector<Value>{integer(1000)});
    EXPECT_LT(thread_object_counts().objects - before.objects, 20'000);
  }
  EXPECT_EQ(thread_object_counts().objects, before.objects);
  EXPECT_EQ(thread_object_counts().bytes, before.bytes);
}

TEST_F(VmTest, references_that_are_held_outlive_their_context) {
  FunctionBuilder f("main");
  make_cycles(f);
  put(std::move(f));
  Value kept;
  {
    Module m = module();
    kept = m.run_values("main", std::vector<Value>{integer(5000)});
    m.run_values("main", std::vector<Value>{integer(5000)});
  }
  EXPECT_EQ(kept.field(0).field(1).tensor().get_as_int(0), 5000);
  EXPECT_EQ(kept.field(0).field(0).object(), kept.object());
  // No reference is left from which this cycle would be freed.
  release(std::exchange(static_cast<Cell*>(kept.object())->fields[0], nullptr));
}

}  // namespace
}  // namespace relay::runtime
