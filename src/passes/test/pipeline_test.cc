// The whole pipeline keeps the meaning of programs: the evaluator runs each before and after, at
// every level, and every pass is verified.
#include "passes/pipelines.h"

#include <cmath>

#include "passes/test/evaluate.h"
#include "passes/test/pass_test.h"

namespace relay {
namespace {

const char* const kList = "type List[A] { Cons(A, List[A]), Nil, }\n";

// Programs whose @main takes %x: Tensor[(2, 3), float32] and %c: bool.
const std::vector<std::string>& programs() {
  static const std::string kMain = "def @main(%x: Tensor[(2, 3), float32], %c: bool) ";
  static const std::vector<std::string> list{
      kMain + "{ let %a = exp(%x); let %b = add(%a, %a); (nn.relu(%b), %a) }",
      kMain + "{ if (%c) { let %a = exp(%x); add(%a, exp(%x)) } else { sqrt(abs(%x)) } }",
      kMain +
          "{ let %k = sum(%x); let %f = fn (%y: Tensor[(2, 3), float32]) { add(%y, %k) };\n"
          "  %f(%f(%x)) }",
      // Effects keep their order and their number.
      kMain +
          "{ let %r = ref(%x); let %a = ref_read(%r); let %w = ref_write(%r, exp(%x));\n"
          "  let %b = ref_read(%r); (%a, %b, add(ref_read(%r), %b)) }",
      kMain +
          "{ let %r = ref(0f);\n"
          "  let %f = fn () { ref_write(%r, add(ref_read(%r), 1f)) };\n"
          "  let %u = %f(); let %v = %f(); ref_read(%r) }",
      "def @new(%x: float32, Inline=1) { ref(%x) }\n" + kMain +
          "{ let %a = @new(1f); let %b = @new(1f); let %w = ref_write(%a, 2f);\n"
          "  (ref_read(%a), ref_read(%b)) }",
      "def @twice(%y: Tensor[(2, 3), float32]) { add(%y, %y) }\n"
      "def @once(%y: Tensor[(2, 3), float32]) { nn.relu(@twice(%y)) }\n" +
          kMain + "{ add(@once(exp(%x)), @twice(%x)) }",
      // A loop, and lists.
      "def @loop(%i: int32, %y: Tensor[(2, 3), float32]) -> Tensor[(2, 3), float32] {\n"
      "  if (less(%i, 5)) { @loop(add(%i, 1), tanh(multiply(%y, 1.5f))) } else { %y } }\n" +
          kMain + "{ @loop(0, %x) }",
      kList +
          std::string("def @sum(%l: List[Tensor[(2, 3), float32]]) -> Tensor[(2, 3), float32] {\n"
                      "  match (%l) { Nil => { zeros(shape=[2, 3], dtype=\"float32\") },\n"
                      "               Cons(%h, %t) => { add(%h, @sum(%t)) }, } }\n") +
          kMain + "{ @sum(Cons(%x, Cons(exp(%x), Nil))) }",
      // What the rules of SimplifyExpr and the layout passes meet together.
      kMain +
          "{ %0 = transpose(transpose(%x)); %1 = reshape(reshape(%0, newshape=[6]), "
          "newshape=[3, 2]);\n"
          "  (add(%1, 0f), power(%0, 2f), divide(%x, 4f), cast(cast(%x, dtype=\"float64\"), "
          "dtype=\"float32\")) }",
      kMain +
          "{ %0 = reshape(%x, newshape=[1, 1, 2, 3]);\n"
          "  %1 = nn.conv2d(%0, ones(shape=[4, 1, 1, 1], dtype=\"float32\"));\n"
          "  %2 = nn.relu(multiply(%1, full(2f, shape=[4, 1, 1], dtype=\"float32\")));\n"
          "  nn.conv2d(%2, ones(shape=[2, 4, 1, 1], dtype=\"float32\")) }",
      kMain +
          "{ nn.dense(nn.dense(%x, ones(shape=[5, 3], dtype=\"float32\")), ones(shape=[4, 5], "
          "dtype=\"float32\")) }",
  };
  return list;
}

std::vector<Tensor> results(const Module& mod, bool condition) {
  Tensor x = Tensor::empty(DType::Float(32), {2, 3});
  for (int64_t i = 0; i < 6; ++i) x.set_from_double(i, 0.5 * static_cast<double>(i) - 1);
  std::vector<Tensor> out;
  pass_test::flatten(
      Evaluator(mod).call("main", {x, Tensor::scalar(condition ? 1 : 0, DType::Bool())}), out);
  return out;
}

TEST(Pipeline, keeps_the_meaning_of_programs) {
  for (const std::string& text : programs()) {
    SCOPED_TRACE(text);
    Module mod = pass_test::parse(text);
    for (int level = 0; level <= 3; ++level) {
      SCOPED_TRACE(level);
      PassContext ctx = pass_test::folding_context();
      ctx.verify = true;
      ctx.opt_level = level;
      Module out = run_passes(mod, optimize_pipeline(), ctx);
      for (bool condition : {false, true}) {
        std::vector<Tensor> want = results(mod, condition), got = results(out, condition);
        ASSERT_EQ(want.size(), got.size());
        for (size_t i = 0; i < want.size(); ++i) {
          ASSERT_EQ(want[i].num_elements(), got[i].num_elements());
          for (int64_t k = 0; k < want[i].num_elements(); ++k) {
            double w = want[i].get_as_double(k);
            EXPECT_NEAR(w, got[i].get_as_double(k), 1e-6 * (1 + std::abs(w))) << print_module(out);
          }
        }
      }
    }
  }
}

TEST(Pipeline, what_was_written_with_names_and_functions_is_one_kernel) {
  PassContext ctx;
  Module out = run_passes(
      pass_test::parse("def @f(%y: Tensor[(4,), float32]) { let %b = sqrt(%y); tanh(%b) }\n"
                       "def @main(%x: Tensor[(4,), float32]) { let %a = exp(%x); @f(%a) }"),
      optimize_pipeline(), ctx);
  EXPECT_EQ(out->functions.size(), 1u);
  auto* l = as<LetNode>(out->find("main")->body);
  ASSERT_NE(l, nullptr);
  EXPECT_TRUE(isa<VarNode>(l->body));
  auto* c = as<CallNode>(l->value);
  ASSERT_NE(c, nullptr);
  EXPECT_TRUE(as<FunctionNode>(c->op)->is_primitive());
}

// How often kernels take data of channels first to channels last.
size_t changes_of_layout(const std::string& program) {
  PassContext ctx = pass_test::folding_context();
  const std::string text =
      print_module(run_passes(pass_test::parse(program), optimize_pipeline(), ctx));
  size_t count = 0;
  for (size_t at = 0; (at = text.find("dst_layout=\"NHWC\"", at)) != std::string::npos; ++at)
    ++count;
  return count;
}

// %y meets the result of a convolution in two sums. Each branch of a choice changes the layout that it reads alone.
TEST(Pipeline, changes_a_layout_once_for_all_readers) {
  const std::string head =
      "def @main(%x: Tensor[(2, 16, 8, 8), float32], %w: Tensor[(16, 16, 3, 3), float32],\n"
      "          %y: Tensor[(2, 16, 8, 8), float32], %c: bool) {\n"
      "  let %z = nn.conv2d(%x, %w, padding=[1, 1, 1, 1]);\n";
  const std::string product = "sum(multiply(%z, %y), axis=[0, 2, 3])",
                    greatest = "max(add(%z, %y), axis=[0, 2, 3])";
  EXPECT_EQ(changes_of_layout(head + "(" + product + ", " + greatest + ") }"), 2u);
  EXPECT_EQ(changes_of_layout(head + "if (%c) { " + product + " } else { " + greatest + " } }"),
            3u);
}

}  // namespace
}  // namespace relay
