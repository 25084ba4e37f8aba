// Whatever the words, a command says what is wrong and ends.
#include "fuzz/command_lines.h"

#include <gtest/gtest.h>

namespace relay::fuzz {
namespace {

TEST(CommandLines, random_ones_end_well_or_say_an_error) {
  CommandLineOptions options;
  options.count = 200;
  run_command_lines(options, [](uint64_t seed, const std::string& text) {
    ADD_FAILURE() << "seed " << seed << ": " << text;
  });
}

TEST(CommandLines, a_seed_draws_the_same_words_again) {
  EXPECT_EQ(to_string(draw_commands(7)), to_string(draw_commands(7)));
  EXPECT_NE(to_string(draw_commands(7)), to_string(draw_commands(8)));
}

TEST(CommandLines, what_is_wrong_about_an_end_is_seen) {
  Words run{"run", "a.relay"};
  EXPECT_EQ(problem_of(run, {0, "done", ""}), "");
  EXPECT_EQ(problem_of(run, {1, "", "error[E0101]: no"}), "");
  EXPECT_NE(problem_of(run, {0, "", "error[E0101]: no"}), "");
  EXPECT_NE(problem_of(run, {1, "done", ""}), "");
  EXPECT_NE(problem_of(run, {3, "", "internal error: no"}), "");
  EXPECT_NE(problem_of(run, {1, "", "error[E0101]: x\n  This is a defect of Relay"}), "");
  EXPECT_EQ(
      problem_of({"fmt", "--check", "a.relay"}, {1, "a.relay is not in canonical layout", ""}), "");
}

}  // namespace
}  // namespace relay::fuzz
