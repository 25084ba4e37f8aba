#include "codegen/llvm/host.h"

#include <llvm/TargetParser/Host.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <memory>

#include "base/fork.h"
#include "codegen/llvm/architecture.h"
#include "runtime/cpu.h"
#include "target/architectures.h"

namespace relay::codegen {
namespace {

// A cache size such as "32K" from the kernel's description of the machine.
int64_t cache_bytes(int level, bool data, int64_t fallback) {
  for (int i = 0; i < 8; ++i) {
    std::string base = "/sys/devices/system/cpu/cpu0/cache/index" + std::to_string(i) + "/";
    std::ifstream level_file(base + "level"), type_file(base + "type"), size_file(base + "size");
    int found = 0;
    std::string type, size;
    if (!(level_file >> found) || !(type_file >> type) || !(size_file >> size)) continue;
    if (found != level || (data && type == "Instruction")) continue;
    int64_t bytes = std::strtoll(size.c_str(), nullptr, 10);
    if (size.back() == 'K') bytes <<= 10;
    if (size.back() == 'M') bytes <<= 20;
    if (bytes > 0) return bytes;
  }
  return fallback;
}

// "+avx2,+fma,..." of what the machine and its system offer.
std::string host_features() {
  // Sorted, so that the same machine gives the same text.
  std::map<std::string, bool> sorted;
  for (const auto& f : llvm::sys::getHostCPUFeatures()) sorted[f.getKey().str()] = f.getValue();
  std::string out;
  for (const auto& [name, present] : sorted) {
    if (present) out += (out.empty() ? "+" : ",+") + name;
  }
  return out;
}

}  // namespace

Target host_target() {
  // The processor stays what it is; how much of it this process may use can change.
  static const Target processor = [] {
    ForkSection section;
    Target t;
    t.arch = runtime::host_arch();
    t.triple = llvm::sys::getDefaultTargetTriple();
    t.cpu = llvm::sys::getHostCPUName().str();
    t.features = host_features();
    if (const Architecture* row = find_architecture(t.arch)) {
      for (const std::string& length : row->lengths_on(t.cpu, runtime::host_has_feature)) {
        t.features += "," + length;
      }
      row->derive(t);
    }
    t.l1_bytes = cache_bytes(1, true, t.l1_bytes);
    t.l2_bytes = cache_bytes(2, true, t.l2_bytes);
    t.l3_bytes = cache_bytes(3, true, t.l3_bytes);
    return t;
  }();
  Target t = processor;
  t.num_cores = runtime::available_threads();
  return t;
}

}  // namespace relay::codegen
