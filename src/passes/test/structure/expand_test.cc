// DefuseOps and EtaExpand.
#include "passes/fusion/defuse_ops.h"
#include "passes/fusion/fuse_ops.h"
#include "passes/structure/eta_expand.h"
#include "passes/test/pass_test.h"
#include "types/eta_expansion.h"

namespace relay {
namespace {

TEST(DefuseOps, header_example) {
  pass_test::expect_becomes(
      kDefuseOps,
      "def @main(%x: Tensor[(4, 8), float32], %w: Tensor[(8, 8), float32]) {\n"
      "  (fn (%p0: Tensor[(4, 8), float32], %p1: Tensor[(8, 8), float32], Primitive=1) {\n"
      "    nn.relu(nn.dense(%p0, %p1)) })(%x, %w) }",
      "def @main(%x: Tensor[(4, 8), float32], %w: Tensor[(8, 8), float32]) {\n"
      "  nn.relu(nn.dense(%x, %w)) }");
}

TEST(DefuseOps, undoes_fuse_ops) {
  Module mod = pass_test::parse(
      "def @main(%x: Tensor[(4, 8), float32], %w: Tensor[(8, 8), float32]) {\n"
      "  %0 = nn.relu(nn.dense(exp(%x), %w)); add(%0, sum(%0, axis=[1], keepdims=True)) }");
  Module fused = pass_test::apply(kFuseOps, mod);
  EXPECT_FALSE(structural_equal(fused, mod));
  EXPECT_TRUE(structural_equal(pass_test::apply(kDefuseOps, fused), mod));
}

TEST(DefuseOps, other_functions_stay) {
  pass_test::expect_unchanged(kDefuseOps,
                              "def @main(%x: float32) { (fn (%p: float32) { exp(%p) })(%x) }");
}

const std::string kExpandedTypes =
    "type Maybe[A] { Some(A), None, } type Pair { Both(float32, float32), }\n";

TEST(EtaExpand, constructors_as_values) {
  pass_test::expect_becomes(
      kEtaExpand, kExpandedTypes + "def @main() -> fn (float32, float32) -> Pair { Both }",
      kExpandedTypes +
          "def @main() -> fn (float32, float32) -> Pair {\n"
          "  fn (%a: float32, %b: float32) { Both(%a, %b) } }");
}

TEST(EtaExpand, global_functions_when_asked) {
  const std::string text =
      "def @f(%x: float32) -> float32 { exp(%x) }\ndef @main() { (@f, @f(1f)) }";
  pass_test::expect_unchanged(kEtaExpand, text);
  PassContext ctx;
  ctx.config["relay.EtaExpand.expand_global_var"] = AttrValue(true);
  pass_test::expect_becomes(kEtaExpand, text,
                            "def @f(%x: float32) -> float32 { exp(%x) }\n"
                            "def @main() { (fn (%a: float32) { @f(%a) }, @f(1f)) }",
                            ctx);
}

TEST(EtaExpand, callees_and_patterns_stay) {
  pass_test::expect_unchanged(
      kEtaExpand, kExpandedTypes +
                      "def @main(%m: Maybe[float32]) {\n"
                      "  match (%m) { Some(%v) => { Both(%v, %v) }, None => { Both(1f, 2f) }, } }");
}

}  // namespace
}  // namespace relay
