#include "passes/layout/prepack_inputs.h"

#include "passes/layout/alter_op_layout.h"
#include "passes/test/evaluate.h"
#include "passes/test/pass_test.h"

namespace relay::pass_test {
namespace {

TEST(PrepackInputs, what_follows_from_prepacked_inputs_alone_is_another_function) {
  Module mod = parse(R"(
def @main(%x: Tensor[(4, 8), float32], %w: Tensor[(8, 8), float32], %b: Tensor[(8), float32],
          prepack=["w", "b"]) {
  nn.bias_add(nn.dense(%x, negative(exp(%w))), %b)
})");
  Module after = apply(kPrepackInputs, mod);
  EXPECT_TRUE(structural_equal(after, parse(R"(
def @main(%x: Tensor[(4, 8), float32], %b: Tensor[(8), float32], %prepacked: Tensor[(8, 8), float32]) {
  nn.bias_add(nn.dense(%x, %prepacked), %b)
}
def @main.prepack(%w: Tensor[(8, 8), float32], output_names=["prepacked"]) {
  (negative(exp(%w)),)
})"))) << print_module(after);
}

TEST(PrepackInputs, an_input_that_is_read_as_it_is_as_well_stays) {
  Module after = apply(kPrepackInputs, parse(R"(
def @main(%x: Tensor[(8), float32], %w: Tensor[(8), float32], %prepacked: Tensor[(8), float32],
          prepack=["w"]) {
  %0 = exp(%w);
  (%0 + %x, %w * %x, %0 + %prepacked, sqrt(%w))
})"));
  const Function main = after->find("main");
  std::string names;
  for (const Var& p : main->params) names += p->name_hint + " ";
  EXPECT_EQ(names, "x w prepacked prepacked_1 prepacked_2 ");
  EXPECT_EQ(flatten_tensor_types(after->find("main.prepack")->body->type)->size(), 2u);
}

// Nothing is computed ahead of what depends on a run, that is seen in another shape only, or much larger than its input.
TEST(PrepackInputs, not_where_it_gains_nothing) {
  for (std::string body : {"%x + %w", "reshape(%w, newshape=[4, 2])", "exp(%x * %w)", "%w",
                           "add(%x, sum(broadcast_to(%w, shape=[100000, 8]), axis=[0]))"}) {
    Module mod =
        parse("def @main(%x: Tensor[(8), float32], %w: Tensor[(8), float32], prepack=[\"w\"]) { " +
              body + " }");
    Module after = apply(kPrepackInputs, mod);
    bool sums = body.find("sum") != std::string::npos;
    EXPECT_EQ(after->functions.size(), sums ? 2u : 1u) << print_module(after);
    EXPECT_FALSE(after->find("main")->has_attr("prepack"));
  }
}

TEST(PrepackInputs, prepacked_weights_are_packed_as_constants_are) {
  // One row: other weights that are no constants stay as they are.
  for (bool prepacked : {false, true}) {
    Module mod =
        parse(std::string("def @main(%x: Tensor[(1, 64), float32], %w: Tensor[(64, 64), float32]") +
              (prepacked ? ", prepack=[\"w\"]" : "") + ") { nn.dense(%x, %w) }");
    Module after = apply(kPrepackInputs, apply(kAlterOpLayout, mod, folding_context()));
    EXPECT_EQ(after->functions.size(), prepacked ? 2u : 1u);
    std::string text = print_module(after);
    EXPECT_EQ(text.find("contrib_dense_pack") != std::string::npos, prepacked) << text;
    // The layout is changed by the other function.
    std::string main = text.substr(0, text.find("def @main.prepack"));
    EXPECT_EQ(main.find("layout_transform"), std::string::npos) << text;
  }
}

}  // namespace
}  // namespace relay::pass_test
