#include "codegen/llvm/host.h"

#include <llvm/MC/MCSubtargetInfo.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/TargetParser/Host.h>
#include <llvm/TargetParser/X86TargetParser.h>

#include <map>
#include <mutex>

namespace relay::codegen {

std::string host_triple() { return llvm::sys::getDefaultTargetTriple(); }
std::string host_cpu() { return llvm::sys::getHostCPUName().str(); }

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

bool cpu_features(const std::string&, const std::string& cpu, std::string& features) {
  llvm::SmallVector<llvm::StringRef, 64> known;
  llvm::X86::fillValidCPUArchList(known, /*Only64Bit=*/true);
  if (std::find(known.begin(), known.end(), llvm::StringRef(cpu)) == known.end()) return false;
  llvm::SmallVector<llvm::StringRef, 64> list;
  llvm::X86::getFeaturesForCPU(cpu, list);
  features.clear();
  for (llvm::StringRef f : list) features += (features.empty() ? "+" : ",+") + f.str();
  return true;
}

}  // namespace relay::codegen
