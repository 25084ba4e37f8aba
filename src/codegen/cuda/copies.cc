#include "codegen/cuda/copies.h"

#include <llvm/IR/IntrinsicsNVPTX.h>

namespace relay::codegen {
namespace {

namespace In = llvm::Intrinsic;

// Copies of 16 bytes need not go through the cache of a multiprocessor, whose neighbours read other elements.
struct CopyInstruction {
  int64_t bytes;
  In::ID id, with_zeros;
};
constexpr CopyInstruction kCopies[] = {
    {kLeastCopy, In::nvvm_cp_async_ca_shared_global_4, In::nvvm_cp_async_ca_shared_global_4_s},
    {8, In::nvvm_cp_async_ca_shared_global_8, In::nvvm_cp_async_ca_shared_global_8_s},
    {16, In::nvvm_cp_async_cg_shared_global_16, In::nvvm_cp_async_cg_shared_global_16_s},
};

const CopyInstruction* copy_of(int64_t bytes) {
  for (const CopyInstruction& c : kCopies) {
    if (c.bytes == bytes) return &c;
  }
  return nullptr;
}

}  // namespace

bool can_copy_later(const Target& target) { return target.limits.items.copies_later; }

bool is_copied_at_once(int64_t bytes) { return copy_of(bytes) != nullptr; }

void copy_later(llvm::IRBuilder<>& b, llvm::Value* to, llvm::Value* from, int64_t bytes,
                llvm::Value* inside) {
  const CopyInstruction* by = copy_of(bytes);
  if (inside == nullptr) {
    b.CreateIntrinsic(by->id, {}, {to, from});
    return;
  }
  llvm::Value* read =
      b.CreateSelect(inside, b.getInt32(static_cast<uint32_t>(bytes)), b.getInt32(0));
  b.CreateIntrinsic(by->with_zeros, {}, {to, from, read});
}

void end_copies(llvm::IRBuilder<>& b) { b.CreateIntrinsic(In::nvvm_cp_async_commit_group, {}, {}); }

void wait_copies(llvm::IRBuilder<>& b, int64_t lots) {
  b.CreateIntrinsic(In::nvvm_cp_async_wait_group, {}, {b.getInt32(static_cast<uint32_t>(lots))});
}

}  // namespace relay::codegen
