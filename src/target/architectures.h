// Instruction sets, one row each: what is particular to one as far as neither code generation nor the runtime is
// concerned. docs/adding_a_target.md says what else an architecture has.
#pragma once

#include <span>
#include <string_view>

#include "target/target.h"

namespace relay {

struct Architecture {
  // A set of features that is a target by name.
  struct Level {
    std::string_view name;      // "x86-64-v3"
    std::string_view features;  // "+sse3,..."
  };

  std::string_view name;          // as runtime::host_arch() and triples have it, "x86_64"
  std::string_view triple;        // of code for it on a machine of another architecture
  std::string_view generic_cpu;   // the processor that every one is, for which levels are compiled
  std::span<const Level> levels;  // the least first
  // The level that every machine has that Relay runs on; code that must run here and was asked for a better one is made
  // for it.
  std::string_view least_level;
  // Features that code may use once the target has them.
  std::span<const std::string_view> checked_features;
  // Fills what follows from the feature text.
  void (*derive)(Target& target);

  // Null when there is none of that name.
  const Level* find_level(std::string_view level) const;
};

std::span<const Architecture> architectures();

// Null when there is none of that name.
const Architecture* find_architecture(std::string_view name);

}  // namespace relay
