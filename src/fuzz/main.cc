// The program relay_fuzz: random programs until one fails.
#include <CLI/CLI.hpp>
#include <cstdio>

#include "fuzz/differential.h"
#include "fuzz/generate.h"
#include "ir/text/text.h"

int main(int argc, char** argv) {
  using namespace relay;
  CLI::App app("Random Relay programs, run in every way there is");
  uint64_t seed = 0, count = 100;
  bool keep_going = false;
  bool print = false;
  fuzz::CheckOptions options;
  app.add_option("--seed", seed, "The first program");
  app.add_option("--count", count, "How many programs");
  app.add_option("--passes", options.passes, "Passes that are run alone; default: all")
      ->delimiter(',');
  app.add_option("--levels", options.levels, "Optimisation levels; default: 0 to 3")
      ->delimiter(',');
  app.add_flag("--keep-going", keep_going, "Go on after a failure");
  app.add_flag("--print", print, "Print the programs instead of running them");
  CLI11_PARSE(app, argc, argv);
  fuzz::Checker checker(options);
  for (uint64_t s = seed; s < seed + count; ++s) {
    Module mod = fuzz::generate(s);
    if (print) {
      std::printf("// seed %lu\n%s\n", s, print_module(mod).c_str());
      continue;
    }
    if (auto failure = checker.check(mod)) {
      std::printf("seed %lu, %s, %s: %s\n%s\n", s, failure->stage.c_str(), failure->kind.c_str(),
                  failure->text.c_str(), print_module(mod).c_str());
      if (!keep_going) return 1;
    }
  }
  return 0;
}
