#include "codegen/cuda/warp_matrix.h"

#include <llvm/IR/IntrinsicsNVPTX.h>

#include <algorithm>

namespace relay::codegen {
namespace {

using tir::DType;
namespace In = llvm::Intrinsic;

const WarpInstruction kInstructions[] = {
    {DType::Float(16), DType::Float(16), 16, 16, In::nvvm_mma_m16n8k16_row_col_f32_f32},
    {DType::Float(16), DType::Float(16), 16, 8, In::nvvm_mma_m16n8k8_row_col_f32_f32},
    {DType::BFloat16(), DType::BFloat16(), 16, 16, In::nvvm_mma_m16n8k16_row_col_bf16},
    {DType::Float(32), DType::Float(32), 16, 8, In::nvvm_mma_m16n8k8_row_col_tf32},
    {DType::Int(8), DType::Int(8), 16, 32, In::nvvm_mma_m16n8k32_row_col_s8},
    {DType::Int(8), DType::UInt(8), 16, 32, In::nvvm_mma_m16n8k32_row_col_s8_u8},
    {DType::UInt(8), DType::Int(8), 16, 32, In::nvvm_mma_m16n8k32_row_col_u8_s8},
    {DType::UInt(8), DType::UInt(8), 16, 32, In::nvvm_mma_m16n8k32_row_col_u8},
    {DType::Int(8), DType::Int(8), 8, 16, In::nvvm_mma_m8n8k16_row_col_s8},
    {DType::Int(8), DType::UInt(8), 8, 16, In::nvvm_mma_m8n8k16_row_col_s8_u8},
    {DType::UInt(8), DType::Int(8), 8, 16, In::nvvm_mma_m8n8k16_row_col_u8_s8},
    {DType::UInt(8), DType::UInt(8), 8, 16, In::nvvm_mma_m8n8k16_row_col_u8},
};

// A call that all items of the warp make: LLVM knows of neither instruction that it must not move into a branch of some.
llvm::Value* call_of_warp(llvm::IRBuilder<>& b, In::ID id, llvm::ArrayRef<llvm::Type*> types,
                          llvm::ArrayRef<llvm::Value*> args) {
  llvm::CallInst* call = b.CreateIntrinsic(id, types, args);
  call->setConvergent();
  return call;
}

}  // namespace

const WarpInstruction* warp_instruction(DType a, DType b, int64_t rows, int64_t terms) {
  auto found = std::ranges::find_if(kInstructions, [&](const WarpInstruction& i) {
    return i.a == a && i.b == b && i.rows == rows && i.terms == terms;
  });
  return found == std::end(kInstructions) ? nullptr : found;
}

std::vector<llvm::Value*> multiply_by_warp(llvm::IRBuilder<>& b, const WarpInstruction& by,
                                           std::span<llvm::Value* const> a_registers,
                                           std::span<llvm::Value* const> b_registers,
                                           std::span<llvm::Value* const> sums) {
  std::vector<llvm::Value*> args;
  auto add = [&](llvm::Value* v) {
    if (by.a.is_float(16)) v = b.CreateBitCast(v, llvm::FixedVectorType::get(b.getHalfTy(), 2));
    if (by.a.is_float(32)) {
      v = b.CreateIntrinsic(In::nvvm_f2tf32_rna, {}, {b.CreateBitCast(v, b.getFloatTy())});
    }
    args.push_back(v);
  };
  std::ranges::for_each(a_registers, add);
  std::ranges::for_each(b_registers, add);
  args.insert(args.end(), sums.begin(), sums.end());
  llvm::Value* all = call_of_warp(b, by.id, {}, args);
  std::vector<llvm::Value*> out;
  for (unsigned i = 0; i < sums.size(); ++i) out.push_back(b.CreateExtractValue(all, i));
  return out;
}

std::vector<llvm::Value*> load_by_warp(llvm::IRBuilder<>& b, size_t count, llvm::Value* pointer) {
  const In::ID id = count == 4   ? In::nvvm_ldmatrix_sync_aligned_m8n8_x4_b16
                    : count == 2 ? In::nvvm_ldmatrix_sync_aligned_m8n8_x2_b16
                                 : In::nvvm_ldmatrix_sync_aligned_m8n8_x1_b16;
  llvm::Value* all = call_of_warp(b, id, {pointer->getType()}, {pointer});
  if (count == 1) return {all};
  std::vector<llvm::Value*> out;
  for (unsigned i = 0; i < count; ++i) out.push_back(b.CreateExtractValue(all, i));
  return out;
}

}  // namespace relay::codegen
