// DivToMul and FastMath.
#include "passes/simplify/div_to_mul.h"

#include <cmath>

#include "passes/simplify/fast_math.h"
#include "passes/test/evaluate.h"
#include "passes/test/pass_test.h"

namespace relay::pass_test {
namespace {

std::string arithmetic_program(const std::string& body, const std::string& dtype = "float32") {
  return "def @main(%x: Tensor[(2, 3), " + dtype + "]) { " + body + " }";
}

PassContext inexact() {
  PassContext ctx;
  ctx.config["relay.DivToMul.inexact"] = AttrValue(true);
  return ctx;
}

TEST(DivToMul, multiplies_by_exact_reciprocals) {
  expect_becomes(kDivToMul, arithmetic_program("divide(%x, 8f)"),
                 arithmetic_program("multiply(%x, 0.125f)"));
  expect_becomes(kDivToMul, arithmetic_program("divide(%x, -0.25f64)", "float64"),
                 arithmetic_program("multiply(%x, -4f64)", "float64"));
}

TEST(DivToMul, keeps_the_bits) {
  static const double kAwkward[] = {NAN, -0.0, INFINITY, -2.5, 1e-40, 7.5};
  for (const char* divisor : {"8f", "-0.25f", "1048576f"}) {
    Module before = parse(arithmetic_program("divide(%x, " + std::string(divisor) + ")"));
    auto awkward = [](int64_t at) { return kAwkward[at]; };
    EXPECT_TRUE(
        bit_equal(results(before, awkward)[0], results(apply(kDivToMul, before), awkward)[0]));
  }
}

TEST(DivToMul, takes_every_divisor_in_front_of_erf) {
  Module before = parse(arithmetic_program("erf(divide(%x, 1.4142135f))"));
  Module out = apply(kDivToMul, before);
  EXPECT_EQ(print_module(out).find("divide"), std::string::npos) << print_module(out);
  static const double kPlaces[] = {-0.0, 1e-30, -0.7, 2.5, -9, INFINITY};
  auto place = [](int64_t at) { return kPlaces[at]; };
  Tensor want = results(before, place)[0], got = results(out, place)[0];
  for (int64_t i = 0; i < want.num_elements(); ++i) {
    double w = want.get_as_double(i);
    EXPECT_NEAR(got.get_as_double(i), w, std::abs(w) * 4e-7);
  }
  expect_unchanged(kDivToMul, arithmetic_program("erf(divide(8f, %x))"));
  expect_unchanged(kDivToMul, arithmetic_program("erf(divide(%x, inff))"));
}

TEST(DivToMul, takes_a_constant_of_several_elements) {
  Module mod = parse(arithmetic_program("divide(%x, 8f)"));
  auto divided_by = [&](std::vector<double> row) {
    Tensor data = Tensor::empty(DType::Float(32), {3});
    for (int64_t i = 0; i < 3; ++i) data.set_from_double(i, row[static_cast<size_t>(i)]);
    return map_functions(mod, [&](const GlobalVar&, const Function& f) {
      return function(f->params, call("divide", {f->params[0], constant(data)}), f->ret_type);
    });
  };
  Module powers = divided_by({2, -4, 0.5}), others = divided_by({2, 3, 4});
  Module out = apply(kDivToMul, powers);
  EXPECT_NE(print_module(out).find("multiply"), std::string::npos) << print_module(out);
  EXPECT_TRUE(bit_equal(results(powers)[0], results(out)[0]));
  EXPECT_TRUE(apply(kDivToMul, others) == others);
}

TEST(DivToMul, keeps_divisions_that_it_would_change) {
  expect_unchanged(kDivToMul, arithmetic_program("divide(%x, 3f)"));
  expect_unchanged(kDivToMul, arithmetic_program("divide(8f, %x)"));
  expect_unchanged(kDivToMul, arithmetic_program("divide(%x, 8)", "int32"));
  expect_unchanged(kDivToMul, arithmetic_program("floor_divide(%x, 8f)"));
  // Not even then: no reciprocal, or one that is denormal or infinite.
  for (const char* divisor : {"0f", "inff", "3e38f", "1e-39f"}) {
    expect_unchanged(kDivToMul, arithmetic_program("divide(%x, " + std::string(divisor) + ")"),
                     inexact());
  }
}

TEST(DivToMul, rounds_twice_when_asked) {
  Module before = parse(arithmetic_program("divide(%x, 3f)")),
         after = apply(kDivToMul, before, inexact());
  EXPECT_FALSE(after == before);
  Tensor want = results(before)[0], got = results(after)[0];
  for (int64_t i = 0; i < want.num_elements(); ++i) {
    double w = want.get_as_double(i);
    EXPECT_LE(std::abs(got.get_as_double(i) - w), std::ldexp(std::abs(w), -22));
  }
}

TEST(FastMath, takes_the_quicker_functions) {
  expect_becomes(kFastMath, arithmetic_program("exp(tanh(erf(%x)))"),
                 arithmetic_program("fast_exp(fast_tanh(fast_erf(%x)))"));
  expect_becomes(kFastMath, arithmetic_program("nn.softmax(%x, axis=0)"),
                 arithmetic_program("nn.fast_softmax(%x, axis=0)"));
}

TEST(FastMath, keeps_what_has_none) {
  expect_unchanged(kFastMath, arithmetic_program("sigmoid(log(nn.log_softmax(%x)))"));
  expect_unchanged(kFastMath, arithmetic_program("exp(nn.softmax(%x))", "float64"));
}

TEST(FastMath, runs_only_where_it_is_asked_for) {
  PassContext ctx;
  EXPECT_FALSE(ctx.enabled(kFastMath));
  ctx.required_pass.insert("FastMath");
  EXPECT_TRUE(ctx.enabled(kFastMath));
}

}  // namespace
}  // namespace relay::pass_test
