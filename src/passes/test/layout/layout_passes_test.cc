// FoldScaleAxis, ConvertLayout and AlterOpLayout.
#include <algorithm>
#include <array>
#include <cmath>

#include "eval/evaluator.h"
#include "ir/op.h"
#include "node/walk.h"
#include "passes/layout/alter_op_layout.h"
#include "passes/layout/convert_layout.h"
#include "passes/simplify/fold_constant.h"
#include "passes/simplify/fold_scale_axis.h"
#include "passes/test/evaluate.h"
#include "passes/test/pass_test.h"

namespace relay {
namespace {

using pass_test::expect_becomes;
using pass_test::expect_unchanged;
using pass_test::folding_context;

// Weights are constant expressions, which is what these passes ask for.
const std::string kConv =
    "nn.conv2d(%x, ones(shape=[8, 3, 3, 3], dtype=\"float32\"), padding=[1, 1, 1, 1])";
const std::string kParam = "%x: Tensor[(1, 3, 8, 8), float32]";

std::string conv(const std::string& body) { return "def @main(" + kParam + ") { " + body + " }"; }
std::string dense(const std::string& body) {
  return "def @main(%x: Tensor[(4, 6), float32], %p: Tensor[(8, 6), float32]) { " + body + " }";
}
const std::string kScale = "full(2f, shape=[8, 1, 1], dtype=\"float32\")";
const std::string kWeight = "ones(shape=[8, 6], dtype=\"float32\")";

TEST(FoldScaleAxis, into_a_convolution) {
  expect_becomes(kFoldScaleAxis, conv("multiply(" + kConv + ", " + kScale + ")"),
                 conv("nn.conv2d(%x, multiply(ones(shape=[8, 3, 3, 3], dtype=\"float32\"), "
                      "reshape(" +
                      kScale + ", newshape=[8, 1, 1, 1])), padding=[1, 1, 1, 1])"),
                 folding_context());
}

TEST(FoldScaleAxis, into_the_columns_of_a_product) {
  auto product = [](const std::string& body) {
    return "def @main(%x: Tensor[(2, 3), float32]) { " + body + " }";
  };
  expect_becomes(kFoldScaleAxis,
                 product("multiply(nn.matmul(%x, ones(shape=[3, 8], dtype=\"float32\")), "
                         "full(2f, shape=[8], dtype=\"float32\"))"),
                 product("nn.matmul(%x, multiply(ones(shape=[3, 8], dtype=\"float32\"), "
                         "reshape(full(2f, shape=[8], dtype=\"float32\"), newshape=[1, 8])))"),
                 folding_context());
}

TEST(FoldScaleAxis, through_a_bias) {
  expect_becomes(kFoldScaleAxis,
                 dense("multiply(add(nn.dense(%x, " + kWeight +
                       "), 3f), full(2f, shape=[8], "
                       "dtype=\"float32\"))"),
                 dense("%0 = full(2f, shape=[8], dtype=\"float32\");\n"
                       "add(nn.dense(%x, multiply(" +
                       kWeight +
                       ", reshape(%0, newshape=[8, 1]))), "
                       "multiply(3f, %0))"),
                 folding_context());
}

TEST(FoldScaleAxis, not_where_it_must_not) {
  // No constant weight; a scale along another axis; a scale that is not a constant; a second user.
  expect_unchanged(kFoldScaleAxis,
                   dense("multiply(nn.dense(%x, %p), full(2f, shape=[8], dtype=\"float32\"))"),
                   folding_context());
  expect_unchanged(kFoldScaleAxis,
                   conv("multiply(" + kConv + ", full(2f, shape=[8, 1], dtype=\"float32\"))"),
                   folding_context());
  expect_unchanged(kFoldScaleAxis, conv("multiply(" + kConv + ", sum(%x))"), folding_context());
  expect_unchanged(kFoldScaleAxis,
                   conv("%0 = " + kConv + "; (multiply(%0, " + kScale + "), nn.relu(%0))"),
                   folding_context());
  expect_unchanged(kFoldScaleAxis, conv("multiply(" + kConv + ", " + kScale + ")"));
}

// The layout_transforms and the operators' data layouts, in order.
std::string layouts(const Module& mod) {
  std::string out;
  post_order(
      mod->find("main"),
      [&](const Node& n) {
        auto* c = as<CallNode>(&n);
        auto* op = c == nullptr ? nullptr : as<OpNode>(c->op);
        if (op == nullptr) return;
        auto text = [&](const char* key) {
          return *attr_value(c->attrs, key).get_if<std::string>();
        };
        if (!out.empty()) out += " ";
        if (op->name == "layout_transform") {
          out += text("src_layout") + ">" + text("dst_layout");
        } else if (op->name.find("nn.conv2d") != std::string::npos) {
          out += op->name + ":" + text("data_layout") + "/" + text("kernel_layout");
        } else {
          out += op->name;
        }
      },
      family::program);
  return out;
}

std::string converted(const std::string& text, const PassContext& ctx = {}) {
  return layouts(pass_test::apply(kConvertLayout, pass_test::parse(text), ctx));
}

TEST(ConvertLayout, a_region_of_convolutions_is_converted_at_its_border) {
  EXPECT_EQ(converted("def @main(%x: Tensor[(1, 3, 8, 8), float32], %w: Tensor[(8, 3, 3, 3), "
                      "float32], %v: Tensor[(4, 8, 1, 1), float32]) {\n"
                      "  nn.conv2d(nn.relu(nn.conv2d(%x, %w)), %v) }"),
            "NCHW>NHWC nn.conv2d:NHWC/OIHW nn.relu nn.conv2d:NHWC/OIHW NHWC>NCHW");
}

TEST(ConvertLayout, operands_of_lower_rank_follow) {
  EXPECT_EQ(converted("def @main(%x: Tensor[(1, 3, 8, 8), float32], %w: Tensor[(8, 3, 3, 3), "
                      "float32], %b: Tensor[(8, 1, 1), float32]) {\n"
                      "  add(nn.conv2d(%x, %w), %b) }"),
            "NCHW>NHWC nn.conv2d:NHWC/OIHW expand_dims NCHW>NHWC add NHWC>NCHW");
}

TEST(ConvertLayout, slices_are_cut_along_the_axes_that_moved) {
  const std::string text =
      "def @main(%x: Tensor[(1, 3, 8, 8), float32], %w: Tensor[(8, 3, 3, 3), float32]) {\n"
      "  strided_slice(nn.conv2d(%x, %w), begin=[2, 1], end=[7, 6], strides=[1, 2], axes=[1, -1]) "
      "}";
  EXPECT_EQ(converted(text), "NCHW>NHWC nn.conv2d:NHWC/OIHW strided_slice NHWC>NCHW");
  const Module before = pass_test::parse(text);
  Tensor want = pass_test::results(before)[0];
  Tensor got = pass_test::results(pass_test::apply(kConvertLayout, before))[0];
  ASSERT_EQ(got.num_elements(), want.num_elements());
  for (int64_t i = 0; i < want.num_elements(); ++i)
    EXPECT_NEAR(got.get_as_double(i), want.get_as_double(i), 1e-4) << i;
}

// A convolution that multiplies each channel by one, of a tensor in that layout; `x` has its shape.
std::string ones_conv(const std::string& x, const TensorTypeNode& type, const std::string& layout) {
  const std::string channels = to_string(type.shape[layout.find('C')]);
  std::string kernel = channels + ", 1", sizes, kernel_layout = "OI";
  for (char axis : std::string("DHW").substr(5 - layout.size())) {
    kernel += ", 1";
    sizes += sizes.empty() ? "1" : ", 1";
    kernel_layout += axis;
  }
  return "nn.conv" + std::to_string(layout.size() - 2) + "d(" + x + ", ones(shape=[" + kernel +
         "], dtype=\"float32\"), groups=" + channels + ", channels=" + channels +
         ", kernel_size=[" + sizes + "], data_layout=\"" + layout + "\", kernel_layout=\"" +
         kernel_layout + "\")";
}

// The call with the tensors of the first one's rank from convolutions, of which every second is in
// `layout` and the others in `other`; with `first_only` the first alone is. Empty where the first is no
// float32 tensor of that rank.
std::string behind_convolutions(const std::string& op, const std::vector<std::string>& args,
                                const std::string& attrs, const std::string& layout,
                                const std::string& other, bool first_only) {
  const auto rank = static_cast<int64_t>(layout.size());
  std::string params, operands;
  int seen = 0, made = 0;
  auto operand = [&](const Type& type) {
    std::string name = "%p" + std::to_string(seen++);
    params += (params.empty() ? "" : ", ") + name + ": " + to_string(type);
    auto* t = as<TensorTypeNode>(type);
    const bool fits =
        t != nullptr && t->dtype.is_float(32) && t->const_shape() && t->rank() == rank;
    if (!fits || (first_only && made > 0)) return name;
    return ones_conv(name, *t, made++ % 2 == 0 ? layout : other);
  };
  for (const std::string& text : args) {
    Type type = parse_type(text);
    std::string whole;
    if (auto* t = as<TupleTypeNode>(type)) {
      for (const Type& field : t->fields) whole += (whole.empty() ? "" : ", ") + operand(field);
      whole = "(" + whole + (t->fields.size() == 1 ? ",)" : ")");
    } else {
      whole = operand(type);
    }
    if (made == 0) return {};
    operands += (operands.empty() ? "" : ", ") + whole;
  }
  return "def @main(" + params + ") { " + op + "(" + operands +
         (attrs.empty() ? "" : ", " + attrs) + ") }";
}

struct ExampleCall {
  std::string op;
  std::vector<std::string> args;
  std::string attrs;
};

// The examples of all rows with a layout rule; and those that name axes with each axis.
std::vector<ExampleCall> calls_with_layout_rules() {
  std::vector<ExampleCall> out;
  for (const Op& op : OpRegistry::global().all()) {
    if (op->row->layout == nullptr) continue;
    for (const OpExample& e : op->row->examples) out.push_back({op->row->name, e.args, e.attrs});
  }
  const std::string kData = "Tensor[(2, 3, 4, 5), float32]";
  for (int axis = -4; axis < 4; ++axis) {
    const std::string at = std::to_string(axis);
    const std::string size = std::to_string(2 + (axis + 4) % 4);
    out.push_back({"concatenate", {"(" + kData + ", " + kData + ")"}, "axis=" + at});
    out.push_back({"strided_slice", {kData}, "begin=[1], end=[2], axes=[" + at + "]"});
    out.push_back({"nn.bias_add", {kData, "Tensor[(" + size + ",), float32]"}, "axis=" + at});
    out.push_back({"nn.prelu", {kData, "Tensor[(" + size + ",), float32]"}, "axis=" + at});
    for (const char* op : {"sum", "max", "mean", "argmax"})
      out.push_back({op, {kData}, "axis=[" + at + "], keepdims=True"});
    out.push_back({"sum", {kData}, "axis=[" + at + "], exclude=True, keepdims=True"});
  }
  out.push_back(
      {"strided_slice", {kData}, "begin=[0, 1, 3, 4], end=[2, 3, 0, 0], strides=[1, 1, -1, -2]"});
  out.push_back({"add", {kData, kData}, ""});
  out.push_back({"multiply", {kData, "Tensor[(4, 5), float32]"}, ""});
  return out;
}

// Every row with a layout rule, behind convolutions of all layouts, converted to the first and the
// last channels: the same numbers as before.
TEST(ConvertLayout, every_layout_rule_keeps_the_values) {
  register_ops();
  const std::vector<std::vector<std::string>> layouts{
      {"NCW", "NWC", "CWN"}, {"NCHW", "NHWC", "HWCN"}, {"NCDHW", "NDHWC", "CDWHN"}};
  size_t converted = 0;
  for (const ExampleCall& c : calls_with_layout_rules()) {
    for (const std::vector<std::string>& of_rank : layouts) {
      for (size_t i = 0; i < of_rank.size(); ++i) {
        for (bool first_only : {true, false}) {
          const std::string text = behind_convolutions(
              c.op, c.args, c.attrs, of_rank[i], of_rank[(i + 1) % of_rank.size()], first_only);
          if (text.empty()) continue;
          for (size_t wanted : {size_t{0}, size_t{1}}) {
            SCOPED_TRACE(of_rank[wanted] + ": " + text);
            Module before = pass_test::parse(text);
            PassContext ctx;
            const std::string conv = "nn.conv" + std::to_string(of_rank[0].size() - 2) + "d";
            ctx.config["relay.ConvertLayout." + conv] = AttrValue(of_rank[wanted]);
            Module after = pass_test::apply(kConvertLayout, before, ctx);
            if (after == before) continue;
            ++converted;
            std::vector<Tensor> want = pass_test::results(before), got = pass_test::results(after);
            ASSERT_EQ(got.size(), want.size());
            for (size_t k = 0; k < want.size(); ++k) {
              ASSERT_TRUE(std::ranges::equal(got[k].shape(), want[k].shape()));
              for (int64_t at = 0; at < want[k].num_elements(); ++at) {
                const double x = got[k].get_as_double(at), y = want[k].get_as_double(at);
                ASSERT_TRUE((std::isnan(x) && std::isnan(y)) || x == y ||
                            std::abs(x - y) <= 1e-4 * (1 + std::abs(y)))
                    << "element " << at << ": " << x << " for " << y << "\n"
                    << print_module(after);
              }
            }
          }
        }
      }
    }
  }
  EXPECT_GT(converted, 500u);
}

TEST(ConvertLayout, operators_of_a_region_keep_their_axes_from_either_layout) {
  // A program with the channels last, converted to the channels first: one region.
  PassContext ctx;
  ctx.config["relay.ConvertLayout.nn.conv2d"] = AttrValue(std::string("NCHW"));
  EXPECT_EQ(
      converted("def @main(%x: Tensor[(1, 8, 8, 3), float32], %w: Tensor[(8, 3, 3, 3), float32], "
                "%v: Tensor[(4, 16, 1, 1), float32]) {\n"
                "  %0 = nn.conv2d(%x, %w, data_layout=\"NHWC\");\n"
                "  %1 = concatenate((nn.relu(%0), %0), axis=-1);\n"
                "  nn.conv2d(strided_slice(%1, begin=[1], end=[5], axes=[1]), %v, "
                "data_layout=\"NHWC\") }",
                ctx),
      "NHWC>NCHW nn.conv2d:NCHW/OIHW nn.relu concatenate strided_slice nn.conv2d:NCHW/OIHW "
      "NCHW>NHWC");
}

// The program in other layouts, as `converted` says it, gives the same numbers.
void expect_converted(const std::string& text, const PassContext& ctx,
                      const std::string& expected) {
  const Module before = pass_test::parse(text);
  const Module after = pass_test::apply(kConvertLayout, before, ctx);
  EXPECT_EQ(layouts(after), expected);
  const std::vector<Tensor> want = pass_test::results(before), got = pass_test::results(after);
  ASSERT_EQ(got.size(), want.size());
  for (size_t k = 0; k < want.size(); ++k) {
    ASSERT_TRUE(std::ranges::equal(got[k].shape(), want[k].shape()));
    for (int64_t i = 0; i < want[k].num_elements(); ++i) {
      const double x = want[k].get_as_double(i);
      EXPECT_NEAR(got[k].get_as_double(i), x, 1e-5 * (1 + std::abs(x))) << i;
    }
  }
}

TEST(ConvertLayout, quantised_regions_and_their_weights_are_converted) {
  PassContext ctx;
  ctx.config["relay.ConvertLayout.qnn.conv2d"] = AttrValue(std::string("NHWC,HWIO"));
  const std::string text =
      "def @main(%x: Tensor[(1, 3, 6, 5), int8], %w: Tensor[(4, 3, 3, 3), int8], "
      "%v: Tensor[(4, 4, 1, 1), int8], %s: Tensor[(4,), float32]) {\n"
      "  %0 = qnn.conv2d(%x, %w, 3, 0, 0.5f, %s, padding=[1, 1]);\n"
      "  %1 = qnn.requantize(%0, %s, 0, 40f, 2, axis=1);\n"
      "  %2 = qnn.conv2d(%1, %v, 2, 0, 40f, %s);\n"
      "  %3 = qnn.requantize(%2, %s, 0, 900f, -1, axis=1);\n"
      "  %4 = qnn.add(%1, %3, 40f, 2, 900f, -1, 1000f, 0);\n"
      "  %5 = qnn.avg_pool2d(%4, 1000f, 0, 500f, 3, pool_size=[2, 2]);\n"
      "  qnn.dequantize(%5, 500f, 3) }";
  expect_converted(text, ctx,
                   "NCHW>NHWC OIHW>HWIO qnn.conv2d:NHWC/HWIO qnn.requantize OIHW>HWIO "
                   "qnn.conv2d:NHWC/HWIO qnn.requantize qnn.add qnn.avg_pool2d qnn.dequantize "
                   "NHWC>NCHW");
}

TEST(ConvertLayout, a_sum_of_quantised_tensors_that_broadcasts_stays) {
  PassContext ctx;
  ctx.config["relay.ConvertLayout.qnn.conv2d"] = AttrValue(std::string("NHWC"));
  expect_converted(
      "def @main(%x: Tensor[(1, 3, 4, 4), int8], %w: Tensor[(4, 3, 1, 1), int8], "
      "%b: Tensor[(4,), int8]) {\n"
      "  %0 = qnn.requantize(qnn.conv2d(%x, %w, 3, 0, 0.5f, 0.25f), 0.125f, 0, 20f, 2);\n"
      "  qnn.add(%0, %b, 20f, 2, 3f, 1, 50f, 0) }",
      ctx, "NCHW>NHWC qnn.conv2d:NHWC/OIHW qnn.requantize NHWC>NCHW qnn.add");
}

TEST(ConvertLayout, resizes_begin_a_region) {
  PassContext ctx;
  ctx.config["relay.ConvertLayout.image.resize2d"] = AttrValue(std::string("NHWC"));
  expect_converted(
      "def @main(%x: Tensor[(2, 3, 4, 5), float32], %b: Tensor[(3,), float32]) {\n"
      "  nn.relu(nn.bias_add(image.resize2d(%x, size=[7, 8], method=\"cubic\"), %b)) }",
      ctx, "NCHW>NHWC image.resize2d nn.bias_add nn.relu NHWC>NCHW");
}

TEST(ConvertLayout, weights_of_convolutions_are_converted_where_it_is_asked_for) {
  PassContext ctx;
  ctx.config["relay.ConvertLayout.nn.conv2d"] = AttrValue(std::string("NHWC,OHWI"));
  expect_converted(
      "def @main(%x: Tensor[(1, 4, 6, 5), float32], %w: Tensor[(4, 2, 3, 3), float32]) {\n"
      "  nn.conv2d(%x, %w, groups=2) }",
      ctx, "NCHW>NHWC OIHW>OHWI nn.conv2d:NHWC/OHWI NHWC>NCHW");
}

TEST(ConvertLayout, what_declines_gets_the_original_back) {
  EXPECT_EQ(converted("def @main(%x: Tensor[(1, 3, 8, 8), float32], %w: Tensor[(8, 3, 3, 3), "
                      "float32]) { reshape(nn.conv2d(%x, %w), newshape=[8, 36]) }"),
            "NCHW>NHWC nn.conv2d:NHWC/OIHW NHWC>NCHW reshape");
}

TEST(ConvertLayout, desired_layouts_are_named_in_the_config) {
  PassContext ctx;
  ctx.config["relay.ConvertLayout.nn.conv2d"] = AttrValue(std::string("NCHW"));
  expect_unchanged(kConvertLayout,
                   "def @main(%x: Tensor[(1, 3, 8, 8), float32], %w: Tensor[(8, 3, 3, 3), "
                   "float32]) { nn.conv2d(%x, %w) }",
                   ctx);
}

TEST(ConvertLayout, layouts_with_other_axes_are_refused) {
  for (const std::string text :
       {"XYZ", "NCHWX", "NHC", "N16c", "", "NHWC,", "NHWC,NHWC", ",HWIO"}) {
    PassContext ctx;
    ctx.config["relay.ConvertLayout.nn.conv2d"] = AttrValue(text);
    try {
      converted(conv(kConv), ctx);
      ADD_FAILURE() << "accepted " << text;
    } catch (const UserError& e) {
      EXPECT_EQ(std::string(e.diagnostics().front().code), "E0313") << text;
    }
  }
}

// Columns are as good lanes as channels, so that only a neighbour in another layout is a reason to change it; not where lines
// are short, where a sum runs over channels, and where the config asks for it.
TEST(ConvertLayout, convolutions_of_each_channel_stay_where_their_lines_are_long) {
  PassContext ctx = folding_context();
  ctx.target.vector_bits = 512;
  auto layouts_of = [&](int64_t size, int64_t groups, const std::string& operand) {
    const std::string side = std::to_string(size);
    return converted("def @main(%x: Tensor[(1, 8, " + side + ", " + side +
                         "), float32], %w: Tensor[(8, " + std::to_string(8 / groups) +
                         ", 3, 3), float32], %v: Tensor[(8, 8, 1, 1), float32]) { nn.conv2d(" +
                         operand + ", %w, padding=[1, 1, 1, 1], groups=" + std::to_string(groups) +
                         ") }",
                     ctx);
  };
  const std::string stays = "nn.conv2d:NCHW/OIHW",
                    changes = "NCHW>NHWC nn.conv2d:NHWC/OIHW NHWC>NCHW";
  EXPECT_EQ(layouts_of(28, 8, "%x"), stays);
  EXPECT_EQ(layouts_of(14, 8, "nn.relu(%x)"), "nn.relu " + stays);
  EXPECT_EQ(layouts_of(20, 8, "%x"), changes);
  EXPECT_EQ(layouts_of(28, 4, "%x"), changes);
  EXPECT_EQ(layouts_of(28, 8, "nn.conv2d(%x, %v)"),
            "NCHW>NHWC nn.conv2d:NHWC/OIHW nn.conv2d:NHWC/OIHW NHWC>NCHW");
  ctx.config["relay.ConvertLayout.nn.conv2d"] = AttrValue(std::string("NHWC"));
  EXPECT_EQ(layouts_of(28, 8, "%x"), changes);
  // A device whose work items are lanes.
  ctx.config.clear();
  ctx.target.has_blocked_kernels = false;
  EXPECT_EQ(layouts_of(28, 4, "%x"), stays);
  ctx.config["relay.ConvertLayout.channels_last"] = AttrValue(true);
  EXPECT_EQ(layouts_of(28, 4, "%x"), changes);
  EXPECT_EQ(layouts_of(28, 8, "%x"), stays) << "too few channels for lanes";
}

// Weights are packed for neighbouring work items: of a convolution of each channel, where its channels are neighbours.
TEST(AlterOpLayout, columns_of_work_items_are_last) {
  auto kernel_of = [](const std::string& layout, int64_t groups) {
    PassContext ctx = folding_context();
    ctx.target.has_blocked_kernels = false;
    ctx.config["relay.AlterOpLayout.columns_last"] = AttrValue(true);
    const std::string x = layout == "NHWC" ? "1, 8, 8, 32" : "1, 32, 8, 8";
    const std::string inputs = std::to_string(32 / groups);
    return layouts(
        pass_test::apply(kAlterOpLayout,
                         pass_test::parse("def @main(%x: Tensor[(" + x +
                                          "), float32]) { nn.conv2d(%x, ones(shape=[32, " + inputs +
                                          ", 3, 3], dtype=\"float32\"), data_layout=\"" + layout +
                                          "\", groups=" + std::to_string(groups) + ") }"),
                         ctx));
  };
  EXPECT_EQ(kernel_of("NHWC", 1), "ones OIHW>OHWI16o nn.conv2d:NHWC/OHWI16o");
  EXPECT_EQ(kernel_of("NCHW", 1), "ones OIHW>OIHW16o nn.conv2d:NCHW/OIHW16o");
  EXPECT_EQ(kernel_of("NHWC", 32), "ones OIHW>HWIO nn.conv2d:NHWC/HWIO");
  EXPECT_EQ(kernel_of("NCHW", 32), "ones nn.conv2d:NCHW/OIHW");
  EXPECT_EQ(kernel_of("NHWC", 4), "ones nn.conv2d:NHWC/OIHW");
}

TEST(ConvertLayout, not_without_a_convolution_or_a_target_that_asks) {
  expect_unchanged(kConvertLayout, conv("nn.relu(%x)"));
  PassContext ctx;
  ctx.target.has_blocked_kernels = false;
  expect_unchanged(kConvertLayout, conv(kConv), ctx);
}

std::string altered(const std::string& text, int64_t vector_bits = 512) {
  PassContext ctx = folding_context();
  ctx.target.vector_bits = vector_bits;
  return layouts(pass_test::apply(kAlterOpLayout, pass_test::parse(text), ctx));
}

TEST(AlterOpLayout, a_constant_matrix_is_packed) {
  EXPECT_EQ(altered(dense("nn.dense(%x, " + kWeight + ")")), "ones NC>NC8n nn.contrib_dense_pack");
}

TEST(AlterOpLayout, a_weight_that_each_run_transforms_is_packed_before_that) {
  auto filtered = [](const std::string& weight) {
    return "def @main(%x: Tensor[(1, 9, 9, 16), float32], %w: Tensor[(32, 16, 3, 3), float32]) {\n"
           "  %0 = nn.contrib_conv2d_winograd_weight_transform(" +
           weight +
           ");\n"
           "  %1 = nn.contrib_conv2d_winograd_without_weight_transform(%x, %0, "
           "data_layout=\"NHWC\", channels=32, kernel_size=[3, 3]);\n"
           "  %2 = nn.contrib_conv2d_winograd_without_weight_transform(nn.relu(%x), %0, "
           "data_layout=\"NHWC\", channels=32, kernel_size=[3, 3]);\n"
           "  add(%1, %2)\n}";
  };
  const std::string transform = "nn.contrib_conv2d_winograd_weight_transform";
  const std::string sum = "nn.contrib_conv2d_winograd_without_weight_transform";
  // Once for both.
  EXPECT_EQ(altered(filtered("%w")),
            "OIHW>OHWI32o " + transform + " " + sum + " nn.relu " + sum + " add");
  EXPECT_EQ(altered(filtered("ones(shape=[32, 16, 3, 3], dtype=\"float32\")")),
            "ones " + transform + " HWOI>HWOI32o " + sum + " nn.relu " + sum + " add");
}

// An image that is flattened in the other layout, times a weight that is the same for both.
std::string flattened(const std::string& weight) {
  return "def @main(%x: Tensor[(2, 3, 5, 4), float32]) {\n"
         "  %0 = layout_transform(%x, src_layout=\"NHWC\", dst_layout=\"NCHW\");\n"
         "  nn.dense(nn.batch_flatten(%0), " +
         weight + ")\n}";
}

TEST(AlterOpLayout, the_columns_of_a_weight_follow_the_data) {
  EXPECT_EQ(altered(flattened("ones(shape=[7, 60], dtype=\"float32\")")),
            "reshape ones reshape transpose reshape NC>NC8n nn.contrib_dense_pack");
  Module before = pass_test::parse(
      flattened("reshape(cumsum(ones(shape=[420], dtype=\"float32\")), newshape=[7, 60])"));
  PassContext ctx = folding_context();
  ctx.target.vector_bits = 512;
  Module after = pass_test::apply(kAlterOpLayout, before, ctx);
  Tensor x = Tensor::empty(DType::Float(32), {2, 3, 5, 4});
  for (int64_t i = 0; i < x.num_elements(); ++i) x.data<float>()[i] = static_cast<float>(i % 7);
  Tensor want = Evaluator(before).call("main", {x}).tensor();
  Tensor got = Evaluator(after).call("main", {x}).tensor();
  ASSERT_EQ(want.num_elements(), got.num_elements());
  for (int64_t i = 0; i < want.num_elements(); ++i) {
    EXPECT_EQ(want.data<float>()[i], got.data<float>()[i]);  // small integers: sums are exact
  }
}

// A grouped convolution over 4, 4x5 or 4x5x3 places with weights that differ, three along each
// axis, and its packed form's group count.
std::string grouped(int channels, int outputs, int groups, Module* before = nullptr,
                    Module* after = nullptr, size_t dims = 2) {
  int inputs = channels / groups;
  const std::array<std::string, 3> spaces{"W", "HW", "DHW"}, places{"4", "4, 5", "4, 5, 3"},
      threes{"3", "3, 3", "3, 3, 3"}, ones{"1", "1, 1", "1, 1, 1"};
  const std::string &space = spaces[dims - 1], &size = threes[dims - 1];
  const std::string name = "nn.conv" + std::to_string(dims) + "d";
  std::string weight = std::to_string(outputs) + ", " + std::to_string(inputs) + ", " + size;
  int elements = outputs * inputs;
  for (size_t d = 0; d < dims; ++d) elements *= 3;
  Module mod = pass_test::parse(
      "def @main(%x: Tensor[(1, " + places[dims - 1] + ", " + std::to_string(channels) +
      "), float32]) {\n  " + name + "(%x, reshape(cumsum(ones(shape=[" + std::to_string(elements) +
      "], dtype=\"float32\")), newshape=[" + weight + "]), kernel_size=[" + size + "], padding=[" +
      ones[dims - 1] + "], groups=" + std::to_string(groups) + ", data_layout=\"N" + space +
      "C\", kernel_layout=\"OI" + space + "\") }");
  PassContext ctx = folding_context();
  ctx.target.vector_bits = 512;
  Module packed = pass_test::apply(kAlterOpLayout, mod, ctx);
  std::string out = "unchanged";
  post_order(
      packed->find("main"),
      [&](const Node& n) {
        auto* c = as<CallNode>(&n);
        if (c == nullptr || !is_call_to(Expr(c), name)) return;
        std::string layout = *attr_value(c->attrs, "kernel_layout").get_if<std::string>();
        if (layout != "OI" + space) {
          out = layout + " " + std::to_string(*attr_value(c->attrs, "groups").get_if<int64_t>());
        }
      },
      family::expr);
  if (before != nullptr) *before = mod;
  if (after != nullptr) *after = packed;
  return out;
}

TEST(AlterOpLayout, groups_fill_panels) {
  EXPECT_EQ(grouped(8, 64, 2), "OHWI32o 2");
  EXPECT_EQ(grouped(8, 64, 1), "OHWI32o 1");
  EXPECT_EQ(grouped(16, 64, 8), "OHWI16o 4");
  EXPECT_EQ(grouped(16, 192, 4), "OHWI16o 4");
  EXPECT_EQ(grouped(32, 16, 16), "HWIO 16");  // 16 merged: mostly zeros
  EXPECT_EQ(grouped(10, 40, 5), "OHWI8o 5");  // two of five
  EXPECT_EQ(grouped(8, 40, 2), "OHWI20o 2");  // no whole vectors
  EXPECT_EQ(grouped(12, 12, 4), "HWIO 4");    // 3 of 16 lanes
  EXPECT_EQ(grouped(8, 64, 2, nullptr, nullptr, 1), "OWI32o 2");
  EXPECT_EQ(grouped(8, 8, 8, nullptr, nullptr, 1), "WIO 8");
  EXPECT_EQ(grouped(16, 64, 8, nullptr, nullptr, 3), "ODHWI16o 4");
  EXPECT_EQ(grouped(8, 64, 1, nullptr, nullptr, 3), "ODHWI32o 1");
  for (auto [channels, outputs, groups, dims] :
       {std::array{8, 64, 2, 2}, std::array{16, 64, 8, 2}, std::array{16, 64, 8, 1},
        std::array{4, 64, 2, 3}, std::array{3, 33, 1, 1}, std::array{6, 6, 6, 3},
        std::array{8, 24, 2, 2}}) {
    Module before, after;
    grouped(channels, outputs, groups, &before, &after, static_cast<size_t>(dims));
    std::vector<int64_t> shape{1, 4, 5, 3};
    shape.resize(static_cast<size_t>(dims) + 1);
    shape.push_back(channels);
    Tensor x = Tensor::empty(DType::Float(32), shape);
    for (int64_t i = 0; i < x.num_elements(); ++i) x.data<float>()[i] = static_cast<float>(i % 5);
    Tensor want = Evaluator(before).call("main", {x}).tensor();
    Tensor got = Evaluator(after).call("main", {x}).tensor();
    for (int64_t i = 0; i < want.num_elements(); ++i) {
      ASSERT_EQ(want.data<float>()[i], got.data<float>()[i]);  // small integers: sums are exact
    }
  }
}

TEST(AlterOpLayout, bytes_stand_in_fours_where_the_target_multiplies_them_so) {
  auto packed = [](const std::string& data, const std::string& weight, int64_t inputs, bool dots) {
    PassContext ctx = folding_context();
    ctx.target.vector_bits = 512;
    if (dots) ctx.target.features = "+avx512vl,+avx512vnni";
    std::string k = std::to_string(inputs);
    std::string text = "def @main(%x: Tensor[(5, " + k + "), " + data +
                       "]) {\n  nn.dense(%x, ones(shape=[7, " + k + "], dtype=\"" + weight +
                       "\"), out_dtype=\"int32\") }";
    return layouts(pass_test::apply(kAlterOpLayout, pass_test::parse(text), ctx));
  };
  EXPECT_EQ(packed("uint8", "int8", 8, true), "ones NC>NC32n4c nn.contrib_dense_pack");
  EXPECT_EQ(packed("uint8", "int8", 8, false), "ones NC>NC8n nn.contrib_dense_pack");
  EXPECT_EQ(packed("uint8", "int8", 6, true),
            "nn.pad ones nn.pad NC>NC32n4c nn.contrib_dense_pack");
  EXPECT_EQ(packed("uint8", "int8", 6, false), "ones NC>NC8n nn.contrib_dense_pack");
  EXPECT_EQ(packed("uint8", "int8", 1, true), "ones NC>NC8n nn.contrib_dense_pack");
  EXPECT_EQ(packed("int8", "int8", 8, false), "ones NC>NC8n nn.contrib_dense_pack");
}

TEST(AlterOpLayout, words_of_a_matrix_unit_stand_together) {
  // 0 rows: a run says how many.
  auto packed = [](const std::string& dtype, const std::string& sum, int64_t rows, int64_t inputs) {
    PassContext ctx = folding_context();
    ctx.target.vector_bits = 512;
    ctx.target.features = "+avx512vl,+avx512vnni,+amx-tile,+amx-int8,+amx-bf16";
    std::string k = std::to_string(inputs);
    std::string text = "def @main" + std::string(rows == 0 ? "[n: Dim]" : "") + "(%x: Tensor[(" +
                       (rows == 0 ? "n" : std::to_string(rows)) + ", " + k + "), " + dtype +
                       "]) {\n  nn.dense(%x, ones(shape=[64, " + k + "], dtype=\"" + dtype +
                       "\"), out_dtype=\"" + sum + "\") }";
    return layouts(pass_test::apply(kAlterOpLayout, pass_test::parse(text), ctx));
  };
  EXPECT_EQ(packed("bfloat16", "float32", 5, 64), "ones NC>NC32n2c nn.contrib_dense_pack");
  // Signed bytes need no shift.
  EXPECT_EQ(packed("int8", "int32", 5, 64), "ones NC>NC32n4c nn.contrib_dense_pack");
  EXPECT_EQ(packed("bfloat16", "float32", 0, 64), "ones NC>NC32n2c nn.contrib_dense_pack");
  EXPECT_EQ(packed("int8", "int32", 0, 64), "ones NC>NC32n4c nn.contrib_dense_pack");
  EXPECT_EQ(packed("uint8", "int32", 5, 64), "ones NC>NC32n4c nn.contrib_dense_pack");
  // No whole number of words.
  EXPECT_EQ(packed("bfloat16", "float32", 5, 63), "ones NC>NC32n nn.contrib_dense_pack");
}

TEST(AlterOpLayout, pairs_of_bfloat16_stand_together_where_vectors_multiply_them) {
  auto packed = [](const std::string& features, const std::string& dtype, int64_t inputs) {
    PassContext ctx = folding_context();
    ctx.target.vector_bits = 512;
    ctx.target.features = features;
    const std::string k = std::to_string(inputs);
    const std::string text = "def @main(%x: Tensor[(5, " + k + "), " + dtype +
                             "]) {\n  nn.dense(%x, ones(shape=[64, " + k + "], dtype=\"" + dtype +
                             "\"), out_dtype=\"float32\") }";
    return layouts(pass_test::apply(kAlterOpLayout, pass_test::parse(text), ctx));
  };
  const std::string pairs = "ones NC>NC32n2c nn.contrib_dense_pack",
                    columns = "ones NC>NC32n nn.contrib_dense_pack";
  EXPECT_EQ(packed("+avx512vl,+avx512bf16", "bfloat16", 64), pairs);
  EXPECT_EQ(packed("+avx512vl,+avx512bf16", "bfloat16", 63), columns);
  EXPECT_EQ(packed("+avx512vl,+avx512bf16", "float16", 64), columns);
  EXPECT_EQ(packed("+avx512bf16", "bfloat16", 64), columns);
  EXPECT_EQ(packed("+avx512vl", "bfloat16", 64), columns);
}

// Bytes of any signs by four at once, where the target multiplies unsigned ones by signed ones; sums are exact at the ends
// of what bytes hold, however long they are.
TEST(AlterOpLayout, unsigned_weights_are_shifted_and_sums_stay) {
  PassContext ctx = folding_context();
  ctx.target.vector_bits = 512;
  ctx.target.features = "+avx512vl,+avx512vnni";
  // Of 299 elements a row ends within a word.
  for (const auto& [data, k] : {std::pair<std::string, int64_t>{"int8", 300},
                                {"uint8", 300},
                                {"int8", 299},
                                {"uint8", 298}}) {
    const std::string inputs = std::to_string(k);
    for (const std::string rows : {"3", "2, 3", "n"}) {
      const std::string head = rows == "n" ? "def @main[n: Dim]" : "def @main";
      Module mod = pass_test::parse(head + "(%x: Tensor[(" + rows + ", " + inputs + "), " + data +
                                    "], %w: Tensor[(5, " + inputs +
                                    "), uint8]) {\n"
                                    "  nn.dense(%x, %w, out_dtype=\"int32\") }");
      Tensor w = Tensor::empty(DType::UInt(8), {5, k});
      for (int64_t i = 0; i < w.num_elements(); ++i)
        w.set_from_int(i, i < 2 * k ? 255 : i * 83 % 256);
      mod = map_functions(mod, [&](const GlobalVar&, const Function& f) {
        NodeRef body = substitute(f->body, {{f->params[1].get(), constant(w)}}, family::expr);
        return function({f->params[0]}, Expr::unchecked(body), f->ret_type, f->type_params);
      });
      Module after = pass_test::apply(kAlterOpLayout, mod, ctx);
      EXPECT_NE(layouts(after).find("NC>NC32n4c nn.contrib_dense_pack"), std::string::npos)
          << print_module(after);
      const bool is_signed = data == "int8";
      Tensor x = Tensor::empty(
          is_signed ? DType::Int(8) : DType::UInt(8),
          rows == "2, 3" ? std::vector<int64_t>{2, 3, k} : std::vector<int64_t>{3, k});
      for (int64_t i = 0; i < x.num_elements(); ++i) {
        const int64_t low = is_signed ? -128 : 0;
        x.set_from_int(i, i < k ? low : i < 2 * k ? low + 255 : low + i * 37 % 256);
      }
      Tensor got = Evaluator(after).call("main", {x}).tensor();
      for (int64_t i = 0; i < got.num_elements(); ++i) {
        int64_t want = 0;
        for (int64_t n = 0; n < k; ++n) {
          want += x.get_as_int(i / 5 * k + n) * w.get_as_int(i % 5 * k + n);
        }
        ASSERT_EQ(got.get_as_int(i), want) << data << " rows " << rows << " element " << i;
      }
    }
  }
}

TEST(AlterOpLayout, signed_bytes_are_shifted_and_sums_stay) {
  PassContext ctx = folding_context();
  ctx.target.vector_bits = 512;
  ctx.target.features = "+avx512vl,+avx512vnni";
  auto bytes = [](const std::vector<int64_t>& shape, int64_t step) {
    Tensor t = Tensor::empty(DType::Int(8), shape);
    for (int64_t i = 0; i < t.num_elements(); ++i) t.set_from_int(i, (i * step) % 256 - 128);
    return t;
  };
  struct Program {
    std::string text;
    std::vector<int64_t> data, weight;
  };
  for (const Program& p :
       {Program{"def @main(%x: Tensor[(3, 8), int8], %w: Tensor[(5, 8), int8]) {\n"
                "  nn.dense(%x, %w, out_dtype=\"int32\") }",
                {3, 8},
                {5, 8}},
        Program{"def @main(%x: Tensor[(3, 9), int8], %w: Tensor[(5, 9), int8]) {\n"
                "  nn.dense(%x, %w, out_dtype=\"int32\") }",
                {3, 9},
                {5, 9}},
        Program{"def @main(%x: Tensor[(1, 6, 3), int8], %w: Tensor[(7, 3, 3), int8]) {\n"
                "  nn.conv1d(%x, %w, padding=[1, 0], strides=[2], kernel_size=[3],\n"
                "            data_layout=\"NWC\", out_dtype=\"int32\") }",
                {1, 6, 3},
                {7, 3, 3}},
        Program{"def @main(%x: Tensor[(1, 5, 6, 4), int8], %w: Tensor[(7, 4, 3, 3), int8]) {\n"
                "  nn.conv2d(%x, %w, padding=[1, 0, 2, 1], strides=[2, 1], kernel_size=[3, 3],\n"
                "            data_layout=\"NHWC\", out_dtype=\"int32\") }",
                {1, 5, 6, 4},
                {7, 4, 3, 3}},
        // Three channels get a fourth of zeros.
        Program{"def @main(%x: Tensor[(1, 5, 6, 3), int8], %w: Tensor[(7, 3, 3, 3), int8]) {\n"
                "  nn.conv2d(%x, %w, padding=[1, 0, 2, 1], strides=[2, 1], kernel_size=[3, 3],\n"
                "            data_layout=\"NHWC\", out_dtype=\"int32\") }",
                {1, 5, 6, 3},
                {7, 3, 3, 3}}}) {
    Module mod = map_functions(pass_test::parse(p.text), [&](const GlobalVar&, const Function& f) {
      NodeRef body =
          substitute(f->body, {{f->params[1].get(), constant(bytes(p.weight, 83))}}, family::expr);
      return function({f->params[0]}, Expr::unchecked(body), f->ret_type);
    });
    Module after = pass_test::apply(kAlterOpLayout, mod, ctx);
    EXPECT_NE(layouts(after).find("4"), std::string::npos) << print_module(after);
    Tensor x = bytes(p.data, 37);
    Tensor want = Evaluator(mod).call("main", {x}).tensor();
    Tensor got = Evaluator(after).call("main", {x}).tensor();
    ASSERT_EQ(want.num_elements(), got.num_elements());
    for (int64_t i = 0; i < want.num_elements(); ++i) {
      ASSERT_EQ(want.get_as_int(i), got.get_as_int(i)) << p.text << " element " << i;
    }
  }
}

TEST(AlterOpLayout, panels_follow_the_dtype_and_any_matrix_of_constants_is_packed) {
  EXPECT_EQ(altered("def @main(%x: Tensor[(5, 6), float64]) {\n"
                    "  nn.dense(%x, ones(shape=[7, 6], dtype=\"float64\")) }"),
            "ones NC>NC8n nn.contrib_dense_pack");
  EXPECT_EQ(altered("def @main(%x: Tensor[(5, 6), float32]) {\n"
                    "  nn.matmul(%x, ones(shape=[6, 7], dtype=\"float32\")) }"),
            "ones CN>NC8n nn.contrib_dense_pack");
  EXPECT_EQ(altered("def @main[n: Dim](%x: Tensor[(n, 5, 5, 4), float32]) {\n"
                    "  nn.conv2d(%x, ones(shape=[8, 4, 1, 1], dtype=\"float32\"), "
                    "kernel_size=[1, 1], data_layout=\"NHWC\") }"),
            "ones OIHW>OHWI8o nn.conv2d:NHWC/OHWI8o");
  // The smallest vector that holds the columns, up to two whole ones.
  for (const auto& [columns, panel] : {std::pair<const char*, const char*>{"2", "4"},
                                       {"4", "4"},
                                       {"5", "8"},
                                       {"9", "16"},
                                       {"16", "16"},
                                       {"17", "32"},
                                       {"64", "32"}}) {
    EXPECT_EQ(altered(dense(std::string("nn.dense(%x, ones(shape=[") + columns +
                            ", 6], dtype=\"float32\"))")),
              std::string("ones NC>NC") + panel + "n nn.contrib_dense_pack");
  }
}

TEST(AlterOpLayout, columns_that_are_part_of_an_image_stay_in_order) {
  EXPECT_EQ(altered("def @main(%x: Tensor[(2, 3, 5, 4), float32]) {\n"
                    "  %0 = layout_transform(%x, src_layout=\"NHWC\", dst_layout=\"NCHW\");\n"
                    "  nn.dense(reshape(%0, newshape=[2, 4, 15]), "
                    "ones(shape=[7, 15], dtype=\"float32\")) }"),
            "NHWC>NCHW reshape ones NC>NC8n nn.contrib_dense_pack");
}

TEST(AlterOpLayout, one_column_needs_no_panel) {
  EXPECT_EQ(altered(dense("nn.dense(%x, ones(shape=[1, 6], dtype=\"float32\"))")), "ones nn.dense");
  EXPECT_EQ(altered("def @main(%x: Tensor[(1, 5, 5, 4), float32]) {\n"
                    "  nn.conv2d(%x, ones(shape=[1, 4, 1, 1], dtype=\"float32\"), "
                    "kernel_size=[1, 1], data_layout=\"NHWC\") }"),
            "ones OIHW>OHWI nn.conv2d:NHWC/OHWI");
}

TEST(AlterOpLayout, few_results_are_computed_in_planes) {
  auto of_results = [](int64_t results, int64_t width, int64_t kernel) {
    const std::string k = std::to_string(kernel);
    return altered("def @main(%x: Tensor[(1, 5, " + std::to_string(width) +
                   ", 4), float32]) {\n  nn.conv2d(%x, ones(shape=[" + std::to_string(results) +
                   ", 4, " + k + ", " + k + "], dtype=\"float32\"), data_layout=\"NHWC\") }");
  };
  const std::string planes = "NHWC>NCHW ones nn.conv2d:NCHW/OIHW NCHW>NHWC";
  EXPECT_EQ(of_results(1, 18, 3), planes);
  EXPECT_EQ(of_results(8, 18, 3), planes);
  EXPECT_EQ(of_results(3, 33, 3), planes);
  // Half of the lanes have results; the second vector of columns is mostly empty; a line is short; no window.
  EXPECT_EQ(of_results(9, 18, 3), "ones OIHW>OHWI16o nn.conv2d:NHWC/OHWI16o");
  EXPECT_EQ(of_results(8, 19, 3), "ones OIHW>OHWI8o nn.conv2d:NHWC/OHWI8o");
  EXPECT_EQ(of_results(1, 9, 3), "ones OIHW>OHWI nn.conv2d:NHWC/OHWI");
  EXPECT_EQ(of_results(1, 16, 1), "ones OIHW>OHWI nn.conv2d:NHWC/OHWI");
}

TEST(AlterOpLayout, softmax_before_few_columns_is_taken_along_rows) {
  auto of = [](const char* shape, const char* axis) {
    return altered("def @main(%x: Tensor[(" + std::string(shape) +
                   "), float32]) { nn.softmax(%x, axis=" + axis + ") }");
  };
  const std::string turned = "transpose nn.softmax transpose";
  EXPECT_EQ(of("99, 2", "0"), turned);
  EXPECT_EQ(of("4, 99, 2, 3", "1"), turned);
  EXPECT_EQ(of("99, 20", "0"), "nn.softmax");
  EXPECT_EQ(of("99, 1", "0"), "nn.softmax");
  EXPECT_EQ(of("9, 2", "0"), "nn.softmax");
  EXPECT_EQ(of("2, 99", "1"), "nn.softmax");
}

TEST(AlterOpLayout, planes_of_few_channels_are_the_columns_of_a_product) {
  auto of_channels = [](int64_t inputs, int64_t results, const char* more, bool planes,
                        int64_t groups = 1, const std::string& by_element = "") {
    const std::string back = "layout_transform(", to = ", src_layout=\"NWC\", dst_layout=\"NCW\")";
    return altered(
        "def @main(%x: Tensor[(2, " + std::to_string(inputs) + ", 40), float32]) {\n  " +
        (planes ? back : "nn.relu(") + by_element + (by_element.empty() ? "" : "(") +
        "nn.conv1d(layout_transform(%x, src_layout=\"NCW\", dst_layout=\"NWC\"), "
        "ones(shape=[" +
        std::to_string(results) + ", " + std::to_string(inputs / groups) +
        ", 1], dtype=\"float32\"), data_layout=\"NWC\", groups=" + std::to_string(groups) + more +
        (by_element.empty() ? ")" : "))") + (planes ? to : ")") + " }");
  };
  const std::string product = "reshape nn.batch_matmul";
  EXPECT_NE(of_channels(24, 2, "", true).find(product), std::string::npos);
  EXPECT_NE(of_channels(24, 1, "", false).find(product), std::string::npos);
  EXPECT_NE(of_channels(1, 24, "", true).find(product), std::string::npos);
  EXPECT_NE(of_channels(24, 24, "", true, 1, "tanh").find(product), std::string::npos);
  EXPECT_EQ(of_channels(24, 24, "", true, 1, "nn.softmax").find(product), std::string::npos);
  // Many channels, few of each group; the groups of each item are a product of their own.
  EXPECT_NE(of_channels(48, 48, "", true, 12).find("tile"), std::string::npos);
  EXPECT_EQ(of_channels(48, 48, "", true, 48).find(product), std::string::npos);
  // Many channels on both sides; results that stay pixels; steps; a border.
  EXPECT_EQ(of_channels(160, 160, "", true).find(product), std::string::npos);
  EXPECT_EQ(of_channels(24, 2, "", false).find(product), std::string::npos);
  EXPECT_EQ(of_channels(24, 2, ", strides=[2]", true).find(product), std::string::npos);
  EXPECT_EQ(of_channels(24, 2, ", padding=[1, 1]", true).find(product), std::string::npos);
}

TEST(AlterOpLayout, planes_are_columns_in_each_region_between_changes_of_the_layout) {
  auto products = [](const std::string& result) {
    const std::string ones = "ones(shape=[2, 24, 1], dtype=\"float32\"), data_layout=\"NWC\")";
    const std::string after = altered(
        "def @main(%x: Tensor[(2, 24, 40), float32]) {\n"
        "  %0 = layout_transform(%x, src_layout=\"NCW\", dst_layout=\"NWC\");\n"
        "  %1 = nn.conv1d(%0, " +
        ones +
        ";\n  %2 = layout_transform(%1, src_layout=\"NWC\", dst_layout=\"NCW\");\n"
        "  %3 = concatenate((%2, %x), axis=1);\n"
        "  %4 = layout_transform(%3, src_layout=\"NCW\", dst_layout=\"NWC\");\n"
        "  %5 = nn.conv1d(%4, ones(shape=[2, 26, 1], dtype=\"float32\"), data_layout=\"NWC\");\n"
        "  %6 = layout_transform(%5, src_layout=\"NWC\", dst_layout=\"NCW\");\n  " +
        result + "\n}");
    size_t count = 0;
    const std::string product = "nn.batch_matmul";
    for (size_t at = after.find(product); at != after.npos; at = after.find(product, at + 1))
      ++count;
    return count;
  };
  EXPECT_EQ(products("%6"), 2u);
  // Pixels that a tuple takes, or the function's result, stay pixels.
  EXPECT_EQ(products("(%6, %5)"), 1u);
  EXPECT_EQ(products("(%6, %1)"), 1u);
  EXPECT_EQ(products("let %y = %6;\n  %5"), 1u);
}

TEST(AlterOpLayout, what_several_rows_are_multiplied_with_is_packed_at_every_call) {
  EXPECT_EQ(altered("def @main(%x: Tensor[(2, 6), float32], %p: Tensor[(8, 6), float32]) {\n"
                    "  nn.dense(%x, %p) }"),
            "NC>NC8n nn.contrib_dense_pack");
  EXPECT_EQ(altered("def @main(%x: Tensor[(1, 5, 5, 4), float32], "
                    "%p: Tensor[(8, 4, 3, 3), float32]) {\n"
                    "  nn.conv2d(%x, %p, kernel_size=[3, 3], data_layout=\"NHWC\") }"),
            "OIHW>OHWI8o nn.conv2d:NHWC/OHWI8o");
  EXPECT_EQ(altered("def @main(%x: Tensor[(3, 5, 4), float32], %y: Tensor[(3, 6, 4), float32]) {\n"
                    "  nn.batch_matmul(%x, %y, transpose_b=True) }"),
            "transpose nn.batch_matmul");
}

// Long sums of few rows go along the rows of the weight, but not those of more rows than packing pays for.
TEST(AlterOpLayout, few_rows_take_a_weight_of_the_run_as_it_is) {
  auto product = [](const char* x, const char* p, const char* call) {
    return altered("def @main(%x: Tensor[(" + std::string(x) + "), float32], %p: Tensor[(" + p +
                   "), float32]) {\n  " + call + " }");
  };
  EXPECT_EQ(product("8, 256", "24, 256", "nn.dense(%x, %p)"), "nn.dense");
  EXPECT_EQ(product("1, 8, 256", "24, 256", "nn.dense(%x, %p)"), "nn.dense");
  // Rows of several axes, which no tile takes together.
  for (const char* x : {"2, 4, 256", "8, 1, 256"}) {
    EXPECT_EQ(product(x, "24, 256", "nn.dense(%x, %p)"), "NC>NC32n nn.contrib_dense_pack") << x;
  }
  EXPECT_EQ(product("33, 256", "24, 256", "nn.dense(%x, %p)"), "NC>NC32n nn.contrib_dense_pack");
  EXPECT_EQ(product("8, 255", "24, 255", "nn.dense(%x, %p)"), "NC>NC32n nn.contrib_dense_pack");
  EXPECT_EQ(product("17, 256", "256, 256", "nn.dense(nn.dense(%x, %p), %p)"),
            "NC>NC32n nn.contrib_dense_pack nn.contrib_dense_pack");
  // More rows, of any axes, by a matrix whose panels the kernel makes, but not by one that several products share.
  EXPECT_EQ(altered("def @main[n: Dim](%x: Tensor[(n, 8, 64), float32], %p: Tensor[(2048, 64), "
                    "float32]) {\n  nn.dense(%x, %p) }"),
            "nn.dense");
  for (const char* x : {"40, 64", "5, 8, 64", "1024, 64"}) {
    EXPECT_EQ(product(x, "2048, 64", "nn.dense(%x, %p)"), "nn.dense") << x;
  }
  EXPECT_EQ(product("512, 64", "9, 9", "nn.dense(%x, %x)"), "NC>NC32n nn.contrib_dense_pack");
  EXPECT_EQ(product("1025, 64", "2048, 64", "nn.dense(%x, %p)"), "NC>NC32n nn.contrib_dense_pack");
  EXPECT_EQ(product("40, 2048", "2048, 2048", "nn.dense(nn.dense(%x, %p), %p)"),
            "NC>NC32n nn.contrib_dense_pack nn.contrib_dense_pack");
}

TEST(AlterOpLayout, columns_of_open_sizes_are_neighbours) {
  auto product = [](const char* x, const char* y, const std::string& call) {
    return altered("def @main[n: Dim, m: Dim](%x: Tensor[(" + std::string(x) +
                   "), float32], %y: Tensor[(" + y + "), float32]) {\n  " + call + " }");
  };
  EXPECT_EQ(product("n, 6", "m, 6", "nn.dense(%x, %y)"), "transpose nn.matmul");
  EXPECT_EQ(product("2, 3, n", "8, n", "nn.dense(%x, %y)"), "transpose nn.matmul");
  EXPECT_EQ(product("n, 6", "n, m", "nn.matmul(%x, %y, transpose_a=True)"), "nn.matmul");
  EXPECT_EQ(product("n, 6", "m, n", "nn.matmul(%x, %y, transpose_a=True, transpose_b=True)"),
            "transpose nn.matmul");
  EXPECT_EQ(product("3, n, 6", "3, m, 6", "nn.batch_matmul(%x, %y, transpose_b=True)"),
            "transpose nn.batch_matmul");
  EXPECT_EQ(product("3, n, 6", "3, 6, m", "nn.batch_matmul(%x, %y, transpose_b=False)"),
            "nn.batch_matmul");
  // One row, one column.
  EXPECT_EQ(product("1, 6", "m, 6", "nn.dense(%x, %y)"), "nn.dense");
  EXPECT_EQ(product("3, 1, 6", "3, m, 6", "nn.batch_matmul(%x, %y, transpose_b=True)"),
            "nn.batch_matmul");
  EXPECT_EQ(product("m, n", "1, n", "nn.dense(%x, %y)"), "nn.dense");
}

TEST(AlterOpLayout, columns_in_index_notation_are_neighbours) {
  auto product = [](const char* x, const char* y, const char* equation) {
    Module mod =
        pass_test::parse("def @main(%x: Tensor[(" + std::string(x) + "), float32], %y: Tensor[(" +
                         y + "), float32]) {\n  einsum((%x, %y), equation=\"" + equation + "\") }");
    PassContext ctx = folding_context();
    std::string out;
    post_order(pass_test::apply(kAlterOpLayout, mod, ctx)->find("main"), [&](const Node& n) {
      auto* c = as<CallNode>(&n);
      if (c == nullptr) return;
      for (const char* name : {"equation", "axes"}) {
        if (c->attrs == nullptr || c->attrs->info().find(name) == nullptr) continue;
        out += (out.empty() ? "" : " ") + to_string(attr_value(c->attrs, name));
      }
    });
    return out;
  };
  EXPECT_EQ(product("5, 4", "6, 4", "ij,kj->ik"), "[1, 0] \"ac,cb->ab\"");
  EXPECT_EQ(product("5, 4", "4, 6", "ij,jk->ki"), "[1, 0] \"ca,cb->ab\"");
  EXPECT_EQ(product("2, 5, 3, 8", "2, 7, 3, 8", "bqhd,bkhd->bhqk"),
            "[0, 2, 3, 1] \"acbe,abed->abcd\"");
  // What is read as it lies, one row, one column, nothing that is summed, elements of both, a diagonal.
  EXPECT_EQ(product("5, 4", "4, 6", "ij,jk->ik"), "\"ij,jk->ik\"");
  EXPECT_EQ(product("1, 4", "6, 4", "ij,kj->ik"), "\"ij,kj->ik\"");
  EXPECT_EQ(product("5, 4", "1, 4", "ij,kj->ik"), "\"ij,kj->ik\"");
  EXPECT_EQ(product("4", "6, 4", "j,kj->k"), "\"j,kj->k\"");
  EXPECT_EQ(product("5", "6, 5", "i,ki->ki"), "\"i,ki->ki\"");
  EXPECT_EQ(product("5, 4", "6, 4", "ij,kj->ikj"), "\"ij,kj->ikj\"");
  EXPECT_EQ(product("4, 4", "6, 4", "jj,kj->jk"), "\"jj,kj->jk\"");
}

TEST(AlterOpLayout, matrices_with_rows_far_apart_are_turned_and_packed) {
  auto product = [](const char* x, const char* y, const char* transpose_a) {
    return altered("def @main(%x: Tensor[(" + std::string(x) + "), float32], %y: Tensor[(" + y +
                   "), float32]) {\n  nn.matmul(%x, %y, transpose_a=" + transpose_a + ") }");
  };
  EXPECT_EQ(product("70000, 128", "70000, 64", "True"), "transpose nn.matmul");
  EXPECT_EQ(product("70000, 64", "70000, 128", "True"), "transpose CN>NC32n nn.contrib_dense_pack");
  EXPECT_EQ(product("64, 70000", "70000, 128", "False"), "CN>NC32n nn.contrib_dense_pack");
  EXPECT_EQ(product("70000, 127", "70000, 64", "True"), "nn.matmul");
  EXPECT_EQ(product("70000, 128", "70000, 63", "True"), "nn.matmul");
  EXPECT_EQ(product("63, 70000", "70000, 128", "False"), "nn.matmul");
  // Where one of them stays in the cache both are read as they lie; a weight has to be the one.
  EXPECT_EQ(product("70, 128", "70, 64", "True"), "nn.matmul");
  EXPECT_EQ(product("70, 70000", "70, 128", "True"), "nn.matmul");
  EXPECT_EQ(product("70, 128", "70, 70000", "True"), "nn.matmul");
  EXPECT_EQ(product("64, 70", "70, 128", "False"), "nn.matmul");
  // The kernel copies panels of a matrix where these stay in the cache, for some rows and enough columns.
  EXPECT_EQ(product("64, 70", "70, 70000", "False"), "nn.matmul");
  EXPECT_EQ(product("1024, 70", "70, 70000", "False"), "nn.matmul");
  EXPECT_EQ(product("1025, 70", "70, 70000", "False"), "CN>NC32n nn.contrib_dense_pack");
  EXPECT_EQ(product("64, 8000", "8000, 128", "False"), "CN>NC32n nn.contrib_dense_pack");
}

// As the adjoints of a dense layer are.
TEST(AlterOpLayout, matrices_that_are_turned_in_front_of_a_product_are_read_as_they_were) {
  auto product = [](const char* x, const char* y, const std::string& body) {
    return altered("def @main[s: Dim](%x: Tensor[(" + std::string(x) + "), float32], %y: Tensor[(" +
                   y + "), float32]) {\n  " + body + " }");
  };
  const std::string layer = "nn.dense(%x, transpose(%y, axes=[1, 0]))",
                    weight = "nn.matmul(transpose(%x, axes=[1, 0]), %y)";
  EXPECT_EQ(product("64, 70", "70, 128", layer), "nn.matmul");
  EXPECT_EQ(product("s, 70", "70, 128", layer), "nn.matmul");
  EXPECT_EQ(product("70, 128", "70, 64", weight), "nn.matmul");
  EXPECT_EQ(product("s, 128", "s, 64", weight), "nn.matmul");
  EXPECT_EQ(product("70, 128", "70, 64", "nn.dense(transpose(%x), transpose(%y))"), "nn.matmul");
  // Large ones, and those of more dimensions, are packed from what they were; not where only the other operand is turned, or the
  // kernel copies panels of them.
  EXPECT_EQ(product("64, 70000", "70000, 128", layer), "CN>NC32n nn.contrib_dense_pack");
  EXPECT_EQ(product("256, 512", "512, 1024", layer), "nn.matmul");
  EXPECT_EQ(product("2000, 512", "512, 1024", layer), "CN>NC32n nn.contrib_dense_pack");
  EXPECT_EQ(product("s, 512", "512, 1024", layer), "nn.matmul");
  EXPECT_EQ(product("256, 512", "1024, 512", "nn.dense(%x, %y)"), "nn.dense");
  EXPECT_EQ(product("2, 64, 70", "70, 128", layer), "CN>NC32n nn.contrib_dense_pack");
  EXPECT_EQ(product("s, 512", "s, 512", weight), "transpose CN>NC32n nn.contrib_dense_pack");
  EXPECT_EQ(product("s, 512", "s, 512", "nn.matmul(%x, %y, transpose_a=True)"),
            "transpose CN>NC32n nn.contrib_dense_pack");
  EXPECT_EQ(product("512, s", "s, 512", "nn.matmul(%x, %y)"), "CN>NC32n nn.contrib_dense_pack");
  EXPECT_EQ(product("s, 2048", "s, 63", weight), "transpose nn.matmul");
  // Small ones whose rows share the sets of a cache: distances of 4 KB, and of 4 KB and a line.
  EXPECT_EQ(product("512, 1024", "512, 128", weight), "transpose nn.matmul");
  EXPECT_EQ(product("512, 128", "512, 1024", weight), "transpose nn.matmul");
  EXPECT_EQ(product("512, 1040", "512, 128", weight), "nn.matmul");
  EXPECT_EQ(product("100, 1024", "100, 128", weight), "nn.matmul");
  // Those that leave no room beside them in L2.
  EXPECT_EQ(product("512, 384", "512, 128", weight), "nn.matmul");
  EXPECT_EQ(product("512, 384", "512, 192", weight), "transpose nn.matmul");
  EXPECT_EQ(product("5000, 384", "5000, 192", weight), "transpose CN>NC32n nn.contrib_dense_pack");
  EXPECT_EQ(product("70, 128", "64, 70", "nn.dense(transpose(%x, axes=[1, 0]), %y)"),
            "transpose NC>NC32n nn.contrib_dense_pack");
}

// A tile reads a part of a line of each row.
TEST(AlterOpLayout, vectors_shorter_than_a_line_read_no_matrix_as_it_lies) {
  auto product = [](const char* x, const char* y, const std::string& body) {
    return altered("def @main[s: Dim](%x: Tensor[(" + std::string(x) + "), float32], %y: Tensor[(" +
                       y + "), float32]) {\n  " + body + " }",
                   256);
  };
  EXPECT_EQ(product("64, 70", "70, 128", "nn.matmul(%x, %y)"), "CN>NC16n nn.contrib_dense_pack");
  EXPECT_EQ(product("70, 64", "70, 128", "nn.matmul(%x, %y, transpose_a=True)"),
            "transpose CN>NC16n nn.contrib_dense_pack");
  EXPECT_EQ(product("s, 64", "s, 128", "nn.matmul(%x, %y, transpose_a=True)"),
            "transpose CN>NC16n nn.contrib_dense_pack");
  EXPECT_EQ(product("63, 70", "70, 128", "nn.matmul(%x, %y)"), "nn.matmul");
  EXPECT_EQ(product("70, 127", "70, 64", "nn.matmul(%x, %y, transpose_a=True)"), "nn.matmul");
}

// As of a convolution of 64 channels: a tile would read lines that share sets of the caches.
TEST(AlterOpLayout, adjoints_of_pixels_are_packed_for_the_gradient_of_a_weight) {
  auto gradient = [](const char* x, const char* y, const char* attrs = "") {
    return altered("def @main(%x: Tensor[(" + std::string(x) + "), float32], %y: Tensor[(" + y +
                       "), float32]) {\n  nn.conv2d(%x, %y, padding=[1, 1, 1, 1], " + attrs +
                       "data_layout=\"CNHW\", kernel_layout=\"IHWO\", out_layout=\"NHWC\") }",
                   256);
  };
  EXPECT_EQ(gradient("4, 64, 28, 28", "4, 28, 28, 64"), "IHWO>OIHW16o nn.conv2d:CNHW/OIHW16o");
  EXPECT_EQ(gradient("4, 64, 28, 28", "4, 28, 28, 17"), "IHWO>OIHW16o nn.conv2d:CNHW/OIHW16o");
  // Not one panel, and not for few rows.
  EXPECT_EQ(gradient("4, 64, 28, 28", "4, 28, 28, 16"), "nn.conv2d:CNHW/IHWO");
  EXPECT_EQ(gradient("4, 3, 28, 28", "4, 28, 28, 64"), "nn.conv2d:CNHW/IHWO");
  EXPECT_EQ(gradient("4, 64, 28, 28", "2, 28, 28, 64", "groups=2, "), "nn.conv2d:CNHW/IHWO");
}

TEST(AlterOpLayout, rows_of_all_products_by_a_matrix_count) {
  auto twice = [](const char* rows) {
    return altered("def @main(%x: Tensor[(" + std::string(rows) +
                   ", 2048), float32], %w: Tensor[(2048, 2048), float32]) {\n"
                   "  nn.matmul(nn.relu(nn.matmul(%x, %w)), %w) }");
  };
  EXPECT_EQ(twice("32"), "CN>NC32n nn.contrib_dense_pack nn.relu nn.contrib_dense_pack");
  EXPECT_EQ(twice("31"), "nn.matmul nn.relu nn.matmul");
}

TEST(AlterOpLayout, not_for_one_row_or_without_an_evaluator) {
  PassContext ctx = folding_context();
  expect_unchanged(kAlterOpLayout,
                   "def @main(%x: Tensor[(1, 6), float32], %p: Tensor[(8, 6), float32]) {\n"
                   "  nn.dense(%x, %p) }",
                   ctx);
  expect_unchanged(kAlterOpLayout,
                   "def @main(%x: Tensor[(3, 1, 4), float32], %y: Tensor[(3, 6, 4), float32]) {\n"
                   "  nn.batch_matmul(%x, %y, transpose_b=True) }",
                   ctx);
  expect_unchanged(kAlterOpLayout,
                   "def @main(%x: Tensor[(3, 5, 4), float32], %y: Tensor[(3, 4, 6), float32]) {\n"
                   "  nn.batch_matmul(%x, %y, transpose_b=False) }",
                   ctx);
  expect_unchanged(kAlterOpLayout, dense("nn.dense(%x, " + kWeight + ")"));
  expect_unchanged(kAlterOpLayout, conv(kConv), folding_context());
}

}  // namespace
}  // namespace relay
