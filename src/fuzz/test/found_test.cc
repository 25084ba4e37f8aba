// Programs that random runs have found, in their smallest form: each once meant two things.
#include <gtest/gtest.h>

#include "driver/compile.h"
#include "fuzz/differential.h"
#include "ir/text/text.h"
#include "types/infer.h"

namespace relay::fuzz {
namespace {

const char* const kFoundPrograms[] = {
    // Sizes as floats, which a branch copies.
    R"(
def @main(%x: Tensor[(3, 2), float32]) {
  if (True) { shape_of(%x, dtype="float32") } else { copy(shape_of(%x, dtype="float32")) }
})",
    R"(
def @main(%x: Tensor[(3, 2), float32]) { copy(ndarray_size(%x, dtype="float16")) })",
    // A function of named sizes has no instance for what is not a value of it yet.
    R"(
def @f[n: Dim](%x: Tensor[(n, 3), int32]) -> int32 { 1 }
def @main() -> int32 {
  let %g = fn (%p: int32) -> Tensor[(1, 3), int32] { broadcast_to(%p, shape=[1, 3]) };
  @f(%g(1))
})",
    // What does not fit at one size may at the other, which a pass gets to know.
    R"(
def @main[n: Dim](%x: Tensor[(n, 2), bool], %y: Tensor[(n,), bool]) -> Tensor[(n, 2), bool] {
  add(%y, %x)
})",
    // Between whole numbers, the half decides.
    R"(
def @main(%x: Tensor[(1, 1, 3, 2), uint8]) -> Tensor[(1, 1, 5, 4), uint8] {
  image.resize2d(%x, size=[5, 4], method="cubic", coordinate_transformation_mode="half_pixel")
})",
    // A recursive function's name was used ahead of its binding.
    R"(
def @main(%x: Tensor[(1,), float32]) -> Tensor[(1,), float32] {
  %0 = clip(%x, a_min=1.1f, a_max=4f);
  %1 = (
    let %loop: fn (int32, Tensor[(1,), float32]) -> Tensor[(1,), float32] =
      fn (%i: int32, %acc: Tensor[(1,), float32]) -> Tensor[(1,), float32] {
        if (less_equal(%i, 0)) { %acc } else { %loop(subtract(%i, 1), %x) }
      };
    %loop(1, %0)
  );
  maximum(%1, %0)
})",
    // The shape of the second operand counts.
    R"(
def @main(%x: Tensor[(1, 1), bool], %y: bool) -> Tensor[(3, 4), bool] {
  %0 = broadcast_to(%y, shape=[3, 4]);
  broadcast_to_like(%x, %0)
})",
    // Sums and products of bools stay bools.
    R"(
def @main[n: Dim](%x: Tensor[(n,), bool]) -> Tensor[(n,), bool] {
  add(%x, multiply(%x, %x))
})",
    // A window with two that hold is not one with none.
    R"(
def @main() -> Tensor[(1, 2, 3), bool] {
  %0 = full(True, shape=[1, 1, 2], dtype="bool");
  nn.conv1d(%0, full(True, shape=[2, 1, 2], dtype="bool"), padding=[1, 1])
})",
    // Limits between which there is no whole number.
    R"(
def @main(%x: Tensor[(4,), int32]) -> Tensor[(4,), int32] {
  clip(clip(%x, a_min=-1f, a_max=0.5f), a_min=0.5f, a_max=2f)
})",
    // Tuples of constants in tuples.
    R"(
def @main() -> (((float32,),),) {
  %0 = fn (%a: (((float32,),),)) -> (((float32,),),) { (((2f,),),) };
  %0((((1f,),),))
})",
    // A name for another name of what holds functions.
    R"(
def @main() -> int32 {
  let %r: ref(fn () -> int32) = ref(fn () -> int32 { 1 });
  let %s: ref(fn () -> int32) = %r;
  let %u: () = ref_write(%s, fn () -> int32 { 2 });
  (ref_read(%r))()
})",
    // A clause that gives what an operator outside needs as well.
    R"(
type Option[A] { Some(A), None, }
def @main(%x: Tensor[(3,), float32]) -> Tensor[(3,), bool] {
  %0 = add(%x, multiply(%x, %x));
  %1 = match (Some(1f)) { Some(_) => %0, None => %x, };
  greater(%0, %1)
})",
    // A window that ends with the row, in rows that are one loop.
    R"(
def @main(%x: Tensor[(2, 4), float32]) -> Tensor[(2, 4), float32] {
  nn.lrn(divide(1f, %x), size=3, alpha=0.1f)
})",
    // The best of nothing but itself.
    "def @main(%x: int32) -> int32 { argmin(%x, axis=[]) }",
};

TEST(Found, programs_mean_the_same_in_every_way_to_run_them) {
  initialize();
  for (const char* text : kFoundPrograms) {
    auto failure = check(
        infer_types(parse_module("found.relay", std::string("#[version = \"0.0.5\"]\n") + text)));
    EXPECT_FALSE(failure) << failure->stage << ", " << failure->kind << ": " << failure->text
                          << text;
  }
}

const char* const kDifferentiated[] = {
    // An axis of size 1 stands for all of the other operand's.
    R"(
def @main(%x: Tensor[(2, 1), float64], %y: Tensor[(2, 1), float64]) -> Tensor[(2, 1), float64] {
  einsum((%x, %y), equation="ij,jk->ik")
})",
};

TEST(Found, programs_have_the_slopes_that_differences_say) {
  CheckOptions options;
  options.gradients = true;
  Checker checker(options);
  for (const char* text : kDifferentiated) {
    auto failure = checker.check(
        infer_types(parse_module("found.relay", std::string("#[version = \"0.0.5\"]\n") + text)));
    EXPECT_FALSE(failure) << failure->stage << ", " << failure->kind << ": " << failure->text
                          << text;
  }
  EXPECT_EQ(checker.tally().slopes, static_cast<int64_t>(std::size(kDifferentiated)));
}

TEST(Found, operators_refuse_dtypes_that_they_have_no_meaning_for) {
  initialize();
  auto refused = [](const char* op, int args, const char* dtype) {
    std::string list, names;
    for (int i = 0; i < args; ++i) {
      std::string name = "%x" + std::to_string(i);
      list += (i > 0 ? ", " : "") + name + ": " + dtype;
      names += (i > 0 ? ", " : "") + name;
    }
    try {
      infer_types(parse_module("refused.relay", "#[version = \"0.0.5\"]\ndef @main(" + list +
                                                    ") { " + op + "(" + names + ") }"));
    } catch (const UserError& e) {
      return e.diagnostics()[0].code == "E0204";
    }
    return false;
  };
  for (const char* op : {"bitwise_and", "bitwise_or", "bitwise_xor", "left_shift", "right_shift"}) {
    EXPECT_TRUE(refused(op, 2, "float32")) << op;
  }
  EXPECT_TRUE(refused("left_shift", 2, "bool"));
  EXPECT_TRUE(refused("bitwise_not", 1, "float16"));
  EXPECT_TRUE(refused("logical_not", 1, "float32"));
  for (const char* op : {"subtract", "divide", "floor_divide", "mod", "floor_mod"}) {
    EXPECT_TRUE(refused(op, 2, "bool")) << op;
  }
}

TEST(Found, a_squeeze_whose_rank_only_a_run_tells_is_refused) {
  initialize();
  auto code = [](const char* attrs) {
    try {
      infer_types(
          parse_module("squeeze.relay", std::string("#[version = \"0.0.5\"]\ndef @main[n: Dim]"
                                                    "(%x: Tensor[(1, n), float32]) { squeeze(%x") +
                                            attrs + ") }"));
    } catch (const UserError& e) {
      return std::string(e.diagnostics()[0].code);
    }
    return std::string();
  };
  EXPECT_EQ(code(""), "E0203");
  EXPECT_EQ(code(", axis=[0]"), "");
}

}  // namespace
}  // namespace relay::fuzz
