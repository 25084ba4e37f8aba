// Multiplies two rows by two columns with one instruction, where a loop multiplies one row by four columns with one.
//
// before                                              after
//   loop:                                               loop:
//     s0 = dot(s0, [a0 a0 a0 a0], b)                      low  = matrix(low,  [a0 a0' a1 a1'], [b.0 b'.0 b.1 b'.1])
//     s1 = dot(s1, [a1 a1 a1 a1], b)                      high = matrix(high, [a0 a0' a1 a1'], [b.2 b'.2 b.3 b'.3])
//     s0 = dot(s0, [a0' a0' a0' a0'], b')                end:
//     s1 = dot(s1, [a1' a1' a1' a1'], b')                 s0 = [low.0 low.1 high.0 high.1], s1 = [low.2 ... high.3]
//
// a and b are words of 32 bits: two bfloat16, or four bytes. The rows of a tile share b, so that its elements are
// interleaved once for all of them. Each instruction has twice as many products as `dot` and takes as long.
// Legal where a loop of one block does nothing else with its sums, and multiplies an even number of words. Rows without a
// partner stay.
// Runs on calls that are marked, when sums are in registers. Loses where a processor takes more than twice as long for `matrix` as for `dot`; LLVM 19
// models none.
#pragma once

#include <llvm/IR/Instructions.h>
#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/PassManager.h>

namespace relay::codegen {

// `dot(sums, row, columns)` multiplies words lane by lane and adds to vectors of four sums; `matrix`, with the same operands,
// multiplies two rows of two words by two columns.
void mark_for_row_pairs(llvm::CallInst& dot, llvm::Intrinsic::ID matrix);

class RowPairsPass : public llvm::PassInfoMixin<RowPairsPass> {
 public:
  llvm::PreservedAnalyses run(llvm::Function& f, llvm::FunctionAnalysisManager& analyses);
};

}  // namespace relay::codegen
