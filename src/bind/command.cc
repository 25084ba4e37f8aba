// The command `relay` as a function of the extension module, so that a wheel holds the compiler once: see launcher.c. And
// its prompt for Python.
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <string>
#include <vector>

#include "bind/unlocked.h"
#include "cli/command_line.h"
#include "cli/commands.h"

extern "C" [[gnu::visibility("default")]] int relay_main(int argc, char** argv) {
  std::vector<std::string> words(argv + (argc > 0 ? 1 : 0), argv + argc);
  return relay::cli::run_command_line(words, relay::cli::Python::absent);
}

namespace relay::bind {

void bind_command(nb::module_& m) {
  m.def(
      "run_command",
      // File names need not be UTF-8.
      [](const std::vector<nb::bytes>& given) {
        std::vector<std::string> words;
        for (const nb::bytes& word : given) words.emplace_back(word.c_str(), word.size());
        Unlocked unlocked;
        return cli::run_command_line(words, cli::Python::running);
      },
      nb::arg("words"));
  m.def(
      "repl",
      [](const std::vector<std::string>& words) {
        cli::Command command = cli::repl_command();
        Unlocked unlocked;
        command.run(cli::parse_words("relay repl", command, words));
        std::fflush(stdout);
      },
      nb::arg("words"));
}

}  // namespace relay::bind
