// The program relay_fuzz: random programs, until one fails or all are through.
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "base/codes/driver.h"
#include "cli/command.h"
#include "fuzz/campaign.h"
#include "fuzz/command_lines.h"
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
      "%ld kernels, %ld of them compiled, %ld native functions\n",
      t.programs, t.compared, t.ill_conditioned, t.kernels, t.kernels_compiled, t.natives);
  if (t.slopes > 0)
    std::printf("%ld gradients that are not zero compared with finite differences\n", t.slopes);
  print_table("programs that end with an error:", t.errors);
  print_table("refused by compiled code:", t.refused);
  print_table("programs changed by a pass:", t.pass_changed);
  print_table("programs written differently:", t.pair_changed);
}

}  // namespace

int main(int argc, char** argv) {
  fuzz::CampaignOptions options;
  bool print = false, statistics = false, no_shrink = false, command_lines = false;
  std::string passes, pairs, levels;
  cli::Command command{
      "relay_fuzz",
      "Random Relay programs, run in every way there is",
      {cli::option("--seed SEED", options.seed, "The seed of the first program"),
       cli::option("--count N", options.count, "How many programs; 0: until one fails"),
       cli::option("--passes PASS,...", passes, "Passes that are run alone; default: all"),
       cli::option("--pairs NAME,...", pairs, "Ways to write programs differently; default: all"),
       cli::option("--levels LEVEL,...", levels, "Optimisation levels; default: 0,1,2,3,4"),
       cli::option("--budget N", options.generate.budget, "About how large a function is"),
       cli::option("--jobs N", options.jobs, "Processes; 0: one for each core"),
       cli::option("--timeout SECONDS", options.timeout_seconds,
                   "Seconds after which a program hangs"),
       cli::flag("--gradients", options.check.gradients,
                 "Differentiate the programs, and compare the derivatives"),
       cli::flag("--keep-going", options.keep_going, "Go on after a failure"),
       cli::flag("--no-shrink", no_shrink, "Print failing programs as they were drawn"),
       cli::flag("--print", print, "Print the programs instead of running them"),
       cli::flag("--command-lines", command_lines,
                 "Instead of programs, random command lines; --count of them"),
       cli::flag("--statistics", statistics, "Print what was drawn and what came of it")},
      {}};
  std::vector<std::string> words(argv + 1, argv + argc);
  if (std::ranges::find(words, "--help") != words.end()) {
    std::fputs(cli::help_text("relay_fuzz", command, 100).c_str(), stdout);
    return 0;
  }
  try {
    cli::parse_words("relay_fuzz", command, words);
    if (!passes.empty()) options.check.passes = cli::comma_separated(passes);
    if (!pairs.empty()) options.check.pairs = cli::comma_separated(pairs);
    if (!levels.empty()) options.check.levels.clear();
    for (const std::string& level : cli::comma_separated(levels)) {
      if (level.size() != 1 || level[0] < '0' || level[0] > '4') {
        throw cli::UsageError(
            Diagnostic(codes::driver_usage, {}, "there is no level '" + level + "'")
                .expected("0 to 4"));
      }
      options.check.levels.push_back(level[0] - '0');
    }
  } catch (const UserError& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 2;
  }
  options.shrink = !no_shrink;
  options.generate.floats = options.check.gradients;
  if (command_lines) {
    size_t findings = 0;
    auto found = [&](uint64_t seed, const std::string& text) {
      ++findings;
      std::printf("seed %lu: %s\n", seed, text.c_str());
      std::fflush(stdout);
    };
    if (print) {
      for (uint64_t s = options.seed; s < options.seed + options.count; ++s)
        std::printf("seed %lu:\n%s\n", s, fuzz::to_string(fuzz::draw_commands(s)).c_str());
    } else {
      fuzz::run_command_lines({options.seed, options.count, options.jobs, options.timeout_seconds},
                              found);
      std::printf("%lu sequences of command lines, %zu went wrong\n", options.count, findings);
    }
    return findings == 0 ? 0 : 1;
  }
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
