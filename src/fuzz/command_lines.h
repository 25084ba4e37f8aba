// Command lines at random: options that exist and that do not, values that fit and that do not, in any order, several
// commands one after another on the same files, and two at once.
//
// Whatever the words are, a command ends with exit code 0, or says an error and ends with 1 or 2: it neither crashes nor
// hangs, and nothing that a person can write is an internal error.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace relay::fuzz {

using Words = std::vector<std::string>;

// What a command came to.
struct CommandEnd {
  int code = 0;
  std::string output, errors;
};

// What is wrong about how a command ended, or "".
std::string problem_of(const Words& words, const CommandEnd& end);

// Commands that stand in one line run at once, lines one after another.
using CommandSequence = std::vector<std::vector<Words>>;
CommandSequence draw_commands(uint64_t seed);
std::string to_string(const CommandSequence& sequence);

struct CommandLineOptions {
  uint64_t seed = 0;
  uint64_t count = 100;
  int jobs = 0;  // processes; 0: one for each core
  int timeout_seconds = 60;
};

// Runs the sequences of seeds [seed, seed + count), each in processes and a folder of its own; `found` is told of every
// sequence that went wrong. The caller has no other threads.
void run_command_lines(const CommandLineOptions& options,
                       const std::function<void(uint64_t seed, const std::string& text)>& found);

}  // namespace relay::fuzz
