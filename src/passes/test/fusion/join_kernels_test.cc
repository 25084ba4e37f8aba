#include "passes/fusion/join_kernels.h"

#include <map>
#include <sstream>

#include "node/walk.h"
#include "passes/test/pass_test.h"

namespace relay::pass_test {
namespace {

// A loop over %x and %y. Each kernel of a step is a line "a add x y": its value, its operator, and what it reads.
struct LoopRow {
  std::string kernels, next = "%a, %b", shape = "4, 8";
};

std::string replaced(std::string text, const std::string& what, const std::string& with) {
  for (size_t at = 0; (at = text.find(what, at)) != text.npos; at += with.size()) {
    text.replace(at, what.size(), with);
  }
  return text;
}

// The types of an operator's parameters, and its call of them.
struct Kernel {
  std::vector<std::string> params;
  std::string body;
};
const std::map<std::string, Kernel> kKernels = {
    {"exp", {{"TYPE"}, "exp(%P0)"}},
    {"tanh", {{"TYPE"}, "tanh(%P0)"}},
    {"add", {{"TYPE", "TYPE"}, "add(%P0, %P1)"}},
    {"widen", {{"TYPE", "ROW"}, "add(%P0, %P1)"}},
    {"sum", {{"TYPE"}, "sum(%P0, axis=[0])"}},
    {"cut", {{"TYPE"}, "split(%P0, indices_or_sections=2, axis=1)"}},
    {"half", {{"PART"}, "negative(%P0)"}},
    {"join", {{"PART", "PART"}, "concatenate((%P0, %P1), axis=1)"}},
    {"line", {{"TYPE", "LINE", "int64"}, "update_slice(%P0, %P1, %P2)"}},
};

std::string loop_of(const LoopRow& row) {
  std::string body;
  std::istringstream lines(row.kernels);
  int number = 0;
  for (std::string line; std::getline(lines, line, ';');) {
    std::istringstream words(line);
    std::string name, op, word;
    words >> name >> op;
    if (op.starts_with("%")) {  // a part of a tuple
      body += "let %" + name + " = " + op + ";\n";
      continue;
    }
    const Kernel& kernel = kKernels.at(op);
    std::string params, args;
    for (size_t i = 0; words >> word; ++i) {
      params += "%P" + std::to_string(i) + ": " + kernel.params.at(i) + ", ";
      args += (args.empty() ? "%" : ", %") + word;
    }
    const std::string text = "let %" + name + " = (fn (" + params + "Primitive=1) { " +
                             kernel.body + " })(" + args + ");\n";
    body += replaced(text, "%P", "%k" + std::to_string(number++) + "_");
  }
  std::string text =
      "def @step(%t: int64, %x: TYPE, %y: TYPE, %w: LINE) -> (TYPE, TYPE) {\n"
      "let %c = (fn (%p0: int64, Primitive=1) { less(%p0, 5i64) })(%t);\n"
      "let %r = if (%c) {\n"
      "let %n = (fn (%p9: int64, Primitive=1) { add(%p9, 1i64) })(%t);\n" +
      body + "let %z = @step(%n, " + row.next +
      ", %w); %z } else { let %o = (%x, %y); %o }; %r }\n"
      "def @main(%x: TYPE, %y: TYPE, %w: LINE) { let %r = @step(0i64, %x, %y, %w); %r }";
  const std::string rows = row.shape.substr(0, row.shape.find(','));
  text = replaced(text, "TYPE", "Tensor[(" + row.shape + "), float32]");
  text = replaced(text, "PART", "Tensor[(" + rows + ", 4), float32]");
  text = replaced(text, "ROW", "Tensor[(8,), float32]");
  return replaced(text, "LINE", "Tensor[(1, 8), float32]");
}

// The kernels of a step after the pass, with commas between them, by their operators and the number of their results.
std::string kernels_after(const LoopRow& row) {
  const Module before = parse(loop_of(row));
  const Module after = apply(kJoinKernels, before);
  EXPECT_TRUE(apply(kJoinKernels, after) == after) << print_module(after);
  std::string out;
  const Expr test = as<LetNode>(after->find("step")->body)->body;
  Expr at = as<IfNode>(as<LetNode>(test)->value)->true_branch;
  at = as<LetNode>(at)->body;  // behind the counter
  for (auto* l = as<LetNode>(at); l != nullptr; l = as<LetNode>(at)) {
    at = l->body;
    auto* c = as<CallNode>(l->value);
    auto* f = c == nullptr ? nullptr : as<FunctionNode>(c->op);
    if (f == nullptr) continue;
    std::string names;
    post_order(
        f->body,
        [&](const Node& n) {
          auto* inner = as<CallNode>(&n);
          if (inner != nullptr) names += (names.empty() ? "" : " ") + as<OpNode>(inner->op)->name;
        },
        family::expr);
    auto* tuple = as<TupleTypeNode>(c->type);
    if (tuple != nullptr) names += " (" + std::to_string(tuple->fields.size()) + ")";
    out += (out.empty() ? "" : ", ") + names;
  }
  return out;
}

TEST(JoinKernels, small_kernels_of_a_loop_are_one) {
  EXPECT_EQ(kernels_after({"a exp x; b add a y;"}), "exp add (2)");
  // What only the kernel reads is no result.
  EXPECT_EQ(kernels_after({"e exp x; f tanh e; a add e f;", "%a, %y"}), "exp tanh add");
}

TEST(JoinKernels, kernels_move_to_each_other) {
  // The second exponential comes before the sum, as all that it reads is there.
  EXPECT_EQ(kernels_after({"a exp x; s sum a; b exp y;"}), "exp exp (2), sum");
  // The exponential goes behind the sum, which does not read it.
  EXPECT_EQ(kernels_after({"a exp x; s sum y; b widen a s;"}), "sum, exp add (2)");
}

TEST(JoinKernels, parts_are_cut_and_put_together_where_they_are_read) {
  EXPECT_EQ(kernels_after({"s cut x; l %s.0; r %s.1; m half l; n1 half r; a join m n1;", "%a, %y"}),
            "split negative negative concatenate");
}

TEST(JoinKernels, leaves_other_kernels_alone) {
  for (const std::string shape : {"4, 8", "8192, 8"}) {
    const std::string both = kernels_after({"a exp x; b tanh y;", "%a, %b", shape});
    EXPECT_EQ(both, shape == "4, 8" ? "exp tanh (2)" : "exp, tanh");
  }
  // A sum between two kernels, of which the second reads it, and an update in place that the first one must not pass.
  EXPECT_EQ(kernels_after({"a exp x; s sum a; b tanh a;"}), "exp tanh (2), sum");
  EXPECT_EQ(kernels_after({"e exp x; u line y w t; a add u e; b tanh a;"}),
            "exp, update_slice, add tanh (2)");
}

TEST(JoinKernels, only_in_functions_that_call_themselves) {
  expect_unchanged(kJoinKernels,
                   "def @main(%x: Tensor[(4, 8), float32]) {\n"
                   "let %a = (fn (%p: Tensor[(4, 8), float32], Primitive=1) { exp(%p) })(%x);\n"
                   "let %b = (fn (%q: Tensor[(4, 8), float32], Primitive=1) { tanh(%q) })(%a);\n"
                   "let %c = (%a, %b); %c }");
}

}  // namespace
}  // namespace relay::pass_test
