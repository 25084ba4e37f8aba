// Values that lie inside others: what is joined is computed where it belongs, what is cut is read
// where it is.
#include "eval/evaluator.h"
#include "vm/test/run_program.h"

namespace relay {
namespace {

using runtime::Value;
using vm_test::Compiled;

// The kernels that move elements and compute nothing, in a program with a matrix %x and a square
// matrix %w, both of 16 columns; its result is the evaluator's.
std::vector<std::string> moves(const std::string& body) {
  Compiled program(
      "def @main(%x: Tensor[(4, 16), float32], %w: Tensor[(16, 16), float32]) {\n" + body + "\n}",
      true);
  std::vector<Value> args;
  for (int64_t rows : {4, 16}) {
    Tensor t = Tensor::empty(DType::Float(32), {rows, 16});
    for (int64_t i = 0; i < t.num_elements(); ++i) {
      t.set_from_double(i, static_cast<double>(i * 7 % 11) - 5);
    }
    args.emplace_back(t);
  }
  Type type = as<FuncTypeNode>(program.source->find("main")->type)->ret_type;
  std::string expected =
      print_value(Evaluator(program.source).call("main", args), type, program.source);
  // Twice: what the first run leaves in memory is not seen by the second.
  EXPECT_EQ(program.text(args), expected);
  EXPECT_EQ(program.text(args), expected);
  std::vector<std::string> names;
  for (const plan::ProgramKernel& k : program.bytecode.kernels) {
    const std::string& name = k.name();
    for (const char* op : {"concatenate", "stack", "split"}) {
      if (name.find(op) != std::string::npos) names.push_back(name);
    }
  }
  return names;
}

using None = std::vector<std::string>;

TEST(Pieces, products_are_computed_where_they_are_joined) {
  EXPECT_EQ(moves("let %a = nn.dense(%x, %w); let %b = nn.dense(%a, %w);\n"
                  "nn.dense(concatenate((%a, %b)), %w)"),
            None{});
  EXPECT_EQ(moves("let %a = nn.dense(%x, %w); let %b = nn.dense(%a, %w);\n"
                  "nn.relu(stack((%a, %b)))"),
            None{});
}

TEST(Pieces, what_is_joined_may_be_a_result_and_so_may_its_parts) {
  EXPECT_EQ(moves("let %a = nn.dense(%x, %w); let %b = nn.dense(%a, %w);\n"
                  "(%b, concatenate((%b, %a)), %a)"),
            None{});
}

TEST(Pieces, parts_that_come_from_elsewhere_or_are_there_already_are_copied) {
  EXPECT_EQ(moves("let %a = nn.dense(%x, %w); let %b = nn.dense(%a, %w);\n"
                  "nn.dense(concatenate((%a, %b, %b)), %w)"),
            (None{"fused_concatenate"}));  // an operand twice is one parameter of the kernel
  EXPECT_EQ(moves("let %a = nn.dense(%x, %w); let %b = nn.dense(%a, %w);\n"
                  "nn.dense(concatenate((%x, %a, %b)), %w)"),
            None{});
  EXPECT_EQ(moves("let %a = nn.dense(%x, %w); let %b = nn.dense(%a, %w);\n"
                  "let %c = concatenate((%a, %b)); let %d = concatenate((%b, %a));\n"
                  "add(nn.dense(%c, %w), nn.dense(%d, %w))"),
            (None{"fused_concatenate"}));
}

TEST(Pieces, joins_of_joins) {
  EXPECT_EQ(moves("let %a = nn.dense(%x, %w); let %b = nn.dense(%a, %w);\n"
                  "let %c = concatenate((%a, %b)); let %d = nn.dense(%c, %w);\n"
                  "nn.dense(concatenate((%d, %c)), %w)"),
            None{});
}

constexpr const char* kTwo = "let %a = nn.dense(%x, %w); let %b = nn.relu(nn.dense(%a, %w));\n";

TEST(Pieces, kernels_leave_gaps_for_what_is_joined_along_an_inner_axis) {
  std::string two = kTwo;
  EXPECT_EQ(moves(two + "negative(concatenate((%a, %b), axis=1))"), None{});
  EXPECT_EQ(moves(two + "let %c = concatenate((%b, %a), axis=1);\n"
                        "let %d = sum(%c, axis=[1], keepdims=True); (max(%c, axis=[0]), %d)"),
            None{});
  // Parts in the middle of vectors and lines of the cache.
  EXPECT_EQ(moves("let %a = nn.dense(%x, strided_slice(%w, begin=[0, 0], end=[3, 16]));\n"
                  "let %b = nn.dense(%a, strided_slice(%w, begin=[0, 0], end=[5, 3]));\n"
                  "negative(concatenate((%b, %a, %b * 2f), axis=1))"),
            None{});
  // Other axes, and joins in joins.
  EXPECT_EQ(moves("let %y = reshape(%x, newshape=[2, 2, 4, 4]); let %a = negative(%y);\n"
                  "let %b = abs(%y); let %c = concatenate((%a, %b), axis=1);\n"
                  "let %d = concatenate((%c, sign(%c)), axis=3);\n"
                  "sum(concatenate((negative(%d), %d), axis=2), axis=[1])"),
            None{});
}

TEST(Pieces, joins_that_continue_one_another_are_one) {
  EXPECT_EQ(
      moves("let %a = nn.dense(%x, %w);\n"
            "let %b = nn.dense(negative(concatenate((%a, %a * 2f), axis=1)), concatenate((%w, "
            "%w), axis=1));\n"
            "%b"),
      (None{"fused_concatenate_layout_transform"}));
  EXPECT_EQ(moves("let %a = nn.dense(%x, %w); let %b = negative(%a);\n"
                  "let %c = sum(concatenate((%a, %b), axis=1), axis=[1], keepdims=True);\n"
                  "let %d = max(concatenate((%a, %b, %c), axis=1), axis=[1], keepdims=True);\n"
                  "nn.relu(concatenate((%a, %b, %c, %d), axis=1))"),
            None{});
  EXPECT_EQ(moves("let %a = nn.dense(%x, %w); let %b = negative(%a);\n"
                  "let %c = nn.dense(concatenate((%a, %b)), %w);\n"
                  "nn.relu(concatenate((%a, %b, %c)))"),
            None{});
}

TEST(Pieces, what_others_than_kernels_read_has_no_gaps) {
  std::string two = kTwo;
  // A part that is a result, and one under another shape: each is moved to its place by a kernel.
  EXPECT_EQ(moves(two + "let %c = negative(concatenate((%a, %b), axis=1)); (%c, %a)"), None{});
  EXPECT_EQ(
      moves(two +
            "let %c = negative(concatenate((%a, %b), axis=1));\n"
            "(%c, nn.dense(reshape(reshape(%a, newshape=[2, 2, 16]), newshape=[4, 16]), %w))"),
      None{});
  // Not worth it for the smaller part of the whole.
  EXPECT_EQ(moves(two + "negative(concatenate((%x, %x * 2f, %x), axis=1))").size(), 1);
  EXPECT_EQ(moves(two + "negative(concatenate((%x, %a, abs(%x), %x), axis=1))").size(), 1);
}

TEST(Pieces, parts_of_a_value_are_read_where_they_are) {
  EXPECT_EQ(moves("let %s = split(nn.dense(%x, %w), indices_or_sections=2);\n"
                  "nn.dense(%s.1, nn.dense(%w, nn.dense(%w, %w)))"),
            None{});
  EXPECT_EQ(moves("let %s = split(nn.dense(%x, %w), indices_or_sections=[5, 8], axis=1);\n"
                  "(negative(%s.0), sum(%s.1, axis=[1]), %s.2 * %s.2)"),
            None{});
  // A piece with gaps is no result, and has no other shape.
  EXPECT_EQ(moves("let %s = split(nn.dense(%x, %w), indices_or_sections=4, axis=1);\n"
                  "%s.2")
                .size(),
            1);
  EXPECT_EQ(moves("let %s = split(nn.dense(%x, %w), indices_or_sections=4, axis=1);\n"
                  "let %r = reshape(%s.2, newshape=[16]); (%r, negative(%r))")
                .size(),
            1);
}

TEST(Pieces, pieces_of_what_is_joined_and_joins_of_pieces) {
  std::string two = kTwo;
  EXPECT_EQ(moves(two + "let %s = split(concatenate((%a, %b), axis=1), indices_or_sections=2);\n"
                        "negative(%s.0) + nn.relu(%s.1)"),
            None{});
  EXPECT_EQ(moves(two + "let %s = split(%b, indices_or_sections=2, axis=1);\n"
                        "negative(concatenate((%s.1, %a, negative(%s.0)), axis=1))"),
            None{});
}

// How many results of @main take the memory of an operand.
int64_t reused(const std::string& body) {
  moves(body);  // its result is the evaluator's
  Compiled program(
      "def @main(%x: Tensor[(4, 16), float32], %w: Tensor[(16, 16), float32]) {\n" + body + "\n}",
      true);
  return program.bytecode.arenas.at(0).reused;
}

TEST(Pieces, a_result_takes_the_memory_of_an_operand_that_is_read_for_the_last_time) {
  EXPECT_EQ(reused("let %a = nn.dense(%x, %w);\n"
                   "let %b = nn.dense(sign(%a), %w) + %a; nn.dense(%b, %w)"),
            1);
  // One after the other.
  EXPECT_EQ(reused("let %a = nn.dense(%x, %w); let %b = nn.relu(nn.dense(%a, %w)) + %a;\n"
                   "let %c = nn.relu(nn.dense(%b, %w)) + %b; nn.dense(%c, %w)"),
            0);
  EXPECT_EQ(reused("let %a = nn.dense(%x, %w); let %b = nn.dense(sign(%a), %w) * sign(%a) + %a;\n"
                   "let %c = nn.dense(sign(%b), %w) + %b; nn.dense(%c, %w)"),
            2);
}

TEST(Pieces, an_operand_keeps_its_memory) {
  // It is read later,
  EXPECT_EQ(reused("let %a = nn.dense(%x, %w); let %b = nn.dense(sign(%a), %w) + %a;\n"
                   "nn.dense(%b, %w) + %a"),
            0);
  // or at other places than are written,
  EXPECT_EQ(reused("let %a = nn.dense(%w, %w); let %b = nn.relu(transpose(%a)) + %a;\n"
                   "nn.dense(%x, nn.dense(%b, %w))"),
            0);
  EXPECT_EQ(reused("let %a = nn.dense(%x, %w); let %b = %a - max(%a, axis=[1], keepdims=True);\n"
                   "nn.dense(%b, %w)"),
            0);
  // or is of another size.
  EXPECT_EQ(reused("let %a = max(nn.dense(%x, %w), axis=[0], keepdims=True);\n"
                   "let %b = nn.dense(nn.relu(%x), %w) + %a; nn.dense(%b, %w)"),
            0);
}

}  // namespace
}  // namespace relay
