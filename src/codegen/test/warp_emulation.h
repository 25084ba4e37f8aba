// The items of a launch as threads of this processor: their registers and barriers, and the instructions of PTX that a warp
// executes together, as the PTX ISA describes the layout of their fragments.
#pragma once

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>

#include <array>
#include <barrier>
#include <bit>
#include <cstring>
#include <string>
#include <vector>

#include "runtime/core/float16.h"

namespace relay::codegen_test::cuda {

// Of the item that runs: its number along x, y and z, the items of the group, the number of the group, and groups. And the
// barrier of its group.
inline thread_local std::array<int32_t, 12> item_registers{};
inline std::barrier<>* group_barrier = nullptr;

enum class WarpElement { Half, BFloat, Tf32, Signed, Unsigned };
struct WarpCall {
  std::string name;
  int rows, terms;  // rows: 0 for a load of `terms` matrices
  WarpElement a, b;

  int per_register() const { return a == WarpElement::Tf32 ? 1 : a >= WarpElement::Signed ? 4 : 2; }
};
inline const std::vector<WarpCall>& warp_calls() {
  using enum WarpElement;
  static const std::vector<WarpCall> all{
      {"mma.m16n8k16.row.col.f32.f32", 16, 16, Half, Half},
      {"mma.m16n8k8.row.col.f32.f32", 16, 8, Half, Half},
      {"mma.m16n8k16.row.col.bf16", 16, 16, BFloat, BFloat},
      {"mma.m16n8k8.row.col.tf32", 16, 8, Tf32, Tf32},
      {"mma.m16n8k32.row.col.s8", 16, 32, Signed, Signed},
      {"mma.m16n8k32.row.col.s8.u8", 16, 32, Signed, Unsigned},
      {"mma.m8n8k16.row.col.s8", 8, 16, Signed, Signed},
      {"mma.m8n8k16.row.col.u8.s8", 8, 16, Unsigned, Signed},
      {"ldmatrix.sync.aligned.m8n8.x1.b16.p3", 0, 1, Half, Half},
      {"ldmatrix.sync.aligned.m8n8.x2.b16.p3", 0, 2, Half, Half},
      {"ldmatrix.sync.aligned.m8n8.x4.b16.p3", 0, 4, Half, Half}};
  return all;
}

inline double warp_element(WarpElement kind, uint64_t word, int i) {
  const auto bits = static_cast<uint32_t>(word);
  switch (kind) {
    case WarpElement::Half:
      return runtime::float16_to_float(static_cast<uint16_t>(bits >> (16 * i)));
    case WarpElement::BFloat:
      return runtime::bfloat16_to_float(static_cast<uint16_t>(bits >> (16 * i)));
    case WarpElement::Tf32:
      return std::bit_cast<float>(bits & ~0x1fffU);
    case WarpElement::Signed:
      return static_cast<int8_t>(bits >> (8 * i));
    default:
      return static_cast<uint8_t>(bits >> (8 * i));
  }
}

// What each item of the group hands over.
inline std::array<std::array<uint64_t, 16>, 256> warp_words{};

// All items of the group call it with the words of their arguments.
inline void warp_call(int32_t number, const uint64_t* args, uint32_t* out) {
  const WarpCall& call = warp_calls()[static_cast<size_t>(number)];
  const auto& r = item_registers;
  const int item = r[0] + r[3] * (r[1] + r[4] * r[2]), lane = item % 32, first = item - lane;
  const int count_a = call.rows * call.terms / call.per_register() / 32,
            count_b = call.terms / call.per_register() / 4, sums = call.rows / 4;
  const int words = call.rows == 0 ? 1 : count_a + count_b + sums;
  std::copy(args, args + words, warp_words[static_cast<size_t>(item)].begin());
  group_barrier->arrive_and_wait();
  auto word = [&](int of, int i) {
    return warp_words[static_cast<size_t>(first + of)][static_cast<size_t>(i)];
  };
  if (call.rows == 0) {
    for (int m = 0; m < call.terms; ++m) {
      const auto* row = std::bit_cast<const char*>(word(8 * m + lane / 4, 0));
      EXPECT_EQ(word(8 * m + lane / 4, 0) % 16, 0u) << call.name;
      std::memcpy(out + m, row + 4 * (lane % 4), 4);
    }
  } else {
    // Registers hold neighbouring terms; those of `a` are for 8 rows each, then for the next terms.
    const int e = call.per_register(), row_blocks = call.rows / 8;
    auto a = [&](int row, int k) {
      const int reg = k / (4 * e) * row_blocks + row / 8;
      return warp_element(call.a, word(row % 8 * 4 + k / e % 4, reg), k % e);
    };
    auto b = [&](int k, int column) {
      return warp_element(call.b, word(column * 4 + k / e % 4, count_a + k / (4 * e)), k % e);
    };
    for (int i = 0; i < sums; ++i) {
      const int row = lane / 4 + i / 2 * 8, column = lane % 4 * 2 + i % 2;
      const auto old = static_cast<uint32_t>(args[count_a + count_b + i]);
      const bool whole = call.a >= WarpElement::Signed;
      double sum = whole ? static_cast<int32_t>(old) : std::bit_cast<float>(old);
      for (int k = 0; k < call.terms; ++k) sum += a(row, k) * b(k, column);
      out[i] = whole ? static_cast<uint32_t>(static_cast<int32_t>(sum))
                     : std::bit_cast<uint32_t>(static_cast<float>(sum));
    }
  }
  group_barrier->arrive_and_wait();
}

// Calls of the instructions become calls of the above. Returns how many there were.
inline size_t emulate_warps(llvm::Module& module) {
  llvm::IRBuilder<> b(module.getContext());
  size_t found = 0;
  llvm::Value* callee = llvm::ConstantExpr::getIntToPtr(
      b.getInt64(std::bit_cast<uintptr_t>(&warp_call)), b.getPtrTy());
  auto* type =
      llvm::FunctionType::get(b.getVoidTy(), {b.getInt32Ty(), b.getPtrTy(), b.getPtrTy()}, false);
  // Words of 13 bits less, rounded: what the elements of the test have anyway.
  if (llvm::Function* f = module.getFunction("llvm.nvvm.f2tf32.rna")) {
    while (!f->use_empty()) {
      auto* call = llvm::cast<llvm::CallInst>(*f->user_begin());
      b.SetInsertPoint(call);
      call->replaceAllUsesWith(b.CreateBitCast(call->getArgOperand(0), b.getInt32Ty()));
      call->eraseFromParent();
    }
  }
  for (size_t n = 0; n < warp_calls().size(); ++n) {
    llvm::Function* f = module.getFunction("llvm.nvvm." + warp_calls()[n].name);
    while (f != nullptr && !f->use_empty()) {
      auto* call = llvm::cast<llvm::CallInst>(*f->user_begin());
      b.SetInsertPoint(&call->getFunction()->getEntryBlock().front());
      llvm::Value *args = b.CreateAlloca(llvm::ArrayType::get(b.getInt64Ty(), 16)),
                  *out = b.CreateAlloca(llvm::ArrayType::get(b.getInt32Ty(), 4));
      b.SetInsertPoint(call);
      for (unsigned i = 0; i < call->arg_size(); ++i) {
        llvm::Value* v = call->getArgOperand(i);
        if (v->getType()->isPointerTy()) {
          v = b.CreatePtrToInt(v, b.getInt64Ty());
        } else {
          v = b.CreateZExt(b.CreateBitCast(v, b.getInt32Ty()), b.getInt64Ty());
        }
        b.CreateStore(v, b.CreateConstGEP1_64(b.getInt64Ty(), args, i));
      }
      b.CreateCall(type, callee, {b.getInt32(static_cast<uint32_t>(n)), args, out});
      llvm::Type* result = call->getType();
      auto read = [&](llvm::Type* element, unsigned i) {
        return b.CreateLoad(element, b.CreateConstGEP1_64(b.getInt32Ty(), out, i));
      };
      llvm::Value* all = nullptr;
      if (auto* s = llvm::dyn_cast<llvm::StructType>(result)) {
        all = llvm::PoisonValue::get(s);
        for (unsigned i = 0; i < s->getNumElements(); ++i) {
          all = b.CreateInsertValue(all, read(s->getElementType(i), i), i);
        }
      } else {
        all = read(result, 0);
      }
      call->replaceAllUsesWith(all);
      call->eraseFromParent();
      ++found;
    }
  }
  return found;
}

}  // namespace relay::codegen_test::cuda
