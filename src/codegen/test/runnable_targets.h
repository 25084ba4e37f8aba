// The targets that tests compile for: those whose code this machine can run.
#pragma once

#include <string>
#include <vector>

#include "codegen/targets.h"
#include "runtime/cpu.h"
#include "target/architectures.h"

namespace relay::codegen_test {

// The levels of this machine's architecture, from the first that the compiler is at home on, and the machine itself.
inline std::vector<std::string> runnable_target_names() {
  std::vector<std::string> out;
  const Architecture& arch = *find_architecture(runtime::host_arch());
  for (auto* level = arch.find_level(arch.least_level);
       level != arch.levels.data() + arch.levels.size(); ++level) {
    Target t = parse_target(level->name);
    if (runtime::missing_features(t.required_features()).empty()) out.emplace_back(level->name);
  }
  out.emplace_back("native");
  return out;
}

inline std::vector<Target> runnable_targets() {
  std::vector<Target> out;
  for (const std::string& name : runnable_target_names()) out.push_back(parse_target(name));
  return out;
}

}  // namespace relay::codegen_test
