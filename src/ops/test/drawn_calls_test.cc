// Calls of every operator with arguments and attributes drawn at random: each has a type or an error for the user. What
// reads a size that an argument does not have is found by the sanitizers.
#include <gtest/gtest.h>

#include "ops/test/draw_calls.h"

namespace relay {
namespace {

TEST(DrawnCalls, have_a_type_or_an_error) {
  register_ops();
  const int calls = calls_of_a_row(60);
  size_t typed = 0, refused = 0;
  for (const Op& op : OpRegistry::global().all()) {
    const OpInfo& row = *op->row;
    if (row.examples.empty()) continue;
    Draw draw(static_cast<uint32_t>(std::hash<std::string_view>()(row.name)));
    for (int i = 0; i < calls; ++i) {
      const OpExample& example = draw.one_of(row.examples);
      std::vector<std::string> args;
      for (const std::string& arg : example.args) args.push_back(draw.argument(arg));
      std::string attrs = with_drawn(draw, row, example.attrs);
      SCOPED_TRACE(program_of(row.name, args, attrs, "n: Dim"));
      try {
        Module mod = infer(row.name, args, attrs, "n: Dim");
        ++typed;
        const auto* call = as<CallNode>(as<FunctionNode>(mod->find("main"))->body);
        if (call != nullptr && row.definition) row.definition(*call);
      } catch (const UserError&) {
        ++refused;
      } catch (const std::exception& e) {
        ADD_FAILURE() << e.what();
      }
    }
  }
  // Neither kind is rare, or the calls would prove little.
  EXPECT_GT(typed, refused / 8);
  EXPECT_GT(refused, typed / 8);
}

}  // namespace
}  // namespace relay
