// The targets that tests compile for: those whose code this machine can run, and one whose schedules are looked at.
#pragma once

#include <string>
#include <vector>

#include "codegen/targets.h"
#include "runtime/cpu.h"
#include "target/architectures.h"

namespace relay::codegen_test {

inline bool runs_here(const Target& target) {
  return runtime::missing_features(target.required_features()).empty();
}

// What a schedule says is the same on every machine.
inline Target text_target() { return parse_target("x86-64-v4 -l2=2M -num-threads=2"); }

// The levels of this machine's architecture, from the first that the compiler is at home on, and the machine itself.
inline std::vector<std::string> runnable_target_names() {
  std::vector<std::string> out;
  const Architecture& arch = *find_architecture(runtime::host_arch());
  for (auto* level = arch.find_level(arch.least_level);
       level != arch.levels.data() + arch.levels.size(); ++level) {
    if (runs_here(parse_target(level->name))) out.emplace_back(level->name);
  }
  // RELAY_HOST may describe another machine.
  if (runs_here(parse_target("native"))) out.emplace_back("native");
  return out;
}

inline std::vector<Target> runnable_targets() {
  std::vector<Target> out;
  for (const std::string& name : runnable_target_names()) out.push_back(parse_target(name));
  return out;
}

}  // namespace relay::codegen_test
