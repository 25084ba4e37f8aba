// Every program of tests/must_fail is refused, with exactly the message that stands beside it.
//
// RELAY_UPDATE=1 in the environment writes the messages anew; they are reviewed like code.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/test/source_dir.h"
#include "ir/text/text.h"
#include "ops/register_ops.h"
#include "types/infer.h"
#include "types/verify.h"

namespace relay {
namespace {

namespace fs = std::filesystem;

std::string read(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// What a user is told about the program.
std::string told(const fs::path& path) {
  try {
    Module mod = infer_types(parse_module(path.filename().string(), read(path)));
    auto problem = find_ill_formed(mod);
    return problem ? "after inference " + problem->render() : "nothing";
  } catch (const UserError& e) {
    std::string out;
    for (const Diagnostic& d : e.diagnostics()) out += d.render();
    return out;
  }
}

TEST(MustFail, each_program_is_refused_with_its_message) {
  register_ops();
  const bool update = std::getenv("RELAY_UPDATE") != nullptr;
  std::vector<fs::path> programs;
  for (const auto& entry :
       fs::directory_iterator(test::source_dir() + std::string("/tests/must_fail"))) {
    if (entry.path().extension() == ".relay") programs.push_back(entry.path());
  }
  std::ranges::sort(programs);
  EXPECT_GE(programs.size(), 100u);
  for (const fs::path& program : programs) {
    std::string message = told(program);
    EXPECT_EQ(message.rfind("error[E", 0), 0u) << program << "\n" << message;
    EXPECT_NE(message.find("--> "), std::string::npos) << program << " has no place:\n" << message;
    fs::path expected = program;
    expected.replace_extension(".expected");
    if (update) {
      std::ofstream(expected, std::ios::binary) << message;
    } else {
      EXPECT_EQ(message, read(expected)) << program;
    }
  }
}

}  // namespace
}  // namespace relay
