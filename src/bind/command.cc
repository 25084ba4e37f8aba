// The command `relay` as a function of the extension module, so that a wheel holds the compiler once: see launcher.c.
#include <string>
#include <vector>

#include "cli/command_line.h"

extern "C" [[gnu::visibility("default")]] int relay_main(int argc, char** argv) {
  std::vector<std::string> words(argv + (argc > 0 ? 1 : 0), argv + argc);
  return relay::cli::run_command_line(words);
}
