// Counting references, and calls of helpers.
#include <llvm/IR/MDBuilder.h>

#include "codegen/llvm/host_function.h"
#include "runtime/core/native_layout.h"

namespace relay::codegen {

using runtime::NativeLayout;

void HostBuilder::branch_rarely(Value* condition, BasicBlock* rare) {
  BasicBlock* next = block("next");
  llvm::MDBuilder weights(m_.module.getContext());
  b_.CreateCondBr(condition, rare, next, weights.createBranchWeights(1, 1 << 20));
  b_.SetInsertPoint(next);
}

Value* HostBuilder::count_of(Value* word) {
  auto* count =
      b_.CreateAlignedLoad(b_.getInt32Ty(), at(word, NativeLayout::kRefs), llvm::Align(4));
  count->setAtomic(llvm::AtomicOrdering::Acquire);
  return count;
}

void HostBuilder::retain_object(Value* word, bool own) {
  Value* place = at(word, NativeLayout::kRefs);
  auto add = [&] {
    b_.CreateAtomicRMW(llvm::AtomicRMWInst::Add, place, b_.getInt32(1), llvm::Align(4),
                       llvm::AtomicOrdering::Monotonic);
  };
  if (!own) return add();
  BasicBlock *one = block("one"), *more = block("more"), *end = block("retained");
  branch(b_.CreateICmpEQ(count_of(word), b_.getInt32(1)), one, more);
  b_.SetInsertPoint(one);
  b_.CreateAlignedStore(b_.getInt32(2), place, llvm::Align(4))
      ->setAtomic(llvm::AtomicOrdering::Monotonic);
  b_.CreateBr(end);
  b_.SetInsertPoint(more);
  add();
  go_on_in(end);
}

void HostBuilder::retain(Value* word) {
  BasicBlock *object = block("object"), *end = block("counted");
  branch(is_immediate(word), end, object);
  b_.SetInsertPoint(object);
  retain_object(word, true);
  go_on_in(end);
}

void HostBuilder::release(Value* word) {
  BasicBlock *object = block("object"), *end = block("released");
  branch(is_immediate(word), end, object);
  b_.SetInsertPoint(object);
  b_.CreateCall(m_.release_object, {context_, word})->setCallingConv(llvm::CallingConv::Fast);
  go_on_in(end);
}

Value* HostBuilder::field_of(Value* cell, Value* moves, uint64_t n) {
  Value* place = at(cell, NativeLayout::kFields + 8 * n);
  Value* field = b_.CreateAlignedLoad(b_.getInt64Ty(), place, llvm::Align(8));
  BasicBlock *object = block("object"), *end = block("field");
  // Immediates are not counted, and may stay where they are.
  branch(is_immediate(field), end, object);
  b_.SetInsertPoint(object);
  b_.CreateCall(m_.field_of_object, {cell, place, field, moves})
      ->setCallingConv(llvm::CallingConv::Fast);
  go_on_in(end);
  return field;
}

llvm::CallInst* HostBuilder::call_helper(size_t offset, std::vector<Value*> args, bool gives) {
  Value* table = b_.CreateAlignedLoad(
      b_.getPtrTy(), at(context_, offsetof(relay_native_context, helpers)), llvm::Align(8));
  Value* helper = b_.CreateAlignedLoad(b_.getPtrTy(), at(table, offset), llvm::Align(8));
  args.insert(args.begin(), context_);
  std::vector<llvm::Type*> types;
  for (Value* a : args) types.push_back(a->getType());
  auto* type = llvm::FunctionType::get(gives ? m_.result : b_.getVoidTy(), types, false);
  return b_.CreateCall(type, helper, args);
}

}  // namespace relay::codegen
