#include "passes/simplify/simplify_inference.h"

#include "passes/test/pass_test.h"

namespace relay {
namespace {

const char* const kParams =
    "%x: Tensor[(1, 3, 4, 4), float32], %g: Tensor[(3,), float32], %b: Tensor[(3,), float32], "
    "%m: Tensor[(3,), float32], %v: Tensor[(3,), float32]";

void inference_becomes(const std::string& before, const std::string& after) {
  pass_test::expect_becomes(kSimplifyInference,
                            "def @main(" + std::string(kParams) + ") { " + before + " }",
                            "def @main(" + std::string(kParams) + ") { " + after + " }");
}

TEST(SimplifyInference, batch_norm_is_a_multiply_and_an_add) {
  inference_becomes("nn.batch_norm(%x, %g, %b, %m, %v).0",
                    "%0 = multiply(rsqrt(add(%v, 1e-05f)), %g);\n"
                    "%1 = add(negative(multiply(%m, %0)), %b);\n"
                    "add(multiply(%x, expand_dims(%0, axis=1, num_newaxis=2)),\n"
                    "    expand_dims(%1, axis=1, num_newaxis=2))");
}

TEST(SimplifyInference, batch_norm_without_scale_and_center_on_the_last_axis) {
  inference_becomes(
      "nn.batch_norm(transpose(%x, axes=[0, 2, 3, 1]), %g, %b, %m, %v, axis=-1, center=False, "
      "scale=False).0",
      "%0 = rsqrt(add(%v, 1e-05f));\n"
      "add(multiply(transpose(%x, axes=[0, 2, 3, 1]), %0), negative(multiply(%m, %0)))");
}

TEST(SimplifyInference, dropout_is_its_input) {
  inference_becomes("exp(nn.dropout(%x, rate=0.3f).0)", "exp(%x)");
}

TEST(SimplifyInference, what_gradients_take_for_a_constant_is_its_input) {
  inference_becomes("exp(stop_gradient(%x))", "exp(%x)");
}

TEST(SimplifyInference, what_only_gradients_compute_is_left_out) {
  inference_becomes("annotation.derivative_of(exp(%x), exp(stop_gradient(%x)))", "exp(%x)");
}

TEST(SimplifyInference, the_statistics_stay) {
  pass_test::expect_unchanged(kSimplifyInference, "def @main(" + std::string(kParams) +
                                                      ") { nn.batch_norm(%x, %g, %b, %m, %v).1 }");
  pass_test::expect_unchanged(kSimplifyInference,
                              "def @main(" + std::string(kParams) +
                                  ") { nn.layer_norm(transpose(%x, axes=[0, 2, 3, 1]), %g, %b) }");
}

}  // namespace
}  // namespace relay
