// What the machine offers to a run: instruction sets, usable cores, and the floating-point mode of
// a thread.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostic.h"

namespace relay::runtime {

// "x86_64", "aarch64", "riscv64": the architecture that this runtime was built for.
std::string_view host_arch();

// What the code of artifacts may look like on this architecture.
struct CodeForm {
  uint16_t machine;  // of the ELF header
  // The relocations that position-independent code without thread-local data has: the load address plus an offset, and
  // the word of a symbol. Where relocations have no offsets of their own, the offset is what lies at the place; for the word
  // of a symbol, the first kind has one, the others have none.
  uint32_t relative;
  std::array<uint32_t, 3> words;
};
const CodeForm& host_code_form();

// True when the processor and the operating system offer a feature, by its LLVM name ("avx2",
// "avx512bw", "amx-int8"). False for a name that this runtime does not know.
bool host_has_feature(std::string_view feature);

// Features that code needs and the machine does not offer, in order.
struct MissingFeatures {
  std::vector<std::string> absent;  // the processor has no such instructions
  std::vector<std::string>
      disabled;  // it has, but the operating system does not save their registers
  bool empty() const { return absent.empty() && disabled.empty(); }
};
MissingFeatures missing_features(std::span<const std::string> required);

// E0610 for code, which `name` describes, of an architecture and with features that the machine does not offer; nullopt
// when it offers them.
std::optional<Diagnostic> machine_refuses(const std::string& name, std::string_view arch,
                                          std::span<const std::string> features);
Diagnostic features_refused(const std::string& name, const MissingFeatures& missing);

// Asks the operating system, once per process, for what code that uses the features needs beyond the processor: the state
// of AMX tiles, which threads have only where that is granted. E0610 when it is not; nullopt otherwise.
std::optional<Diagnostic> request_state_of(std::span<const std::string> features);

// How many threads a run should use: the physical cores in the affinity mask, limited by the
// control group's processor quota (rounded down, at least 1). `root` is prepended to the paths
// that are read, for tests.
int available_threads(const std::string& root = "");

// The part of available_threads that comes from the control group: the quota in cores, or 0 for
// none.
double cgroup_cpu_quota(const std::string& root = "");

// Tells the processor that this thread waits in a loop.
void spin_pause();

}  // namespace relay::runtime
