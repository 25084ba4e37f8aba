// AArch64.
#include <llvm/IR/IntrinsicsAArch64.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/TargetParser/AArch64TargetParser.h>

#include <string>
#include <vector>

#include "codegen/llvm/architecture.h"
#include "codegen/llvm/register_parts.h"
#include "target/dot_products.h"

namespace relay::codegen {
namespace {

using llvm::Value;

void initialize_arm64() {
  LLVMInitializeAArch64TargetInfo();
  LLVMInitializeAArch64Target();
  LLVMInitializeAArch64TargetMC();
  LLVMInitializeAArch64AsmPrinter();
  LLVMInitializeAArch64AsmParser();
}

std::optional<std::string> arm64_features_of(std::string_view cpu) {
  auto known = llvm::AArch64::parseCpu(cpu);
  if (!known) return std::nullopt;
  llvm::AArch64::ExtensionSet extensions;
  extensions.addCPUDefaults(*known);
  std::vector<std::string> list;
  extensions.toLLVMFeatureList(list);
  std::string features;
  for (const std::string& f : list) features += (features.empty() ? "" : ",") + f;
  return features;
}

// The four products of bytes in each of four lanes. usdot multiplies unsigned by signed bytes. sdot multiplies signed ones:
// with x = 128 + s, x * y = s * y + 128 * y, and 128 * y is 64 * y twice. That sum depends on y only, so that rows which
// share y share it.
Value* arm64_register_byte_dot(llvm::IRBuilder<>& b, const Target& target, Value* acc, Value* x,
                               Value* y) {
  auto* words = llvm::FixedVectorType::get(b.getInt32Ty(), 4);
  auto* bytes = llvm::FixedVectorType::get(b.getInt8Ty(), 16);
  x = b.CreateBitCast(x, bytes);
  y = b.CreateBitCast(y, bytes);
  if (target.has_feature("i8mm")) {
    return b.CreateIntrinsic(llvm::Intrinsic::aarch64_neon_usdot, {words, bytes}, {acc, x, y});
  }
  auto dot = [&](Value* sum, Value* left, Value* right) {
    return b.CreateIntrinsic(llvm::Intrinsic::aarch64_neon_sdot, {words, bytes},
                             {sum, left, right});
  };
  Value* half = b.CreateVectorSplat(16, b.getInt8(64));
  Value* offset = b.CreateShl(dot(llvm::Constant::getNullValue(words), half, y), 1);
  Value* shifted = b.CreateXor(x, b.CreateVectorSplat(16, b.getInt8(128)));
  return b.CreateAdd(dot(acc, shifted, y), offset);
}

Value* arm64_byte_dot(llvm::IRBuilder<>& b, const Target& target, Value* acc, Value* x, Value* y) {
  if (!llvm::isa<llvm::FixedVectorType>(acc->getType()) || !has_byte_dot(target)) return nullptr;
  constexpr unsigned kWidths[] = {4};
  return by_registers(b, kWidths, acc, x, y, [&](unsigned, Value* sum, Value* left, Value* right) {
    return arm64_register_byte_dot(b, target, sum, left, right);
  });
}

// Of a machine of this architecture. Elsewhere the file is not there, and nothing is named: the runtime finds the functions.
constexpr const char* kArm64Libm[] = {"/lib/aarch64-linux-gnu/libm.so.6"};

}  // namespace

extern const LlvmArchitecture kLlvmAArch64;
const LlvmArchitecture kLlvmAArch64{.name = "aarch64",
                                    .initialize = initialize_arm64,
                                    .features_of = arm64_features_of,
                                    .scale = nullptr,
                                    .gathers = false,
                                    .libm = kArm64Libm,
                                    .byte_dot = arm64_byte_dot,
                                    .stack_pointer = "sp"};

}  // namespace relay::codegen
