// The items of a launch as threads of this processor: their registers and barriers, and the instructions of PTX that a warp
// executes together, as the PTX ISA describes the layout of their fragments.
#pragma once

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>

#include <array>
#include <barrier>
#include <bit>
#include <cstring>
#include <functional>
#include <map>
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

// What the item whose number differs by the bit `distance` has for the word. All items of the group call it.
inline uint32_t exchange_word(uint32_t all, uint32_t word, uint32_t distance, uint32_t last) {
  EXPECT_EQ(all, 0xFFFFFFFFU);
  EXPECT_EQ(last, 31U);
  const auto& r = item_registers;
  const auto item = static_cast<size_t>(r[0] + r[3] * (r[1] + r[4] * r[2]));
  warp_words[item][0] = word;
  group_barrier->arrive_and_wait();
  const uint64_t other = warp_words[item ^ distance][0];
  group_barrier->arrive_and_wait();
  return static_cast<uint32_t>(other);
}

// Copies to shared memory that an item has begun, by lots. They arrive when the item waits for them, and no sooner.
struct BegunCopy {
  void* to;
  const void* from;
  uint32_t bytes, read;
  int64_t lot;
};
inline thread_local std::vector<BegunCopy> begun_copies;
inline thread_local int64_t ended_lots = 0;

inline void begin_copy(void* to, const void* from, uint32_t bytes, uint32_t read) {
  EXPECT_EQ(std::bit_cast<uintptr_t>(to) % bytes, 0U);
  EXPECT_EQ(std::bit_cast<uintptr_t>(from) % bytes, 0U);
  begun_copies.push_back({to, from, bytes, read, ended_lots});
}
inline void end_lot() { ++ended_lots; }
inline void wait_for_lots(int32_t but) {
  std::erase_if(begun_copies, [&](const BegunCopy& c) {
    if (c.lot >= ended_lots - but) return false;
    std::memset(c.to, 0, c.bytes);
    std::memcpy(c.to, c.from, c.read);
    return true;
  });
}

// Calls of exchanges become calls of the above. Returns how many there were.
inline size_t emulate_exchanges(llvm::Module& module) {
  llvm::IRBuilder<> b(module.getContext());
  llvm::Function* f = module.getFunction("llvm.nvvm.shfl.sync.bfly.i32");
  llvm::Value* callee = llvm::ConstantExpr::getIntToPtr(
      b.getInt64(std::bit_cast<uintptr_t>(&exchange_word)), b.getPtrTy());
  size_t found = 0;
  for (; f != nullptr && !f->use_empty(); ++found) {
    auto* call = llvm::cast<llvm::CallInst>(*f->user_begin());
    b.SetInsertPoint(call);
    const std::vector<llvm::Value*> args(call->arg_begin(), call->arg_end());
    call->replaceAllUsesWith(b.CreateCall(f->getFunctionType(), callee, args));
    call->eraseFromParent();
  }
  return found;
}

// Calls of copies become calls of the above. Returns by how many bytes they copy, and how often.
inline std::map<uint32_t, size_t> emulate_copies(llvm::Module& module) {
  llvm::IRBuilder<> b(module.getContext());
  std::map<uint32_t, size_t> found;
  auto replace = [&](const std::string& name, auto* by,
                     const std::function<std::vector<llvm::Value*>(llvm::CallInst&)>& args_of) {
    llvm::Function* f = module.getFunction("llvm.nvvm.cp.async." + name);
    size_t count = 0;
    for (; f != nullptr && !f->use_empty(); ++count) {
      auto* call = llvm::cast<llvm::CallInst>(*f->user_begin());
      b.SetInsertPoint(call);
      const std::vector<llvm::Value*> args = args_of(*call);
      std::vector<llvm::Type*> types;
      for (llvm::Value* v : args) types.push_back(v->getType());
      b.CreateCall(
          llvm::FunctionType::get(b.getVoidTy(), types, false),
          llvm::ConstantExpr::getIntToPtr(b.getInt64(std::bit_cast<uintptr_t>(by)), b.getPtrTy()),
          args);
      call->eraseFromParent();
    }
    return count;
  };
  for (uint32_t bytes : {4U, 8U, 16U}) {
    const std::string name =
        std::string(bytes == 16 ? "cg" : "ca") + ".shared.global." + std::to_string(bytes);
    for (const char* end : {"", ".s"}) {
      const size_t count = replace(name + end, &begin_copy, [&](llvm::CallInst& call) {
        llvm::Value* read = call.arg_size() > 2 ? call.getArgOperand(2) : b.getInt32(bytes);
        return std::vector<llvm::Value*>{call.getArgOperand(0), call.getArgOperand(1),
                                         b.getInt32(bytes), read};
      });
      if (count > 0) found[bytes] += count;
    }
  }
  replace("commit.group", &end_lot, [](llvm::CallInst&) { return std::vector<llvm::Value*>{}; });
  replace("wait.group", &wait_for_lots,
          [](llvm::CallInst& call) { return std::vector<llvm::Value*>{call.getArgOperand(0)}; });
  return found;
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
