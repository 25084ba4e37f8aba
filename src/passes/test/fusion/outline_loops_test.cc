#include "passes/fusion/outline_loops.h"

#include <ctime>
#include <limits>

#include "node/walk.h"
#include "passes/test/evaluate.h"
#include "passes/test/pass_test.h"

namespace relay::pass_test {
namespace {

struct Row {
  const char* name;
  std::string text;
};

const std::string kSum = R"(
def @main(%x: Tensor[(9,), float64]) -> float64 {
  let %loop: fn (int64, float64) -> float64 = fn (%i: int64, %acc: float64) -> float64 {
    if (less(%i, 9i64)) {
      %loop(add(%i, 1i64), add(%acc, take(%x, %i, axis=0)))
    } else { %acc }
  };
  %loop(0i64, 0f64)
}
)";

const std::string kTable = R"(
def @main(%x: Tensor[(5, 6), float64]) -> (Tensor[(5, 6), float64], float64) {
  %0 = multiply(%x, 2f64);
  let %outer: fn (int64, Tensor[(5, 6), float64], float64) -> (Tensor[(5, 6), float64], float64) =
    fn (%i: int64, %y: Tensor[(5, 6), float64], %s: float64) -> (Tensor[(5, 6), float64], float64) {
    if (less(%i, 5i64)) {
      %1 = (
        let %inner: fn (int64, Tensor[(5, 6), float64]) -> Tensor[(5, 6), float64] =
          fn (%j: int64, %z: Tensor[(5, 6), float64]) -> Tensor[(5, 6), float64] {
          if (less(%j, 5i64)) {
            %2 = take(take(%z, %i, axis=0), %j, axis=0);
            %3 = add(%j, 1i64);
            %4 = if (greater(%2, 0f64)) { update_slice(%z, negative(%2), (%i, %3)) } else { %z };
            %inner(%3, %4)
          } else { %z }
        };
        %inner(0i64, %y)
      );
      %5 = add(%s, take(take(%y, %i, axis=0), 1i64, axis=0));
      %outer(add(%i, 1i64), %1, %5)
    } else { (%y, %s) }
  };
  %outer(0i64, %0, 0f64)
}
)";

// The inner loop leaves, or goes on with, the one around it.
const std::string kSearch = R"(
def @main(%x: Tensor[(4, 5), float64]) -> (int64, int64) {
  let %rows: fn (int64) -> (int64, int64) = fn (%i: int64) -> (int64, int64) {
    if (less(%i, 4i64)) {
      let %columns: fn (int64) -> (int64, int64) = fn (%j: int64) -> (int64, int64) {
        if (less(%j, 5i64)) {
          if (greater(take(take(%x, %i, axis=0), %j, axis=0), 2.5f64)) { (%i, %j) }
          else { %columns(add(%j, 1i64)) }
        } else { %rows(add(%i, 1i64)) }
      };
      %columns(0i64)
    } else { (-1i64, -1i64) }
  };
  %rows(0i64)
}
)";

// Small tensors, sums and products inside.
const std::string kPowers = R"(
def @main(%a: Tensor[(3, 3), float64]) -> (Tensor[(1, 3), float64], int64) {
  %0 = full(1f64, shape=[1, 3], dtype="float64");
  let %loop: fn (int64, Tensor[(1, 3), float64], int64) -> (Tensor[(1, 3), float64], int64) =
    fn (%i: int64, %v: Tensor[(1, 3), float64], %at: int64) -> (Tensor[(1, 3), float64], int64) {
    if (less(%i, 4i64)) {
      %1 = nn.dense(%v, %a);
      %2 = divide(%1, max(exp(negative(abs(%1)))));
      %3 = reshape(argmax(abs(%1), axis=[1]), newshape=[]);
      %loop(add(%i, 1i64), %2, add(%at, cast(%3, dtype="int64")))
    } else { (%v, %at) }
  };
  %loop(0i64, %0, 0i64)
}
)";

// A function of its own that goes on with itself.
const std::string kGlobal = R"(
def @gcd(%a: int64, %b: int64) -> int64 {
  if (equal(%b, 0i64)) { %a } else { @gcd(%b, mod(%a, %b)) }
}
def @main(%x: Tensor[(9,), float64]) -> int64 { @gcd(1071i64, 462i64) }
)";

// What follows branches of an iteration, and what follows ends of the loop, are functions. The first one writes to what the
// iteration carries.
const std::string kEnds = R"(
def @main(%x: Tensor[(9,), float64], %n: int64) -> (Tensor[(9,), float64], float64) {
  let %rest: fn (Tensor[(9,), float64], float64) -> (Tensor[(9,), float64], float64) =
    fn (%y: Tensor[(9,), float64], %s: float64) -> (Tensor[(9,), float64], float64) {
    (update_slice(%y, %s, (0i64,)), add(%s, take(%y, 0i64, axis=0)))
  };
  let %loop: fn (int64, Tensor[(9,), float64], float64) -> (Tensor[(9,), float64], float64) =
    fn (%i: int64, %y: Tensor[(9,), float64], %s: float64) -> (Tensor[(9,), float64], float64) {
    if (less(%i, %n)) {
      let %join: fn (Tensor[(9,), float64], float64) -> (Tensor[(9,), float64], float64) =
        fn (%z: Tensor[(9,), float64], %t: float64) -> (Tensor[(9,), float64], float64) {
        let %z2 = update_slice(%z, multiply(%t, 0.5f64), (%i,));
        if (greater(%t, 100f64)) { %rest(%z2, %t) }
        else { %loop(add(%i, 1i64), %z2, add(%t, take(%z, %i, axis=0))) }
      };
      %0 = take(%x, %i, axis=0);
      if (greater(%0, 0f64)) {
        if (greater(%0, 2f64)) { (%y, %0) } else { %join(%y, add(%s, %0)) }
      } else {
        let %inner: fn (int64, Tensor[(9,), float64]) -> (Tensor[(9,), float64], float64) =
          fn (%j: int64, %z: Tensor[(9,), float64]) -> (Tensor[(9,), float64], float64) {
          if (less(%j, %i)) {
            if (greater(take(%z, %j, axis=0), 1f64)) { %join(%z, negative(%s)) }
            else { %inner(add(%j, 1i64), update_slice(%z, %s, (%j,))) }
          } else { %join(%z, add(%s, 0.25f64)) }
        };
        %inner(0i64, %y)
      }
    } else { %rest(%y, %s) }
  };
  %loop(0i64, %x, 0f64)
}
)";

// Something follows the ends of an iteration's branches.
const std::string kChoice = R"(
def @main(%x: Tensor[(9,), float64], %n: int64) -> (Tensor[(9,), float64], float64) {
  let %loop: fn (int64, Tensor[(9,), float64], float64) -> (Tensor[(9,), float64], float64) =
    fn (%i: int64, %y: Tensor[(9,), float64], %s: float64) -> (Tensor[(9,), float64], float64) {
    if (less(%i, %n)) {
      %1 = (
        let %join: fn (Tensor[(9,), float64], float64) -> Tensor[(9,), float64] =
          fn (%z: Tensor[(9,), float64], %t: float64) -> Tensor[(9,), float64] {
          update_slice(%z, add(%t, take(%z, %i, axis=0)), (1i64,))
        };
        %0 = take(%y, %i, axis=0);
        if (greater(%0, 0f64)) {
          if (greater(%0, 1f64)) { %y } else { %join(update_slice(%y, %0, (0i64,)), %s) }
        } else { %join(%y, %0) }
      );
      %loop(add(%i, 1i64), %1, add(%s, take(%1, 1i64, axis=0)))
    } else { (%y, %s) }
  };
  %loop(0i64, %x, 0f64)
}
)";

// An end of the loop reads what an inner loop gives, and so does the next iteration.
const std::string kShared = R"(
def @main(%x: Tensor[(9,), float64]) -> (float64, float64) {
  let %loop: fn (int64, float64) -> (float64, float64) =
    fn (%i: int64, %s: float64) -> (float64, float64) {
    %0 = (
      let %inner: fn (int64, float64) -> float64 = fn (%j: int64, %t: float64) -> float64 {
        if (less(%j, 9i64)) {
          %inner(add(%j, 1i64), add(multiply(%t, 0.5f64), take(%x, %j, axis=0)))
        } else { %t }
      };
      %inner(%i, %s)
    );
    if (less(%i, 9i64)) {
      if (greater(%0, 9f64)) { (%0, %s) } else { %loop(add(%i, 1i64), %0) }
    } else { (%s, %0) }
  };
  %loop(0i64, 0f64)
}
)";

// A tuple that is made outside; an end that computes a whole tensor.
const std::string kTuple = R"(
def @main(%x: Tensor[(9, 70), float64]) -> (Tensor[(9, 70), float64], float64) {
  let %t: (Tensor[(9, 70), float64], float64) = (exp(%x), max(%x));
  let %loop: fn (int64, float64) -> (Tensor[(9, 70), float64], float64) =
    fn (%i: int64, %s: float64) -> (Tensor[(9, 70), float64], float64) {
    if (less(%i, 9i64)) {
      if (greater(%s, 20f64)) { %t }
      else { %loop(add(%i, 1i64), add(%s, take(take(%x, %i, axis=0), 3i64, axis=0))) }
    } else { (add(multiply(%x, %s), %t.0), %s) }
  };
  %loop(0i64, 0f64)
}
)";

// What follows the definition of a join is more than the choice whose branches call it.
const std::string kFollowed = R"(
def @main(%x: Tensor[(9,), float64], %n: int64) -> float64 {
  let %loop: fn (int64, float64) -> float64 = fn (%i: int64, %s: float64) -> float64 {
    if (less(%i, %n)) {
      let %rest: fn (float64) -> (int64, float64) = fn (%t: float64) -> (int64, float64) {
        (add(%i, 1i64), add(%t, take(%x, 0i64, axis=0)))
      };
      let %late: fn () -> (int64, float64) = fn () -> (int64, float64) {
        if (greater(%s, 3f64)) { %rest(1f64) } else { (add(%i, 2i64), %s) }
      };
      %0 = take(%x, %i, axis=0);
      %1 = if (greater(%0, 0f64)) {
        if (greater(%0, 1f64)) { %late() } else { %rest(%s) }
      } else { %late() };
      %loop(%1.0, add(%1.1, 0.5f64))
    } else { %s }
  };
  %loop(0i64, 0f64)
}
)";

const std::vector<Row>& loops() {
  static const std::vector<Row> rows{
      {"shared", kShared}, {"tuple", kTuple},      {"ends", kEnds},     {"choice", kChoice},
      {"sum", kSum},       {"table", kTable},      {"search", kSearch}, {"powers", kPowers},
      {"global", kGlobal}, {"followed", kFollowed}};
  return rows;
}

// A loop whose step is `step`, of %i and a tensor %y that it carries.
std::string with_step(const std::string& step) {
  return "def @main(%x: Tensor[(64, 64), float32], %n: int64) -> Tensor[(64, 64), float32] {\n"
         "  let %loop: fn (int64, Tensor[(64, 64), float32]) -> Tensor[(64, 64), float32] =\n"
         "    fn (%i: int64, %y: Tensor[(64, 64), float32]) -> Tensor[(64, 64), float32] {\n"
         "    if (less(%i, %n)) { " +
         step +
         " } else { %y }\n"
         "  };\n"
         "  %loop(0i64, %x)\n}";
}

int loop_kernels(const Module& mod) {
  int count = 0;
  post_order(mod, [&](const Node& n) {
    auto* f = as<FunctionNode>(&n);
    count += f != nullptr && f->is_primitive() && isa<LetNode>(f->body);
  });
  return count;
}

std::string reason_in(const Module& mod) {
  std::string out;
  post_order(mod, [&](const Node& n) {
    auto* f = as<FunctionNode>(&n);
    if (f == nullptr || !f->has_attr(kInterpreted)) return;
    out = *f->attrs.find(kInterpreted)->second.get_if<std::string>();
  });
  return out;
}

TEST(OutlineLoops, makes_a_kernel_of_a_loop_and_of_those_inside) {
  for (const Row& row : loops()) {
    SCOPED_TRACE(row.name);
    Module mod = parse(row.text), out = apply(kOutlineLoops, mod);
    EXPECT_EQ(loop_kernels(out), 1) << print_module(out);
    EXPECT_EQ(reason_in(out), "");
    EXPECT_TRUE(structural_equal(apply(kOutlineLoops, out), out));
  }
}

TEST(OutlineLoops, computes_the_same) {
  for (const Row& row : loops()) {
    SCOPED_TRACE(row.name);
    Module mod = parse(row.text), out = apply(kOutlineLoops, mod);
    for (int shift = 0; shift < 6; ++shift) {
      auto element = [&](int64_t at) {
        return 9 * std::sin(0.7 * static_cast<double>(at) + 0.4 * shift);
      };
      const std::vector<Tensor> want = results(mod, element), got = results(out, element);
      ASSERT_EQ(got.size(), want.size());
      for (size_t i = 0; i < want.size(); ++i) EXPECT_TRUE(bit_equal(got[i], want[i])) << i;
    }
  }
}

TEST(OutlineLoops, says_why_a_loop_is_no_kernel) {
  const std::vector<std::pair<std::string, std::string>> rows{
      {"%loop(add(%i, 1i64), nn.dense(%y, %y))", "nn.dense computes"},
      {"%loop(add(%i, 1i64), tanh(%y))", "tanh computes"},
      {"%loop(add(%i, 1i64), broadcast_to(sum(%y), shape=[64, 64]))", "broadcast_to computes"},
      {"let %z = %loop(add(%i, 1i64), %y); transpose(%z)", "where something follows"},
      {"let %f = fn (%a: int64) -> int64 { %a }; %loop(add(%f(%i), %f(1i64)), %y)",
       "not called where"},
  };
  for (const auto& [step, reason] : rows) {
    SCOPED_TRACE(step);
    Module out = apply(kOutlineLoops, parse(with_step(step)));
    EXPECT_EQ(loop_kernels(out), 0);
    EXPECT_NE(reason_in(out).find(reason), std::string::npos) << reason_in(out);
  }
}

// Parts of rows whose length differs from iteration to iteration.
std::string with_part(const std::string& of_part) {
  return "def @main(%x: Tensor[(4, 5), float64]) -> float64 {\n"
         "  let %loop: fn (int64, float64) -> float64 = fn (%i: int64, %s: float64) -> float64 {\n"
         "    if (less(%i, 4i64)) {\n"
         "      %0 = dyn.strided_slice(take(%x, %i, axis=0), expand_dims(%i, axis=0),\n"
         "          expand_dims(5i64, axis=0), expand_dims(1i64, axis=0), axes=[0]);\n"
         "      %loop(add(%i, 1i64), add(%s, " +
         of_part +
         "))\n"
         "    } else { %s }\n  };\n"
         "  %loop(0i64, 0f64)\n}";
}

TEST(OutlineLoops, takes_rows_whose_length_an_iteration_computes) {
  for (const char* part : {"sum(%0)", "max(multiply(%0, exp(%0)))", "take(tanh(%0), 0i64, axis=0)",
                           "sum(dyn.broadcast_to(%s, shape_of(%0)))",
                           "sum(dyn.strided_slice(%x, stack((%i, %i)), stack((4i64, 5i64)), "
                           "stack((1i64, 1i64))))"}) {
    SCOPED_TRACE(part);
    Module mod = parse(with_part(part)), out = apply(kOutlineLoops, mod);
    EXPECT_EQ(loop_kernels(out), 1) << print_module(out);
    EXPECT_EQ(reason_in(out), "");
    EXPECT_TRUE(bit_equal(results(out)[0], results(mod)[0]));
  }
}

// They take memory of a size that is not known before the kernel runs.
TEST(OutlineLoops, not_where_rows_of_open_length_are_stored) {
  for (const auto& [part, reason] : std::vector<std::pair<std::string, std::string>>{
           {"sum(sort(%0))", "sort computes"},
           {"sum(cumsum(%0))", "cumsum computes"},
           {"take(sum(dyn.strided_slice(%x, stack((%i, %i)), stack((4i64, 5i64)), "
            "stack((1i64, 1i64))), axis=[0]), 0i64, axis=0)",
            "sum computes"}}) {
    SCOPED_TRACE(part);
    Module out = apply(kOutlineLoops, parse(with_part(part)));
    EXPECT_EQ(loop_kernels(out), 0) << print_module(out);
    EXPECT_NE(reason_in(out).find(reason), std::string::npos) << reason_in(out);
  }
}

// Programs that are given %n, and make tensors of that size.
std::string with_open_state(const std::string& next) {
  return "def @main(%n: int64) -> Tensor[(?,), int64] {\n"
         "  %0 = dyn.full(0i64, reshape(%n, newshape=[1]));\n"
         "  let %loop: fn (int64, Tensor[(?,), int64]) -> Tensor[(?,), int64] =\n"
         "    fn (%i: int64, %y: Tensor[(?,), int64]) -> Tensor[(?,), int64] {\n"
         "    if (less(%i, %n)) { %loop(add(%i, 1i64), " +
         next +
         ") } else { %y }\n  };\n"
         "  %loop(0i64, %0)\n}";
}

TEST(OutlineLoops, takes_state_of_open_size_that_stays_the_same) {
  Module out =
      apply(kOutlineLoops, parse(with_open_state("update_slice(%y, multiply(%i, %i), (%i,))")));
  EXPECT_EQ(loop_kernels(out), 1) << print_module(out);
  out = apply(kOutlineLoops, parse(with_open_state("concatenate((%y, %y))")));
  EXPECT_EQ(loop_kernels(out), 0);
  EXPECT_NE(reason_in(out).find("open"), std::string::npos) << reason_in(out);
}

TEST(OutlineLoops, takes_the_loop_inside_one_that_is_none) {
  Module out =
      apply(kOutlineLoops,
            parse(with_step(
                "%5 = (let %inner: fn (int64, int64) -> int64 =\n"
                "  fn (%j: int64, %k: int64) -> int64 {\n"
                "    if (less(%j, 3i64)) { %inner(add(%j, 1i64), add(%k, %j)) } else { %k } };\n"
                "  %inner(0i64, %i));\n"
                "%loop(%5, tanh(%y))")));
  EXPECT_EQ(loop_kernels(out), 1);
  EXPECT_NE(reason_in(out).find("tanh computes"), std::string::npos) << reason_in(out);
}

// Each loop is what the next one begins with: the pass takes time linear in their number.
TEST(OutlineLoops, takes_a_thousand_loops_in_a_row) {
  std::string text = "def @main(%x: int64) -> int64 {\n  %0 = %x;\n";
  constexpr int kLoops = 1000;
  for (int i = 0; i < kLoops; ++i) {
    const std::string name = "%l" + std::to_string(i);
    text += "  %" + std::to_string(i + 1) + " = (let " + name +
            " = fn (%i: int64, %s: int64) -> int64 {\n" + "    if (less(%i, 9i64)) { " + name +
            "(add(%i, 1i64), add(%s, %i)) } else { %s } };\n  " + name + "(0i64, %" +
            std::to_string(i) + "));\n";
  }
  text += "  %" + std::to_string(kLoops) + "\n}";
  EXPECT_EQ(loop_kernels(apply(kOutlineLoops, parse(text))), kLoops);
}

// Each function moves to the choice whose branches call it, all at once.
TEST(OutlineLoops, moves_many_functions_in_linear_time) {
  auto user_time = [](int pairs) {
    std::string text = "def @main(%x: float32) -> float32 {\n  let %t0 = tanh(%x);\n";
    for (int i = 0; i < pairs; ++i) {
      const std::string last = "%t" + std::to_string(i), f = "%f" + std::to_string(i);
      text += "  let " + f + " = fn (%a: float32) -> float32 { tanh(%a) };\n  let %t" +
              std::to_string(i + 1) + " = if (less(" + last + ", 0f)) { " + f + "(" + last +
              ") } else { " + f + "(negative(" + last + ")) };\n";
    }
    const Module mod = parse(text + "  %t" + std::to_string(pairs) + "\n}");
    double least = std::numeric_limits<double>::infinity();
    for (int run = 0; run < 2; ++run) {
      const std::clock_t start = std::clock();
      const Module out = apply(kOutlineLoops, mod);
      least = std::min(least, static_cast<double>(std::clock() - start));
      EXPECT_FALSE(out == mod);
    }
    return least;
  };
  // Ten times as many; a hundred where it is quadratic.
  EXPECT_LT(user_time(4000), 50 * user_time(400));
}

// A kernel of one result has no tuple around it.
TEST(OutlineLoops, not_where_the_state_or_the_result_is_a_tuple) {
  const std::string type = "(Tensor[(4,), float32],)";
  Module out = apply(
      kOutlineLoops,
      parse("def @main(%x: Tensor[(4,), float32]) -> " + type + " {\n  %0 = (%x,);\n" +
            "  let %loop: fn (int32, " + type + ") -> " + type + " = fn (%i: int32, %s: " + type +
            ") -> " + type + " {\n    if (less_equal(%i, 1)) { %s } else { %loop(1, %s) }\n  };\n" +
            "  %loop(3, %0)\n}"));
  EXPECT_EQ(loop_kernels(out), 0);
  EXPECT_NE(reason_in(out).find("state is a"), std::string::npos) << reason_in(out);
}

TEST(OutlineLoops, not_where_nothing_calls_itself) {
  expect_unchanged(kOutlineLoops,
                   "def @main(%x: float32) -> float32 {\n"
                   "  let %f = fn (%a: float32) -> float32 { tanh(%a) };\n  %f(%x)\n}");
}

}  // namespace
}  // namespace relay::pass_test
