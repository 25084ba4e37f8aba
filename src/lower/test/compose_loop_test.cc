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
tir::PrimFunc kernel(const std::string& function, const std::string& args) {
  Module mod = test::parse("def @main(%x: Tensor[(100,), float64], %y: Tensor[(100,), float64], " +
                           std::string("%n: int64) { (fn ") + function + ")(" + args + ") }");
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
