// Instruction sets, one row each: what is particular to one as far as neither code generation nor the runtime is
// concerned. docs/adding_a_target.md says what else an architecture has.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "target/target.h"

namespace relay {

// The caches and cores that code is scheduled for where the target string names a processor and no sizes.
struct Machine {
  int64_t l1_bytes, l2_bytes;  // data, per core
  int64_t l3_bytes;            // shared
  int num_cores;
};

struct Architecture {
  // A set of features that is a target by name.
  struct Level {
    std::string_view name;      // "x86-64-v3"
    std::string_view features;  // "+sse3,..."
    Machine machine;            // a common one of that level
  };
  struct Processor {
    std::string_view name;  // the code generator's, "znver4"
    Machine machine;
    std::string_view length = {};  // of its vectors, the name of a VectorLength; empty: the least
  };
  // The least length of vector registers, where instructions are the same for every length: a feature of targets.
  struct VectorLength {
    std::string_view name;       // "sve256"
    std::string_view registers;  // the feature that has these registers, "sve"
    int64_t bits;
    bool is_generators = false;  // the code generator knows the name, too
  };

  std::string_view name;          // as runtime::host_arch() and triples have it, "x86_64"
  std::string_view triple;        // of code for it on a machine of another architecture
  std::string_view generic_cpu;   // the processor that every one is, for which levels are compiled
  std::span<const Level> levels;  // the least first
  // Processors with known caches; any other takes those of the highest level that it reaches.
  std::span<const Processor> processors;
  // The level that every machine has that Relay runs on; code that must run here and was asked for a better one is made
  // for it.
  std::string_view least_level;
  // Features that code may use once the target has them, beyond the lengths of vectors.
  std::span<const std::string_view> checked_features;
  // Features whose instructions take denormal numbers for zero whatever the mode of the thread is.
  std::span<const std::string_view> flushing_features;
  // Fills what follows from the feature text.
  void (*derive)(Target& target);
  // The shortest first.
  std::span<const VectorLength> lengths = {};
  // The processor to emulate where the emulator's own one lacks features that it knows, as QEMU_CPU names it.
  std::string_view emulated_cpu = {};
  // The word of the emulator's name, "qemu-arm", where it is not that of the architecture.
  std::string_view emulator = {};
  // The processor whose instruction times order the code for `generic_cpu`, by the code generator's name; empty: the code
  // generator's choice.
  std::string_view tuned_cpu = {};

  // Null when there is none of that name.
  const Level* find_level(std::string_view level) const;
  const VectorLength* find_length(std::string_view name) const;
  // The features that the loader of code checks: checked_features and the lengths.
  std::vector<std::string_view> all_features() const;
  // The features of the processor's row beyond those that the code generator knows, "+sve256"; empty where there are none.
  std::string length_of(std::string_view cpu) const;
  // Those that code for the processor of a machine has that offers so many: what its row says, or all without a row.
  std::vector<std::string> lengths_on(std::string_view cpu,
                                      const std::function<bool(std::string_view)>& offers) const;
  // The caches and cores of a processor with these features.
  Machine machine_of(std::string_view cpu, const Target& target) const;
};

std::span<const Architecture> architectures();

// Null when there is none of that name.
const Architecture* find_architecture(std::string_view name);

// The feature text of a target without what the code generator does not know: lengths of vectors and matrix instructions.
std::string code_features(const Target& target);

// A machine that tests compile for in place of the one they run on.
struct TestHost {
  std::string_view name;    // the value of RELAY_HOST, "zen4"
  std::string_view target;  // the processor, as users name it
};

// One for each kind of processor for which schedule rules and instructions differ.
std::span<const TestHost> test_hosts();

}  // namespace relay
