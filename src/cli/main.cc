// The program `relay`.
#include "cli/command_line.h"

#include <string>
#include <vector>

int main(int argc, char** argv) {
  std::vector<std::string> words(argv + (argc > 0 ? 1 : 0), argv + argc);
  return relay::cli::run_command_line(words, relay::cli::Python::absent);
}
