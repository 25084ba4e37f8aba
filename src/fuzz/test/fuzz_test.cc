// Random programs mean the same in every way to run them; and the net that says so is checked.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "driver/compile.h"
#include "driver/test/hard_shrink.h"
#include "fuzz/campaign.h"
#include "fuzz/isolate.h"
#include "fuzz/operators.h"
#include "fuzz/shrink.h"
#include "fuzz/values.h"
#include "ir/text/text.h"
#include "node/walk.h"
#include "types/infer.h"

namespace relay::fuzz {
namespace {

#ifdef __SANITIZE_ADDRESS__
constexpr uint64_t kPrograms = 100;
#else
constexpr uint64_t kPrograms = 2000;
#endif

int count_calls(const Module& mod, std::string_view op) {
  int out = 0;
  post_order(mod, [&](const Node& n) {
    auto* e = n.info().family == family::expr ? static_cast<const ExprNode*>(&n) : nullptr;
    out += e != nullptr && is_call_to(Expr(e), op);
  });
  return out;
}

TEST(Fuzz, random_programs_mean_the_same_in_every_way_to_run_them) {
  CampaignOptions options;
  options.count = kPrograms;
  options.keep_going = true;
  CampaignResult result = run_campaign(options);
  for (const Finding& f : result.findings) ADD_FAILURE() << f.text();
  EXPECT_EQ(result.tally.programs, static_cast<int64_t>(kPrograms));
  EXPECT_GT(result.tally.compared, 4 * result.tally.programs);
  EXPECT_GT(result.tally.natives, result.tally.programs / 20);
}

TEST(Fuzz, random_programs_have_the_slopes_that_differences_say) {
  CampaignOptions options;
  options.count = std::max<decltype(options.count)>(kPrograms / 20, 24);
  options.keep_going = true;
  options.generate.floats = true;
  options.check.gradients = true;
  options.check.levels = {0, 1, 2, 3};
  CampaignResult result = run_campaign(options);
  for (const Finding& f : result.findings) ADD_FAILURE() << f.text();
  // About a third have; of few, fewer may.
  EXPECT_GT(result.tally.slopes, static_cast<int64_t>(options.count / 8));
  EXPECT_GT(result.tally.compared, 3 * result.tally.slopes);
}

TEST(Fuzz, an_operator_from_outside_is_drawn) {
  mylib::Registered op;
  Operators operators;
  Random random(1);
  bool drawn = false;
  for (int i = 0; i < 10000 && !drawn; ++i)
    drawn = operators.example(random).op->name == "mylib.hard_shrink";
  EXPECT_TRUE(drawn);
}

TEST(Fuzz, a_seed_is_a_program) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    EXPECT_EQ(print_module(generate(seed)), print_module(generate(seed)));
  }
}

TEST(Fuzz, every_construct_and_most_operators_are_drawn) {
  Statistics drawn;
  for (uint64_t seed = 0; seed < 1000; ++seed) drawn.count(generate(seed));
  for (const char* kind :
       {"relay.Let", "relay.If", "relay.Tuple", "relay.TupleGetItem", "relay.Match",
        "relay.RefCreate", "relay.RefRead", "relay.RefWrite", "relay.Function", "relay.Constructor",
        "relay.PatternConstructor", "relay.PatternTuple", "relay.PatternWildcard",
        "symbolic function", "polymorphic function"}) {
    EXPECT_GT(drawn.constructs[kind], 20) << kind;
  }
  EXPECT_GT(drawn.operators.size(), 120u);
  EXPECT_GE(drawn.dtypes.size(), 9u);
}

TEST(Fuzz, a_failing_program_becomes_small) {
  auto fails = [](const Module& mod) { return count_calls(mod, "tanh") > 0; };
  int shrunk = 0;
  for (uint64_t seed = 0; seed < 600 && shrunk < 3; ++seed) {
    Module mod = generate(seed);
    if (!fails(mod)) continue;
    ++shrunk;
    Module small = shrink(mod, fails);
    EXPECT_TRUE(fails(small));
    int nodes = 0;
    post_order(
        small, [&](const Node&) { ++nodes; }, family::program | family::module);
    // The module, a function, its parameter, the call, the operator, its argument and a name; and @main,
    // where that is another one, which may give a constructor.
    EXPECT_LE(nodes, 12) << print_module(small);
  }
  EXPECT_EQ(shrunk, 3);
}

TEST(Fuzz, a_crash_and_an_endless_loop_are_seen_from_outside) {
  auto run = [](const std::function<void()>& work) {
    std::string got;
    std::string problem = run_isolated(
        [&](const Send& send) {
          send("begun");
          work();
        },
        [&](const std::string& message) { got += message; }, 1);
    EXPECT_EQ(got, "begun");
    return problem;
  };
  EXPECT_EQ(run([] {}), "");
  EXPECT_NE(run([] { std::abort(); }).find("signal 6"), std::string::npos);
  EXPECT_EQ(run([] {
              for (volatile bool forever = true; forever;) {
              }
            }),
            "timeout");
}

TEST(Fuzz, values_differ_where_their_elements_or_constructors_do) {
  using runtime::Value;
  Value one(Tensor::scalar(1.0, DType::Float(32))), near(Tensor::scalar(1.00001, DType::Float(32)));
  Value two(Tensor::scalar(2.0, DType::Float(32))), integer(Tensor::scalar(1, DType::Int(32)));
  EXPECT_FALSE(first_difference(near, one));
  EXPECT_TRUE(first_difference(two, one));
  EXPECT_TRUE(first_difference(integer, one));
  EXPECT_TRUE(first_difference(Value::adt(0, {one}), Value::adt(1, {one})));
  EXPECT_FALSE(first_difference(Value::adt(1, {one, near}), Value::adt(1, {near, one})));
  EXPECT_TRUE(first_difference(Value::tuple({one, two}), Value::tuple({one, one})));
}

TEST(Fuzz, a_program_that_is_not_well_formed_is_a_failure) {
  initialize();
  Var x = var("x", scalar_type(DType::Float(32))), y = var("y", scalar_type(DType::Float(32)));
  Module mod = module_from_expr(function({x}, call("add", {x, y})));
  auto failure = check(mod);
  ASSERT_TRUE(failure.has_value());
  EXPECT_EQ(failure->kind, "ill-formed");
}

}  // namespace
}  // namespace relay::fuzz
