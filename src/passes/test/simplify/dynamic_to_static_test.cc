#include "passes/simplify/dynamic_to_static.h"

#include "passes/test/pass_test.h"

namespace relay {
namespace {

void becomes(const std::string& before, const std::string& after) {
  pass_test::expect_becomes(kDynamicToStatic, before, after);
}
void unchanged(const std::string& text) { pass_test::expect_unchanged(kDynamicToStatic, text); }

TEST(DynamicToStatic, header_examples) {
  becomes(
      "def @main(%x: Tensor[(6), float32]) { dyn.reshape(%x, meta[relay.Constant][0]) }\n"
      "#[metadata]\n"
      "{\"relay.Constant\": [{\"dtype\": \"int64\", \"shape\": [2], "
      "\"data\": \"AgAAAAAAAAADAAAAAAAAAA==\"}]}",
      "def @main(%x: Tensor[(6), float32]) { reshape(%x, newshape=[2, 3]) }");
  becomes(
      "def @main() { dyn.zeros(meta[relay.Constant][0], dtype=\"float32\") }\n"
      "#[metadata]\n"
      "{\"relay.Constant\": [{\"dtype\": \"int64\", \"shape\": [1], "
      "\"data\": \"BAAAAAAAAAA=\"}]}",
      "def @main() { zeros(shape=[4], dtype=\"float32\") }");
}

TEST(DynamicToStatic, sizes_of_inputs_are_known) {
  becomes(
      "def @main[n: Dim](%x: Tensor[(6), float32], %y: Tensor[(n, 3), float32]) {\n"
      "  dyn.tile(%x, strided_slice(shape_of(%y, dtype=\"int64\"), begin=[1], end=[2], "
      "strides=[1])) }",
      "def @main[n: Dim](%x: Tensor[(6), float32], %y: Tensor[(n, 3), float32]) {\n"
      "  tile(%x, reps=[3]) }");
  becomes(
      "def @main[n: Dim](%x: Tensor[(6), float32], %y: Tensor[(n, 3), float32]) {\n"
      "  dyn.tile(%x, shape_of(%y, dtype=\"int64\")) }",
      "def @main[n: Dim](%x: Tensor[(6), float32], %y: Tensor[(n, 3), float32]) {\n"
      "  tile(%x, reps=[n, 3]) }");
}

TEST(DynamicToStatic, terms_become_attributes_where_they_are_sizes) {
  auto program = [](std::string_view body) {
    return "def @main[n: Dim](%x: Tensor[(n, 6), float32], %v: Tensor[(n), int64]) {\n"
           "  %0 = shape_of(%x, dtype=\"int64\");\n"
           "  %1 = take(%0, 0i64, axis=0);\n  " +
           std::string(body) + " }";
  };
  auto in = [&](std::string_view before, std::string_view after) {
    Module made = pass_test::apply(kDynamicToStatic, pass_test::parse(program(before)));
    EXPECT_NE(print_module(made).find(after), std::string::npos) << print_module(made);
  };
  in("dyn.reshape(%x, stack((%1, 2i64, 3i64), axis=0))", "newshape=[n, 2, 3]");
  in("dyn.full(1f, stack((%1 + %1, 3i64), axis=0))", "full(1f, shape=[2 * n, 3])");
  in("dyn.arange(0i64, %1, 1i64)", "arange(start=0, stop=n, step=1, dtype=\"int64\")");
  in("dyn.broadcast_to(%x, stack((4i64, %1, 6i64), axis=0))", "shape=[4, n, 6]");
  // A 0 would copy the 6 of the input; what may be below zero counts from the end.
  unchanged(program("dyn.reshape(%x, stack((6i64, %1), axis=0))"));
  unchanged(
      program("dyn.strided_slice(%v, stack((0i64,), axis=0), stack((%1 - 3i64,), axis=0), "
              "stack((1i64,), axis=0))"));
}

TEST(DynamicToStatic, types_become_precise_in_what_follows) {
  becomes(
      "def @main(%x: Tensor[(6), float32]) {\n"
      "  (exp(dyn.reshape(%x, meta[relay.Constant][0])), %x).0 }\n"
      "#[metadata]\n"
      "{\"relay.Constant\": [{\"dtype\": \"int64\", \"shape\": [2], "
      "\"data\": \"AgAAAAAAAAADAAAAAAAAAA==\"}]}",
      "def @main(%x: Tensor[(6), float32]) {\n"
      "  (exp(reshape(%x, newshape=[2, 3])), %x).0 }");
}

TEST(DynamicToStatic, sizes_of_a_run_stay) {
  unchanged("def @main(%x: Tensor[(6), float32], %s: Tensor[(2), int64]) { dyn.reshape(%x, %s) }");
}

TEST(DynamicToStatic, a_type_that_somebody_relies_on_stays) {
  unchanged(
      "def @main(%c: bool, %x: Tensor[(6), float32], %s: Tensor[(2), int64]) {\n"
      "  if (%c) { dyn.reshape(%x, meta[relay.Constant][0]) } else { dyn.reshape(%x, %s) } }\n"
      "#[metadata]\n"
      "{\"relay.Constant\": [{\"dtype\": \"int64\", \"shape\": [2], "
      "\"data\": \"AgAAAAAAAAADAAAAAAAAAA==\"}]}");
}

}  // namespace
}  // namespace relay
