// Many random programs, each checked in every way, failures made small.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "fuzz/differential.h"
#include "fuzz/generate.h"

namespace relay::fuzz {

// What was drawn: how often each construct and operator occurs in the programs.
struct Statistics {
  std::map<std::string, int64_t> constructs;
  std::map<std::string, int64_t> operators;
  std::map<std::string, int64_t> dtypes;
  void count(const Module& mod);
};

struct CampaignOptions {
  uint64_t seed = 0;
  uint64_t count = 100;
  GenerateOptions generate;
  CheckOptions check;
  // Processes; 0: one for each core.
  int jobs = 0;
  // Programs whose kernels are compiled together.
  int batch = 25;
  // A program that takes longer hangs.
  int timeout_seconds = 60;
  // Goes on after a failure.
  bool keep_going = false;
  bool shrink = true;
  // Told of every finding as soon as it is there, before it is made small.
  std::function<void(uint64_t seed, const Failure& failure)> found;
  // Told after every batch.
  std::function<void(int64_t done, int64_t total, size_t failures)> progress;
};

struct Finding {
  uint64_t seed;
  Failure failure;
  std::string program;  // minimal, as text

  // "seed 17, level 2, value: ..." and the program.
  std::string text() const;
};

struct CampaignResult {
  Tally tally;
  std::vector<Finding> findings;
};

// Checks the programs of seeds [seed, seed + count) in child processes: a crash or a program that
// hangs is a finding, too. Findings alike in stage, kind and the first line of their text are
// reported once. The caller has no other threads.
CampaignResult run_campaign(const CampaignOptions& options);

}  // namespace relay::fuzz
