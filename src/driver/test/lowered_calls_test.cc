// Calls of every operator with each attribute at its edges, lowered to loops: each becomes verified loops, or an error for the
// user. An exception of the standard library, or a defect that a verifier finds, is one that a user would meet.
#include <gtest/gtest.h>

#include "driver/compile.h"
#include "ops/test/draw_calls.h"

namespace relay {
namespace {

struct DrawnCall {
  std::vector<std::string> args;
  std::string attrs;
};

// The example's attributes with one of them changed to each value that a bool or a number may be wrong at; and calls drawn
// at random.
std::vector<DrawnCall> calls_of(const OpInfo& row, int drawn) {
  std::vector<DrawnCall> out;
  for (const OpExample& e : row.examples) {
    out.push_back({e.args, e.attrs});
    if (row.attrs == nullptr) continue;
    for (const Field& field : row.attrs->fields) {
      const std::string name(field.name);
      if (e.attrs.find(name + "=") != std::string::npos) continue;
      std::vector<std::string> values;
      const std::string_view type = field.ops->type_name;
      if (type == "int") values = {"0", "1", "2", "-1"};
      if (type == "bool") values = {"True", "False"};
      if (type.starts_with("list")) values = {"[]", "[0]", "[1]", "[-1, 0]", "[2, 2]"};
      for (const std::string& value : values) {
        out.push_back({e.args, e.attrs + (e.attrs.empty() ? "" : ", ") + name + "=" + value});
      }
    }
  }
  Draw draw(static_cast<uint32_t>(std::hash<std::string_view>()(row.name)));
  for (int i = 0; i < drawn; ++i) {
    const OpExample& e = draw.one_of(row.examples);
    std::vector<std::string> args;
    for (const std::string& arg : e.args) args.push_back(draw.argument(arg));
    out.push_back({std::move(args), with_drawn(draw, row, e.attrs)});
  }
  return out;
}

TEST(LoweredCalls, are_loops_or_an_error) {
  initialize();
  const int drawn = calls_of_a_row(4);
  CompileOptions options;
  options.target = "x86-64-v3";
  options.verify = true;
  size_t lowered = 0, refused = 0;
  for (const Op& op : OpRegistry::global().all()) {
    const OpInfo& row = *op->row;
    if (row.examples.empty()) continue;
    for (const DrawnCall& c : calls_of(row, drawn)) {
      SCOPED_TRACE(program_of(row.name, c.args, c.attrs, "n: Dim"));
      try {
        Module mod = infer(row.name, c.args, c.attrs, "n: Dim");
        Bytecode bytecode = make_bytecode(optimize(mod, options), options);
        lower_kernels(bytecode);
        ++lowered;
      } catch (const UserError&) {
        ++refused;
      } catch (const std::exception& e) {
        ADD_FAILURE() << e.what();
      }
    }
  }
  EXPECT_GT(lowered, refused / 8);
  EXPECT_GT(refused, lowered / 8);
}

}  // namespace
}  // namespace relay
