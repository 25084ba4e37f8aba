#include "passes/simplify/skip_border.h"

#include <limits>

#include "analysis/calls.h"
#include "node/walk.h"
#include "passes/test/evaluate.h"
#include "passes/test/pass_test.h"

namespace relay::pass_test {
namespace {

using Ints = std::vector<int64_t>;

std::string type_text(const Ints& shape) {
  std::string out;
  for (int64_t d : shape) out += (out.empty() ? "(" : ", ") + std::to_string(d);
  return "Tensor[" + out + "), float32]";
}

// A convolution, channels last, by constant weights [O, I, ..].
Module program(const Ints& data, const Ints& weight, const std::string& attrs,
               const std::function<double(int64_t)>& element = ordinary) {
  const size_t dims = data.size() - 2;
  const std::string layout = dims == 1 ? "NWC" : dims == 2 ? "NHWC" : "NDHWC";
  Module mod =
      parse("def @main(%x: " + type_text(data) + ", %w: " + type_text(weight) + ") {\n  nn.conv" +
            std::to_string(dims) + "d(%x, %w, data_layout=\"" + layout + "\", " + attrs + ")\n}\n");
  return map_functions(mod, [&](const GlobalVar&, const Function& f) {
    NodeRef body =
        substitute(f->body, {{f->params[1].get(), constant(sample(f->params[1]->type, element))}},
                   family::expr);
    return function({f->params[0]}, Expr::unchecked(body), f->ret_type);
  });
}

int calls_of(const Module& mod, std::string_view op) {
  int out = 0;
  post_order(mod->find("main"), [&](const Node& n) {
    auto* c = as<CallNode>(&n);
    out += c != nullptr && is_call_to(Expr(c), op);
  });
  return out;
}

struct Case {
  Ints data, weight;
  std::string attrs;
  int parts;
};

TEST(SkipBorder, computes_the_same_by_the_parts_that_pay) {
  const std::vector<Case> cases{
      // Rows only: few results, so that cutting lines costs more than it leaves out.
      {{1, 28, 28, 10}, {10, 10, 3, 3}, "padding=[12, 12], dilation=[12, 12]", 3},
      {{1, 28, 28, 16}, {160, 16, 3, 3}, "padding=[12, 12], dilation=[12, 12]", 9},
      // Taps farther apart than the image is long: one is left along the rows.
      {{1, 9, 30, 8}, {16, 8, 3, 3}, "padding=[12, 2], dilation=[12, 2]", 1},
      {{2, 33, 12, 32}, {64, 32, 3, 1}, "padding=[24, 0], dilation=[24, 1], strides=[2, 1]", 3},
      // A border that is wider than the kernel: zeros around one convolution; more of it behind than before, and strides.
      {{1, 8, 8, 32}, {32, 32, 3, 3}, "padding=[20, 20]", 1},
      {{2, 7, 9, 64}, {32, 64, 5, 3}, "padding=[9, 30, 21, 0], strides=[2, 3]", 1},
      {{1, 40, 64}, {64, 64, 5}, "padding=[50]", 1},
      // More border behind than before; several images; groups; an even kernel.
      {{3, 25, 8, 32}, {64, 16, 4, 2}, "padding=[5, 0, 14, 1], dilation=[7, 1], groups=2", 4},
      // Positions that no tap reaches are zeros.
      {{1, 10, 8, 64}, {64, 64, 2, 1}, "padding=[30, 0], dilation=[20, 1]", 2},
      {{1, 200, 64}, {64, 64, 3}, "padding=[64, 64], dilation=[64]", 3},
      {{1, 20, 6, 6, 8}, {16, 8, 3, 2, 2}, "padding=[8, 0, 0], dilation=[8, 1, 1]", 3},
      // One pixel with a border: the centre.
      {{1, 1, 1, 8}, {8, 8, 3, 3}, "padding=[1, 1]", 1},
  };
  for (const Case& c : cases) {
    Module before = program(c.data, c.weight, c.attrs),
           after = apply(kSkipBorder, before, folding_context());
    const std::string op = "nn.conv" + std::to_string(c.data.size() - 2) + "d";
    EXPECT_FALSE(structural_equal(before, after)) << c.attrs;
    EXPECT_EQ(calls_of(after, op), c.parts) << c.attrs;
    std::vector<Tensor> want = results(before), got = results(after);
    ASSERT_EQ(want[0].num_elements(), got[0].num_elements());
    for (int64_t i = 0; i < want[0].num_elements(); ++i) {
      ASSERT_EQ(want[0].data<float>()[i], got[0].data<float>()[i]) << c.attrs << " at " << i;
    }
  }
}

TEST(SkipBorder, not_where_it_must_not) {
  auto unchanged = [](const Module& mod) {
    return structural_equal(mod, apply(kSkipBorder, mod, folding_context()));
  };
  const Ints data{1, 28, 28, 10}, weight{10, 10, 3, 3};
  const std::string far = "padding=[12, 12], dilation=[12, 12]";
  EXPECT_TRUE(unchanged(program(data, weight, "padding=[1, 1]"))) << "near taps";
  EXPECT_TRUE(unchanged(program(data, weight, "dilation=[12, 12]"))) << "no border";
  EXPECT_TRUE(unchanged(program({1, 28, 28, 2}, {2, 2, 3, 3}, far))) << "less work than kernels";
  EXPECT_TRUE(unchanged(program(data, weight, far, [](int64_t i) {
    return i == 3 ? std::numeric_limits<double>::infinity() : 1;
  }))) << "an infinite weight times a zero is NaN";
  EXPECT_TRUE(unchanged(parse(
      "def @main(%x: Tensor[(1, 28, 28, 10), float32], %w: Tensor[(10, 10, 3, 3), float32]) {\n"
      "  nn.conv2d(%x, %w, data_layout=\"NHWC\", padding=[12, 12], dilation=[12, 12]) }")))
      << "weights that a run gives";
}

}  // namespace
}  // namespace relay::pass_test
