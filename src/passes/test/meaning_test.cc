// Programs of the whole language, each evaluated before and after every pass that rewrites
// functions, branches and data: the answers agree.
#include "eval/evaluator.h"
#include "ir/text/print_value.h"
#include "passes/pipelines.h"
#include "passes/test/evaluate.h"
#include "passes/test/meaning_programs.h"
#include "passes/test/pass_test.h"

namespace relay {
namespace {

std::string answer(const Module& mod) {
  EvalOptions limits;
  limits.fuel = 2000000;
  Evaluator evaluator(mod, limits);
  return print_value(evaluator.call("main", {}), mod->find("main")->body->type, mod);
}

class Meaning : public testing::TestWithParam<const Pass*> {};

TEST_P(Meaning, is_kept) {
  for (const auto& p : pass_test::kMeaningPrograms) {
    SCOPED_TRACE(p.name);
    Module before = pass_test::parse(p.text);
    ASSERT_EQ(answer(before), p.answer);
    Module after = pass_test::apply(*GetParam(), before, pass_test::folding_context());
    EXPECT_EQ(answer(after), p.answer) << print_module(after);
    // What prints is a program: it is checked again and means the same.
    Module again = infer_types(parse_module("again.relay", print_module(after)));
    EXPECT_EQ(answer(again), p.answer) << print_module(after);
    // A-normal form first, as the pipeline has it.
    Module named = pass_test::apply(find_pass("ToANormalForm"), before);
    EXPECT_EQ(answer(pass_test::apply(*GetParam(), named, pass_test::folding_context())), p.answer);
  }
}

INSTANTIATE_TEST_SUITE_P(AllPasses, Meaning, testing::ValuesIn(passes_that_keep_meaning()),
                         [](const auto& info) { return std::string(info.param->name); });

}  // namespace
}  // namespace relay
