#include "passes/combine/combine_updates.h"

#include "passes/test/evaluate.h"
#include "passes/test/pass_test.h"

namespace relay::pass_test {
namespace {

const std::string kParams =
    "%x: Tensor[(4, 3), float32], %a: Tensor[(1, 3), float32], %b: Tensor[(1, 3), float32], "
    "%c: Tensor[(2, 3), float32]";

std::string program(const std::string& body) {
  return "def @main(" + kParams + ") {\n" + body + "\n}";
}

struct UpdateRow {
  std::string before, after;
};

const std::vector<UpdateRow>& rows() {
  static const std::vector<UpdateRow> rows{
      // Every line, in any order; the start of the last is moved to where it fits.
      {"%0 = update_slice(%x, %b, 1i64);\n"
       "%1 = update_slice(%0, %c, 7i64);\n"
       "update_slice(%1, %a, 0i64)",
       "concatenate((%a, %b, %c))"},
      // A line that is written over.
      {"%0 = update_slice(%x, %a, 0i64);\n"
       "%1 = update_slice(%0, %c, 2i64);\n"
       "%2 = update_slice(%1, %a, 1i64);\n"
       "update_slice(%2, %b, 0i64)",
       "concatenate((%b, %a, %c))"},
      {"update_slice(%x, concatenate((%c, %c)), 0i64)", "concatenate((%c, %c))"},
      // Reads of other lines, of the written one, and of one below it.
      {"take(update_slice(update_slice(%x, %a, 0i64), %c, 2i64), 1i64, axis=0)",
       "take(%x, 1i64, axis=0)"},
      {"take(update_slice(%x, %a, 1i64), 1i64, axis=0)", "reshape(%a, newshape=[3])"},
      {"%0 = update_slice(%x, %a, 0i64);\n"
       "(take(update_slice(%0, %c, 2i64), 0i64, axis=0), %0)",
       "%0 = update_slice(%x, %a, 0i64);\n"
       "(reshape(%a, newshape=[3]), %0)"},
      // What a chain holds in between is read, and so no longer needed.
      {"%0 = update_slice(%x, %c, 0i64);\n"
       "%1 = update_slice(%0, %c, 2i64);\n"
       "(%1, take(%0, 3i64, axis=0))",
       "(concatenate((%c, %c)), take(%x, 3i64, axis=0))"},
  };
  return rows;
}

TEST(CombineUpdates, joins_lines_and_reads_them_where_they_come_from) {
  for (const UpdateRow& row : rows()) {
    SCOPED_TRACE(row.before);
    expect_becomes(kCombineUpdates, program(row.before), program(row.after));
  }
}

TEST(CombineUpdates, computes_the_same) {
  for (const UpdateRow& row : rows()) {
    SCOPED_TRACE(row.before);
    Module before = parse(program(row.before));
    std::vector<Tensor> want = results(before), got = results(apply(kCombineUpdates, before));
    ASSERT_EQ(want.size(), got.size());
    for (size_t i = 0; i < want.size(); ++i) {
      ASSERT_TRUE(std::ranges::equal(want[i].shape(), got[i].shape()));
      for (int64_t k = 0; k < want[i].num_elements(); ++k)
        EXPECT_EQ(want[i].get_as_double(k), got[i].get_as_double(k));
    }
  }
}

TEST(CombineUpdates, leaves_other_chains_alone) {
  const std::vector<std::string> bodies{
      // A line is missing.
      "update_slice(update_slice(%x, %a, 0i64), %c, 2i64)",
      // Updates that overlap.
      "update_slice(update_slice(%x, %c, 0i64), concatenate((%a, %b, %a)), 1i64)",
      // Something else needs what is in between.
      "%0 = update_slice(%x, %c, 0i64);\n(update_slice(%0, %c, 2i64), %0)",
      // A read of some lines of an update, of lines apart, and along another axis.
      "take(update_slice(%x, %c, 1i64), 1i64, axis=0)",
      "take(update_slice(%x, %a, 1i64), 1i64, axis=1)",
      "take(update_slice(%x, %a, 1i64), -1i64, axis=0)",
  };
  for (const std::string& body : bodies) expect_unchanged(kCombineUpdates, program(body));
}

}  // namespace
}  // namespace relay::pass_test
