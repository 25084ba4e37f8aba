#include "passes/precision/fake_quantization_to_integer.h"

#include "passes/simplify/canonicalize_ops.h"
#include "passes/test/pass_test.h"

namespace relay {
namespace {

void becomes(const std::string& params, const std::string& before, const std::string& after) {
  pass_test::expect_becomes(kFakeQuantizationToInteger,
                            "def @main(" + params + ") { " + before + " }",
                            "def @main(" + params + ") { " + after + " }");
}

void stays(const std::string& params, const std::string& body) {
  pass_test::expect_unchanged(kFakeQuantizationToInteger,
                              "def @main(" + params + ") { " + body + " }");
}

const std::string kImage = "%x: Tensor[(1, 3, 6, 6), uint8], %w: Tensor[(4, 3, 3, 3), int8]";

TEST(FakeQuantizationToInteger, a_convolution_is_one_of_integers) {
  becomes(kImage,
          "nn.conv2d(qnn.dequantize(%x, 0.5f, 3), qnn.dequantize(%w, 0.25f, 0), padding=[1, 1])",
          "%0 = qnn.conv2d(%x, %w, 3, 0, 0.5f, 0.25f, padding=[1, 1], out_dtype=\"int32\");\n"
          "qnn.dequantize(%0, multiply(0.5f, 0.25f), 0)");
}

TEST(FakeQuantizationToInteger, weights_may_have_a_scale_for_each_output_channel) {
  becomes(kImage + ", %s: Tensor[(4,), float32]",
          "nn.conv2d(qnn.dequantize(%x, 0.5f, 3), qnn.dequantize(%w, %s, 0, axis=0))",
          "%0 = qnn.conv2d(%x, %w, 3, 0, 0.5f, %s, out_dtype=\"int32\");\n"
          "qnn.dequantize(%0, multiply(0.5f, %s), 0, axis=1)");
  stays(kImage + ", %s: Tensor[(3,), float32]",
        "nn.conv2d(qnn.dequantize(%x, 0.5f, 3), qnn.dequantize(%w, %s, 0, axis=1))");
}

TEST(FakeQuantizationToInteger, products_of_matrices) {
  const std::string params =
      "%x: Tensor[(2, 8), uint8], %w: Tensor[(4, 8), int8], "
      "%t: Tensor[(8, 4), int8], %s: Tensor[(4,), float32]";
  becomes(params, "nn.dense(qnn.dequantize(%x, 0.5f, 3), qnn.dequantize(%w, %s, 0, axis=0))",
          "%0 = qnn.dense(%x, %w, 3, 0, 0.5f, %s, out_dtype=\"int32\");\n"
          "qnn.dequantize(%0, multiply(0.5f, %s), 0, axis=1)");
  becomes(params, "nn.matmul(qnn.dequantize(%x, 0.5f, 3), qnn.dequantize(%t, %s, 0, axis=1))",
          "%0 = qnn.dense(%x, transpose(%t, axes=[1, 0]), 3, 0, 0.5f, %s, out_dtype=\"int32\");\n"
          "qnn.dequantize(%0, multiply(0.5f, %s), 0, axis=1)");
  becomes("%x: Tensor[(2, 3, 8), uint8], %y: Tensor[(2, 8, 4), uint8]",
          "nn.batch_matmul(qnn.dequantize(%x, 0.5f, 3), qnn.dequantize(%y, 2f, 5))",
          "%0 = qnn.batch_matmul(%x, transpose(%y, axes=[0, 2, 1]), 3, 5, 0.5f, 2f);\n"
          "qnn.dequantize(%0, multiply(0.5f, 2f), 0)");
}

TEST(FakeQuantizationToInteger, elements_are_moved_as_integers) {
  const std::string x = "%x: Tensor[(1, 4, 6, 6), uint8]";
  becomes(x, "reshape(qnn.dequantize(%x, 0.5f, 3), newshape=[4, 36])",
          "qnn.dequantize(reshape(%x, newshape=[4, 36]), 0.5f, 3)");
  becomes(x, "nn.max_pool2d(qnn.dequantize(%x, 0.5f, 3), pool_size=[2, 2], strides=[2, 2])",
          "qnn.dequantize(nn.max_pool2d(%x, pool_size=[2, 2], strides=[2, 2]), 0.5f, 3)");
  becomes(x, "nn.pad(qnn.dequantize(%x, 0.5f, 3), 0f, pad_width=[[0, 0], [0, 0], [1, 1], [1, 1]])",
          "%0 = nn.pad(%x, cast(3, dtype=\"uint8\"), pad_width=[[0, 0], [0, 0], [1, 1], [1, 1]]);\n"
          "qnn.dequantize(%0, 0.5f, 3)");
  becomes(x + ", %s: Tensor[(4,), float32]",
          "transpose(qnn.dequantize(%x, %s, 3, axis=1), axes=[0, 2, 3, 1])",
          "qnn.dequantize(transpose(%x, axes=[0, 2, 3, 1]), %s, 3, axis=3)");
  becomes(x, "concatenate((qnn.dequantize(%x, 0.5f, 3), qnn.dequantize(%x, 0.5f, 3)), axis=1)",
          "qnn.dequantize(concatenate((%x, %x), axis=1), 0.5f, 3)");
  becomes(x, "qnn.quantize(qnn.dequantize(%x, 0.5f, 3), 0.5f, 3, out_dtype=\"uint8\")", "%x");
}

TEST(FakeQuantizationToInteger, sums_and_means_are_sums_of_integers) {
  const std::string x = "%x: Tensor[(2, 4), uint8]";
  becomes(x, "sum(qnn.dequantize(%x, 0.5f, 3), axis=[1])",
          "qnn.dequantize(sum(cast(%x, dtype=\"int32\"), axis=[1]), 0.5f, multiply(3, 4))");
  becomes(x, "mean(qnn.dequantize(%x, 0.5f, 0), axis=[1], keepdims=True)",
          "qnn.dequantize(sum(cast(%x, dtype=\"int32\"), axis=[1], keepdims=True), "
          "divide(0.5f, 4f), 0)");
  // A sum that 32 bits may not hold.
  stays("%x: Tensor[(2, 16777216), uint8]", "sum(qnn.dequantize(%x, 0.5f, 3), axis=[1])");
}

TEST(FakeQuantizationToInteger, limits_are_limits_of_integers) {
  const std::string x = "%x: Tensor[(2, 4), int8]";
  becomes(x, "nn.relu(qnn.dequantize(%x, 0.5f, 3))", "qnn.dequantize(maximum(%x, 3i8), 0.5f, 3)");
  becomes(x, "nn.relu(qnn.dequantize(%x, 0.5f, -128))", "qnn.dequantize(%x, 0.5f, -128)");
  becomes(x, "clip(qnn.dequantize(%x, 0.5f, 3), a_min=0f, a_max=6f)",
          "qnn.dequantize(minimum(maximum(%x, 3i8), 15i8), 0.5f, 3)");
  // No integer stands for 0.3.
  stays(x, "clip(qnn.dequantize(%x, 0.5f, 3), a_min=0f, a_max=0.3f)");
  // A sum of products becomes floats in its own kernel.
  stays("%x: Tensor[(2, 4), int32]", "nn.relu(qnn.dequantize(%x, 0.5f, 0))");
}

TEST(FakeQuantizationToInteger, elements_are_chosen_among_the_integers) {
  const std::string x = "%x: Tensor[(2, 4), uint8], %y: Tensor[(2, 4), uint8]";
  becomes(x, "max(qnn.dequantize(%x, 0.5f, 3), axis=[1])",
          "qnn.dequantize(max(%x, axis=[1]), 0.5f, 3)");
  becomes(x, "maximum(qnn.dequantize(%x, 0.5f, 3), qnn.dequantize(%y, 0.5f, 3))",
          "qnn.dequantize(maximum(%x, %y), 0.5f, 3)");
  becomes(x, "argmax(qnn.dequantize(%x, 0.5f, 3), axis=[1])", "argmax(%x, axis=[1])");
  becomes(x, "split(qnn.dequantize(%x, 0.5f, 3), indices_or_sections=2, axis=1).1",
          "qnn.dequantize(split(%x, indices_or_sections=2, axis=1).1, 0.5f, 3)");
  becomes(x, "topk(qnn.dequantize(%x, 0.5f, 3), k=2)",
          "%0 = topk(%x, k=2);\n(qnn.dequantize(%0.0, 0.5f, 3), %0.1)");
  stays(x, "maximum(qnn.dequantize(%x, 0.5f, 3), qnn.dequantize(%y, 0.25f, 3))");
  stays(x, "maximum(qnn.dequantize(%x, 0.5f, 3), exp(qnn.dequantize(%y, 0.5f, 3)))");
}

TEST(FakeQuantizationToInteger, a_result_that_is_quantised_is_rounded_once) {
  const std::string x = "%x: Tensor[(2, 4), uint8], %y: Tensor[(2, 4), uint8]";
  auto quantized = [](const std::string& e) {
    return "qnn.quantize(" + e + ", 0.25f, 5, out_dtype=\"uint8\")";
  };
  becomes(x, quantized("sigmoid(qnn.dequantize(%x, 0.5f, 3))"),
          "qnn.sigmoid(%x, 0.5f, 3, 0.25f, 5)");
  becomes(x, quantized("nn.leaky_relu(qnn.dequantize(%x, 0.5f, 3), alpha=0.5f)"),
          "qnn.leaky_relu(%x, 0.5f, 3, 0.25f, 5, alpha=0.5f)");
  becomes(x, quantized("multiply(qnn.dequantize(%x, 0.5f, 3), qnn.dequantize(%y, 0.125f, 1))"),
          "qnn.mul(%x, %y, 0.5f, 3, 0.125f, 1, 0.25f, 5)");
  becomes(x, quantized("concatenate((qnn.dequantize(%x, 0.5f, 3), qnn.dequantize(%y, 0.25f, 5)))"),
          "concatenate((qnn.quantize(qnn.dequantize(%x, 0.5f, 3), 0.25f, 5, out_dtype=\"uint8\"), "
          "%y))");
  // Of another dtype, and without a reader that rounds.
  stays("%x: Tensor[(2, 4), int8]", quantized("sigmoid(qnn.dequantize(%x, 0.5f, 3))"));
  stays(x, "sigmoid(qnn.dequantize(%x, 0.5f, 3))");
  // Floats round a sum of two scales once.
  stays(x, quantized("add(qnn.dequantize(%x, 0.5f, 3), qnn.dequantize(%y, 0.125f, 1))"));
}

TEST(FakeQuantizationToInteger, what_would_be_another_number_stays) {
  const std::string x = "%x: Tensor[(1, 4, 6, 6), uint8], %s: Tensor[(), float32]";
  // Scales that may be negative turn the order around.
  stays(x, "nn.max_pool2d(qnn.dequantize(%x, %s, 3), pool_size=[2, 2])");
  stays(x, "nn.pad(qnn.dequantize(%x, 0.5f, 3), 1.1f, pad_width=[[0, 0], [0, 0], [1, 1], [1, 1]])");
  stays(x, "concatenate((qnn.dequantize(%x, 0.5f, 3), qnn.dequantize(%x, 0.5f, 4)), axis=1)");
  stays(x, "qnn.quantize(qnn.dequantize(%x, 0.5f, 3), 0.5f, 3, out_dtype=\"int8\")");
  stays(x, "qnn.quantize(qnn.dequantize(%x, 0.5f, 3), 0.25f, 3, out_dtype=\"uint8\")");
  stays(x, "exp(qnn.dequantize(%x, 0.5f, 3))");
  stays(x,
        "qnn.quantize(maximum(qnn.dequantize(%x, 0.5f, 3), qnn.dequantize(%x, 0.25f, 3)), %s, 0, "
        "out_dtype=\"uint8\")");
  // Windows of a pool may hold nothing but the border.
  stays("%x: Tensor[(1, 4, 2, 2), uint8]",
        "nn.max_pool2d(qnn.dequantize(%x, 0.5f, 3), pool_size=[2, 2], dilation=[3, 3], padding=[1, "
        "1])");
  stays("%x: Tensor[(2, 4), int16], %w: Tensor[(3, 4), int16]",
        "nn.dense(qnn.dequantize(%x, 0.5f, 3), qnn.dequantize(%w, 0.5f, 3))");
}

TEST(CanonicalizeOps, a_sum_of_bytes_stays_one_of_bytes) {
  pass_test::expect_becomes(kCanonicalizeOps,
                            "def @main(" + kImage + ") { qnn.conv2d(%x, %w, 0, 0, 0.5f, 0.25f) }",
                            "def @main(" + kImage + ") { nn.conv2d(%x, %w, out_dtype=\"int32\") }");
}

TEST(CanonicalizeOps, the_border_of_a_convolution_is_the_zero_point) {
  pass_test::expect_becomes(
      kCanonicalizeOps,
      "def @main(" + kImage + ") { qnn.conv2d(%x, %w, 3, 0, 0.5f, 0.25f, padding=[1, 1]) }",
      "def @main(" + kImage +
          ") {\n"
          "%0 = nn.pad(%x, cast(3, dtype=\"uint8\"), pad_width=[[0, 0], [0, 0], [1, 1], [1, 1]]);\n"
          "%1 = nn.conv2d(%0, %w, padding=[0, 0], out_dtype=\"int32\");\n"
          "%2 = multiply(sum(cast(%w, dtype=\"int32\"), axis=[1, 2, 3]), 3);\n"
          "subtract(%1, expand_dims(%2, axis=1, num_newaxis=2)) }");
}

TEST(CanonicalizeOps, other_operators_stay) {
  pass_test::expect_unchanged(kCanonicalizeOps,
                              "def @main(%x: Tensor[(2, 3), float32]) { nn.softmax(%x) }");
}

std::string error_of(const std::string& body) {
  try {
    pass_test::apply(kCanonicalizeOps,
                     pass_test::parse("def @main(%x: Tensor[(2,), float32]) { " + body + " }"));
    return "no error";
  } catch (const UserError& e) {
    return e.what();
  }
}

TEST(CanonicalizeOps, known_scales_and_zero_points_out_of_range_are_E0806) {
  for (const char* scale : {"0f", "-1f", "inff"}) {
    EXPECT_NE(error_of("qnn.quantize(%x, " + std::string(scale) + ", 0)").find("E0806"),
              std::string::npos)
        << scale;
  }
  EXPECT_NE(error_of("qnn.quantize(%x, 1f, 128)").find("E0806"), std::string::npos);
  EXPECT_NE(error_of("qnn.quantize(%x, 1f, -1, out_dtype=\"uint8\")").find("E0806"),
            std::string::npos);
  EXPECT_EQ(error_of("qnn.quantize(%x, 1f, 255, out_dtype=\"uint8\")"), "no error");
}

}  // namespace
}  // namespace relay
