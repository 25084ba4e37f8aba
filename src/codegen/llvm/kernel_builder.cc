#include "codegen/llvm/kernel_code.h"

#include <llvm/IR/ConstantRange.h>

#include "base/codes/lowering.h"
#include "node/walk.h"
#include "runtime/core/kernel_abi.h"
#include "target/architectures.h"
#include "tir/passes/register_bounds.h"
#include "tir/scalar.h"
#include "tir/while.h"

namespace relay::codegen {

void unsupported(const std::string& kernel, const std::string& what) {
  throw UserError(Diagnostic(codes::codegen_failed, {}, "kernel " + kernel + ": " + what));
}

void KernelBuilder::build() {
  std::vector<llvm::Type*> types;
  for (size_t i = 0; i < f_.params.size(); ++i) types.push_back(b_.getPtrTy());
  for (size_t i = 0; i < f_.dims.size(); ++i) types.push_back(b_.getInt64Ty());
  types.push_back(b_.getPtrTy());
  llvm::Function* body = make_function(f_.name + "_body", types, /*internal=*/true);
  find_shared();
  for (size_t i = 0; i < f_.params.size(); ++i) {
    llvm::Argument* a = body->getArg(static_cast<unsigned>(i));
    if (!shared_.contains(f_.params[i].get())) a->addAttr(llvm::Attribute::NoAlias);
    a->addAttr(llvm::Attribute::NonNull);
    if (static_cast<int64_t>(i) < f_.num_inputs) a->addAttr(llvm::Attribute::ReadOnly);
    buffers_[f_.params[i].get()] = a;
    alignment_[f_.params[i].get()] = f_.params[i]->dtype.bytes();
  }
  // Sizes: one comparison without signs says that an index is neither below 0 nor behind the end.
  const auto size = llvm::ConstantRange(llvm::APInt(64, 0), llvm::APInt::getSignedMinValue(64));
  for (size_t i = 0; i < f_.dims.size(); ++i) {
    llvm::Argument* a = body->getArg(static_cast<unsigned>(f_.params.size() + i));
    a->addAttr(llvm::Attribute::get(context_, llvm::Attribute::Range, size));
    vars_[f_.dims[i].get()] = a;
  }
  ctx_ = body->getArg(static_cast<unsigned>(types.size() - 1));
  find_matrix_uses();
  find_polls();
  if (has_program_loops(f_)) {
    const PrimFunc f = relay::ref(f_);
    bounds_.emplace();
    bounds_->bind_function(f);
    bind_registers(*bounds_, f);
  }
  begin_function(body);
  // Where no result has an element there is nothing to do: an outer loop does not count to 2^40 around an empty one.
  if (Value* empty = results_are_empty()) require(b_.CreateNot(empty), b_.getInt32(0));
  statement(f_.body.get());
  finish_function();
  build_entry(body);
}

Value* KernelBuilder::results_are_empty() {
  // A kernel that checks something does so for empty results as well.
  bool checks = false;
  post_order(
      f_.body, [&](const Node& n) { checks = checks || n.kind() == tir::StmtKind::Check; },
      family::tir_stmt);
  Value* all = nullptr;
  for (auto i = static_cast<size_t>(f_.num_inputs); !checks && i < f_.params.size(); ++i) {
    Value* empty = nullptr;
    for (const PrimExpr& d : f_.params[i]->shape) {
      if (as_int(d)) continue;
      Value* none = b_.CreateICmpEQ(expr(d), b_.getInt64(0));
      empty = empty == nullptr ? none : b_.CreateOr(empty, none);
    }
    if (empty == nullptr) return nullptr;
    all = all == nullptr ? empty : b_.CreateAnd(all, empty);
  }
  return all;
}

void KernelBuilder::find_shared() {
  if (f_.in_place.empty()) return;
  shared_.insert(f_.params.back().get());
  for (int64_t i : f_.in_place) shared_.insert(f_.params[static_cast<size_t>(i)].get());
}

namespace {

bool has_denormal_constant(const tir::PrimFuncNode& f) {
  bool found = false;
  post_order(f.body, [&](const Node& n) {
    auto* value = as<FloatImmNode>(&n);
    found |= value != nullptr && tir::is_denormal(value->dtype, value->value);
  });
  return found;
}

}  // namespace

llvm::Function* KernelBuilder::make_function(const std::string& name,
                                             const std::vector<llvm::Type*>& types, bool internal) {
  // What is called from inside returns a code, the entry does not.
  auto* type = llvm::FunctionType::get(internal ? b_.getInt32Ty() : b_.getVoidTy(), types, false);
  auto* f = llvm::Function::Create(
      type, internal ? llvm::Function::InternalLinkage : llvm::Function::ExternalLinkage, name,
      module_);
  f->addFnAttr("target-cpu", target_.cpu);
  f->addFnAttr("target-features", code_features(target_));
  if (const Architecture* row = find_architecture(target_.arch);
      row != nullptr && !row->tuned_cpu.empty() && target_.cpu == row->generic_cpu) {
    f->addFnAttr("tune-cpu", row->tuned_cpu);
  }
  f->addFnAttr("prefer-vector-width", std::to_string(target_.vector_bits));
  f->addFnAttr("min-legal-vector-width", std::to_string(target_.vector_bits));
  if (const LlvmArchitecture* arch = find_llvm_architecture(target_.arch);
      arch != nullptr && arch->unit_bits != 0 && target_.vector_bits > arch->unit_bits) {
    constexpr unsigned kMostUnits = 16;
    const auto units = static_cast<unsigned>(target_.vector_bits / arch->unit_bits);
    f->addFnAttr(llvm::Attribute::getWithVScaleRangeArgs(context_, units, kMostUnits));
  }
  f->addFnAttr(llvm::Attribute::NoUnwind);
  f->addFnAttr("no-trapping-math", "true");
  // What of them is computed while code is generated is what a run would compute.
  if (!target_.keeps_denormals && has_denormal_constant(f_)) {
    f->addFnAttr("denormal-fp-math", "preserve-sign,preserve-sign");
  }
  return f;
}

void KernelBuilder::begin_function(llvm::Function* f) {
  function_ = f;
  stack_bytes_ = 0;
  uses_matrix_unit_ = false;
  work_left_ = nullptr;
  forget_shapes();
  cache_.clear();
  cached_.clear();
  entry_ = BasicBlock::Create(context_, "entry", f);
  auto* start = BasicBlock::Create(context_, "start", f);
  exit_ = BasicBlock::Create(context_, "exit");
  b_.SetInsertPoint(exit_);
  code_ = b_.CreatePHI(b_.getInt32Ty(), 2);
  b_.SetInsertPoint(start);
  start_ = start;
}

void KernelBuilder::finish_function() {
  fail_with(b_.getInt32(0));
  exit_->insertInto(function_);
  b_.SetInsertPoint(exit_);
  if (uses_matrix_unit_) find_llvm_architecture(target_.arch)->matrix->release(b_);
  return_code();
  b_.SetInsertPoint(entry_);
  b_.CreateBr(start_);
}

void KernelBuilder::return_code() { b_.CreateRet(code_); }

void KernelBuilder::fail_with(Value* code) {
  code_->addIncoming(code, b_.GetInsertBlock());
  b_.CreateBr(exit_);
}

void KernelBuilder::require(Value* ok, Value* code) {
  auto* next = BasicBlock::Create(context_, "ok", function_);
  code_->addIncoming(code, b_.GetInsertBlock());
  b_.CreateCondBr(ok, next, exit_);
  b_.SetInsertPoint(next);
}

void KernelBuilder::build_entry(llvm::Function* body) {
  llvm::Function* f =
      make_function(kernel_symbol(f_), {b_.getPtrTy(), b_.getPtrTy(), b_.getPtrTy()},
                    /*internal=*/false);
  b_.SetInsertPoint(BasicBlock::Create(context_, "entry", f));
  std::vector<Value*> args;
  for (size_t i = 0; i < f_.params.size(); ++i) {
    args.push_back(
        b_.CreateLoad(b_.getPtrTy(), b_.CreateConstGEP1_64(b_.getPtrTy(), f->getArg(0), i)));
  }
  for (size_t i = 0; i < f_.dims.size(); ++i) {
    args.push_back(
        b_.CreateLoad(b_.getInt64Ty(), b_.CreateConstGEP1_64(b_.getInt64Ty(), f->getArg(1), i)));
  }
  args.push_back(f->getArg(2));
  Value* code = b_.CreateCall(body, args);
  auto* failed = BasicBlock::Create(context_, "failed", f);
  auto* done = BasicBlock::Create(context_, "done", f);
  b_.CreateCondBr(b_.CreateIsNull(code), done, failed);
  b_.SetInsertPoint(failed);
  Value* word = context_pointer(b_, f->getArg(2), offsetof(relay_kernel_context, error));
  b_.CreateStore(code, word);
  b_.CreateBr(done);
  b_.SetInsertPoint(done);
  b_.CreateRetVoid();
}

// From the first pointer on the context has pointers only, which on the machine may have another width.
Value* KernelBuilder::context_pointer(llvm::IRBuilder<>& at, Value* context, size_t offset) {
  constexpr size_t kFirst = offsetof(relay_kernel_context, parallel_for);
  static_assert(kFirst == 8 && sizeof(relay_kernel_context) == kFirst + 6 * sizeof(void*));
  const size_t place =
      kFirst + (offset - kFirst) / sizeof(void*) * module_.getDataLayout().getPointerSize();
  return at.CreateLoad(at.getPtrTy(), at.CreateConstGEP1_64(at.getInt8Ty(), context, place));
}

std::string kernel_symbol(const PrimFuncNode& func) { return "relay_kernel_" + func.name; }

void build_kernel(llvm::Module& module, const PrimFunc& func, const Target& target) {
  KernelBuilder(module, *func.get(), target).build();
}

bool has_program_loops(const PrimFuncNode& f) {
  bool found = false;
  post_order(
      f.body,
      [&](const Node& n) {
        auto* l = as<ForNode>(&n);
        found |= isa<tir::WhileNode>(&n) || (l != nullptr && l->hints.program);
      },
      family::tir_stmt);
  return found;
}

}  // namespace relay::codegen
