// Loops of programs as one kernel: what is copied, and which loops count.
#include "lower/compose_loop.h"

#include <gtest/gtest.h>

#include "analysis/primitives.h"
#include "ops/test/parse.h"
#include "runtime/core/tensor.h"
#include "tir/interpret.h"
#include "tir/lower_loops.h"
#include "tir/text.h"

namespace relay {
namespace {

using runtime::Tensor;

// The kernel of the primitive function that @main calls.
tir::PrimFunc kernel(const std::string& function, const std::string& args,
                     const std::string& type = "Tensor[(100,), float64]") {
  Module mod = test::parse("def @main(%x: " + type + ", %y: " + type + ", %n: int64) { (fn " +
                           function + ")(" + args + ") }");
  Function found;
  post_order_outside_primitives(mod->find("main")->body, [&](const Node& n) {
    auto* c = as<CallNode>(&n);
    if (auto* f = c == nullptr ? nullptr : primitive_of(*c)) found = ref(*f);
  });
  return compose_loop(*found.get(), "loop").func;
}

size_t count(const std::string& text, const std::string& what) {
  size_t out = 0;
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++out;
  return out;
}

Tensor filled(double value) {
  Tensor out = Tensor::empty(runtime::DType::Float(64), {100});
  for (int64_t i = 0; i < 100; ++i) out.set_from_double(i, value + static_cast<double>(i));
  return out;
}

Tensor number(int64_t value) {
  Tensor out = Tensor::empty(runtime::DType::Int(64), {});
  out.set_from_int(0, value);
  return out;
}

// Two tensors and a number, and what the loop does with them in each of `n` iterations.
tir::PrimFunc stepped(const std::string& lets, const std::string& next) {
  return kernel(
      "(%p0: Tensor[(100,), float64], %p1: Tensor[(100,), float64], %p2: int64, Primitive=1) {\n"
      "  let %loop: fn (int64, Tensor[(100,), float64], Tensor[(100,), float64]) -> Tensor[(100,), "
      "float64] =\n"
      "    fn (%i: int64, %a: Tensor[(100,), float64], %b: Tensor[(100,), float64]) -> "
      "Tensor[(100,), float64] {\n"
      "    let %c = less(%i, %p2);\n"
      "    let %r = if (%c) {\n" +
          lets +
          "      let %j = add(%i, 1i64);\n"
          "      let %t = %loop(%j, " +
          next +
          ");\n"
          "      %t\n"
          "    } else { %a };\n"
          "    %r\n"
          "  };\n"
          "  let %out = %loop(0i64, %p0, %p1);\n"
          "  %out\n"
          "}",
      "%x, %y, %n");
}

double first_after(const tir::PrimFunc& f, int64_t n) {
  Tensor out = filled(0);
  EXPECT_EQ(tir::interpret(tir::lower_loops(f), {filled(1), filled(1000), number(n), out}, {}), 0);
  return out.get_as_double(0);
}

TEST(ComposeLoop, a_swap_of_tensors_copies_no_elements) {
  const tir::PrimFunc f = stepped("", "%b, %a");
  const std::string text = tir::text_of(f);
  // What the loop begins with, and its result.
  EXPECT_EQ(count(text, "in range(100)"), 3u) << text;
  EXPECT_EQ(first_after(f, 0), 1);
  EXPECT_EQ(first_after(f, 1), 1000);
  EXPECT_EQ(first_after(f, 2), 1);
}

TEST(ComposeLoop, tables_that_roll_are_written_once) {
  const tir::PrimFunc f = stepped("      let %z = add(%a, %b);\n", "%b, %z");
  EXPECT_EQ(count(tir::text_of(f), "in range(100)"), 4u) << tir::text_of(f);
  EXPECT_EQ(first_after(f, 1), 1000);
  EXPECT_EQ(first_after(f, 2), 1001);
  EXPECT_EQ(first_after(f, 3), 2001);
}

// The first half of %a becomes twice the half from an element on.
tir::PrimFunc with_half_from(int64_t begin) {
  const std::string from = std::to_string(begin), to = std::to_string(begin + 50);
  return stepped("      let %h = strided_slice(%a, begin=[" + from + "], end=[" + to +
                     "], strides=[1]);\n      let %m = add(%h, %h);\n      let %at = (0i64,);\n"
                     "      let %z = update_slice(%a, %m, %at);\n",
                 "%z, %b");
}

TEST(ComposeLoop, elements_are_written_where_no_other_iteration_reads_them) {
  for (int64_t begin : {0, 50}) {
    const tir::PrimFunc f = with_half_from(begin);
    EXPECT_EQ(count(tir::text_of(f), "in range(50)"), 1u) << tir::text_of(f);
    EXPECT_EQ(first_after(f, 1), 2.0 * static_cast<double>(1 + begin));
  }
}

TEST(ComposeLoop, elements_that_other_iterations_read_are_computed_before) {
  for (int64_t begin : {1, 49}) {
    const tir::PrimFunc f = with_half_from(begin);
    EXPECT_EQ(count(tir::text_of(f), "in range(50)"), 2u) << tir::text_of(f);
    EXPECT_EQ(first_after(f, 1), 2.0 * static_cast<double>(1 + begin));
  }
}

// A table and what each of `n` iterations makes of it.
tir::PrimFunc table(const std::string& lets, int64_t size = 10) {
  const std::string n = std::to_string(size), type = "Tensor[(" + n + ", " + n + "), float64]";
  return kernel("(%p0: " + type + ", %p2: int64, Primitive=1) {\n  let %loop: fn (int64, " + type +
                    ") -> " + type + " =\n    fn (%i: int64, %a: " + type + ") -> " + type +
                    " {\n    let %c = less(%i, %p2);\n    let %r = if (%c) {\n" + lets +
                    "      let %j = add(%i, 1i64);\n      let %t = %loop(%j, %z);\n      %t\n"
                    "    } else { %a };\n    %r\n  };\n  let %out = %loop(0i64, %p0);\n  %out\n}",
                "%x, %n", type);
}

double last_after(const tir::PrimFunc& f, int64_t n) {
  Tensor in = Tensor::empty(runtime::DType::Float(64), {10, 10});
  for (int64_t i = 0; i < 100; ++i) in.set_from_double(i, static_cast<double>(i));
  Tensor out = Tensor::empty(runtime::DType::Float(64), {10, 10});
  EXPECT_EQ(tir::interpret(tir::lower_loops(f), {in, number(n), out}, {}), 0);
  return out.get_as_double(99);
}

// From row `from` on, the sum of the rows from `from - behind` on and the row itself.
tir::PrimFunc with_rows_behind(int64_t behind) {
  const std::string b = std::to_string(behind), rows = std::to_string(10 - behind);
  return table("      let %h = strided_slice(%a, begin=[0, 0], end=[" + rows +
               ", 10], strides=[1, 1]);\n      let %g = strided_slice(%a, begin=[" + b +
               ", 0], end=[10, 10], strides=[1, 1]);\n      let %m = add(%h, %g);\n"
               "      let %at = (" +
               b + "i64, 0i64);\n      let %z = update_slice(%a, %m, %at);\n");
}

TEST(ComposeLoop, rows_are_written_when_no_iteration_reads_them_any_more) {
  for (int64_t behind : {1, 3}) {
    const tir::PrimFunc f = with_rows_behind(behind);
    const std::string text = tir::text_of(f);
    EXPECT_NE(text.find("float64[" + std::to_string(behind + 1) + ", 10]"), text.npos) << text;
    EXPECT_EQ(last_after(f, 1), 99 + 99 - 10.0 * static_cast<double>(behind));
    const double two = static_cast<double>(20 * behind);
    EXPECT_EQ(last_after(f, 2), 99 + 2 * (99 - two / 2) + 99 - two);
  }
}

TEST(ComposeLoop, a_block_that_reads_rows_far_behind_is_computed_before) {
  const tir::PrimFunc f = with_rows_behind(4);
  EXPECT_NE(tir::text_of(f).find("float64[6, 10]"), std::string::npos) << tir::text_of(f);
  EXPECT_EQ(last_after(f, 1), 99 + 59);
}

TEST(ComposeLoop, lines_of_a_table_are_kept_while_it_is_written) {
  const tir::PrimFunc f = table(
      "      let %k = floor_mod(%i, 10i64);\n      let %row = take(%a, %k, axis=0);\n"
      "      let %z = add(%a, %row);\n");
  const std::string text = tir::text_of(f);
  EXPECT_EQ(text.find("float64[10, 10]", text.find("allocate")), std::string::npos) << text;
  EXPECT_EQ(last_after(f, 1), 99 + 9);
  EXPECT_EQ(last_after(f, 2), 99 + 9 + 19 + 9);
}

TEST(ComposeLoop, long_tables_are_written_on_threads) {
  const std::string step = "      let %z = multiply(%a, 0.5f64);\n";
  EXPECT_NE(tir::text_of(table(step, 256)).find("parallel"), std::string::npos);
  EXPECT_EQ(tir::text_of(table(step, 255)).find("parallel"), std::string::npos);
}

TEST(ComposeLoop, a_tensor_that_both_states_become_is_copied) {
  const tir::PrimFunc f = stepped("", "%b, %b");
  EXPECT_EQ(first_after(f, 0), 1);
  EXPECT_EQ(first_after(f, 2), 1000);
}

TEST(ComposeLoop, state_that_grows_by_the_same_number_is_no_register) {
  const tir::PrimFunc f = kernel(
      "(%p0: Tensor[(100,), float64], %p1: int64, %p2: int64, Primitive=1) {\n"
      "  let %by = abs(%p2);\n"
      "  let %loop: fn (int64, int64, int64) -> (int64, int64) =\n"
      "    fn (%left: int64, %k: int64, %m: int64) -> (int64, int64) {\n"
      "    let %c = greater(%left, 0i64);\n"
      "    let %r = if (%c) {\n"
      "      let %l = subtract(%left, %by);\n"
      "      let %j = subtract(%k, 3i64);\n"
      "      let %q = multiply(%m, 2i64);\n"
      "      let %t = %loop(%l, %j, %q);\n"
      "      %t\n"
      "    } else { let %e = (%k, %m); %e };\n"
      "    %r\n"
      "  };\n"
      "  let %out = %loop(%p1, 5i64, 1i64);\n"
      "  %out\n"
      "}",
      "%x, %n, %n");
  const std::string text = tir::text_of(f);
  EXPECT_EQ(text.find("while"), std::string::npos) << text;
  auto run = [&](int64_t n, int64_t by) {
    Tensor k = number(0), m = number(0);
    EXPECT_EQ(tir::interpret(tir::lower_loops(f), {filled(0), number(n), number(by), k, m}, {}), 0);
    return std::pair(k.get_as_int(0), m.get_as_int(0));
  };
  EXPECT_EQ(run(10, 3), std::pair(int64_t{5 - 4 * 3}, int64_t{16}));
  EXPECT_EQ(run(9, -3), std::pair(int64_t{5 - 3 * 3}, int64_t{8}));
  EXPECT_EQ(run(0, 0), std::pair(int64_t{5}, int64_t{1}));
  EXPECT_EQ(run(-4, 7), std::pair(int64_t{5}, int64_t{1}));
}

}  // namespace
}  // namespace relay
