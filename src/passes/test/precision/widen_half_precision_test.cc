#include "passes/precision/widen_half_precision.h"

#include "passes/test/evaluate.h"
#include "passes/test/pass_test.h"
#include "target/rows_by_rows.h"

namespace relay::pass_test {
namespace {

TEST(WidenHalfPrecision, contractions_are_computed_in_float32) {
  for (std::string half : {"float16", "bfloat16"}) {
    expect_becomes(kWidenHalfPrecision,
                   "def @main(%x: Tensor[(3, 5), " + half + "], %w: Tensor[(4, 5), " + half +
                       "]) { nn.relu(nn.dense(%x, %w)) }",
                   "def @main(%x: Tensor[(3, 5), " + half + "], %w: Tensor[(4, 5), " + half +
                       "]) {\n"
                       "  nn.relu(cast(nn.dense(cast(%x, dtype=\"float32\"), cast(%w, "
                       "dtype=\"float32\"), out_dtype=\"float32\"), dtype=\"" +
                       half + "\"))\n}");
  }
}

TEST(WidenHalfPrecision, operands_in_a_tuple) {
  expect_becomes(kWidenHalfPrecision,
                 "def @main(%x: Tensor[(3, 5), float16], %y: Tensor[(5, 2), float16]) {\n"
                 "  einsum((%x, %y), equation=\"ij,jk->ik\")\n}",
                 "def @main(%x: Tensor[(3, 5), float16], %y: Tensor[(5, 2), float16]) {\n"
                 "  cast(einsum((cast(%x, dtype=\"float32\"), cast(%y, dtype=\"float32\")), "
                 "equation=\"ij,jk->ik\"), dtype=\"float16\")\n}");
}

TEST(WidenHalfPrecision, a_sum_that_is_asked_for_in_float32_is_not_rounded) {
  expect_becomes(kWidenHalfPrecision,
                 "def @main(%x: Tensor[(3, 5), float16], %w: Tensor[(4, 5), float16]) {\n"
                 "  nn.dense(%x, %w, out_dtype=\"float32\")\n}",
                 "def @main(%x: Tensor[(3, 5), float16], %w: Tensor[(4, 5), float16]) {\n"
                 "  nn.dense(cast(%x, dtype=\"float32\"), cast(%w, dtype=\"float32\"), "
                 "out_dtype=\"float32\")\n}");
}

TEST(WidenHalfPrecision, a_large_matrix_that_few_rows_wait_for_stays_float16) {
  PassContext ctx;
  ctx.target.converts_float16 = true;
  ctx.target.l2_bytes = 2 << 20;
  auto program = [](const std::string& rows, const std::string& product) {
    return "def @main(%x: Tensor[(" + rows + ", 1024), float16]) {\n  " + product + "\n}";
  };
  const std::string weight = "ones(shape=[1024, 1024], dtype=\"float16\")",
                    sum = "out_dtype=\"float32\"), dtype=\"float16\")";
  expect_becomes(kWidenHalfPrecision, program("4", "nn.dense(%x, " + weight + ")"),
                 program("4", "cast(nn.dense(%x, " + weight + ", " + sum), ctx);
  const std::string wide =
      "cast(nn.dense(cast(%x, dtype=\"float32\"), cast(" + weight + ", dtype=\"float32\"), " + sum;
  // More rows hide where the weights come from, and without the instruction each element is several.
  expect_becomes(kWidenHalfPrecision, program("5", "nn.dense(%x, " + weight + ")"),
                 program("5", wide), ctx);
  expect_becomes(kWidenHalfPrecision, program("4", "nn.dense(%x, " + weight + ")"),
                 program("4", wide));
}

PassContext with_matrix_unit() {
  PassContext ctx;
  ctx.target.vector_bits = 512;
  ctx.target.features = "+amx-tile,+amx-bf16";
  return ctx;
}

TEST(WidenHalfPrecision, a_matrix_unit_sums_bfloat16_as_it_is) {
  const std::string sizes =
      "def @main(%x: Tensor[(3, 64), bfloat16], %w: Tensor[(32, 64), bfloat16]) { ";
  expect_becomes(kWidenHalfPrecision, sizes + "nn.dense(%x, %w) }",
                 sizes + "cast(nn.dense(%x, %w, out_dtype=\"float32\"), dtype=\"bfloat16\") }",
                 with_matrix_unit());
  // However many rows there are.
  const std::string open =
      "def @main[b: Dim, n: Dim](%x: Tensor[(b, n, 64), bfloat16], %w: Tensor[(32, 64), bfloat16]) "
      "{ ";
  expect_becomes(kWidenHalfPrecision, open + "nn.dense(%x, %w) }",
                 open + "cast(nn.dense(%x, %w, out_dtype=\"float32\"), dtype=\"bfloat16\") }",
                 with_matrix_unit());
  // A sum that is no whole number of the unit's words, or of which only a run says how long it is.
  for (std::string k : {"5", "n"}) {
    std::string head = "def @main";
    if (k == "n") head += "[n: Dim]";
    head += "(%x: Tensor[(3, " + k + "), bfloat16], %w: Tensor[(32, " + k + "), bfloat16]) { ";
    expect_becomes(kWidenHalfPrecision, head + "nn.dense(%x, %w) }",
                   head +
                       "cast(nn.dense(cast(%x, dtype=\"float32\"), cast(%w, dtype=\"float32\"), "
                       "out_dtype=\"float32\"), dtype=\"bfloat16\") }",
                   with_matrix_unit());
  }
}

TEST(WidenHalfPrecision, dot_products_sum_bfloat16_as_it_is) {
  PassContext ctx;
  ctx.target.features = "+bf16";
  auto head = [](const std::string& k) {
    return "def @main(%x: Tensor[(3, " + k + "), bfloat16], %w: Tensor[(32, " + k +
           "), bfloat16]) { ";
  };
  const std::string sum = "out_dtype=\"float32\"), dtype=\"bfloat16\") }",
                    wide =
                        "cast(nn.dense(cast(%x, dtype=\"float32\"), cast(%w, dtype=\"float32\"), ";
  expect_becomes(kWidenHalfPrecision, head("6") + "nn.dense(%x, %w) }",
                 head("6") + "cast(nn.dense(%x, %w, " + sum, ctx);
  // A sum of an odd number of products is no whole number of words.
  expect_becomes(kWidenHalfPrecision, head("5") + "nn.dense(%x, %w) }", head("5") + wide + sum,
                 ctx);
}

PassContext with_pairs() {
  PassContext ctx;
  ctx.target.features = "+bf16";
  return ctx;
}

// A product of the matrices of a batch, [b, s, k] by [b, k, s], widened; `w` is what is multiplied with.
std::string batch_product(const std::string& x, const std::string& w,
                          const std::string& factor = "%w", const std::string& attrs = "",
                          const std::string& dtype = "bfloat16") {
  const std::string text = "def @main[b: Dim, s: Dim](%x: Tensor[(b, " + x + "), " + dtype +
                           "], %w: Tensor[(" + w + "), " + dtype + "]) { nn.batch_matmul(%x, " +
                           factor + attrs + ") }";
  const Module once = apply(kWidenHalfPrecision, parse(text), with_pairs());
  EXPECT_TRUE(apply(kWidenHalfPrecision, once, with_pairs()) == once) << print_module(once);
  return print_module(once);
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// The zeros behind an open size up to whole panels.
std::string up_to_panels() {
  const std::string panel = std::to_string(panel_columns(with_pairs().target, 16));
  return "[0, (" + panel + " * ceildiv(s, " + panel + ")) + (-1 * s)]";
}

TEST(WidenHalfPrecision, open_columns_of_a_batch_are_whole_panels) {
  const std::string product = batch_product("s, 64", "b, 64, s");
  EXPECT_TRUE(has(product, "pad_width=[[0, 0], [0, 0], " + up_to_panels() + "])")) << product;
  EXPECT_TRUE(has(product, "nn.batch_matmul(%x, %0, out_dtype=\"float32\")")) << product;
  EXPECT_TRUE(has(product, "begin=[0], end=[s], axes=[2])")) << product;
  for (const std::string& other :
       {batch_product("s, 16", "b, 16, s"), batch_product("s, 64", "b, 64, s", "%w", "", "float16"),
        batch_product("s, 64", "b, 64, s", "%w", "", "float32")}) {
    EXPECT_FALSE(has(other, "nn.pad")) << other;
  }
}

TEST(WidenHalfPrecision, open_and_odd_sums_of_a_batch_are_whole_words) {
  const std::string open = batch_product("9, s", "b, s, 64");
  EXPECT_TRUE(has(open, "pad_width=[[0, 0], [0, 0], " + up_to_panels() + "])")) << open;
  EXPECT_TRUE(has(open, "pad_width=[[0, 0], " + up_to_panels() + ", [0, 0]])")) << open;
  EXPECT_FALSE(has(open, "cast(%x")) << open;
  const std::string odd = batch_product("9, 197", "b, 197, 64");
  EXPECT_TRUE(has(odd, "pad_width=[[0, 0], [0, 0], [0, 1]])")) << odd;
  EXPECT_TRUE(has(odd, "pad_width=[[0, 0], [0, 1], [0, 0]])")) << odd;
  EXPECT_FALSE(has(batch_product("9, 198", "b, 198, 64"), "nn.pad"));
}

// Instructions of a matrix unit take as many words each, and there are as few as can be: 7 of 15.
TEST(WidenHalfPrecision, sums_of_a_batch_are_whole_words_of_a_matrix_unit) {
  auto product = [](const std::string& k) {
    return print_module(apply(
        kWidenHalfPrecision,
        parse("def @main[b: Dim, s: Dim](%x: Tensor[(b, s, " + k + "), bfloat16], %w: Tensor[(b, " +
              k + ", 64), bfloat16]) { nn.batch_matmul(%x, %w, transpose_b=False) }"),
        with_matrix_unit()));
  };
  const std::string odd = product("197");
  EXPECT_TRUE(has(odd, "pad_width=[[0, 0], [0, 0], [0, 13]])")) << odd;
  EXPECT_TRUE(has(odd, "pad_width=[[0, 0], [0, 13], [0, 0]])")) << odd;
  EXPECT_FALSE(has(odd, "cast(%x")) << odd;
  EXPECT_FALSE(has(product("64"), "nn.pad"));
  EXPECT_TRUE(has(product("16"), "cast(%x")) << product("16");
}

// Also of rows in windows, whose number is a size of 0 or more.
TEST(WidenHalfPrecision, a_matrix_unit_sums_windows_of_symbolic_images) {
  auto stays = [](const std::string& padding) {
    const std::string widened = print_module(apply(
        kWidenHalfPrecision,
        parse(
            "def @main[h: Dim, w: Dim](%x: Tensor[(1, h, w, 64), bfloat16], %w: Tensor[(64, 3, 3, "
            "64), "
            "bfloat16]) { nn.conv2d(%x, %w, channels=64, kernel_size=[3, 3], data_layout=\"NHWC\", "
            "kernel_layout=\"OHWI\", padding=" +
            padding + ") }"),
        with_matrix_unit()));
    return widened.find("cast(%x") == std::string::npos;
  };
  EXPECT_TRUE(stays("[1, 1, 1, 1]"));
  EXPECT_TRUE(stays("[1, 1, 1, 1], strides=[2, 2]"));
  EXPECT_FALSE(stays("[0, 0, 0, 0]"));
}

// What the kernel transposes itself: of the last axes only, also where axes in front are joined.
TEST(WidenHalfPrecision, matrices_of_a_batch_are_read_before_their_transposition) {
  const std::string rows = batch_product("9, 64", "b, 32, 64", "transpose(%w, axes=[0, 2, 1])");
  EXPECT_TRUE(has(rows, "transpose_b=True")) << rows;
  EXPECT_FALSE(has(rows, "= transpose(")) << rows;
  const std::string joined = batch_product(
      "9, 64", "b, 1, s, 64", "reshape(transpose(%w, axes=[0, 1, 3, 2]), newshape=[b, 64, s])");
  EXPECT_TRUE(has(joined, "transpose_b=True")) << joined;
  EXPECT_TRUE(has(joined, "newshape=[b, s, 64]")) << joined;
  const std::string other = batch_product("9, 64", "64, 32, b", "transpose(%w, axes=[2, 0, 1])");
  EXPECT_FALSE(has(other, "transpose_b=True")) << other;
}

// What no reshape can state stays.
TEST(WidenHalfPrecision, batches_of_unknown_size_keep_their_reshapes) {
  for (const char* text :
       {"def @main(%x: Tensor[(?, 16, 64), bfloat16], %w: Tensor[(?, 64, 64), bfloat16]) { "
        "nn.batch_matmul(%x, transpose(%w, axes=[0, 2, 1])) }",
        "def @main(%x: Tensor[(1, 3, ?, 33), bfloat16], %w: Tensor[(3, 33, 48), bfloat16]) { "
        "nn.batch_matmul(reshape(%x, newshape=[3, -1, 33]), %w) }"}) {
    const std::string widened = print_module(apply(kWidenHalfPrecision, parse(text), with_pairs()));
    EXPECT_TRUE(has(widened, "out_dtype=\"float32\"")) << widened;
    EXPECT_FALSE(has(widened, "cast(%x")) << widened;
  }
}

// What AlterOpLayout does not pack has no pairs for such instructions, unless the kernel writes panels of them itself: of a
// matrix with as many rows as the run says.
TEST(WidenHalfPrecision, bfloat16_stays_where_its_matrix_will_be_packed) {
  PassContext dots = folding_context(), unit = folding_context();
  dots.target.features = "+bf16";
  unit.target = with_matrix_unit().target;
  auto stays = [&](const std::string& x, const std::string& w, const std::string& product) -> bool {
    const std::string text = "def @main[n: Dim](%x: Tensor[(" + x + "), bfloat16], %w: Tensor[(" +
                             w + "), bfloat16]) { " + product + " }";
    std::vector<bool> out;
    for (const PassContext* at : {&dots, &unit}) {
      const PassContext& ctx = *at;
      const Module widened = apply(kWidenHalfPrecision, parse(text), ctx);
      out.push_back(print_module(widened).find("cast(%x") == std::string::npos);
      const std::string packed = print_module(apply(kAlterOpLayout, widened, ctx));
      const bool by_kernel =
          x == "n, 64" && pairs_in_panels(ctx.target, {.columns = 64, .sum = 64, .bytes = 2});
      EXPECT_EQ(by_kernel, x == "n, 64" && &ctx == &dots);
      EXPECT_EQ(out.back() && !by_kernel, packed.find("nn.contrib_dense_pack") != std::string::npos)
          << packed;
    }
    EXPECT_EQ(out[0], out[1]);
    return out[0];
  };
  const std::string turned = "nn.matmul(%x, %w, transpose_a=True)";
  EXPECT_TRUE(stays("3, 64", "64, 64", "nn.dense(%x, %w)"));
  EXPECT_TRUE(stays("n, 64", "64, 64", "nn.dense(%x, %w)"));
  EXPECT_FALSE(stays("1, 64", "64, 64", "nn.dense(%x, %w)"));
  EXPECT_FALSE(stays("64, 64", "64, 64", "nn.matmul(%x, %w)"));
  EXPECT_FALSE(stays("63, 64", "64, 128", "nn.matmul(%x, %w)"));
  EXPECT_FALSE(stays("n, 64", "64, 128", "nn.matmul(%x, %w)"));
  EXPECT_TRUE(stays("64, 64", "64, 128", "nn.matmul(%x, %w)"));
  EXPECT_FALSE(stays("64, 64", "64, 64", turned));
  EXPECT_FALSE(stays("64, 128", "64, 64", turned));
  EXPECT_TRUE(stays("64, 64", "64, 128", turned));
  // A constant is packed once and for all.
  EXPECT_TRUE(stays("64, 64", "1", "nn.matmul(%x, ones(shape=[64, 64], dtype=\"bfloat16\"))"));
}

TEST(WidenHalfPrecision, a_matrix_unit_sums_float16_as_two_of_bfloat16) {
  const std::string head =
      "def @main(%x: Tensor[(16, 64), float16]) {\n"
      "  %0 = full(0.5f, shape=[32, 64], dtype=\"float16\");\n";
  expect_becomes(
      kWidenHalfPrecision, head + "  nn.dense(%x, %0)\n}",
      head +
          "  %1 = cast(%x, dtype=\"bfloat16\");\n"
          "  %2 = cast(subtract(cast(%x, dtype=\"float32\"), cast(%1, dtype=\"float32\")), "
          "dtype=\"bfloat16\");\n"
          "  %3 = cast(%0, dtype=\"bfloat16\");\n"
          "  %4 = cast(subtract(cast(%0, dtype=\"float32\"), cast(%3, dtype=\"float32\")), "
          "dtype=\"bfloat16\");\n"
          "  cast(nn.dense(concatenate((%1, %1, %2), axis=1), concatenate((%3, %4, %3), axis=1), "
          "out_dtype=\"float32\"), dtype=\"float16\")\n}",
      with_matrix_unit());
}

// Few results of a place do not pay for cutting what it reads in halves where minimal filtering takes the convolution.
TEST(WidenHalfPrecision, minimal_filtering_of_float16_is_in_float32) {
  auto convolution = [](int channels, int stride) {
    std::string c = std::to_string(channels), step = std::to_string(stride);
    return "def @main(%x: Tensor[(1, 32, 32, " + c +
           "), float16]) {\n  %0 = full(0.5f, shape=[3, 3, " + c + ", " + c +
           "], dtype=\"float16\");\n  nn.conv2d(%x, %0, strides=[" + step + ", " + step +
           "], padding=[1, 1, 1, 1], channels=" + c +
           ", kernel_size=[3, 3], data_layout=\"NHWC\", kernel_layout=\"HWIO\")\n}";
  };
  auto is_cut = [&](int channels, int stride) {
    Module out =
        apply(kWidenHalfPrecision, parse(convolution(channels, stride)), with_matrix_unit());
    return print_module(out).find("concatenate") != std::string::npos;
  };
  EXPECT_FALSE(is_cut(64, 1));
  EXPECT_TRUE(is_cut(64, 2));
  EXPECT_TRUE(is_cut(128, 1));
}

// A convolution of bfloat16 by 3x3 weights of as many channels on both sides, where vectors multiply pairs: whether it stays
// one of pairs. `image`: batch, height and width.
bool stays_pairs(const std::string& image, int64_t channels, bool constant,
                 const std::string& typical = "", const std::string& attrs = "") {
  PassContext ctx;
  ctx.target.vector_bits = 512;
  ctx.target.features = "+avx512vl,+avx512bf16";
  const std::string c = std::to_string(channels), weight = "(" + c + ", " + c + ", 3, 3), bfloat16";
  const std::string text =
      "def @main[n: Dim, h: Dim](%x: Tensor[(" + image + ", " + c + "), bfloat16]" +
      (constant ? "" : ", %w: Tensor[" + weight + "]") + typical + ") {\n  nn.conv2d(%x, " +
      (constant ? "ones(shape=[" + c + ", " + c + ", 3, 3], dtype=\"bfloat16\")" : "%w") +
      ", padding=[1, 1, 1, 1], data_layout=\"NHWC\"" + attrs + ")\n}";
  return print_module(apply(kWidenHalfPrecision, parse(text), ctx)).find("cast(%x") ==
         std::string::npos;
}

TEST(WidenHalfPrecision, minimal_filtering_of_bfloat16_pays_for_the_transforms_of_each_run) {
  EXPECT_FALSE(stays_pairs("8, 56, 56", 64, false));
  EXPECT_FALSE(stays_pairs("1, 56, 56", 64, false));
  EXPECT_FALSE(stays_pairs("8, 28, 28", 128, false));
  // Few results for so many weights: each run transforms these.
  EXPECT_TRUE(stays_pairs("1, 28, 28", 128, false));
  EXPECT_TRUE(stays_pairs("8, 14, 14", 256, false));
  EXPECT_TRUE(stays_pairs("8, 7, 7", 512, false));
  // Transformed once for all runs.
  EXPECT_FALSE(stays_pairs("1, 14, 14", 256, true));
  EXPECT_FALSE(stays_pairs("8, 7, 7", 512, true));
  EXPECT_TRUE(stays_pairs("1, 14, 14", 256, true, "", ", strides=[2, 2]"));
}

TEST(WidenHalfPrecision, pairs_of_bfloat16_in_images_of_symbolic_size) {
  auto typical = [](int64_t n, int64_t side) {
    return ", typical_sizes=[[\"n\", " + std::to_string(n) + "], [\"h\", " + std::to_string(side) +
           "]]";
  };
  EXPECT_TRUE(stays_pairs("n, h, h", 512, false));
  EXPECT_TRUE(stays_pairs("n, h, h", 64, false, "", ", strides=[2, 2]"));
  EXPECT_TRUE(stays_pairs("n, h, h", 512, false, typical(8, 7)));
  EXPECT_TRUE(stays_pairs("n, h, h", 64, false, typical(1, 14)));
  EXPECT_FALSE(stays_pairs("n, h, h", 64, false, typical(8, 28)));
  EXPECT_FALSE(stays_pairs("n, h, h", 64, false));  // 56 by 56
  // Which are of no named dimension.
  EXPECT_TRUE(stays_pairs("8, ?, ?", 64, false));
  // A sum of an odd number of products is no whole number of pairs.
  EXPECT_FALSE(stays_pairs("n, h, h", 33, false));
}

TEST(WidenHalfPrecision, other_dtypes_and_operators_stay) {
  expect_unchanged(kWidenHalfPrecision,
                   "def @main(%x: Tensor[(3, 5), float32], %w: Tensor[(4, 5), float32]) {\n"
                   "  nn.dense(%x, %w)\n}");
  expect_unchanged(kWidenHalfPrecision,
                   "def @main(%x: Tensor[(3, 5), float16]) { nn.softmax(add(%x, %x)) }");
}

}  // namespace
}  // namespace relay::pass_test
