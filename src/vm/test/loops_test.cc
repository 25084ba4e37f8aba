// Loops and scalars: what costs nothing although the language has no word for it.
#include <algorithm>
#include <cctype>
#include <cmath>

#include "eval/evaluator.h"
#include "runtime/core/object_pool.h"
#include "vm/test/run_program.h"

namespace relay {
namespace {

using runtime::Opcode;
using runtime::Value;
using vm_test::Compiled;

const runtime::Function& code_of(const Compiled& program, const std::string& name) {
  const runtime::Program& p = program.bytecode.program;
  return p.functions.at(static_cast<size_t>(p.find_function(name)));
}
int64_t count(const runtime::Function& f, Opcode op) {
  return std::ranges::count_if(f.code, [op](const auto& in) { return in.op == op; });
}

Value whole_number(int64_t n) { return Tensor::scalar(n, DType::Int(64)); }

// What the compiled program gives; the evaluator gives the same.
std::string both(const std::string& text, const std::vector<Value>& args = {}) {
  Compiled program(text);
  std::string result = program.text(args);
  Type type = as<FuncTypeNode>(program.source->find("main")->type)->ret_type;
  EXPECT_EQ(result,
            print_value(Evaluator(program.source).call("main", args), type, program.source));
  return result;
}

TEST(Scalars, need_no_kernel) {
  const char* text = R"(
def @main(%n: int64, %x: float32) {
  let %m = add(multiply(%n, 3i64), 1i64);
  let %half = cast(%m, dtype="float32");
  (logical_and(less(%m, 100i64), not_equal(%n, 0i64)), divide(%half, %x), %m)
})";
  Compiled program(text);
  EXPECT_EQ(program.bytecode.kernels.size(), 0u);
  for (int64_t n : {0, 1, -7, 1 << 20})
    both(text, {whole_number(n), Tensor::scalar(0.3, DType::Float(32))});
}

TEST(Scalars, arithmetic_wraps_and_rounds_as_in_kernels) {
  const char* ints = R"(
def @main(%a: int32, %b: int32) {
  (add(%a, %b), multiply(%a, %b), subtract(%a, %b), maximum(%a, %b), greater(%a, %b),
   less_equal(%a, %b), floor_divide(%a, 3), mod(%a, 5), divide(%a, -4), equal(%a, %b))
})";
  for (int64_t a : {INT32_MAX, INT32_MIN, 7, -7}) {
    for (int64_t b : {1, -1, INT32_MIN, 12345}) {
      both(ints, {Tensor::scalar(a, DType::Int(32)), Tensor::scalar(b, DType::Int(32))});
    }
  }
  for (const char* t : {"float32", "float64"}) {
    std::string s(t);
    std::string floats = "def @main(%a: " + s + ", %b: " + s + R"() {
  (add(%a, %b), multiply(%a, %b), subtract(%a, %b), divide(%a, %b), less(%a, %b), equal(%a, %b),
   greater_equal(%a, %b), not_equal(%a, %b), cast(%a, dtype="float64"), cast(%b, dtype="float32"),
   cast(%a, dtype="bool"))
})";
    for (double a : {0.1, -3.5, 1e30, 0.0, double(INFINITY), double(NAN)}) {
      both(floats, {Tensor::scalar(a, *DType::parse(s)), Tensor::scalar(0.7, *DType::parse(s))});
    }
  }
}

TEST(Scalars, bits_and_shifts_by_what_is_known) {
  for (const char* t : {"int32", "int64"}) {
    std::string s(t), text = "def @main(%a: " + s + ", %b: " + s + R"(, %c: bool, %d: bool) {
  (bitwise_and(%a, %b), bitwise_or(%a, %b), bitwise_xor(%a, %b), bitwise_xor(%c, %d),
   left_shift(%a, cast(3, dtype=")" +
                             s + R"(")), right_shift(%b, cast(5, dtype=")" + s + R"("))) })";
    for (int64_t a : {INT32_MAX, INT32_MIN, 7, -7}) {
      for (int64_t b : {1, -1, INT32_MIN, 12345}) {
        for (int c : {0, 1}) {
          both(text, {Tensor::scalar(a, *DType::parse(s)), Tensor::scalar(b, *DType::parse(s)),
                      Tensor::scalar(c, DType::Bool()), Tensor::scalar(1, DType::Bool())});
        }
      }
    }
  }
  const char* known = "def @main(%a: int64, %b: int64) { bitwise_xor(left_shift(%a, 7i64), %b) }";
  EXPECT_EQ(Compiled(known, true).bytecode.kernels.size(), 0u);
  const char* divided = "def @main(%a: int32) { mod(floor_divide(%a, 3), 5) }";
  EXPECT_EQ(Compiled(divided, true).bytecode.kernels.size(), 0u);
  // What a shift by too much gives is decided in one place.
  EXPECT_GT(
      Compiled("def @main(%a: int32, %b: int32) { left_shift(%a, %b) }").bytecode.kernels.size(),
      0u);
}

TEST(Scalars, divisors_may_be_zero) {
  const char* text = R"(
def @main(%a: int32) {
  (floor_divide(7, %a), floor_mod(7, %a), divide(7, %a), mod(-7, %a), divide(%a, 0), mod(%a, 0))
})";
  EXPECT_EQ(Compiled(text).bytecode.kernels.size(), 0u);
  for (int64_t a : {2, 0, -3}) both(text, {Tensor::scalar(a, DType::Int(32))});
}

TEST(Scalars, are_read_and_written_by_kernels) {
  Tensor x = Tensor::empty(DType::Int(64), {5});
  for (int i = 0; i < 5; ++i) x.set_from_int(i, i);
  both(R"(
def @main(%x: Tensor[(5,), int64], %n: int64) {
  let %s = sum(%x);
  let %t = add(%s, %n);
  (multiply(%x, %t), if (less(%t, 10i64)) { %s } else { multiply(%t, %t) },
   reshape(%t, newshape=[1]))
})",
       {x, whole_number(4)});
}

// What every scalar goes through: calls of functions that know its type and that do not, closures
// that captured it, data and references.
constexpr const char* kPassedOn = R"(
def @pair[A, B](%a: A, %b: B) -> (B, A) { (%b, %a) }
def @apply[A, B](%f: fn (A) -> B, %x: A) -> B { %f(%x) }
def @first(%x: T, %r: ref(T)) -> T {
  match (@apply(fn (%y: T) -> List[T] { Cons(%y, Cons(%x, Nil)) }, ref_read(%r))) {
    Cons(%z, _) => %z,
    Nil => %x,
  }
}
def @main(%x: T) {
  let %f = fn (%y: T) -> T { add(%x, %y) };
  let %r = ref(@apply(%f, %x));
  (@pair(%x, @apply(%f, ref_read(%r))), @first(%x, %r), Cons(%x, Cons(%f(%x), Nil)), sqrt(cast(%f(%x), dtype="float32")))
}
)";

std::string with_type(std::string text, const std::string& type) {
  for (size_t at = 0; (at = text.find("T", at)) != std::string::npos; ++at) {
    auto is_part = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; };
    if (!is_part(text[at - 1]) && !is_part(text[at + 1])) text.replace(at, 1, type);
  }
  return text;
}

TEST(Scalars, of_any_value_are_passed_on) {
  std::string ints = with_type(kPassedOn, "int64");
  constexpr int64_t kLargest = (int64_t{1} << 60) - 1;
  for (int64_t n : {int64_t{0}, int64_t{-1}, kLargest, kLargest + 1, -kLargest - 1, -kLargest - 2,
                    INT64_MAX, INT64_MIN}) {
    both(ints, {whole_number(n)});
  }
  for (int64_t n : {0, -1, INT32_MAX, INT32_MIN}) {
    both(with_type(kPassedOn, "int32"), {Tensor::scalar(n, DType::Int(32))});
  }
  for (double x : {0.0, -0.0, 1.5, -0.1, 1e30, double{INFINITY}}) {
    both(with_type(kPassedOn, "float32"), {Tensor::scalar(x, DType::Float(32))});
    both(with_type(kPassedOn, "float64"), {Tensor::scalar(x, DType::Float(64))});
  }
}

TEST(Scalars, in_data_need_no_objects) {
  Compiled program(R"(
def @up_to(%n: int64, %xs: List[int64]) -> List[int64] {
  if (equal(%n, 0i64)) { %xs } else { @up_to(subtract(%n, 1i64), Cons(%n, %xs)) }
}
def @roots(%n: int64, %xs: List[float32]) -> List[float32] {
  if (equal(%n, 0i64)) { %xs } else {
    @roots(subtract(%n, 1i64), Cons(sqrt(cast(%n, dtype="float32")), %xs))
  }
}
def @main(%n: int64) { (@up_to(%n, Nil), @roots(%n, Nil)) }
)");
  int64_t before = runtime::thread_object_counts().objects;
  Value lists = program.run({whole_number(100)});
  // The cells and the pair: the two ends are words.
  EXPECT_EQ(runtime::thread_object_counts().objects - before, 100 + 100 + 1);
  EXPECT_EQ(lists.field(0).field(1).field(0).tensor().get_as_int(0), 2);
  EXPECT_EQ(lists.field(1).field(1).field(1).field(1).field(0).tensor().get_as_double(0), 2);
}

// ---- Loops

TEST(Loops, a_counter_stays_in_its_register) {
  const char* text = R"(
def @loop(%n: int64, %sum: int64) -> int64 {
  if (equal(%n, 0i64)) { %sum } else { @loop(subtract(%n, 1i64), add(%sum, %n)) }
}
def @main(%n: int64) -> int64 { @loop(%n, 0i64) }
)";
  EXPECT_EQ(both(text, {whole_number(1000)}), "500500");
  Compiled program(text);
  const runtime::Function& loop = code_of(program, "loop");
  EXPECT_EQ(count(loop, Opcode::tail_call) + count(loop, Opcode::call), 0);
  EXPECT_EQ(count(loop, Opcode::box), 0);
  // A million iterations of a handful of instructions.
  runtime::RunOptions options;
  options.fuel = 10'000'000;
  options.memory_limit = 1 << 16;
  program.run({whole_number(1'000'000)}, options);
}

TEST(Loops, parameters_change_all_at_once) {
  EXPECT_EQ(both(R"(
def @fib(%n: int64, %a: int64, %b: int64) -> (int64, int64) {
  if (equal(%n, 0i64)) { (%a, %b) } else { @fib(subtract(%n, 1i64), %b, add(%a, %b)) }
}
def @turn(%n: int64, %x: Tensor[(2,), int64], %y: Tensor[(2,), int64]) -> Tensor[(2,), int64] {
  if (equal(%n, 0i64)) { subtract(%x, %y) } else { @turn(subtract(%n, 1i64), %y, %x) }
}
def @same(%n: int64, %x: Tensor[(2,), int64], %y: Tensor[(2,), int64]) -> Tensor[(2,), int64] {
  if (equal(%n, 0i64)) { multiply(%x, %y) } else {
    let %z = add(%x, %y);
    @same(subtract(%n, 1i64), %z, %z)
  }
}
def @main() {
  let %u = ones(shape=[2], dtype="int64");
  let %v = add(%u, %u);
  (@fib(20i64, 0i64, 1i64), @turn(3i64, %u, %v), @turn(4i64, %u, %v), @same(3i64, %u, %v), %u, %v)
}
)"),
            "((6765, 10946), [1, 1], [-1, -1], [144, 144], [1, 1], [2, 2])");
}

TEST(Loops, over_tensors_allocate_nothing) {
  const char* text = R"(
def @loop(%n: int64, %x: Tensor[(64, 64), float32]) -> Tensor[(64, 64), float32] {
  if (equal(%n, 0i64)) { %x } else {
    @loop(subtract(%n, 1i64), tanh(nn.dense(%x, nn.softmax(%x))))
  }
}
def @main(%n: int64, %x: Tensor[(64, 64), float32]) { @loop(%n, %x) }
)";
  Compiled program(text);
  Tensor x = Tensor::zeros(DType::Float(32), {64, 64});
  for (int64_t i = 0; i < x.num_elements(); ++i) x.set_from_double(i, 0.01 * double(i % 7));
  // Two tensors take turns, and the arena holds the rest.
  runtime::RunOptions options;
  options.memory_limit = 6 * 64 * 64 * 4;
  options.poison = 0xFF;
  program.run({whole_number(100), x}, options);
  Value kept = program.run({whole_number(3), x});
  program.run({whole_number(4), x});
  EXPECT_TRUE(bit_equal(kept.tensor(), program.run({whole_number(3), x}).tensor()));
  EXPECT_EQ(x.get_as_double(1), static_cast<double>(0.01f));
}

TEST(Loops, values_that_are_kept_are_not_overwritten) {
  EXPECT_EQ(both(R"(
type List[A] { Cons(A, List[A]), Nil, }
def @loop(%n: int64, %x: Tensor[(2,), int64], %all: List[Tensor[(2,), int64]])
    -> List[Tensor[(2,), int64]] {
  if (equal(%n, 0i64)) { %all } else {
    let %y = add(%x, %x);
    @loop(subtract(%n, 1i64), %y, Cons(%y, %all))
  }
}
def @main() { @loop(3i64, ones(shape=[2], dtype="int64"), Nil) }
)"),
            "Cons([8, 8], Cons([4, 4], Cons([2, 2], Nil)))");
}

TEST(Loops, of_local_functions_and_through_others) {
  EXPECT_EQ(both(R"(
def @main(%n: int64, %step: int64) -> (int64, bool) {
  let %down = fn (%k: int64, %acc: int64) -> int64 {
    if (less(%k, 1i64)) { %acc } else { %down(subtract(%k, %step), add(%acc, %k)) }
  };
  (%down(%n, 0i64), @even(%n))
}
def @even(%n: int64) -> bool { if (equal(%n, 0i64)) { True } else { @odd(subtract(%n, 1i64)) } }
def @odd(%n: int64) -> bool { if (equal(%n, 0i64)) { False } else { @even(subtract(%n, 1i64)) } }
)",
                 {whole_number(101), whole_number(2)}),
            "(2601, False)");
}

// ---- Lifetimes

const char* kLists = R"(
type List[A] { Cons(A, List[A]), Nil, }
def @up_to(%n: int64, %acc: List[int64]) -> List[int64] {
  if (less(%n, 1i64)) { %acc } else { @up_to(subtract(%n, 1i64), Cons(%n, %acc)) }
}
def @map(%f: fn(int64) -> int64, %xs: List[int64], %acc: List[int64]) -> List[int64] {
  match (%xs) { Cons(%h, %t) => @map(%f, %t, Cons(%f(%h), %acc)), Nil => %acc, }
}
def @foldl(%f: fn(int64, int64) -> int64, %acc: int64, %xs: List[int64]) -> int64 {
  match (%xs) { Cons(%h, %t) => @foldl(%f, %f(%acc, %h), %t), Nil => %acc, }
}
)";

TEST(Lifetimes, a_list_is_freed_as_it_is_folded) {
  Compiled program(std::string(kLists) + R"(
def @main(%n: int64) -> int64 {
  @foldl(fn (%a: int64, %b: int64) -> int64 { add(%a, %b) }, 0i64,
         @map(fn (%x: int64) -> int64 { multiply(%x, 2i64) }, @up_to(%n, Nil), Nil))
}
)");
  runtime::ObjectCounts before = runtime::thread_object_counts();
  // One list at a time: a node is a cell, which holds the number.
  runtime::RunOptions options;
  options.memory_limit = 100'000 * 32 + (1 << 20);
  EXPECT_EQ(program.run({whole_number(100'000)}, options).tensor().get_as_int(0), 10'000'100'000);
  runtime::ObjectCounts after = runtime::thread_object_counts();
  EXPECT_EQ(after.objects, before.objects);
  EXPECT_EQ(after.bytes, before.bytes);
}

TEST(Lifetimes, what_one_branch_needs_is_freed_in_the_other) {
  Compiled program(std::string(kLists) + R"(
def @length(%xs: List[int64], %n: int64) -> int64 {
  match (%xs) { Cons(_, %t) => @length(%t, add(%n, 1i64)), Nil => %n, }
}
def @pick(%c: bool, %xs: List[int64], %n: int64) -> int64 {
  let %m = if (%c) { @length(%xs, 0i64) } else { @length(@up_to(%n, Nil), 0i64) };
  add(%m, 1i64)
}
def @main(%n: int64, %c: bool) -> int64 { @pick(%c, @up_to(%n, Nil), %n) }
)");
  runtime::RunOptions options;
  options.memory_limit = 10'000 * 32 + (1 << 18);
  for (bool c : {false, true}) {
    Value out =
        program.run({whole_number(10'000), Tensor::scalar(int64_t{c}, DType::Bool())}, options);
    EXPECT_EQ(out.tensor().get_as_int(0), 10'001);
  }
}

TEST(Lifetimes, values_used_twice_live_for_both) {
  EXPECT_EQ(both(std::string(kLists) + R"(
def @main() -> (List[int64], int64, List[int64]) {
  let %xs = @up_to(3i64, Nil);
  let %sum = @foldl(fn (%a: int64, %b: int64) -> int64 { add(%a, %b) }, 0i64, %xs);
  let %r = ref(%xs);
  let %u = ref_write(%r, Cons(%sum, %xs));
  (%xs, %sum, ref_read(%r))
}
)"),
            "(Cons(1, Cons(2, Cons(3, Nil))), 6, Cons(6, Cons(1, Cons(2, Cons(3, Nil)))))");
}

// ---- Lines that are replaced ---------------------------------------------------------------------

constexpr const char* kFill = R"(
def @fill[n: Dim](%i: int64, %n: int64, %x: Tensor[(n, 2), float32]) -> Tensor[(n, 2), float32] {
  if (less(%i, %n)) {
    let %line = full(cast(%i, dtype="float32"), shape=[1, 2]);
    @fill(add(%i, 1i64), %n, update_slice(%x, %line, %i))
  } else { %x }
}
)";

TEST(Updates, are_made_in_place_in_a_loop) {
  std::string text = std::string(kFill) +
                     "def @main[n: Dim](%x: Tensor[(n, 2), float32], %k: int64) {\n"
                     "  @fill(0i64, %k, exp(%x)) }";
  Compiled program(text);
  const runtime::Function& fill = code_of(program, "fill");
  EXPECT_EQ(count(fill, Opcode::write_lines), 1);
  // Nothing else makes a tensor as large.
  EXPECT_EQ(count(fill, Opcode::alloc_tensor), 0);
  Tensor x = Tensor::zeros(DType::Float(32), {5, 2});
  for (int64_t k : {0, 3, 5}) both(text, {x, whole_number(k)});
}

constexpr const char* kElements = R"(
def @fill[n: Dim](%i: int64, %n: int64, %x: Tensor[(n, 6), float32]) -> Tensor[(n, 6), float32] {
  if (less(%i, %n)) {
    let %v = take(take(%x, %i, axis=0), 0i64, axis=0);
    @fill(add(%i, 1i64), %n, update_slice(%x, add(%v, 1f), (%i, %i)))
  } else { %x }
}
)";

TEST(Updates, of_slices_are_made_in_place_by_a_kernel) {
  std::string text = std::string(kElements) +
                     "def @main[n: Dim](%x: Tensor[(n, 6), float32], %k: int64) {\n"
                     "  @fill(0i64, %k, negative(%x)) }";
  Compiled program(text);
  const runtime::Function& fill = code_of(program, "fill");
  // The tensor is handed over, and the kernel writes the element.
  EXPECT_EQ(count(fill, Opcode::write_lines), 1);
  EXPECT_EQ(count(fill, Opcode::alloc_tensor), 0);
  for (const runtime::Instruction& in : fill.code) {
    if (in.op == Opcode::write_lines) {
      EXPECT_NE(in.sub & runtime::kLastA, 0);
    }
  }
  Tensor x = Tensor::zeros(DType::Float(32), {5, 6});
  for (int64_t i = 0; i < 30; ++i) x.set_from_double(i, 0.1 * static_cast<double>(i));
  for (int64_t k : {0, 3, 5}) both(text, {x, whole_number(k)});
  EXPECT_EQ(x.get_as_double(29), static_cast<double>(2.9F));
}

TEST(Updates, of_slices_keep_what_is_read_later) {
  std::string text = std::string(kElements) +
                     "def @main[n: Dim](%x: Tensor[(n, 6), float32], %k: int64) {\n"
                     "  let %y = negative(%x);\n"
                     "  let %z = @fill(0i64, %k, %y);\n"
                     "  (%z, %y, @fill(1i64, %k, %x), %x, @fill(0i64, %k, %z)) }";
  Tensor x = Tensor::zeros(DType::Float(32), {4, 6});
  for (int64_t k : {0, 2, 4}) both(text, {x, whole_number(k)});
  for (int64_t i = 0; i < 24; ++i) EXPECT_EQ(x.get_as_double(i), 0);
}

TEST(Updates, of_slices_are_clamped_to_where_they_fit) {
  Tensor sevens = Tensor::zeros(DType::Int(32), {2, 2});
  for (int64_t i = 0; i < 4; ++i) sevens.set_from_int(i, 7);
  for (int64_t a : {-7, 0, 1, 100}) {
    for (int64_t b : {-1, 0, 2, 3, 9}) {
      both(
          "def @f(%c: bool, %x: Tensor[(4, 5), int32], %u: Tensor[(2, 2), int32], %a: int64, %b: "
          "int64)\n"
          "    -> Tensor[(4, 5), int32] {\n"
          "  if (%c) { @f(False, update_slice(%x, %u, (%a, %b), strides=[2, 3]), %u, %a, %b) }\n"
          "  else { %x } }\n"
          "def @main(%x: Tensor[(4, 5), int32], %u: Tensor[(2, 2), int32], %a: int64, %b: int64) "
          "{\n"
          "  (@f(True, negative(%x), %u, %a, %b), update_slice(%x, %u, (%a, %b), strides=[2, 3])) "
          "}",
          {Tensor::zeros(DType::Int(32), {4, 5}), sevens, whole_number(a), whole_number(b)});
    }
  }
}

TEST(Updates, of_what_somebody_else_reads_are_copies) {
  std::string text = std::string(kFill) +
                     "def @main[n: Dim](%x: Tensor[(n, 2), float32], %k: int64) {\n"
                     "  let %y = exp(%x);\n"
                     "  let %z = @fill(0i64, %k, %y);\n"
                     "  (%z, %y, @fill(1i64, %k, %x), %x, @fill(0i64, %k, %z)) }";
  Tensor x = Tensor::zeros(DType::Float(32), {4, 2});
  Compiled program(text);
  for (int64_t k : {0, 2, 4}) both(text, {x, whole_number(k)});
  for (int64_t i = 0; i < 8; ++i) EXPECT_EQ(x.get_as_double(i), 0);
}

TEST(Updates, are_moved_to_where_they_fit) {
  Tensor sevens = Tensor::zeros(DType::Int(32), {2, 3});
  for (int64_t i = 0; i < 6; ++i) sevens.set_from_int(i, 7);
  for (int64_t start : {-7, -1, 0, 2, 3, 4, 100}) {
    both(
        "def @main(%x: Tensor[(4, 3), int32], %u: Tensor[(2, 3), int32], %at: int64) {\n"
        "  update_slice(%x, %u, %at) }",
        {Tensor::zeros(DType::Int(32), {4, 3}), sevens, whole_number(start)});
    both(
        "def @f(%c: bool, %x: Tensor[(4, 3), int32], %u: Tensor[(2, 3), int32], %at: int64)\n"
        "    -> Tensor[(4, 3), int32] {\n"
        "  if (%c) { @f(False, update_slice(%x, %u, %at), %u, %at) } else { %x } }\n"
        "def @main(%x: Tensor[(4, 3), int32], %u: Tensor[(2, 3), int32], %at: int64) {\n"
        "  @f(True, negative(%x), %u, %at) }",
        {Tensor::zeros(DType::Int(32), {4, 3}), sevens, whole_number(start)});
  }
}

}  // namespace
}  // namespace relay
