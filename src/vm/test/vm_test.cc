// What programs compute, from text through bytecode on the virtual machine.
#include "vm/test/run_program.h"

#include "runtime/core/object.h"

namespace relay {
namespace {

using runtime::Value;
using vm_test::Compiled;
using vm_test::result_of;

constexpr const char* kList = R"(
type List[A] { Cons(A, List[A]), Nil, }
def @map[A, B](%f: fn(A) -> B, %xs: List[A]) -> List[B] {
  match (%xs) { Cons(%h, %t) => Cons(%f(%h), @map(%f, %t)), Nil => Nil, }
}
def @up_to(%n: int32, %acc: List[int32]) -> List[int32] {
  if (less(%n, 1)) { %acc } else { @up_to(subtract(%n, 1), Cons(%n, %acc)) }
}
def @sum(%xs: List[int32], %acc: int32) -> int32 {
  match (%xs) { Cons(%h, %t) => @sum(%t, add(%h, %acc)), Nil => %acc, }
}
)";

Value number(int64_t n) { return Tensor::scalar(n, DType::Int(32)); }

// What a run that fails says.
std::string failure_text(const std::string& text, const std::vector<Value>& args = {}) {
  Compiled program(text);
  try {
    program.run(args);
  } catch (const Error& e) {
    return e.what();
  }
  return "no failure_text";
}

TEST(Vm, tensors) {
  Compiled p("def @main(%x: Tensor[(3), float32]) { (add(%x, %x), nn.relu(%x)) }");
  Tensor x = Tensor::empty(DType::Float(32), {3});
  for (int i = 0; i < 3; ++i) x.data<float>()[i] = static_cast<float>(i - 1);
  EXPECT_EQ(p.text({x}), "([-2, 0, 2], [0, 0, 1])");
}

TEST(Vm, branches_take_one_side) {
  Compiled p(R"(
def @main(%x: int32) -> int32 {
  let %y = if (less(%x, 10)) { if (less(%x, 5)) { 1 } else { let %z = add(%x, 1); %z } } else { 3 };
  multiply(%y, 10)
})");
  EXPECT_EQ(p.text({number(0)}), "10");
  EXPECT_EQ(p.text({number(7)}), "80");
  EXPECT_EQ(p.text({number(11)}), "30");
}

TEST(Vm, values_of_branches_may_be_tuples_of_what_was_computed_there) {
  Compiled p(R"(
def @main(%x: int32) {
  let %t = if (less(%x, 10)) { let %a = add(%x, 1); (%a, (%a, %x)) } else { (%x, (0, 0)) };
  (%t.1.0, %t.0)
})");
  EXPECT_EQ(p.text({number(4)}), "(5, 5)");
  EXPECT_EQ(p.text({number(40)}), "(0, 40)");
}

TEST(Vm, recursion) {
  EXPECT_EQ(result_of(R"(
def @fib(%n: int32) -> int32 {
  if (less(%n, 2)) { %n } else { add(@fib(subtract(%n, 1)), @fib(subtract(%n, 2))) }
}
def @main() { @fib(15) })"),
            "610");
}

TEST(Vm, mutual_recursion) {
  Compiled p(R"(
def @even(%n: int32) -> bool { if (less(%n, 1)) { True } else { @odd(subtract(%n, 1)) } }
def @odd(%n: int32) -> bool { if (less(%n, 1)) { False } else { @even(subtract(%n, 1)) } }
def @main(%n: int32) { @even(%n) })");
  EXPECT_EQ(p.text({number(1001)}), "False");
  EXPECT_EQ(p.text({number(1000)}), "True");
}

TEST(Vm, a_million_tail_calls_need_constant_space) {
  Compiled p(R"(
def @loop(%n: int32, %acc: int32) -> int32 {
  if (less(%n, 1)) { %acc } else { @loop(subtract(%n, 1), add(%acc, 1)) }
}
def @main(%n: int32) { @loop(%n, 0) })");
  runtime::RunOptions options;
  options.memory_limit = 1 << 20;
  EXPECT_EQ(p.run({number(1000000)}, options).tensor().get_as_int(0), 1000000);
}

TEST(Vm, a_hundred_thousand_calls_deep) {
  Compiled p(R"(
def @count(%n: int32) -> int32 {
  if (less(%n, 1)) { 0 } else { add(@count(subtract(%n, 1)), 1) }
}
def @main(%n: int32) { @count(%n) })");
  EXPECT_EQ(p.text({number(100000)}), "100000");
}

TEST(Vm, recursion_without_end_is_an_error) {
  Compiled p("def @f(%n: int32) -> int32 { add(@f(%n), 1) }\ndef @main() { @f(1) }");
  runtime::RunOptions options;
  options.memory_limit = 8 << 20;
  EXPECT_THROW(p.run({}, options), RuntimeError);
  // And the module is as good as before.
  EXPECT_THROW(p.run({}, options), RuntimeError);
}

TEST(Vm, closures_capture) {
  EXPECT_EQ(result_of(R"(
def @adder(%n: int32) -> fn(int32) -> int32 { let %f = fn (%x: int32) -> int32 { add(%x, %n) }; %f }
def @twice(%f: fn(int32) -> int32, %x: int32) -> int32 { %f(%f(%x)) }
def @main() { let %f = @adder(3); (@twice(%f, 1), @twice(@adder(10), 2)) })"),
            "(7, 22)");
}

TEST(Vm, functions_are_called_from_outside) {
  Compiled p(R"(
def @main[n: Dim](%x: Tensor[(n,), int32]) {
  let %add = fn (%y: Tensor[(n,), int32]) -> Tensor[(n,), int32] { add(%x, %y) };
  (%add, fn (%y: Tensor[(n,), int32]) -> Tensor[(n,), int32] { %add(%add(%y)) })
})");
  auto vector = [](std::vector<int32_t> values) {
    Tensor out = Tensor::empty(DType::Int(32), {static_cast<int64_t>(values.size())});
    std::copy(values.begin(), values.end(), static_cast<int32_t*>(out.data()));
    return out;
  };
  runtime::Value functions = p.run({vector({1, 2, 3})});
  // They outlive the value that they came in, and share nothing with other runs.
  runtime::Value add = functions.field(0), twice = functions.field(1);
  functions = runtime::Value();
  for (const runtime::Module& m : {*p.module, p.module->apart()}) {
    std::vector<runtime::Value> args{vector({10, 20, 30})};
    Tensor once = m.call(add, args).tensor();
    EXPECT_EQ(static_cast<const int32_t*>(once.data())[2], 33);
    Tensor both = m.call(twice, args).tensor();
    EXPECT_EQ(static_cast<const int32_t*>(both.data())[2], 36);
    // What was captured says how long the argument is.
    std::vector<runtime::Value> longer{vector({1, 2, 3, 4})};
    EXPECT_THROW(m.call(add, longer), UserError);
    EXPECT_THROW(m.call(add, {}), UserError);
  }
}

TEST(Vm, local_functions_call_themselves_and_keep_what_they_captured) {
  EXPECT_EQ(result_of(R"(
def @main() {
  let %step = add(1, 1);
  let %f = fn (%n: int32) -> int32 { if (less(%n, 1)) { 0 } else { add(%step, %f(subtract(%n, 1))) } };
  %f(10)
})"),
            "20");
}

TEST(Vm, functions_of_the_module_are_values) {
  EXPECT_EQ(result_of(std::string(kList) + "def @inc(%x: int32) -> int32 { add(%x, 1) }\n"
                                           "def @main() { @map(@inc, @up_to(3, Nil)) }"),
            "Cons(2, Cons(3, Cons(4, Nil)))");
}

TEST(Vm, constructors_are_values) {
  EXPECT_EQ(result_of(std::string(kList) + R"(
type Pair { Both(int32, int32), }
def @apply(%f: fn(int32, int32) -> Pair, %x: int32) -> Pair { %f(%x, %x) }
type Box { Box(int32), }
def @main() { (@apply(Both, 2), @map(Box, Cons(1, Nil))) })"),
            "(Both(2, 2), Cons(Box(1), Nil))");
}

TEST(Vm, lists_are_built_and_folded) {
  EXPECT_EQ(result_of(std::string(kList) + "def @main() { @sum(@up_to(100, Nil), 0) }"), "5050");
}

TEST(Vm, a_list_as_long_as_memory_is_freed_without_recursion) {
  int64_t before = runtime::thread_object_bytes();
  {
    Compiled p(std::string(kList) + "def @main(%n: int32) { @up_to(%n, Nil) }");
    Value list = p.run({number(200000)});
    EXPECT_GT(runtime::thread_object_bytes(), before + 200000 * 16);
  }
  EXPECT_EQ(runtime::thread_object_bytes(), before);
}

TEST(Vm, trees) {
  EXPECT_EQ(result_of(R"(
type Tree { Node(Tree, int32, Tree), Leaf, }
def @grow(%d: int32) -> Tree {
  if (less(%d, 1)) { Leaf } else { let %t = @grow(subtract(%d, 1)); Node(%t, %d, %t) }
}
def @total(%t: Tree) -> int32 {
  match (%t) { Node(%l, %v, %r) => add(add(@total(%l), %v), @total(%r)), Leaf => 0, }
}
def @main() { @total(@grow(6)) })"),
            "120");
}

TEST(Vm, patterns_look_deep) {
  Compiled p(std::string(kList) + R"(
def @first_two(%xs: List[(int32, int32)]) -> int32 {
  match (%xs) {
    Cons((%a, _), Cons((_, %b), _)) => add(%a, %b),
    Cons((%a, %b), Nil) => multiply(%a, %b),
    Nil => -1,
  }
}
def @main() {
  (@first_two(Cons((1, 2), Cons((3, 4), Nil))), @first_two(Cons((5, 6), Nil)), @first_two(Nil))
})");
  EXPECT_EQ(p.text(), "(5, 30, -1)");
}

TEST(Vm, a_value_that_no_clause_takes_is_an_error_with_its_place) {
  std::string message = failure_text(std::string(kList) + R"(
def @head(%xs: List[int32]) -> int32 { match? (%xs) { Cons(%h, _) => %h, } }
def @main() { @head(Nil) })");
  EXPECT_NE(message.find("test.relay:14"), std::string::npos) << message;
}

TEST(Vm, references) {
  EXPECT_EQ(result_of(R"(
def @bump(%r: ref(int32)) -> int32 { let %u = ref_write(%r, add(ref_read(%r), 1)); ref_read(%r) }
def @main() {
  let %r = ref(10);
  let %a = @bump(%r);
  let %b = @bump(%r);
  (%a, %b, ref_read(%r))
})"),
            "(11, 12, 12)");
}

TEST(Vm, nested_tuples_keep_their_structure_through_calls) {
  Compiled p(R"(
def @f(%x: int32) -> ((int32, int32), int32) { ((add(%x, 1), %x), add(%x, 2)) }
def @main(%x: int32) { let %t = @f(%x); (%t.0, (%t.1, %t.0.1)) })");
  EXPECT_EQ(p.text({number(3)}), "((4, 3), (5, 3))");
  EXPECT_EQ(p.text({number(3)}, "f"), "((4, 3), 5)");
  // As tensors they are the leaves in order.
  std::vector<Tensor> leaves = p.module->run("f", {Tensor::scalar(3, DType::Int(32))});
  ASSERT_EQ(leaves.size(), 3u);
  EXPECT_EQ(leaves[2].get_as_int(0), 5);
}

TEST(Vm, empty_and_partly_used_tuples) {
  EXPECT_EQ(result_of(R"(
def @unit() -> () { () }
def @main() { let %a = add(1, 2); let %t = (%a, (%a, @unit())); let %p = %t.1; (%p.1, %t.0, %p.0) })"),
            "((), 3, 3)");
}

TEST(Vm, one_tensor_may_be_several_results) {
  Compiled p("def @main(%x: int32) { let %y = add(%x, 1); (%y, %x, %y) }");
  EXPECT_EQ(p.text({number(1)}), "(2, 1, 2)");
}

TEST(Vm, named_dimensions_are_read_off_the_arguments) {
  Compiled p(R"(
def @main[n: Dim](%x: Tensor[(n, 2), float32], %y: Tensor[(n, 2), float32]) {
  reshape(concatenate((%x, %y), axis=0), newshape=[-1])
})");
  Tensor x = Tensor::zeros(DType::Float(32), {3, 2});
  Tensor y = p.run({x, x}).tensor();
  ASSERT_EQ(y.rank(), 1);
  EXPECT_EQ(y.dim(0), 12);
}

TEST(Vm, poison_changes_nothing) {
  Compiled p(R"(
def @f(%x: Tensor[(4, 4), float32]) -> Tensor[(4, 4), float32] { nn.softmax(nn.dense(%x, %x)) }
def @main(%x: Tensor[(4, 4), float32]) {
  let %a = @f(%x); let %b = @f(%a); (nn.relu(add(%a, %b)), sum(%b, axis=[0]))
})");
  Tensor x = Tensor::empty(DType::Float(32), {4, 4});
  for (int i = 0; i < 16; ++i) x.data<float>()[i] = static_cast<float>(i % 5) - 2;
  std::vector<std::vector<Tensor>> results;
  for (uint8_t byte : {0x00, 0xff}) {
    runtime::RunOptions options;
    options.poison = byte;
    results.push_back(p.module->run("main", {x}, options));
  }
  for (size_t i = 0; i < 2; ++i) EXPECT_TRUE(bit_equal(results[0][i], results[1][i]));
}

TEST(Vm, runs_leave_nothing_behind) {
  Compiled p(std::string(kList) + R"(
def @main(%n: int32) {
  let %r = ref(@up_to(%n, Nil));
  let %f = fn (%x: int32) -> int32 { add(%x, @sum(ref_read(%r), 0)) };
  let %u = ref_write(%r, @map(%f, ref_read(%r)));
  @sum(ref_read(%r), 0)
})");
  p.run({number(10)});
  int64_t before = runtime::thread_object_bytes();
  EXPECT_EQ(p.run({number(10)}).tensor().get_as_int(0), 55 + 10 * 55);
  EXPECT_EQ(runtime::thread_object_bytes(), before);
}

}  // namespace
}  // namespace relay
