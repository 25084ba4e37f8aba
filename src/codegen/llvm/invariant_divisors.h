// Divides vectors by what a loop does not change without a division for each.
//
// before                                after
//   loop:                                 r = 1 / c
//     y = x / c                           loop:
//                                           q = x * r
//                                           rest = fma(-q, c, x)
//                                           y = rest != 0 ? fma(rest, r, q) : q
//
// A vector of 512 bits takes 10 to 16 cycles to divide and 2 for the others. The result is the same: with r rounded
// correctly, the product is one unit in the last place off at most, its rest is exact, and the correction rounds as the
// division does (Markstein, "Computation of elementary functions on the IBM RISC System/6000 processor", 1990).
// Infinities and numbers that are none have a rest that is none, and keep the product. The exceptions are where the rest
// is smaller than any normal number, for |x| below 1e-30 (float64: 1e-290), and results that are within two units of
// infinity: they may be off by one unit.
// Runs after loop invariants have left loops. Loses where a loop has few iterations.
#pragma once

#include <llvm/IR/PassManager.h>

namespace relay::codegen {

class InvariantDivisorsPass : public llvm::PassInfoMixin<InvariantDivisorsPass> {
 public:
  llvm::PreservedAnalyses run(llvm::Function& f, llvm::FunctionAnalysisManager& analyses);
};

}  // namespace relay::codegen
