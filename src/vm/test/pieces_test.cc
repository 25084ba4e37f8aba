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
  for (const ProgramKernel& k : program.bytecode.kernels) {
    const std::string& name = k.composed.func->name;
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

TEST(Pieces, what_is_not_together_in_memory_needs_a_kernel) {
  EXPECT_EQ(moves("let %a = nn.dense(%x, %w); let %b = nn.dense(%a, %w);\n"
                  "nn.dense(reshape(concatenate((%a, %b), axis=1), newshape=[8, 16]), %w)")
                .size(),
            1);
  // Parts that would not begin at a boundary.
  EXPECT_EQ(moves("let %a = sum(nn.dense(%x, %w), axis=[1]); let %b = max(%x, axis=[1]);\n"
                  "nn.relu(concatenate((%a, %b)))")
                .size(),
            1);
}

TEST(Pieces, parts_of_a_value_are_read_where_they_are) {
  EXPECT_EQ(moves("let %s = split(nn.dense(%x, %w), indices_or_sections=2);\n"
                  "nn.dense(%s.1, nn.dense(%w, nn.dense(%w, %w)))"),
            None{});
  EXPECT_EQ(moves("let %s = split(nn.dense(%x, %w), indices_or_sections=4, axis=1);\n"
                  "%s.2")
                .size(),
            1);
}

}  // namespace
}  // namespace relay
