// No kernel leaves a byte of its result unwritten, at sizes of 0, 1, 2 and a prime.
#include "fuzz/sizes.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <set>

#include "ir/op.h"
#include "lower/rules/common.h"
#include "node/walk.h"
#include "tir/passes/statements.h"

namespace relay::fuzz {
namespace {

// RELAY_EXAMPLES: so many programs of each example; RELAY_SEED: other ones; RELAY_ROWS: of the operators
// whose name begins so.
SizesOptions options_of_environment() {
  SizesOptions out;
  if (const char* programs = std::getenv("RELAY_EXAMPLES")) out.programs = std::atoi(programs);
  if (const char* seed = std::getenv("RELAY_SEED")) out.seed = std::strtoull(seed, nullptr, 10);
  if (const char* rows = std::getenv("RELAY_ROWS")) out.rows = rows;
#ifdef __SANITIZE_ADDRESS__
  out.programs = 1;
#endif
  return out;
}

TEST(Sizes, every_operator_writes_all_of_its_result_at_every_size) {
  const SizesOptions options = options_of_environment();
  SizesResult result = check_sizes(options);
  for (const std::string& finding : result.findings) ADD_FAILURE() << finding;
  if (!options.rows.empty()) return;
  const std::set<std::string> strings{"text.change_case", "text.concat",     "text.count_parts",
                                      "text.format",      "text.full_match", "text.hash",
                                      "text.parse",       "text.split",      "text.tokens"};
  const std::set<std::string> effects{"debug.check", "debug.print", "debug.trace"};
  for (const Op& op : OpRegistry::global().all()) {
    const std::string& name = op->row->name;
    if (!strings.contains(name) && !effects.contains(name)) {
      EXPECT_GT(result.compared[name], 0) << name;
    }
  }
#define RELAY_SCHEDULE_RULE(which) EXPECT_GT(result.rules[k##which##Rule.name], 0) << #which;
#include "lower/rules/rule_list.def"
#undef RELAY_SCHEDULE_RULE
  EXPECT_GT(result.open, result.programs / 3);
  EXPECT_GT(result.compiled, 0);
  int64_t compared = 0;
  for (const auto& [name, runs] : result.compared) compared += runs;
  EXPECT_GT(compared, 2 * result.programs);
}

// Leaves out what initialises reductions.
class NoInitialisation : public StageObserver {
 public:
  tir::PrimFunc kernel(std::string_view stage, tir::PrimFunc f) override {
    if (stage != "LowerBlocks") return f;
    NodeRef body = rewrite(f->body, [](const NodeRef&, NodeRef rebuilt) -> NodeRef {
      auto* loop = as<tir::ForNode>(rebuilt);
      if (loop == nullptr || !loop->var->name.ends_with("_init")) return rebuilt;
      return tir::for_(loop->var, loop->min, tir::index(0), loop->body, loop->loop_kind);
    });
    return tir::with_body(f, tir::Stmt::unchecked(std::move(body)));
  }
};

TEST(Sizes, a_missing_initialisation_is_found) {
  NoInitialisation fault;
  SizesOptions options;
  options.rows = "prod";
  options.programs = 12;
  options.compiled = 0;
  options.observers = {&fault};
  EXPECT_FALSE(check_sizes(options).findings.empty());
}

}  // namespace
}  // namespace relay::fuzz
