// Armv7 of 32 bits, with NEON.
#include <llvm/IR/IntrinsicsARM.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/TargetParser/ARMTargetParser.h>

#include <string>
#include <vector>

#include "codegen/llvm/architecture.h"
#include "codegen/llvm/register_parts.h"

namespace relay::codegen {
namespace {

void initialize_arm32() {
  LLVMInitializeARMTargetInfo();
  LLVMInitializeARMTarget();
  LLVMInitializeARMTargetMC();
  LLVMInitializeARMAsmPrinter();
  LLVMInitializeARMAsmParser();
}

// Of processors of Armv7-A with vectors. Later ones run the code of these, and are processors of another architecture.
std::optional<std::string> arm32_features_of(std::string_view cpu) {
  const llvm::ARM::ArchKind kind = llvm::ARM::ArchKind::ARMV7A;
  if (cpu == "generic") return "+neon,+vfp4,+use-misched";
  if (llvm::ARM::parseCPUArch(cpu) != kind) return std::nullopt;
  std::vector<llvm::StringRef> list;
  llvm::ARM::getFPUFeatures(llvm::ARM::getDefaultFPU(cpu, kind), list);
  llvm::ARM::getHWDivFeatures(llvm::ARM::getDefaultExtensions(cpu, kind), list);
  // As the level of architectures.cc.
  std::string features = "+use-misched";
  for (llvm::StringRef f : list) {
    if (f.starts_with("+")) features += "," + f.str();
  }
  if ((features + ",").find("+neon,") == std::string::npos) return std::nullopt;
  return features;
}

// vmlal. LLVM 19 selects it for products of vectors that were widened, but not for a vector by one element.
llvm::Value* arm32_add_short_product(llvm::IRBuilder<>& b, const Target& target, llvm::Value* acc,
                                     llvm::Value* x, llvm::Value* y) {
  static constexpr unsigned kWidths[] = {4};
  if (!target.has_feature("neon") || !llvm::isa<llvm::FixedVectorType>(acc->getType()))
    return nullptr;
  return by_registers(
      b, kWidths, acc, x, y,
      [&](unsigned lanes, llvm::Value* sum, llvm::Value* left, llvm::Value* right) -> llvm::Value* {
        auto* half = llvm::FixedVectorType::get(b.getInt16Ty(), lanes);
        llvm::Value* product =
            b.CreateIntrinsic(llvm::Intrinsic::arm_neon_vmulls, {sum->getType()},
                              {b.CreateTrunc(left, half), b.CreateTrunc(right, half)});
        return b.CreateAdd(sum, product);
      });
}

constexpr const char* kArm32Libm[] = {"/lib/arm-linux-gnueabihf/libm.so.6"};

}  // namespace

extern const LlvmArchitecture kLlvmARM;
const LlvmArchitecture kLlvmARM{.name = "armv7",
                                .initialize = initialize_arm32,
                                .features_of = arm32_features_of,
                                .scale = nullptr,
                                .gathers = false,
                                .libm = kArm32Libm,
                                .add_short_product = arm32_add_short_product};

}  // namespace relay::codegen
