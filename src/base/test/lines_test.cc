#include "base/lines.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>

namespace relay {
namespace {

TEST(Lines, of_a_file_of_any_size) {
  std::filesystem::path file = std::filesystem::temp_directory_path() / "relay_lines_test";
  auto write = [&](const std::string& text) {
    FILE* to = std::fopen(file.c_str(), "w");
    std::fputs(text.c_str(), to);
    std::fclose(to);
  };
  write("one\n\nthree");
  EXPECT_EQ(lines_of(file), (std::vector<std::string>{"one", "", "three"}));
  EXPECT_EQ(first_line_of(file), "one");
  write(std::string(10'000, 'x') + "\nend\n");
  EXPECT_EQ(lines_of(file), (std::vector<std::string>{std::string(10'000, 'x'), "end"}));
  write("");
  EXPECT_TRUE(lines_of(file).empty());
  EXPECT_EQ(first_line_of(file), "");
  std::filesystem::remove(file);
  EXPECT_TRUE(lines_of(file).empty());
  EXPECT_TRUE(lines_of("/").empty());
}

}  // namespace
}  // namespace relay
