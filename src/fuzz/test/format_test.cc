// Random programs keep their meaning, and fit their lines, in canonical layout.
#include "ir/text/format.h"

#include <gtest/gtest.h>

#include <sstream>

#include "fuzz/generate.h"
#include "ir/text/text.h"
#include "node/structural.h"

namespace relay::fuzz {
namespace {

TEST(Format, random_programs_mean_the_same_in_canonical_layout) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::string text = print_module(generate(seed));
    std::string once = format_text(SourceFile::make("once.relay", text));
    EXPECT_EQ(format_text(SourceFile::make("twice.relay", once)), once);
    EXPECT_EQ(first_structural_mismatch(parse_module("printed.relay", text),
                                        parse_module("formatted.relay", once)),
              "");
    std::istringstream program(once.substr(0, once.find("\n#[metadata]")));
    for (std::string line; std::getline(program, line);) EXPECT_LE(line.size(), 100u) << line;
  }
}

}  // namespace
}  // namespace relay::fuzz
