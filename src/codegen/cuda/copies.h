// PTX's copies from global to shared memory that arrive while the item goes on: cp.async, from sm_80 on.
#pragma once

#include <llvm/IR/IRBuilder.h>

#include "target/target.h"

namespace relay::codegen {

// Bytes of the smallest copy.
inline constexpr int64_t kLeastCopy = 4;

bool can_copy_later(const Target& target);
// Whether one instruction copies so many bytes, from and to a multiple of them.
bool is_copied_at_once(int64_t bytes);

// Begins a copy; `inside`: null, or a condition without which zeros arrive and nothing is read.
void copy_later(llvm::IRBuilder<>& b, llvm::Value* to, llvm::Value* from, int64_t bytes,
                llvm::Value* inside);
// The copies that the item has begun since the last end are one lot.
void end_copies(llvm::IRBuilder<>& b);
// The item waits for its copies but the last `lots` lots.
void wait_copies(llvm::IRBuilder<>& b, int64_t lots);

}  // namespace relay::codegen
