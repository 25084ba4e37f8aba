#include "passes/fusion/omit_fills.h"

#include "analysis/primitives.h"
#include "node/walk.h"
#include "passes/test/evaluate.h"
#include "passes/test/pass_test.h"

namespace relay::pass_test {
namespace {

// A loop that doubles %x six times, from zeros, and writes what it has into two tensors.
struct FillRow {
  std::string first = "0i64";                          // the counter's first value
  std::string test = "less(%p0, 6i64)";                // of the counter, %p0
  std::string next = "add(%p1, 1i64)";                 // of the counter, %p1
  std::string line = "%p2";                            // of the second tensor: of the counter, %p2
  std::string doubles = "add(%p3, %p3)";               // of %x, %p3, and the second tensor, %q3
  std::string writes = "update_slice(%p5, %q5, %i5)";  // into the second tensor, %p5
};

std::string program(const FillRow& row) {
  std::string text =
      "def @step(%t: int64, %x: LINE, %a: TYPE, %b: TYPE) -> (TYPE, TYPE) {\n"
      "let %c = (fn (%p0: int64, Primitive=1) { " +
      row.test +
      " })(%t);\n"
      "let %r = if (%c) {\n"
      "  let %n = (fn (%p1: int64, Primitive=1) { " +
      row.next +
      " })(%t);\n"
      "  let %l = (fn (%p2: int64, Primitive=1) { " +
      row.line +
      " })(%t);\n"
      "  let %y = (fn (%p3: LINE, %q3: OTHER, Primitive=1) { " +
      row.doubles +
      " })(%x, READ);\n"
      "  let %d = (fn (%p4: TYPE, %q4: LINE, %i4: int64, Primitive=1) {\n"
      "    update_slice(%p4, %q4, %i4) })(%a, %y, %t);\n"
      "  let %e = (fn (%p5: TYPE, %q5: LINE, %i5: int64, Primitive=1) {\n"
      "    " +
      row.writes +
      " })(%b, %y, %l);\n"
      "  let %s = @step(%n, %y, %d, %e); %s\n"
      "} else { let %o = (%a, %b); %o };\n%r }\n"
      "def @main(%x: LINE) {\n"
      "let %z = (fn (Primitive=1) { full(0f, shape=[6, 8]) })();\n"
      "let %r = @step(" +
      row.first + ", %x, %z, %z); %r }";
  const bool reads = row.doubles.find("%q3") != std::string::npos;
  for (const auto& [what, with] :
       {std::pair<std::string, std::string>("OTHER", reads ? "TYPE" : "LINE"),
        {"READ", reads ? "%b" : "%x"},
        {"TYPE", "Tensor[(6, 8), float32]"},
        {"LINE", "Tensor[(1, 8), float32]"}}) {
    for (size_t at = 0; (at = text.find(what, at)) != text.npos;) {
      text.replace(at, what.size(), with);
    }
  }
  return text;
}

// How many tensors begin without being filled. The program means the same: what they hold is anything to the evaluator.
int unwritten(const FillRow& row) {
  SCOPED_TRACE(program(row));
  const Module before = parse(program(row));
  const Module after = apply(kOmitFills, before);
  EXPECT_TRUE(apply(kOmitFills, after) == after) << print_module(after);
  const std::vector<Tensor> want = results(before), got = results(after);
  EXPECT_EQ(want.size(), got.size());
  for (size_t i = 0; i < want.size(); ++i) {
    for (int64_t k = 0; k < want[i].num_elements(); ++k)
      EXPECT_EQ(want[i].get_as_double(k), got[i].get_as_double(k));
  }
  int out = 0, filled = 0;
  post_order_outside_primitives(after->find("main")->body, [&](const Node& n) {
    auto* l = as<LetNode>(&n);
    auto* c = l == nullptr ? nullptr : as<CallNode>(l->value);
    auto* f = c == nullptr ? nullptr : as<FunctionNode>(c->op);
    if (f == nullptr) return;
    (f->has_attr(attr::kUnwritten) ? out : filled) += 1;
  });
  EXPECT_EQ(filled, out == 2 ? 0 : 1);
  return out;
}

TEST(OmitFills, tensors_that_a_loop_writes_line_by_line) {
  EXPECT_EQ(unwritten({}), 2);
  EXPECT_EQ(unwritten({.line = "subtract(5i64, %p2)"}), 2);
  EXPECT_EQ(unwritten({.line = "subtract(subtract(6i64, 1i64), %p2)"}), 2);
  EXPECT_EQ(unwritten({.next = "subtract(%p1, -1i64)"}), 2);
}

TEST(OmitFills, only_where_every_line_is_written) {
  EXPECT_EQ(unwritten({.first = "1i64"}), 0);
  EXPECT_EQ(unwritten({.test = "less(%p0, 5i64)"}), 0);
  EXPECT_EQ(unwritten({.test = "less_equal(%p0, 4i64)"}), 0);
  EXPECT_EQ(unwritten({.next = "add(%p1, 2i64)"}), 0);
  // The other tensor is written whole.
  EXPECT_EQ(unwritten({.line = "subtract(4i64, %p2)"}), 1);
  EXPECT_EQ(unwritten({.line = "floor_divide(%p2, 2i64)"}), 1);
  EXPECT_EQ(unwritten({.line = "multiply(%p2, 1i64)"}), 1);
}

TEST(OmitFills, not_of_tensors_that_a_step_reads) {
  const std::string first = "strided_slice(%p5, begin=[0], end=[1], axes=[0])";
  EXPECT_EQ(unwritten({.writes = "update_slice(%p5, add(%q5, " + first + "), %i5)"}), 1);
  EXPECT_EQ(unwritten({.doubles = "add(%p3, strided_slice(%q3, begin=[0], end=[1], axes=[0]))"}),
            1);
}

}  // namespace
}  // namespace relay::pass_test
