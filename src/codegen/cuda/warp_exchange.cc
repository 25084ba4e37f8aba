#include "codegen/cuda/warp_exchange.h"

#include <llvm/IR/IntrinsicsNVPTX.h>

namespace relay::codegen {
namespace {

constexpr uint64_t kWordBits = 32;

llvm::Value* exchange_word(llvm::IRBuilder<>& b, llvm::Value* word, int64_t distance) {
  // The last operand: 32 items in a warp, none of which is out of its range.
  constexpr uint32_t kAll = 0xFFFFFFFF, kLastItem = 31;
  llvm::CallInst* call = b.CreateIntrinsic(
      llvm::Intrinsic::nvvm_shfl_sync_bfly_i32, {},
      {b.getInt32(kAll), word, b.getInt32(static_cast<uint32_t>(distance)), b.getInt32(kLastItem)});
  call->setConvergent();
  return call;
}

}  // namespace

llvm::Value* exchange_in_warp(llvm::IRBuilder<>& b, llvm::Value* v, int64_t distance) {
  llvm::Type* type = v->getType();
  const uint64_t bits = type->getPrimitiveSizeInBits();
  llvm::Value* all = b.CreateBitCast(v, b.getIntNTy(static_cast<unsigned>(bits)));
  if (bits <= kWordBits) {
    llvm::Value* word = exchange_word(b, b.CreateZExt(all, b.getInt32Ty()), distance);
    return b.CreateBitCast(b.CreateTrunc(word, all->getType()), type);
  }
  llvm::Value* low = exchange_word(b, b.CreateTrunc(all, b.getInt32Ty()), distance);
  llvm::Value* high =
      exchange_word(b, b.CreateTrunc(b.CreateLShr(all, kWordBits), b.getInt32Ty()), distance);
  llvm::Value* both = b.CreateOr(b.CreateZExt(low, all->getType()),
                                 b.CreateShl(b.CreateZExt(high, all->getType()), kWordBits));
  return b.CreateBitCast(both, type);
}

}  // namespace relay::codegen
