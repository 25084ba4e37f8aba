#include "passes/dynamic_to_static.h"

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
  // Not the one that is open.
  unchanged(
      "def @main[n: Dim](%x: Tensor[(6), float32], %y: Tensor[(n, 3), float32]) {\n"
      "  dyn.tile(%x, strided_slice(shape_of(%y, dtype=\"int64\"), begin=[0], end=[1], "
      "strides=[1])) }");
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
