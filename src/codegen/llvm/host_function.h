// The functions of host code as LLVM IR.
#pragma once

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "codegen/llvm/architecture.h"
#include "hostcode/code.h"
#include "runtime/core/native_abi.h"
#include "target/target.h"

namespace relay::codegen {

// How an architecture calls functions between kernels; null where they are interpreted (runtime/vm/native_stack.h).
const LlvmHostCalls* host_calls_of(std::string_view arch);

// Adds all functions, the tables of closures, and the descriptor.
void build_host_functions(llvm::Module& module, const hostcode::Program& program,
                          const Target& target);

// What the functions of a module share.
struct HostModule {
  llvm::Module& module;
  const hostcode::Program& program;
  const Target& target;
  const LlvmHostCalls& calls;
  llvm::StructType* result;                // relay_native_result
  std::vector<llvm::Function*> functions;  // in the order of the program's
  llvm::Function* release_object = nullptr;
  llvm::Function* field_of_object = nullptr;
  llvm::Function* more_stack = nullptr;
  llvm::Function* out_of_fuel = nullptr;
  // For closures that are called with that many arguments: the closure functions by function of the program.
  std::map<size_t, llvm::GlobalVariable*> closures;
};

using llvm::BasicBlock;
using llvm::Value;

// Words, counts and helpers, at the place of a builder.
class HostBuilder {
 public:
  HostBuilder(HostModule& m, llvm::Function* function, Value* context)
      : m_(m), b_(m.module.getContext()), function_(function), context_(context) {}

 protected:
  using LocalId = hostcode::LocalId;

  BasicBlock* block(const char* name) {
    return BasicBlock::Create(m_.module.getContext(), name, function_);
  }
  Value* i64(int64_t value) { return b_.getInt64(static_cast<uint64_t>(value)); }
  Value* at(Value* word, uint64_t offset) {
    Value* base = word->getType()->isPointerTy() ? word : b_.CreateIntToPtr(word, b_.getPtrTy());
    return b_.CreateConstInBoundsGEP1_64(b_.getInt8Ty(), base, offset);
  }
  Value* is_immediate(Value* word) { return b_.CreateICmpNE(b_.CreateAnd(word, i64(15)), i64(0)); }
  // Branches to `rare`, which seldom happens, or goes on in a new block.
  void branch_rarely(Value* condition, BasicBlock* rare);
  void branch(Value* condition, BasicBlock* yes, BasicBlock* no) {
    b_.CreateCondBr(condition, yes, no);
  }
  void go_on_in(BasicBlock* next) {
    b_.CreateBr(next);
    b_.SetInsertPoint(next);
  }

  Value* count_of(Value* word);
  // The word is an object. `own`: of a value that only this function can get at where it has one reference.
  void retain_object(Value* word, bool own);
  void retain(Value* word);
  void release(Value* word);
  // An owned field of a cell, moved out where `moves` (a truth value) says that it may be.
  Value* field_of(Value* cell, Value* moves, uint64_t n);

  llvm::CallInst* call_helper(size_t offset, std::vector<Value*> args, bool gives = true);
  Value* value_of(Value* result) { return b_.CreateExtractValue(result, 0); }
  Value* failed_of(Value* result) {
    return b_.CreateICmpNE(b_.CreateExtractValue(result, 1), i64(0));
  }

  HostModule& m_;
  llvm::IRBuilder<> b_;
  llvm::Function* function_;
  Value* context_;
};

}  // namespace relay::codegen
