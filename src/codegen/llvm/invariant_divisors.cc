#include "codegen/llvm/invariant_divisors.h"

#include <llvm/Analysis/LoopInfo.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/IntrinsicInst.h>

#include <cmath>
#include <map>
#include <vector>

namespace relay::codegen {
namespace {

using llvm::Value;

// Divisors above 2^`large` are halved `scaled` times, so that no reciprocal is denormal.
struct Range {
  int large, scaled;
};
Range range_of(const llvm::Type* element) {
  return element->isFloatTy() ? Range{100, 64} : Range{1000, 512};
}

// What a loop multiplies with instead of dividing.
struct Reciprocal {
  Value* divisor;  // null: such divisors stay
  Value* scale;    // null for 1
  Value* first;    // 1 / (divisor * scale)
  Value* second;   // first * scale
};

Value* power(llvm::Type* type, int exponent) {
  return llvm::ConstantFP::get(type, std::ldexp(1.0, exponent));
}

Reciprocal constant_reciprocal(llvm::Constant* divisor) {
  llvm::Type* type = divisor->getType();
  auto* c = llvm::dyn_cast_or_null<llvm::ConstantFP>(divisor->getSplatValue());
  if (c == nullptr) return {};
  const Range range = range_of(type->getScalarType());
  const llvm::APFloat& value = c->getValueAPF();
  if (!value.isFiniteNonZero() || std::abs(ilogb(value)) > range.large) return {};
  llvm::APFloat reciprocal(value.getSemantics(), 1);
  reciprocal.divide(value, llvm::APFloat::rmNearestTiesToEven);
  Value* r = llvm::ConstantFP::get(type, reciprocal);
  return {divisor, nullptr, r, r};
}

Reciprocal reciprocal_of(Value* divisor, llvm::Instruction* before) {
  if (auto* c = llvm::dyn_cast<llvm::Constant>(divisor)) return constant_reciprocal(c);
  llvm::IRBuilder<> b(before);
  llvm::Type* type = divisor->getType();
  const Range range = range_of(type->getScalarType());
  Value* size = b.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, divisor);
  Value* is_large = b.CreateFCmpOGT(size, power(type, range.large));
  Value* one = llvm::ConstantFP::get(type, 1.0);
  Value* scale = b.CreateSelect(is_large, power(type, -range.scaled), one);
  Value* first = b.CreateFDiv(one, b.CreateFMul(divisor, scale));
  return {divisor, scale, first, b.CreateFMul(first, scale)};
}

Value* quotient(llvm::BinaryOperator* division, const Reciprocal& r) {
  llvm::IRBuilder<> b(division);
  Value* x = division->getOperand(0);
  llvm::Type* type = x->getType();
  Value* scaled = r.scale == nullptr ? x : b.CreateFMul(x, r.scale);
  Value* q = b.CreateFMul(scaled, r.first);
  auto fma = [&](Value* first, Value* second, Value* added) {
    return b.CreateIntrinsic(llvm::Intrinsic::fma, {type}, {first, second, added});
  };
  Value* rest = fma(b.CreateFNeg(q), r.divisor, x);
  Value* corrects = b.CreateFCmpONE(rest, llvm::ConstantFP::get(type, 0.0));
  return b.CreateSelect(corrects, fma(rest, r.second, q), q);
}

}  // namespace

llvm::PreservedAnalyses InvariantDivisorsPass::run(llvm::Function& f,
                                                   llvm::FunctionAnalysisManager& analyses) {
  auto& loops = analyses.getResult<llvm::LoopAnalysis>(f);
  std::vector<std::pair<llvm::BinaryOperator*, llvm::Loop*>> divisions;
  for (llvm::BasicBlock& block : f) {
    llvm::Loop* loop = loops.getLoopFor(&block);
    if (loop == nullptr || loop->getLoopPreheader() == nullptr) continue;
    for (llvm::Instruction& i : block) {
      auto* division = llvm::dyn_cast<llvm::BinaryOperator>(&i);
      if (division == nullptr || division->getOpcode() != llvm::Instruction::FDiv ||
          !division->getType()->isVectorTy()) {
        continue;
      }
      llvm::Type* element = division->getType()->getScalarType();
      const bool is_known = element->isFloatTy() || element->isDoubleTy();
      if (is_known && loop->isLoopInvariant(division->getOperand(1))) {
        divisions.emplace_back(division, loop);
      }
    }
  }
  std::map<std::pair<llvm::Loop*, Value*>, Reciprocal> known;
  bool changed = false;
  for (auto [division, loop] : divisions) {
    Value* divisor = division->getOperand(1);
    auto [it, is_new] = known.try_emplace({loop, divisor});
    if (is_new) it->second = reciprocal_of(divisor, loop->getLoopPreheader()->getTerminator());
    if (it->second.divisor == nullptr) continue;
    division->replaceAllUsesWith(quotient(division, it->second));
    division->eraseFromParent();
    changed = true;
  }
  if (!changed) return llvm::PreservedAnalyses::all();
  llvm::PreservedAnalyses kept;
  kept.preserveSet<llvm::CFGAnalyses>();
  return kept;
}

}  // namespace relay::codegen
