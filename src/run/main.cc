// The program `relay-run`.
#include <string>
#include <vector>

#include "run/program.h"

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + (argc > 0 ? 1 : 0), argv + argc);
  return relay::run_program(words);
}
