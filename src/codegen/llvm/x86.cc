// x86-64.
#include <llvm/IR/IntrinsicsX86.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/TargetParser/X86TargetParser.h>

#include <algorithm>

#include "codegen/llvm/architecture.h"
#include "target/dot_products.h"

namespace relay::codegen {
namespace {

using llvm::Value;

void initialize() {
  LLVMInitializeX86TargetInfo();
  LLVMInitializeX86Target();
  LLVMInitializeX86TargetMC();
  LLVMInitializeX86AsmPrinter();
  LLVMInitializeX86AsmParser();
}

std::optional<std::string> features_of(std::string_view cpu) {
  llvm::SmallVector<llvm::StringRef, 64> known;
  llvm::X86::fillValidCPUArchList(known, /*Only64Bit=*/true);
  if (std::find(known.begin(), known.end(), llvm::StringRef(cpu)) == known.end())
    return std::nullopt;
  llvm::SmallVector<llvm::StringRef, 64> list;
  llvm::X86::getFeaturesForCPU(cpu, list);
  std::string features;
  for (llvm::StringRef f : list) features += (features.empty() ? "+" : ",+") + f.str();
  return features;
}

// vscalefps of AVX-512 on vectors of 4, 8 or 16; a scalar is the first lane of four.
Value* scale(llvm::IRBuilder<>& b, const Target& target, Value* x, Value* n) {
  if (!target.has_feature("avx512vl")) return nullptr;
  auto* v = llvm::dyn_cast<llvm::FixedVectorType>(x->getType());
  unsigned lanes = v == nullptr ? 1 : v->getNumElements();
  if (lanes == 1) {
    auto* four = llvm::FixedVectorType::get(b.getFloatTy(), 4);
    auto widen = [&](Value* s) {
      return b.CreateInsertElement(llvm::Constant::getNullValue(four), s, uint64_t{0});
    };
    return b.CreateExtractElement(scale(b, target, widen(x), widen(n)), uint64_t{0});
  }
  Value* all = b.getIntN(lanes == 16 ? 16 : 8, lanes == 4 ? 15 : lanes == 8 ? 255 : 65535);
  switch (lanes) {
    case 4:
      return b.CreateIntrinsic(llvm::Intrinsic::x86_avx512_mask_scalef_ps_128, {}, {x, n, x, all});
    case 8:
      return b.CreateIntrinsic(llvm::Intrinsic::x86_avx512_mask_scalef_ps_256, {}, {x, n, x, all});
    case 16: {
      Value* current_rounding = b.getInt32(4);
      return b.CreateIntrinsic(llvm::Intrinsic::x86_avx512_mask_scalef_ps_512, {},
                               {x, n, x, all, current_rounding});
    }
    default:
      return nullptr;
  }
}

// vpdpbusd of VNNI on a register of 4, 8 or 16 lanes.
Value* register_byte_dot(llvm::IRBuilder<>& b, unsigned lanes, Value* acc, Value* x, Value* y) {
  llvm::Intrinsic::ID id = lanes == 16  ? llvm::Intrinsic::x86_avx512_vpdpbusd_512
                           : lanes == 8 ? llvm::Intrinsic::x86_avx512_vpdpbusd_256
                                        : llvm::Intrinsic::x86_avx512_vpdpbusd_128;
  return b.CreateIntrinsic(id, {}, {acc, x, y});
}

// Vectors of other sizes in registers of which the last may be part full.
Value* byte_dot(llvm::IRBuilder<>& b, const Target& target, Value* acc, Value* x, Value* y) {
  auto* type = llvm::dyn_cast<llvm::FixedVectorType>(acc->getType());
  if (type == nullptr || !has_byte_dot(target)) return nullptr;
  const unsigned lanes = type->getNumElements(), widest = target.vector_bits >= 512 ? 16 : 8;
  Value* out = llvm::PoisonValue::get(type);
  for (unsigned begin = 0; begin < lanes; begin += widest) {
    const unsigned count = std::min(widest, lanes - begin);
    const unsigned width = count <= 4 ? 4 : count <= 8 ? 8 : 16;
    if (width == lanes) return register_byte_dot(b, width, acc, x, y);
    llvm::SmallVector<int> there(width, -1), back(lanes, -1), blend(lanes);
    for (unsigned i = 0; i < lanes; ++i) blend[i] = static_cast<int>(i);
    for (unsigned i = 0; i < count; ++i) {
      there[i] = static_cast<int>(begin + i);
      back[begin + i] = static_cast<int>(i);
      blend[begin + i] = static_cast<int>(lanes + begin + i);
    }
    auto part = [&](Value* v) { return b.CreateShuffleVector(v, there); };
    Value* sums = register_byte_dot(b, width, part(acc), part(x), part(y));
    out = b.CreateShuffleVector(out, b.CreateShuffleVector(sums, back), blend);
  }
  return out;
}

constexpr const char* kLibm[] = {"/lib/x86_64-linux-gnu/libm.so.6", "/lib64/libm.so.6"};

}  // namespace

extern const LlvmArchitecture kLlvmX86;
const LlvmArchitecture kLlvmX86{"x86_64", initialize, features_of, scale, true, kLibm, byte_dot};

}  // namespace relay::codegen
