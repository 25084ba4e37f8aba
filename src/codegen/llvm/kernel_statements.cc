#include "codegen/llvm/kernel_code.h"

#include <algorithm>
#include <map>

#include "base/budget.h"
#include "node/structural.h"
#include "node/walk.h"
#include "runtime/core/kernel_abi.h"
#include "tir/while.h"

namespace relay::codegen {

void KernelBuilder::forget(size_t mark) {
  for (; cached_.size() > mark; cached_.pop_back()) cache_.erase(cached_.back());
}

void KernelBuilder::statement(const StmtNode* s) {
  check_budget();
  forget(0);
  shape_registers(s);
  if (matrix_statement(s) || transposed_statement(s)) return;
  switch (s->kind()) {
    case StmtKind::Seq:
      for (const Stmt& inner : static_cast<const SeqNode*>(s)->stmts) statement(inner.get());
      return;
    case StmtKind::Store:
      store(*static_cast<const StoreNode*>(s));
      return;
    case StmtKind::For:
      loop(*static_cast<const ForNode*>(s));
      return;
    case StmtKind::If: {
      auto& i = *static_cast<const tir::IfNode*>(s);
      Value* cond = expr(i.cond);
      if (needed_shapes_.contains(s)) forget_shapes();
      auto* then_block = BasicBlock::Create(context_, "then", function_);
      auto* else_block = i.else_body ? BasicBlock::Create(context_, "else", function_) : nullptr;
      auto* next = BasicBlock::Create(context_, "next", function_);
      b_.CreateCondBr(cond, then_block, else_block != nullptr ? else_block : next);
      b_.SetInsertPoint(then_block);
      statement(i.then_body.get());
      b_.CreateBr(next);
      if (else_block != nullptr) {
        b_.SetInsertPoint(else_block);
        if (needed_shapes_.contains(s)) forget_shapes();
        statement(i.else_body.get());
        b_.CreateBr(next);
      }
      b_.SetInsertPoint(next);
      if (needed_shapes_.contains(s)) forget_shapes();
      return;
    }
    case StmtKind::While: {
      auto& w = *static_cast<const tir::WhileNode*>(s);
      auto* head = BasicBlock::Create(context_, "while", function_);
      auto* body = BasicBlock::Create(context_, "body", function_);
      auto* next = BasicBlock::Create(context_, "next", function_);
      // An iteration finds the registers' shapes as any other has left them.
      forget_shapes();
      int64_t inner = 0;
      Value* work = work_now(w.body.get(), &inner);
      b_.CreateBr(head);
      b_.SetInsertPoint(head);
      forget(0);
      b_.CreateCondBr(expr(w.cond), body, next);
      b_.SetInsertPoint(body);
      if (auto poll = polls_.find(s); poll != polls_.end())
        ask_after(work,
                  inner > 0 ? iterations_between_polls(inner) : jumps_between_polls(poll->second));
      statement(w.body.get());
      forget_shapes();
      b_.CreateBr(head);
      b_.SetInsertPoint(next);
      forget(0);
      return;
    }
    case StmtKind::Allocate:
      allocate(*static_cast<const AllocateNode*>(s));
      return;
    case StmtKind::LetStmt: {
      auto& l = *static_cast<const LetStmtNode*>(s);
      vars_[l.var.get()] = expr(l.value);
      statement(l.body.get());
      vars_.erase(l.var.get());
      return;
    }
    case StmtKind::Check: {
      auto& c = *static_cast<const CheckNode*>(s);
      require(expr(c.cond), b_.getInt32(static_cast<uint32_t>(c.error)));
      return;
    }
    case StmtKind::Evaluate:
      expr(static_cast<const EvaluateNode*>(s)->value);
      return;
    default:
      unsupported(f_.name, "statement " + std::string(s->info().name) + " is not lowered");
  }
}

void KernelBuilder::loop(const ForNode& l) {
  if (l.loop_kind == ForKind::Parallel && !in_parallel_) {
    parallel_loop(l);
    return;
  }
  if (l.loop_kind == ForKind::ThreadBound) unsupported(f_.name, "GPU threads on a CPU");
  Value* begin = expr(l.min);
  Value* end = b_.CreateNSWAdd(begin, expr(l.extent));
  // A body that changes the registers' shapes finds them differently at the first time and later.
  auto needed = needed_shapes_.find(&l);
  bool changes = needed != needed_shapes_.end() && needed->second == kUnknownShapes;
  if (changes) forget_shapes();
  counted_loop(l, begin, end);
  if (changes) forget_shapes();
}

void KernelBuilder::counted_loop(const ForNode& l, Value* begin, Value* end) {
  const bool backward = l.hints.order == tir::LoopOrder::Backward;
  auto poll = polls_.find(&l);
  if (poll != polls_.end() && poll->second.innermost && !backward) {
    polled_loop(l, poll->second, begin, end, [&](Value* first, Value* last) {
      counted_loop(l.var, first, last, [&] { loop_body(l); });
    });
    return;
  }
  int64_t inner = 0;
  Value* work = nullptr;
  if (poll != polls_.end()) work = work_now(l.body.get(), poll->second.program ? &inner : nullptr);
  auto body = [&] {
    if (work != nullptr)
      ask_after(work,
                inner > 0 ? iterations_between_polls(inner) : jumps_between_polls(poll->second));
    loop_body(l);
  };
  ordered_loop(l, begin, end, body);
}

// Indices of loops that were joined are quotients, which inner loops would compute again: LLVM moves no division that it
// does not know to be executed. 32 x 512 x 64 by 32 x 64 x 512 of bfloat16, of symbolic sizes, took 1.17 times as long.
void KernelBuilder::loop_body(const ForNode& l) {
  const size_t mark = divided_.size();
  if (l.loop_kind == ForKind::Parallel) {
    std::vector<PrimExpr> found;
    post_order(
        l.body,
        [&](const Node& n) {
          auto* division = as<BinaryNode>(&n);
          if (division == nullptr || !(division->a == l.var) || as_int(division->b) ||
              (division->op != BinaryOp::FloorDiv && division->op != BinaryOp::FloorMod)) {
            return;
          }
          bool known = true;
          post_order(
              division->b,
              [&](const Node& part) {
                const int kind = part.kind();
                const bool plain = kind == tir::ExprKind::IntImm || kind == tir::ExprKind::Binary ||
                                   kind == tir::ExprKind::Cast;
                known = known && (plain || vars_.contains(&part));
              },
              family::tir_expr);
          auto same = [&](const PrimExpr& e) { return structural_equal(e, PrimExpr(division)); };
          if (known && std::ranges::none_of(found, same)) found.push_back(PrimExpr(division));
        },
        family::tir_stmt | family::tir_expr);
    for (const PrimExpr& e : found) {
      // One that is not executed may have a divisor of 0.
      auto& division = *as<BinaryNode>(e);
      const PrimExpr divisor =
          tir::binary(BinaryOp::Max, division.b, tir::imm(division.b->dtype, 1));
      kept_.push_back(tir::binary(division.op, division.a, divisor));
      divided_.emplace_back(e, expr(kept_.back()));
    }
  }
  statement(l.body.get());
  divided_.resize(mark);
}

void KernelBuilder::parallel_loop(const ForNode& l) {
  std::vector<const Node*> pointers, scalars;
  free_values(l, pointers, scalars);
  std::vector<llvm::Type*> types;
  for (const Node* p : pointers) types.push_back(buffers_.at(p)->getType());
  for (const Node* v : scalars) types.push_back(vars_.at(v)->getType());
  types.push_back(b_.getInt64Ty());
  types.push_back(b_.getPtrTy());
  std::vector<llvm::Type*> env_types = types;
  types.push_back(b_.getInt64Ty());
  types.push_back(b_.getInt64Ty());
  auto* env_type = llvm::StructType::get(context_, env_types);
  std::string name = f_.name + "_parallel" + std::to_string(parallel_count_++);
  llvm::Function* inner = make_function(name + "_body", types, true);
  llvm::Function* outer =
      make_function(name, {b_.getPtrTy(), b_.getInt64Ty(), b_.getInt64Ty()}, true);

  // The call in this function.
  Value* env = stack_slot(env_type);
  unsigned field = 0;
  for (const Node* p : pointers)
    b_.CreateStore(buffers_.at(p), b_.CreateStructGEP(env_type, env, field++));
  for (const Node* v : scalars)
    b_.CreateStore(vars_.at(v), b_.CreateStructGEP(env_type, env, field++));
  // The runtime counts in 64 bits.
  Value* min = b_.CreateSExt(expr(l.min), b_.getInt64Ty());
  b_.CreateStore(min, b_.CreateStructGEP(env_type, env, field++));
  b_.CreateStore(ctx_, b_.CreateStructGEP(env_type, env, field));
  Value* extent = b_.CreateSExt(expr(l.extent), b_.getInt64Ty());
  auto* callback_type = llvm::FunctionType::get(
      b_.getInt32Ty(), {b_.getPtrTy(), b_.getPtrTy(), b_.getPtrTy(), b_.getInt64Ty()}, false);
  Value* callback = context_pointer(b_, ctx_, offsetof(relay_kernel_context, parallel_for));
  Value* code = b_.CreateCall(callback_type, callback, {ctx_, outer, env, extent});
  require(b_.CreateICmpEQ(code, b_.getInt32(0)), code);

  // The functions, with this one's state put aside.
  auto saved = std::make_tuple(function_, entry_, start_, exit_, code_, ctx_, buffers_, vars_,
                               stack_bytes_, uses_matrix_unit_, work_left_, b_.saveIP());
  b_.SetInsertPoint(BasicBlock::Create(context_, "entry", outer));
  std::vector<Value*> args;
  for (unsigned i = 0; i < env_types.size(); ++i) {
    args.push_back(b_.CreateLoad(env_types[i], b_.CreateStructGEP(env_type, outer->getArg(0), i)));
  }
  args.push_back(outer->getArg(1));
  args.push_back(outer->getArg(2));
  b_.CreateRet(b_.CreateCall(inner, args));

  unsigned arg = 0;
  for (const Node* p : pointers) {
    if (!shared_.contains(p)) inner->getArg(arg)->addAttr(llvm::Attribute::NoAlias);
    buffers_[p] = inner->getArg(arg++);
  }
  for (const Node* v : scalars) vars_[v] = inner->getArg(arg++);
  Value* first = inner->getArg(arg++);
  ctx_ = inner->getArg(arg++);
  in_parallel_ = true;
  begin_function(inner);
  llvm::Type* type = value_type(l.var->dtype);
  Value* begin = b_.CreateTrunc(b_.CreateNSWAdd(first, inner->getArg(arg++)), type);
  Value* end = b_.CreateTrunc(b_.CreateNSWAdd(first, inner->getArg(arg)), type);
  shape_registers(&l);
  counted_loop(l, begin, end);
  finish_function();
  forget(0);
  in_parallel_ = false;
  std::tie(function_, entry_, start_, exit_, code_, ctx_, buffers_, vars_, stack_bytes_,
           uses_matrix_unit_, work_left_, std::ignore) = saved;
  b_.restoreIP(std::get<11>(saved));
  // This thread has run a part of the loop.
  forget_shapes();
}

void KernelBuilder::free_values(const ForNode& l, std::vector<const Node*>& pointers,
                                std::vector<const Node*>& scalars) {
  std::unordered_set<const Node*> seen;
  post_order(ref(l), [&](const Node& n) {
    if (n.kind() == OtherKind::Buffer && buffers_.contains(&n) && seen.insert(&n).second)
      pointers.push_back(&n);
    if (n.kind() == tir::ExprKind::Var && vars_.contains(&n) && &n != l.var.get() &&
        seen.insert(&n).second) {
      scalars.push_back(&n);
    }
  });
}

Value* KernelBuilder::stack_slot(llvm::Type* type, uint64_t align) {
  llvm::IRBuilder<> at(entry_, entry_->end());
  auto* slot = at.CreateAlloca(type);
  slot->setAlignment(llvm::Align(align));
  return slot;
}

Value* KernelBuilder::scratch(llvm::IRBuilder<>& at, Value* bytes) {
  auto* type = llvm::FunctionType::get(at.getPtrTy(), {at.getPtrTy(), at.getInt64Ty()}, false);
  Value* callback = context_pointer(at, ctx_, offsetof(relay_kernel_context, scratch));
  auto* call = at.CreateCall(type, callback, {ctx_, bytes});
  call->addRetAttr(llvm::Attribute::NoAlias);
  return call;
}

bool KernelBuilder::known_at_entry(const tir::BufferNode& b) const {
  bool known = true;
  for (const PrimExpr& d : b.shape) {
    post_order(d, [&](const Node& n) {
      bool is_dim = std::any_of(f_.dims.begin(), f_.dims.end(),
                                [&](const Var& dim) { return dim.get() == &n; });
      // Divisions but those by a power of two may need code of more than one block.
      auto* binary = as<tir::BinaryNode>(&n);
      bool plain = binary != nullptr &&
                   (binary->op == tir::BinaryOp::Add || binary->op == tir::BinaryOp::Sub ||
                    binary->op == tir::BinaryOp::Mul ||
                    (binary->op == tir::BinaryOp::FloorDiv && log2_of(binary->b).has_value()));
      known = known && (is_dim || plain || n.kind() == tir::ExprKind::IntImm);
    });
  }
  return known;
}

void KernelBuilder::allocate(const AllocateNode& a) {
  if (matrix_uses_.contains(a.buffer.get())) {  // registers of the matrix unit
    statement(a.body.get());
    return;
  }
  int64_t elements = 1;
  bool constant = true;
  for (const PrimExpr& d : a.buffer->shape) {
    auto size = as_int(d);
    constant = constant && size.has_value();
    if (size) elements *= *size;
  }
  llvm::Type* element = memory_type(a.buffer->dtype.element());
  int64_t bytes = elements * static_cast<int64_t>(a.buffer->dtype.element().bytes());
  // A register tile is a few kilobytes; one that could not be shrunk is memory like any other.
  bool tile = a.buffer->scope == Scope::Register && bytes <= target_.limits.stack_bytes;
  bool on_stack = constant && (tile || stack_bytes_ + bytes <= target_.limits.stack_bytes);
  if (on_stack) {
    stack_bytes_ += bytes;
    buffers_[a.buffer.get()] = stack_slot(
        llvm::ArrayType::get(element, static_cast<uint64_t>(std::max<int64_t>(elements, 1))), 64);
  } else {
    // In the entry block where the size is known there, so that a loop around the allocation asks once.
    auto here = b_.saveIP();
    if (known_at_entry(*a.buffer.get())) b_.SetInsertPoint(entry_, entry_->end());
    Value* size = b_.getInt64(a.buffer->dtype.element().bytes());
    for (const PrimExpr& d : a.buffer->shape) size = b_.CreateMul(size, expr(d));
    Value* memory = scratch(b_, size);
    b_.restoreIP(here);
    require(b_.CreateIsNotNull(memory), b_.getInt32(RELAY_KERNEL_OUT_OF_MEMORY));
    buffers_[a.buffer.get()] = memory;
  }
  alignment_[a.buffer.get()] = a.buffer->dtype.element().bytes();
  statement(a.body.get());
  buffers_.erase(a.buffer.get());
}

}  // namespace relay::codegen
