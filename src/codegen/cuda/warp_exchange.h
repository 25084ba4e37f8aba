// PTX's exchange of registers between the items of a warp: shfl.sync.
#pragma once

#include <llvm/IR/IRBuilder.h>

namespace relay::codegen {

// What the item whose number in the warp differs from this one's by the bit `distance` has for `v`, a number of at most 64 bits
// or a bool. All 32 items of the warp call it.
llvm::Value* exchange_in_warp(llvm::IRBuilder<>& b, llvm::Value* v, int64_t distance);

}  // namespace relay::codegen
