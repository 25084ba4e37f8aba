// RISC-V of 64 bits.
#include <llvm/ADT/SmallVector.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/TargetParser/RISCVTargetParser.h>

#include <string>

#include "codegen/llvm/architecture.h"

namespace relay::codegen {
namespace {

void initialize_riscv() {
  LLVMInitializeRISCVTargetInfo();
  LLVMInitializeRISCVTarget();
  LLVMInitializeRISCVTargetMC();
  LLVMInitializeRISCVAsmPrinter();
  LLVMInitializeRISCVAsmParser();
}

std::optional<std::string> riscv_features_of(std::string_view cpu) {
  if (!llvm::RISCV::parseCPU(cpu, /*IsRV64=*/true)) return std::nullopt;
  llvm::SmallVector<std::string> list;
  llvm::RISCV::getFeaturesForCPU(cpu, list, /*NeedPlus=*/true);
  std::string features;
  for (const std::string& f : list) features += (features.empty() ? "" : ",") + f;
  return features;
}

constexpr const char* kRiscvLibm[] = {"/lib/riscv64-linux-gnu/libm.so.6"};

}  // namespace

extern const LlvmArchitecture kLlvmRISCV;
const LlvmArchitecture kLlvmRISCV{"riscv64", initialize_riscv, riscv_features_of, nullptr,
                                  false,     kRiscvLibm};

}  // namespace relay::codegen
