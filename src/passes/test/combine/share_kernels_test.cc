#include "passes/combine/share_kernels.h"

#include "passes/test/evaluate.h"
#include "passes/test/pass_test.h"

namespace relay::pass_test {
namespace {

// A kernel for each of `count` lines of %x, joined; `line` has `#` where the number of the line stands.
std::string lines(int count, const std::string& line, const std::string& argument) {
  std::string text = "def @main(%x: Tensor[(9, 3), float32], %u: Tensor[(1, 3), float32]) {\n";
  std::string all;
  for (int i = 0; i < count; ++i) {
    auto numbered = [&](std::string s) {
      for (size_t at; (at = s.find('#')) != std::string::npos;) s.replace(at, 1, std::to_string(i));
      return s;
    };
    text += "  let %y" + std::to_string(i) + " = " + numbered(line) + "(%x, %u" +
            numbered(argument) + ");\n";
    all += (i ? ", %y" : "%y") + std::to_string(i);
  }
  return text + "  (" + all + ")\n}";
}

const std::string kSharedParams = "%p0: Tensor[(9, 3), float32], %p1: Tensor[(1, 3), float32]";

std::string kernel(const std::string& params, const std::string& body) {
  return "(fn (" + params + ", Primitive=1) { " + body + " })";
}

const std::string kReads =
    kernel(kSharedParams, "tanh(add(take(%p0, #i64, axis=0), take(%p0, 8i64, axis=0)))");
const std::string kScales = kernel(kSharedParams, "add(tanh(multiply(%p0, #f)), 3f)");
const std::string kWrites = kernel(kSharedParams, "update_slice(%p0, %p1, #i64)");

TEST(ShareKernels, kernels_are_told_where_they_read_and_write) {
  expect_becomes(kShareKernels, lines(8, kReads, ""),
                 lines(8,
                       kernel(kSharedParams + ", %p2: int64",
                              "tanh(add(take(%p0, %p2, axis=0), take(%p0, 8i64, axis=0)))"),
                       ", #i64"));
  expect_becomes(
      kShareKernels, lines(8, kWrites, ""),
      lines(8, kernel(kSharedParams + ", %p2: int64", "update_slice(%p0, %p1, %p2)"), ", #i64"));
}

TEST(ShareKernels, kernels_are_told_the_numbers_in_which_they_differ) {
  expect_becomes(
      kShareKernels, lines(8, kScales, ""),
      lines(8, kernel(kSharedParams + ", %p2: float32", "add(tanh(multiply(%p0, %p2)), 3f)"),
            ", #f"));
}

// The second one's argument is a number that the others are told.
TEST(ShareKernels, kernels_with_an_argument_more_are_others) {
  const std::string told =
      kernel(kSharedParams + ", %p2: float32", "add(tanh(multiply(%p0, %p2)), 3f)");
  auto with_other = [&](std::string text) {
    const size_t result = text.rfind("  (");
    return text.substr(0, result) + "  let %z = " + told + "(%x, %u, 2f);\n  (%z, " +
           text.substr(result + 3);
  };
  expect_becomes(kShareKernels, with_other(lines(8, kScales, "")),
                 with_other(lines(8, told, ", #f")));
}

TEST(ShareKernels, computes_the_same) {
  for (const std::string& line : {kReads, kWrites, kScales}) {
    Module mod = parse(lines(8, line, ""));
    const std::vector<Tensor> want = results(mod), got = results(apply(kShareKernels, mod));
    ASSERT_EQ(got.size(), want.size());
    for (size_t i = 0; i < want.size(); ++i) EXPECT_TRUE(bit_equal(got[i], want[i])) << i;
  }
}

TEST(ShareKernels, not_for_a_few_or_for_other_differences) {
  expect_unchanged(kShareKernels, lines(7, kReads, ""));
  // Numbers that are attributes; the same kernel many times.
  expect_unchanged(kShareKernels,
                   lines(8, kernel(kSharedParams, "clip(%p0, a_min=0f, a_max=#f)"), ""));
  expect_unchanged(kShareKernels, lines(8, kernel(kSharedParams, "multiply(%p0, 3f)"), ""));
}

}  // namespace
}  // namespace relay::pass_test
