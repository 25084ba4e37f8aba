#include "passes/layout/hoist_layouts.h"

#include "passes/layout/alter_op_layout.h"
#include "passes/test/evaluate.h"
#include "passes/test/pass_test.h"

namespace relay::pass_test {
namespace {

// A loop over %t that starts with a matrix of 32 x 64 floats as %w; `step` makes the next %h of %h and %w, `next` the next %w.
std::string loop_of(const std::string& step, const std::string& next = "%w",
                    const std::string& entry = "%weight") {
  return R"(
def @main(%x: Tensor[(4, 64), float32], %weight: Tensor[(32, 64), float32]) {
  let %loop: fn (int64, Tensor[(4, 64), float32], Tensor[(32, 64), float32]) -> Tensor[(4, 64), float32] =
      fn (%t: int64, %h: Tensor[(4, 64), float32], %w: Tensor[(32, 64), float32])
          -> Tensor[(4, 64), float32] {
    if (less(%t, 8i64)) { %loop(add(%t, 1i64), )" +
         step + ", " + next + R"() } else { %h }
  };
  %loop(0i64, %x, )" +
         entry + R"()
})";
}

TEST(HoistLayouts, an_invariant_is_rearranged_before_the_loop) {
  expect_becomes(kHoistLayouts,
                 loop_of("nn.dense(nn.dense(%h, %w), transpose(exp(%w), axes=[1, 0]))"),
                 loop_of("nn.dense(nn.dense(%h, %w), transpose(exp(%w), axes=[1, 0]))"));
  expect_becomes(kHoistLayouts,
                 loop_of("nn.matmul(nn.dense(%h, %w), transpose(reverse(transpose(%w, axes=[1, 0]),"
                         " axis=0), axes=[1, 0]))",
                         "%w", "exp(%weight)"),
                 R"(
def @main(%x: Tensor[(4, 64), float32], %weight: Tensor[(32, 64), float32]) {
  %1 = exp(%weight);
  let %loop: fn (int64, Tensor[(4, 64), float32], Tensor[(32, 64), float32], Tensor[(32, 64), float32])
      -> Tensor[(4, 64), float32] =
      fn (%t: int64, %h: Tensor[(4, 64), float32], %w: Tensor[(32, 64), float32],
          %moved: Tensor[(32, 64), float32]) -> Tensor[(4, 64), float32] {
    if (less(%t, 8i64)) {
      %loop(add(%t, 1i64), nn.matmul(nn.dense(%h, %w), %moved), %w, %moved)
    } else { %h }
  };
  %loop(0i64, %x, %1, transpose(reverse(transpose(%1, axes=[1, 0]), axis=0), axes=[1, 0]))
})");
}

// The same with a weight of 16-bit floats.
std::string narrow_loop_of(const std::string& step) {
  std::string text = loop_of(step);
  for (size_t at = 0; (at = text.find("(32, 64), float32", at)) != std::string::npos;) {
    text.replace(at, 17, "(32, 64), bfloat16");
  }
  return text;
}

TEST(HoistLayouts, an_invariant_is_widened_before_the_loop) {
  expect_becomes(kHoistLayouts,
                 narrow_loop_of("nn.matmul(nn.dense(%h, cast(%w, dtype=\"float32\")), "
                                "exp(cast(%w, dtype=\"float32\")))"),
                 R"(
def @main(%x: Tensor[(4, 64), float32], %weight: Tensor[(32, 64), bfloat16]) {
  let %loop: fn (int64, Tensor[(4, 64), float32], Tensor[(32, 64), bfloat16],
                 Tensor[(32, 64), float32], Tensor[(32, 64), float32]) -> Tensor[(4, 64), float32] =
      fn (%t: int64, %h: Tensor[(4, 64), float32], %w: Tensor[(32, 64), bfloat16],
          %moved0: Tensor[(32, 64), float32], %moved1: Tensor[(32, 64), float32])
          -> Tensor[(4, 64), float32] {
    if (less(%t, 8i64)) {
      %loop(add(%t, 1i64), nn.matmul(nn.dense(%h, %moved0), exp(%moved1)), %w, %moved0, %moved1)
    } else { %h }
  };
  %loop(0i64, %x, %weight, cast(%weight, dtype="float32"), cast(%weight, dtype="float32"))
})");
  // Rounding is arithmetic like any other.
  expect_unchanged(kHoistLayouts,
                   loop_of("nn.matmul(nn.dense(%h, %w), "
                           "cast(cast(%w, dtype=\"bfloat16\"), dtype=\"float32\"))"));
}

TEST(HoistLayouts, out_of_the_outer_loop_as_well) {
  const std::string inner = R"(
      let %inner: fn (int64, Tensor[(4, 64), float32], Tensor[(32, 64), float32]) -> Tensor[(4, 64), float32] =
          fn (%s: int64, %a: Tensor[(4, 64), float32], %v: Tensor[(32, 64), float32])
              -> Tensor[(4, 64), float32] {
        if (less(%s, 2i64)) {
          %inner(add(%s, 1i64), nn.matmul(nn.dense(%a, %v), reverse(%v, axis=0)), %v)
        } else { %a }
      };
      %inner(0i64, %h, %w))";
  Module out = apply(kHoistLayouts, parse(loop_of("{" + inner + "}")));
  const std::string text = print_module(out);
  EXPECT_EQ(text.find("reverse"), text.rfind("reverse")) << text;
  EXPECT_GT(text.find("reverse"), text.rfind("else")) << text;
}

TEST(HoistLayouts, not_where_it_must_not) {
  // The parameter changes; the loop is a value; nothing but another shape; small; much larger; it may end the run.
  const std::string turned = "nn.matmul(nn.dense(%h, %w), reverse(%w, axis=0))";
  expect_unchanged(kHoistLayouts, loop_of(turned, "negative(%w)"));
  expect_unchanged(kHoistLayouts, loop_of(turned, "%weight"));
  std::string value = loop_of(turned);
  value.replace(value.rfind("%loop(0i64, %x, %weight)"), 24, "(%loop, %loop(0i64, %x, %weight)).1");
  expect_unchanged(kHoistLayouts, value);
  expect_unchanged(kHoistLayouts,
                   loop_of("nn.matmul(nn.dense(%h, %w), reshape(%w, newshape=[32, 64]))"));
  expect_unchanged(kHoistLayouts, loop_of("add(%h, strided_slice(%w, begin=[0], end=[1], "
                                          "strides=[1], axes=[0]))"));
  expect_unchanged(kHoistLayouts,
                   loop_of("add(%h, sum(broadcast_to(%w, shape=[999, 32, 64]), axis=[0, 1]))"));
  expect_unchanged(
      kHoistLayouts,
      loop_of("nn.matmul(nn.dense(%h, %w), take(%w, cast(add(%t, full(0i64, shape=[32], "
              "dtype=\"int64\")), dtype=\"int64\"), axis=0))"));
}

// A loop that multiplies one row with a square matrix of so many columns: a weight outside of loops would stay as it is.
std::string loop_of_rows(const std::string& product, int columns) {
  const std::string row = "Tensor[(1, " + std::to_string(columns) + "), float32]";
  const std::string square =
      "Tensor[(" + std::to_string(columns) + ", " + std::to_string(columns) + "), float32]";
  return "def @main(%x: " + row + ", %weight: " + square + ") {\n  let %loop: fn (int64, " + row +
         ", " + square + ") -> " + row + " =\n      fn (%t: int64, %h: " + row + ", %w: " + square +
         ") -> " + row + R"( {
    if (less(%t, 8i64)) { %loop(add(%t, 1i64), )" +
         product + R"(, %w) } else { %h }
  };
  %loop(0i64, %x, %weight)
})";
}

TEST(HoistLayouts, weights_of_a_loop_are_packed_once) {
  for (const char* product : {"nn.dense(%h, %w)", "nn.matmul(%h, %w)"}) {
    Module mod = parse(loop_of_rows(product, 64));
    Module out = apply(kHoistLayouts, apply(kAlterOpLayout, mod, folding_context()));
    const std::string text = print_module(out);
    EXPECT_NE(text.find("contrib_dense_pack"), text.npos) << text;
    EXPECT_GT(text.find("layout_transform"), text.rfind("else")) << text;
  }
}

// What would be packed in every iteration is not packed: small weights, and all where the pass is off.
TEST(HoistLayouts, weights_that_stay_in_the_loop_are_not_packed) {
  for (const char* product : {"nn.dense(%h, %w)", "nn.matmul(%h, %w)"}) {
    for (int columns : {16, 24, 30}) {
      Module mod = parse(loop_of_rows(product, columns));
      EXPECT_EQ(print_module(apply(kAlterOpLayout, mod, folding_context())), print_module(mod));
    }
    Module mod = parse(loop_of_rows(product, 64));
    PassContext without = folding_context();
    without.disabled_pass.insert("HoistLayouts");
    EXPECT_EQ(print_module(apply(kAlterOpLayout, mod, without)), print_module(mod));
  }
}

}  // namespace
}  // namespace relay::pass_test
