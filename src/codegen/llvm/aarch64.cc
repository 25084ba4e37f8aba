// AArch64.
#include <llvm/IR/IntrinsicsAArch64.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/TargetParser/AArch64TargetParser.h>

#include <span>
#include <string>
#include <vector>

#include "codegen/llvm/architecture.h"
#include "codegen/llvm/register_parts.h"
#include "codegen/llvm/row_pairs.h"
#include "target/dot_products.h"

namespace relay::codegen {
namespace {

using llvm::Value;

// Of a NEON register, and of the least register of SVE.
constexpr unsigned kUnitBits = 128;

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

// What an instruction that multiplies the `elements` of words of 32 bits computes of a register: one of 128 bits by NEON's
// where the target has the feature, a longer one by SVE's, of whose register it is the first lanes. `matrix` multiplies
// two rows, where the features of `neon` have that.
Value* register_dot(llvm::IRBuilder<>& b, bool has_neon, llvm::Intrinsic::ID neon,
                    llvm::Intrinsic::ID matrix, llvm::Intrinsic::ID sve, llvm::Type* element,
                    Value* sum, Value* x, Value* y) {
  auto* sums = llvm::cast<llvm::FixedVectorType>(sum->getType());
  const unsigned elements = kUnitBits / element->getScalarSizeInBits();
  if (has_neon && sums->getPrimitiveSizeInBits() == kUnitBits) {
    auto* type = llvm::FixedVectorType::get(element, elements);
    llvm::CallInst* dot = b.CreateIntrinsic(
        neon, {sums, type}, {sum, b.CreateBitCast(x, type), b.CreateBitCast(y, type)});
    if (matrix != llvm::Intrinsic::not_intrinsic) mark_for_row_pairs(*dot, matrix);
    return dot;
  }
  // Fixed vectors of shorter elements would go through memory.
  auto grow = [&](Value* v) {
    auto* type = llvm::ScalableVectorType::get(v->getType()->getScalarType(), 4);
    return b.CreateInsertVector(type, llvm::PoisonValue::get(type), v, b.getInt64(0));
  };
  auto* type = llvm::ScalableVectorType::get(element, elements);
  Value* grown = grow(sum);
  llvm::SmallVector<llvm::Type*, 1> types;
  if (llvm::Intrinsic::isOverloaded(sve)) types.push_back(grown->getType());
  Value* out = b.CreateIntrinsic(
      sve, types, {grown, b.CreateBitCast(grow(x), type), b.CreateBitCast(grow(y), type)});
  return b.CreateExtractVector(sums, out, b.getInt64(0));
}

// Lanes of 32 bits in the registers of the target.
std::span<const unsigned> register_widths(const Target& target) {
  static constexpr unsigned kWidths[] = {4, 8, 16};
  return std::span(kWidths, target.vector_bits >= 512 ? 3 : target.vector_bits >= 256 ? 2 : 1);
}

// The four products of bytes in each lane. usdot multiplies unsigned by signed bytes. sdot multiplies signed ones:
// with x = 128 + s, x * y = s * y + 128 * y, and 128 * y is 64 * y twice. That sum depends on y only, so that rows which
// share y share it.
Value* arm64_register_byte_dot(llvm::IRBuilder<>& b, const Target& target, Value* acc, Value* x,
                               Value* y) {
  if (target.has_feature("i8mm")) {
    return register_dot(b, true, llvm::Intrinsic::aarch64_neon_usdot,
                        llvm::Intrinsic::aarch64_neon_usmmla, llvm::Intrinsic::aarch64_sve_usdot,
                        b.getInt8Ty(), acc, x, y);
  }
  auto dot = [&](Value* sum, Value* left, Value* right) {
    return register_dot(b, target.has_feature("dotprod"), llvm::Intrinsic::aarch64_neon_sdot,
                        llvm::Intrinsic::not_intrinsic, llvm::Intrinsic::aarch64_sve_sdot,
                        b.getInt8Ty(), sum, left, right);
  };
  llvm::Type* words = acc->getType();
  Value* half = llvm::ConstantInt::get(words, 0x40404040);
  Value* offset = b.CreateShl(dot(llvm::Constant::getNullValue(words), half, y), 1);
  Value* shifted = b.CreateXor(x, llvm::ConstantInt::get(words, 0x80808080));
  return b.CreateAdd(dot(acc, shifted, y), offset);
}

Value* arm64_byte_dot(llvm::IRBuilder<>& b, const Target& target, Value* acc, Value* x, Value* y) {
  if (!llvm::isa<llvm::FixedVectorType>(acc->getType()) || !has_byte_dot(target)) return nullptr;
  return by_registers(b, register_widths(target), acc, x, y,
                      [&](unsigned, Value* sum, Value* left, Value* right) {
                        return arm64_register_byte_dot(b, target, sum, left, right);
                      });
}

// bfdot.
Value* arm64_bfloat16_dot(llvm::IRBuilder<>& b, const Target& target, Value* acc, Value* x,
                          Value* y) {
  if (!llvm::isa<llvm::FixedVectorType>(acc->getType()) || !has_bfloat16_dot(target)) {
    return nullptr;
  }
  return by_registers(
      b, register_widths(target), acc, x, y, [&](unsigned, Value* sum, Value* left, Value* right) {
        return register_dot(b, true, llvm::Intrinsic::aarch64_neon_bfdot,
                            llvm::Intrinsic::aarch64_neon_bfmmla,
                            llvm::Intrinsic::aarch64_sve_bfdot, b.getBFloatTy(), sum, left, right);
      });
}

// Of a machine of this architecture. Elsewhere the file is not there, and nothing is named: the runtime finds the functions.
constexpr const char* kArm64Libm[] = {"/lib/aarch64-linux-gnu/libm.so.6"};

constexpr LlvmHostCalls kArm64HostCalls{.stack_pointer = "sp"};

}  // namespace

extern const LlvmArchitecture kLlvmAArch64;
const LlvmArchitecture kLlvmAArch64{.name = "aarch64",
                                    .initialize = initialize_arm64,
                                    .features_of = arm64_features_of,
                                    .scale = nullptr,
                                    .gathers = false,
                                    .libm = kArm64Libm,
                                    .byte_dot = arm64_byte_dot,
                                    .bfloat16_dot = arm64_bfloat16_dot,
                                    .unit_bits = kUnitBits,
                                    .host_calls = &kArm64HostCalls};

}  // namespace relay::codegen
