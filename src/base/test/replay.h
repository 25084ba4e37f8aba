// Replays inputs through a fuzzer's entry point, for the tests that every compiler builds: a corpus
// of files, and mutations of it that are the same in every run.
//
//   test::replay(test::read_corpus(folder), {.rounds = 2000, .words = {"def", "let"}});
//
// An input may end in any error that the entry point expects. An exception that leaves it fails the
// test, as does an input that takes too long or too much memory, and a run that holds too much
// memory. When a sanitizer ends the program, the input is printed.
//
// For longer runs: RELAY_REPLAY_ROUNDS and RELAY_REPLAY_SEED say other numbers, RELAY_REPLAY_CORPUS a
// folder with more inputs.
#pragma once

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "base/diagnostic.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);
// Null but under a sanitizer.
extern "C" __attribute__((weak)) void __sanitizer_set_death_callback(void (*callback)());

namespace relay::test {

struct ReplayOptions {
  int rounds = 2000;
  uint32_t seed = 1;
  // What the inputs are made of; mutations insert them.
  std::vector<std::string> words = {};
  double max_seconds_each = 10;
  int64_t max_growth_bytes = int64_t{2} << 30;
  // What one input may take beside four times its size; 0: anything. Not asked for under sanitizers,
  // which keep what is freed.
  int64_t max_bytes_each = 0;
};

// The contents of the files of a folder, in the order of their names.
inline std::vector<std::string> read_corpus(const std::string& folder) {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  std::vector<std::string> corpus;
  for (const auto& path : paths) {
    std::ifstream file(path, std::ios::binary);
    corpus.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  return corpus;
}

// Draws mutations of a corpus.
class Mutator {
 public:
  Mutator(const std::vector<std::string>& corpus, const ReplayOptions& options)
      : corpus_(corpus), words_(options.words), random_(options.seed) {}

  std::string next() {
    std::string bytes = corpus_[below(corpus_.size())];
    for (size_t edits = 1 + below(4); edits > 0; --edits) edit(bytes);
    return bytes;
  }

 private:
  size_t below(size_t bound) { return bound == 0 ? 0 : random_() % bound; }

  void edit(std::string& bytes) {
    const size_t at = below(bytes.size() + 1);
    const size_t rest = bytes.size() - at;
    switch (below(words_.empty() ? 7 : 8)) {
      case 0:
        if (rest > 0) bytes[at] = static_cast<char>(bytes[at] ^ (1 << below(8)));
        break;
      case 1:
        if (rest > 0) bytes[at] = static_cast<char>(random_());
        break;
      case 2:
        bytes.erase(at, 1 + below(std::min<size_t>(rest, 16)));
        break;
      case 3:
        bytes.resize(at);
        break;
      case 4:
        bytes.insert(at, bytes.substr(at, 1 + below(32)));
        break;
      case 5: {  // the head of one input, the tail of another
        const std::string& other = corpus_[below(corpus_.size())];
        bytes = bytes.substr(0, at) + other.substr(below(other.size()));
        break;
      }
      case 6: {
        static constexpr uint64_t kNumbers[] = {
            0,          1,           0x7f,       0xff,       0x7fff,  0xffff,     0x7fffffff,
            0xffffffff, 0x100000000, ~0ULL >> 1, 1ULL << 63, 1 << 20, 1ULL << 40, ~0ULL};
        const uint64_t number = kNumbers[below(std::size(kNumbers))];
        std::memcpy(bytes.data() + at, &number, std::min<size_t>(rest, size_t{1} << below(4)));
        break;
      }
      default:
        bytes.insert(at, words_[below(words_.size())]);
    }
  }

  const std::vector<std::string>& corpus_;
  const std::vector<std::string>& words_;
  std::mt19937 random_;
};

inline const std::string* input_being_replayed = nullptr;

inline void print_input() {
  if (input_being_replayed == nullptr) return;
  std::fprintf(stderr, "The input was:\n%s\n",
               escape_for_terminal(*input_being_replayed, 1 << 16).c_str());
}

// Prints the input when the program dies: by a sanitizer's hand, or by a signal, for which there is
// a stack of its own as the other may be used up.
inline void print_input_at_death() {
  if (__sanitizer_set_death_callback != nullptr) {
    __sanitizer_set_death_callback(print_input);
    return;
  }
  static char memory[1 << 16];
  stack_t stack{};
  stack.ss_sp = memory;
  stack.ss_size = sizeof(memory);
  sigaltstack(&stack, nullptr);
  struct sigaction action {};
  action.sa_handler = [](int) { print_input(); };
  action.sa_flags = static_cast<int>(SA_ONSTACK | SA_RESETHAND);
  for (int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGABRT}) sigaction(signal, &action, nullptr);
}

// What environment variable `name` says.
inline int number_from_environment(const char* name, int otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::atoi(text);
}

// Resident memory of this process, now or at most since the last call.
struct ResidentMemory {
  int64_t now = 0, peak = 0;

  static ResidentMemory read() {
    ResidentMemory out;
    std::ifstream status("/proc/self/status");
    for (std::string line; std::getline(status, line);) {
      if (line.starts_with("VmHWM:")) out.peak = std::atoll(line.c_str() + 6) * 1024;
      if (line.starts_with("VmRSS:")) out.now = std::atoll(line.c_str() + 6) * 1024;
    }
    std::ofstream("/proc/self/clear_refs") << "5";
    return out;
  }
};

inline int64_t peak_memory_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return int64_t{usage.ru_maxrss} * 1024;
}

// Runs every entry of the corpus, then mutations of them: changed bits and bytes, cuts,
// truncations, repeats, splices, words, and the numbers at which lengths and offsets break.
inline void replay(std::vector<std::string> corpus, ReplayOptions options = {}) {
  options.rounds = number_from_environment("RELAY_REPLAY_ROUNDS", options.rounds);
  options.seed = static_cast<uint32_t>(
      number_from_environment("RELAY_REPLAY_SEED", static_cast<int>(options.seed)));
  if (const char* folder = std::getenv("RELAY_REPLAY_CORPUS")) {
    for (std::string& input : read_corpus(folder)) corpus.push_back(std::move(input));
  }
  ASSERT_FALSE(corpus.empty());
  print_input_at_death();
  const bool asks_memory = options.max_bytes_each > 0 && __sanitizer_set_death_callback == nullptr;
  Mutator mutator(corpus, options);
  const int64_t memory = peak_memory_bytes();
  for (int round = -static_cast<int>(corpus.size()); round < options.rounds; ++round) {
    const std::string input = round < 0 ? corpus[corpus.size() + round] : mutator.next();
    input_being_replayed = &input;
    const ResidentMemory before = asks_memory ? ResidentMemory::read() : ResidentMemory();
    const auto begin = std::chrono::steady_clock::now();
    std::string failure;
    try {
      LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(input.data()), input.size());
    } catch (const std::exception& error) {
      failure = error.what();
    }
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
    input_being_replayed = nullptr;
    if (failure.empty() && seconds.count() > options.max_seconds_each) {
      failure = "it took " + std::to_string(seconds.count()) + " s";
    }
    if (failure.empty() && asks_memory) {
      const int64_t taken = ResidentMemory::read().peak - before.now;
      if (taken > options.max_bytes_each + 4 * static_cast<int64_t>(input.size())) {
        failure = "it took " + std::to_string(taken) + " bytes";
      }
    }
    ASSERT_TRUE(failure.empty()) << failure << "\nseed " << options.seed << ", round " << round
                                 << ", input:\n"
                                 << escape_for_terminal(input, 1 << 16);
  }
  EXPECT_LT(peak_memory_bytes() - memory, options.max_growth_bytes);
}

}  // namespace relay::test
