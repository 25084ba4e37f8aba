// RISC-V of 64 bits.
#include <llvm/ADT/SmallVector.h>
#include <llvm/Analysis/ValueTracking.h>
#include <llvm/Analysis/VectorUtils.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/IntrinsicsRISCV.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/TargetParser/RISCVTargetParser.h>

#include <bit>
#include <string>
#include <vector>

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

// The value that all lanes of a vector have; null when they may differ.
llvm::Value* shared_lane(llvm::IRBuilder<>& b, llvm::Value* v) {
  if (llvm::Value* lane = llvm::getSplatValue(v)) return lane;
  auto* cast = llvm::dyn_cast<llvm::CastInst>(v);
  llvm::Value* lane = cast == nullptr ? nullptr : llvm::getSplatValue(cast->getOperand(0));
  if (lane == nullptr) return nullptr;
  return b.CreateCast(cast->getOpcode(), lane, cast->getType()->getScalarType());
}

// A product whose factors fit in 16 bits, added to `sum`: by vwmacc, whose result has 32 bits. Null where the vectors
// fill no registers, or a factor may be larger.
llvm::Value* widening_sum(llvm::BinaryOperator& product, llvm::Value* sum, const Target& target,
                          llvm::Instruction& before) {
  auto* words = llvm::cast<llvm::FixedVectorType>(product.getType());
  const uint64_t lanes = words->getNumElements();
  // LLVM's scalable vectors have `units` elements in every 64 bits of a register.
  const uint64_t bits = static_cast<uint64_t>(target.vector_bits);
  const uint64_t units = lanes * 64 / bits;
  constexpr uint64_t kMostUnits = 16;  // of eight registers
  if (lanes * 64 % bits != 0 || !std::has_single_bit(units) || units > kMostUnits) return nullptr;
  const llvm::DataLayout& layout = before.getModule()->getDataLayout();
  llvm::IRBuilder<> b(&before);
  auto* half = b.getInt16Ty();
  auto scalable = [&](llvm::Type* element) {
    return llvm::ScalableVectorType::get(element, static_cast<unsigned>(units));
  };
  auto fits = [&](llvm::Value* v) {
    if (llvm::Value* lane = llvm::getSplatValue(v)) v = lane;
    constexpr unsigned kSignBits = 17;
    return llvm::ComputeNumSignBits(v, layout, 0, nullptr, &before) >= kSignBits;
  };
  llvm::Value *x = product.getOperand(0), *y = product.getOperand(1);
  if (!fits(x) || !fits(y)) return nullptr;
  llvm::Value* shared = shared_lane(b, x);
  if (shared == nullptr) {
    shared = shared_lane(b, y);
    if (shared != nullptr) std::swap(x, y);
  }
  auto grow = [&](llvm::Value* v) {
    llvm::Type* type = scalable(v->getType()->getScalarType());
    return b.CreateInsertVector(type, llvm::PoisonValue::get(type), v, b.getInt64(0));
  };
  auto narrow = [&](llvm::Value* v) {
    return grow(b.CreateTrunc(v, llvm::FixedVectorType::get(half, static_cast<unsigned>(lanes))));
  };
  // A factor that all lanes share stays in a register of the scalar unit.
  llvm::Value* first = shared != nullptr ? b.CreateTrunc(shared, half) : narrow(x);
  constexpr uint64_t kAnyTail = 3;
  llvm::Value* out = b.CreateIntrinsic(
      llvm::Intrinsic::riscv_vwmacc,
      {scalable(b.getInt32Ty()), first->getType(), scalable(half), b.getInt64Ty()},
      {grow(sum), first, narrow(y), b.getInt64(lanes), b.getInt64(kAnyTail)});
  return b.CreateExtractVector(words, out, b.getInt64(0));
}

// LLVM 19 selects vwmacc for few sums of products of bytes. For the others it selects a multiplication to 32 bits and an
// addition, and changes the length of elements for each, which takes four times as long.
void select_widening_sums(llvm::Module& module, const Target& target) {
  if (!target.has_feature("v")) return;
  std::vector<llvm::BinaryOperator*> sums;
  for (llvm::Function& f : module) {
    for (llvm::Instruction& i : llvm::instructions(f)) {
      auto* words = llvm::dyn_cast<llvm::FixedVectorType>(i.getType());
      if (i.getOpcode() != llvm::Instruction::Add || words == nullptr) continue;
      if (words->getElementType()->isIntegerTy(32)) {
        sums.push_back(llvm::cast<llvm::BinaryOperator>(&i));
      }
    }
  }
  for (llvm::BinaryOperator* sum : sums) {
    for (unsigned side : {0U, 1U}) {
      auto* product = llvm::dyn_cast<llvm::BinaryOperator>(sum->getOperand(side));
      if (product == nullptr || product->getOpcode() != llvm::Instruction::Mul ||
          !product->hasOneUse()) {
        continue;
      }
      llvm::Value* out = widening_sum(*product, sum->getOperand(1 - side), target, *sum);
      if (out == nullptr) continue;
      sum->replaceAllUsesWith(out);
      sum->eraseFromParent();
      product->eraseFromParent();
      break;
    }
  }
}

constexpr const char* kRiscvLibm[] = {"/lib/riscv64-linux-gnu/libm.so.6"};

// LLVM 19 has neither `tailcc` nor `preserve_mostcc`. A tail call in `fastcc` takes no stack while its words fit in the 12
// registers of that convention.
constexpr LlvmHostCalls kRiscvHostCalls{.stack_pointer = "sp",
                                        .repeating = llvm::CallingConv::Fast,
                                        .questions = llvm::CallingConv::C,
                                        .most_words = 12};

}  // namespace

extern const LlvmArchitecture kLlvmRISCV;
const LlvmArchitecture kLlvmRISCV{.name = "riscv64",
                                  .initialize = initialize_riscv,
                                  .features_of = riscv_features_of,
                                  .scale = nullptr,
                                  .gathers = false,
                                  .libm = kRiscvLibm,
                                  .divides_integers = true,
                                  .host_calls = &kRiscvHostCalls,
                                  .select = select_widening_sums};

}  // namespace relay::codegen
