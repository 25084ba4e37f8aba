#include "passes/fusion/fuse_ops.h"

#include <algorithm>

#include "node/walk.h"
#include "passes/test/pass_test.h"

namespace relay {
namespace {

// The kernels of @main as lists of operators, in order: "nn.dense nn.relu | exp".
std::string kernels(const std::string& text, PassContext ctx = {}) {
  Module out = pass_test::apply(kFuseOps, pass_test::parse(text), std::move(ctx));
  std::string list;
  post_order(
      out->find("main"),
      [&](const Node& n) {
        auto* c = as<CallNode>(&n);
        if (c == nullptr) return;
        auto* f = as<FunctionNode>(c->op);
        if (f == nullptr) return;
        EXPECT_TRUE(f->is_primitive());
        if (!list.empty()) list += " | ";
        std::string ops;
        post_order(
            f->body,
            [&](const Node& inner) {
              auto* op = called_op(Expr(static_cast<const ExprNode*>(&inner)));
              if (op != nullptr) ops += (ops.empty() ? "" : " ") + op->name;
            },
            family::expr);
        list += ops;
      },
      family::program);
  return list;
}

std::string on(const std::string& params, const std::string& body) {
  return "def @main(" + params + ") { " + body + " }";
}
const char* const kXW = "%x: Tensor[(4, 8), float32], %w: Tensor[(8, 8), float32]";

TEST(FuseOps, header_example) {
  pass_test::expect_becomes(
      kFuseOps,
      "def @main(%x: Tensor[(4, 8), float32], %w: Tensor[(8, 8), float32], %b: Tensor[(8,), "
      "float32]) { nn.relu(nn.bias_add(nn.dense(%x, %w), %b)) }",
      "def @main(%x: Tensor[(4, 8), float32], %w: Tensor[(8, 8), float32], %b: Tensor[(8,), "
      "float32]) {\n"
      "  (fn (%p0: Tensor[(4, 8), float32], %p1: Tensor[(8, 8), float32], %p2: Tensor[(8,), "
      "float32], Primitive=1) { nn.relu(nn.bias_add(nn.dense(%p0, %p1), %p2)) })(%x, %w, %b) }");
}

TEST(FuseOps, elementwise_chains_and_diamonds_are_one_kernel) {
  EXPECT_EQ(kernels(on(kXW, "exp(sqrt(nn.relu(%x)))")), "nn.relu sqrt exp");
  EXPECT_EQ(kernels(on(kXW, "%0 = exp(%x); add(sqrt(%0), tanh(%0))")), "exp sqrt tanh add");
}

TEST(FuseOps, nothing_is_fused_across_stop_fusion) {
  EXPECT_EQ(kernels(on(kXW, "exp(annotation.stop_fusion(nn.relu(%x)))")),
            "nn.relu | annotation.stop_fusion | exp");
}

TEST(FuseOps, a_kernel_of_its_own_begins_with_zeros) {
  const char* params =
      "%i: Tensor[(1, 2), int32], %u: Tensor[(2, 8), float32], %x: Tensor[(4, 8), float32]";
  auto added = [&](const std::string& data, const std::string& updates = "%u") {
    return "scatter_nd(" + data + ", %i, " + updates + ", mode=\"add\")";
  };
  const std::string zeros = "zeros(shape=[4, 8], dtype=\"float32\")";
  EXPECT_EQ(kernels(on(params, added(zeros))), "zeros scatter_nd");
  // Not what has operands, what others read too, and what is read in an order of the kernel's own.
  EXPECT_EQ(kernels(on(params, added("negative(%x)"))), "negative | scatter_nd");
  EXPECT_EQ(kernels(on(params, "%0 = " + zeros + "; add(" + added("%0") + ", sort(%0))")),
            "zeros | scatter_nd | sort | add");
  EXPECT_EQ(kernels(on(params, added("%x", "zeros(shape=[2, 8], dtype=\"float32\")"))),
            "zeros | scatter_nd");
  EXPECT_EQ(kernels(on(params, "annotation.stop_fusion(" + zeros + ")")),
            "zeros | annotation.stop_fusion");
}

TEST(FuseOps, scalars_become_immediates) {
  pass_test::expect_becomes(
      kFuseOps, "def @main(%x: Tensor[(4,), float32]) { add(%x, 2f) }",
      "def @main(%x: Tensor[(4,), float32]) {\n"
      "  (fn (%p0: Tensor[(4,), float32], Primitive=1) { add(%p0, 2f) })(%x) }");
}

TEST(FuseOps, a_heavy_operator_takes_its_epilogue_but_not_its_inputs) {
  EXPECT_EQ(kernels(on(kXW, "nn.relu(add(nn.dense(exp(%x), %w), 1f))")),
            "exp | nn.dense add nn.relu");
}

TEST(FuseOps, one_heavy_operator_a_kernel) {
  EXPECT_EQ(kernels(on(kXW, "nn.dense(nn.dense(%x, %w), %w)")), "nn.dense | nn.dense");
  EXPECT_EQ(kernels(on(kXW, "add(nn.dense(%x, %w), nn.dense(exp(%x), %w))")),
            "exp | nn.dense | nn.dense add");
}

TEST(FuseOps, an_epilogue_keeps_the_shape) {
  EXPECT_EQ(kernels(on(kXW, "add(nn.dense(%x, %w), broadcast_to(1f, shape=[2, 4, 8]))")),
            "nn.dense | broadcast_to add");
}

TEST(FuseOps, injective_operators_join_what_is_computed_by_index) {
  EXPECT_EQ(kernels(on(kXW, "exp(transpose(sqrt(%x)))")), "sqrt transpose exp");
  EXPECT_EQ(kernels(on(kXW, "concatenate((exp(%x), sqrt(%x)))")), "exp | sqrt | concatenate");
}

TEST(FuseOps, what_heavy_kernels_write_is_joined_in_memory) {
  const char* const heavy = "%0 = nn.dense(%x, %w); %1 = nn.dense(%0, %w); ";
  EXPECT_EQ(kernels(on(kXW, std::string(heavy) + "exp(concatenate((%0, %1)))")),
            "nn.dense | nn.dense | concatenate | exp");
  EXPECT_EQ(kernels(on(kXW, std::string(heavy) + "exp(concatenate((%0, %1), axis=1))")),
            "nn.dense | nn.dense | concatenate | exp");
  // What other functions made is read where it is.
  EXPECT_EQ(kernels(on(kXW, "exp(concatenate((%x, %w, sqrt(%x))))")), "sqrt | concatenate exp");
}

TEST(FuseOps, an_image_is_read_as_it_lies) {
  auto conv = [](int channels) {
    std::string c = std::to_string(channels);
    return on(
        "%x: Tensor[(1, " + c + ", 9, 9), float32], %w: Tensor[(8, 3, 3, " + c + "), float32]",
        "nn.conv2d(layout_transform(%x, src_layout=\"NCHW\", dst_layout=\"NHWC\"), %w, "
        "kernel_size=[3, 3], data_layout=\"NHWC\", kernel_layout=\"OHWI\")");
  };
  EXPECT_EQ(kernels(conv(3)), "layout_transform nn.conv2d");
  EXPECT_EQ(kernels(conv(16)), "layout_transform | nn.conv2d");
  // Rows are read whole.
  EXPECT_EQ(kernels(on("%x: Tensor[(1, 3, 9, 9), float32]",
                       "nn.softmax(transpose(%x, axes=[0, 2, 3, 1]))")),
            "transpose | nn.softmax");
}

TEST(FuseOps, few_rows_widen_a_matrix_as_they_read_it) {
  auto product = [](const std::string& rows, const std::string& body) {
    return kernels(
        on("%x: Tensor[(" + rows + ", 64), float32], %w: Tensor[(64, 64), bfloat16]", body));
  };
  const std::string dense = "nn.dense(%x, cast(%w, dtype=\"float32\"))";
  EXPECT_EQ(product("1", dense), "cast nn.dense");
  EXPECT_EQ(product("2, 4", dense), "cast nn.dense");
  EXPECT_EQ(product("9", dense), "cast | nn.dense");
  // Two products share what is widened once; the columns of a packed matrix are read by tiles.
  EXPECT_EQ(product("4", "%0 = cast(%w, dtype=\"float32\"); nn.dense(nn.dense(%x, %0), %0)"),
            "cast | nn.dense | nn.dense");
  EXPECT_EQ(product("4", "nn.matmul(%x, cast(%w, dtype=\"float32\"))"), "cast | nn.matmul");
}

TEST(FuseOps, a_product_selects_the_matrices_of_its_batch) {
  const char* params =
      "%x: Tensor[(4, 2, 8), float32], %w: Tensor[(4, 8, 8), float32], %i: Tensor[(4,), int64]";
  auto product = [](const std::string& a, const std::string& b) {
    return "nn.batch_matmul(" + a + ", " + b + ")";
  };
  EXPECT_EQ(kernels(on(params, product("%x", "take(%w, %i, axis=0)"))), "take nn.batch_matmul");
  // Its kernel may compute the indices, but not the matrices.
  EXPECT_EQ(kernels(on(params, product("%x", "take(%w, add(%i, 1i64), axis=0)"))),
            "add take nn.batch_matmul");
  EXPECT_EQ(kernels(on(params, product("%x", "take(exp(%w), %i, axis=0)"))),
            "exp take | nn.batch_matmul");
  // Rows of matrices, and matrices that others read, too, are copied.
  EXPECT_EQ(
      kernels(on(params, product("%w", "take(%w, zeros(shape=[8], dtype=\"int64\"), axis=1)"))),
      "zeros take | nn.batch_matmul");
  EXPECT_EQ(kernels(on(params, "%0 = take(%w, %i, axis=0); (%0, " + product("%x", "%0") + ")")),
            "take | nn.batch_matmul");
}

TEST(FuseOps, a_reduction_takes_what_comes_before_it) {
  EXPECT_EQ(kernels(on(kXW, "sum(exp(%x), axis=[1])")), "exp sum");
  EXPECT_EQ(kernels(on(kXW, "%0 = exp(%x); (sum(%0, axis=[1]), %0)")), "exp | sum");
}

TEST(FuseOps, a_reduction_takes_its_epilogue) {
  EXPECT_EQ(kernels(on(kXW, "sqrt(mean(exp(%x), axis=[1]))")), "exp mean sqrt");
  EXPECT_EQ(kernels(on(kXW, "transpose(mean(%x, axis=[1], keepdims=True))")), "mean | transpose");
}

TEST(FuseOps, what_works_by_rows_is_one_kernel) {
  EXPECT_EQ(kernels(on(kXW,
                       "%0 = mean(%x, axis=[-1], keepdims=True); %1 = subtract(%x, %0);"
                       "%2 = mean(multiply(%1, %1), axis=[-1], keepdims=True);"
                       "divide(%1, sqrt(add(%2, 1f)))")),
            "mean subtract multiply mean add sqrt divide");
  EXPECT_EQ(kernels(on(kXW,
                       "%0 = exp(subtract(%x, max(%x, axis=[1], keepdims=True)));"
                       "divide(%0, sum(%0, axis=[1], keepdims=True))")),
            "max subtract exp sum divide");
}

TEST(FuseOps, not_rows_of_two_kinds_nor_columns) {
  EXPECT_EQ(kernels(on(kXW, "subtract(%x, mean(%x, axis=[0], keepdims=True))")), "mean | subtract");
  EXPECT_EQ(kernels(on("%x: Tensor[(2, 3, 4), float32]",
                       "%0 = subtract(%x, mean(%x, axis=[2], keepdims=True));"
                       "subtract(%0, mean(%0, axis=[1, 2], keepdims=True))")),
            "mean subtract | mean subtract");
}

TEST(FuseOps, a_normalisation_takes_what_is_added_before_it) {
  EXPECT_EQ(kernels(on(kXW, "nn.relu(nn.softmax(add(%x, %x)))")), "add nn.softmax nn.relu");
  EXPECT_EQ(kernels(on("%x: Tensor[(4, 8), float32], %g: Tensor[(8,), float32]",
                       "nn.layer_norm(add(%x, %x), %g, %g)")),
            "add nn.layer_norm");
  EXPECT_EQ(kernels(on(kXW, "nn.softmax(add(nn.dense(%x, %w), %x))")), "nn.dense add | nn.softmax");
  EXPECT_EQ(kernels(on(kXW, "%0 = add(%x, %x); add(nn.softmax(%0), %0)")), "add | nn.softmax add");
}

TEST(FuseOps, rows_of_a_softmax_are_made_longer_where_they_are_written) {
  auto padded = [](const std::string& of, const std::string& widths,
                   const std::string& value = "0f", const std::string& row = "100") {
    const std::string params = "%x: Tensor[(4, " + row + "), float32], %w: Tensor[(100, " + row +
                               "), float32], %v: float32";
    return kernels(on(params, of + "nn.pad(%0, " + value + ", pad_width=[" + widths + "])"));
  };
  const std::string longer = "[0, 0], [0, 3]", more = "[0, 1], [0, 0]";
  EXPECT_EQ(padded("%0 = nn.softmax(exp(%x));", longer), "exp nn.softmax nn.pad");
  EXPECT_EQ(padded("%0 = nn.softmax(exp(%x));", more), "exp nn.softmax | nn.pad");
  EXPECT_EQ(padded("%0 = nn.softmax(exp(%x), axis=0);", longer), "exp nn.softmax | nn.pad");
  EXPECT_EQ(padded("%0 = nn.dense(%x, %w);", longer), "nn.dense | nn.pad");
  // Short rows and long ends, what is in front, and values of the run.
  const std::string apart = "nn.softmax | nn.pad", softmax = "%0 = nn.softmax(%x);";
  EXPECT_EQ(padded(softmax, longer, "0f", "63"), apart);
  EXPECT_EQ(padded(softmax, "[0, 0], [0, 101]"), apart);
  EXPECT_EQ(padded(softmax, "[0, 0], [3, 3]"), apart);
  EXPECT_EQ(padded(softmax, "[0, 0], [0, -3]"), apart);
  EXPECT_EQ(padded(softmax, longer, "%v"), apart);
  EXPECT_EQ(kernels(on("%x: Tensor[(4, 100), float32]",
                       "%0 = nn.softmax(%x); (%0, nn.pad(%0, 0f, pad_width=[[0, 0], [0, 3]]))")),
            apart);
  // Of a symbolic size up to a whole number of parts.
  auto open = [](const std::string& end) {
    return kernels(
        "def @main[n: Dim](%x: Tensor[(4, n), float32]) { nn.pad(nn.softmax(%x), 0f, "
        "pad_width=[[0, 0], [0, " +
        end + "]]) }");
  };
  EXPECT_EQ(open("ceildiv(n, 32) * 32 - n"), "nn.softmax nn.pad");
  EXPECT_EQ(open("n"), apart);
}

TEST(FuseOps, a_value_with_two_ways_out_is_computed_once) {
  EXPECT_EQ(kernels(on(kXW, "%0 = exp(%x); (%0, sqrt(%0))")), "exp | sqrt");
}

// What is heavy is computed tile by tile, and a tile has the shape of the heavy operator: also where
// other operators of its kernel went into a larger one before or after it did.
TEST(FuseOps, what_follows_a_heavy_operator_keeps_its_shape) {
  std::string params = std::string(kXW) + ", %b: Tensor[(3, 4, 8), float32]";
  EXPECT_EQ(
      kernels(on(params, "%0 = exp(%x); %1 = add(nn.dense(%x, %w), %0); add(add(%1, %b), %0)")),
      "exp | nn.dense add | add add");
  EXPECT_EQ(
      kernels(on(params, "%0 = exp(%x); %1 = add(nn.dense(%x, %w), %0); add(%0, add(%1, %b))")),
      "nn.dense | exp add add add");
  EXPECT_EQ(
      kernels(on(params, "%1 = nn.relu(nn.dense(%x, %w)); %2 = exp(%1); add(add(%2, %b), %1)")),
      "nn.dense nn.relu | exp add add");
  EXPECT_EQ(
      kernels(on(params, "%0 = exp(%x); %1 = add(nn.dense(%x, %w), %0); add(nn.relu(%1), %0)")),
      "nn.dense exp add nn.relu add");
}

// A value that meets another only at the end of the program: what lies between the two is looked at
// as far as a kernel reaches.
TEST(FuseOps, takes_no_longer_for_values_that_meet_late) {
  std::string body = "%0 = exp(%x); %1 = exp(%0); %2 = exp(%1); ";
  constexpr int kLength = 4000;
  for (int i = 3; i < kLength; ++i) {
    auto value = [&](int back) { return "%" + std::to_string(i - back); };
    body += value(0) + " = add(" + value(1) + ", " + value(3) + "); ";
  }
  body += "sqrt(%" + std::to_string(kLength - 1) + ")";
  std::string list = kernels(on("%x: Tensor[(4,), float32]", body));
  EXPECT_GT(std::ranges::count(list, '|'), 0);
}

TEST(FuseOps, not_across_scopes_or_effects) {
  EXPECT_EQ(
      kernels(on("%x: float32, %c: bool", "%0 = exp(%x); if (%c) { sqrt(%0) } else { tanh(%0) }")),
      "exp | sqrt | tanh");
  EXPECT_EQ(kernels(on("%x: float32", "let %f = fn () { exp(%x) }; sqrt(%f())")), "exp | sqrt");
  EXPECT_EQ(kernels(on("%r: ref(float32)", "exp(ref_read(%r))")), "exp");
}

TEST(FuseOps, kernels_stay_as_they_are) {
  pass_test::expect_unchanged(
      kFuseOps, "def @main(%x: float32) { (fn (%p: float32, Primitive=1) { exp(exp(%p)) })(%x) }");
}

TEST(FuseOps, level_zero_and_max_depth_limit_a_kernel) {
  PassContext ctx;
  ctx.opt_level = 0;
  EXPECT_EQ(kernels(on(kXW, "exp(sqrt(%x))"), ctx), "sqrt | exp");
  ctx.opt_level = 3;
  ctx.config["relay.FuseOps.max_depth"] = AttrValue(int64_t{2});
  EXPECT_EQ(kernels(on(kXW, "exp(sqrt(tanh(nn.relu(%x))))"), ctx), "nn.relu tanh | sqrt exp");
}

// Why the kernels of @main end, the last one first; "-" for no reason.
std::string reasons(const std::string& body) {
  Module out = pass_test::apply(kFuseOps, pass_test::parse(on(kXW, body)));
  std::string text;
  post_order(
      out->find("main"),
      [&](const Node& n) {
        auto* f = as<FunctionNode>(&n);
        if (f == nullptr || !f->is_primitive()) return;
        auto it = f->attrs.find(attr::kFusionReason);
        if (!text.empty()) text += " | ";
        text += it == f->attrs.end() ? "-" : *it->second.get_if<std::string>();
      },
      family::expr);
  return text;
}

TEST(FuseOps, says_which_operator_a_kernel_does_not_take_and_why) {
  EXPECT_EQ(reasons("sum(nn.dense(%x, %w), axis=[1])"),
            "- | sum: no element-wise epilogue of the same shape");
  EXPECT_EQ(reasons("nn.dense(nn.dense(%x, %w), %w)"),
            "- | nn.dense: no element-wise epilogue of the same shape");
  EXPECT_EQ(reasons("(nn.dense(nn.relu(%x), %w), nn.relu(%x))").find("element-wise"),
            std::string::npos);
  EXPECT_EQ(reasons("nn.relu(nn.dense(%x, %w))"), "-");
}

}  // namespace
}  // namespace relay
