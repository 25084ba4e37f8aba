// The program relay_fuzz: random programs, until one fails or all are through.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>

#include "fuzz/campaign.h"
#include "ir/text/text.h"

namespace {

using namespace relay;  // NOLINT: a program of one file

void print_table(const char* title, const std::map<std::string, int64_t>& rows) {
  if (rows.empty()) return;
  std::printf("%s\n", title);
  std::vector<std::pair<std::string, int64_t>> sorted(rows.begin(), rows.end());
  std::ranges::stable_sort(sorted, std::greater<>(), [](const auto& row) { return row.second; });
  for (const auto& [name, count] : sorted) std::printf("%10ld  %s\n", count, name.c_str());
}

void print_tally(const fuzz::Tally& t) {
  std::printf(
      "%ld programs, %ld values compared, %ld of them with differences that rounding explains,\n"
      "%ld kernels, %ld of them compiled\n",
      t.programs, t.compared, t.ill_conditioned, t.kernels, t.kernels_compiled);
  print_table("programs that end with an error:", t.errors);
  print_table("refused by compiled code:", t.refused);
  print_table("programs changed by a pass:", t.pass_changed);
  print_table("programs written differently:", t.pair_changed);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Random Relay programs, run in every way there is");
  fuzz::CampaignOptions options;
  bool print = false, statistics = false, no_shrink = false;
  app.add_option("--seed", options.seed, "The seed of the first program");
  app.add_option("--count", options.count, "How many programs; 0: until one fails");
  app.add_option("--passes", options.check.passes, "Passes that are run alone; default: all")
      ->delimiter(',');
  app.add_option("--pairs", options.check.pairs, "Ways to write programs differently; default: all")
      ->delimiter(',');
  app.add_option("--levels", options.check.levels, "Optimisation levels; default: 0,1,2,3,4")
      ->delimiter(',');
  app.add_option("--budget", options.generate.budget, "About how large a function is");
  app.add_option("--jobs", options.jobs, "Processes; 0: one for each core");
  app.add_option("--timeout", options.timeout_seconds, "Seconds after which a program hangs");
  app.add_flag("--keep-going", options.keep_going, "Go on after a failure");
  app.add_flag("--no-shrink", no_shrink, "Print failing programs as they were drawn");
  app.add_flag("--print", print, "Print the programs instead of running them");
  app.add_flag("--statistics", statistics, "Print what was drawn and what came of it");
  CLI11_PARSE(app, argc, argv);
  options.shrink = !no_shrink;
  if (print) {
    for (uint64_t s = options.seed; s < options.seed + options.count; ++s) {
      std::printf("// seed %lu\n%s\n", s,
                  print_module(fuzz::generate(s, options.generate)).c_str());
    }
    return 0;
  }
  bool terminal = isatty(STDERR_FILENO) != 0;
  if (terminal) {
    options.progress = [](int64_t done, int64_t total, size_t failures) {
      std::fprintf(stderr, "\r%ld of %ld programs, %zu failures", done, total, failures);
    };
  }
  options.found = [&](uint64_t seed, const fuzz::Failure& f) {
    std::string line = f.text.substr(0, f.text.find('\n'));
    std::fprintf(stderr, "%sseed %lu, %s, %s: %s\n", terminal ? "\r" : "", seed, f.stage.c_str(),
                 f.kind.c_str(), line.c_str());
  };
  // Without an end the seeds are taken in rounds.
  bool endless = options.count == 0;
  if (endless) options.count = 10'000;
  fuzz::CampaignResult result;
  do {
    fuzz::CampaignResult round = fuzz::run_campaign(options);
    result.tally.add(round.tally);
    if (terminal) std::fprintf(stderr, "\n");
    for (const fuzz::Finding& f : round.findings) std::printf("%s\n", f.text().c_str());
    result.findings.insert(result.findings.end(), round.findings.begin(), round.findings.end());
    if (endless) options.seed += options.count;
  } while (endless && (options.keep_going || result.findings.empty()));
  if (statistics) {
    fuzz::Statistics drawn;
    for (uint64_t s = options.seed; s < options.seed + std::min<uint64_t>(options.count, 2000);
         ++s) {
      drawn.count(fuzz::generate(s, options.generate));
    }
    print_table("constructs:", drawn.constructs);
    print_table("dtypes of operators' results:", drawn.dtypes);
    print_table("operators:", drawn.operators);
  }
  print_tally(result.tally);
  return result.findings.empty() ? 0 : 1;
}
