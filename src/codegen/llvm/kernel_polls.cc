// Where a long kernel asks whether it is to go on: at Ctrl-C, and at the end of a run's time.
//
// A loop asks when it may take milliseconds as a whole, and no loop inside of it does; so a kernel asks every few
// milliseconds. Kernels that cannot be long have nothing of this. How long a loop takes is a count of operations of one
// element or vector; an open extent stands for a large one where it decides whether to ask, and for itself where it says
// how often.

#include <llvm/IR/MDBuilder.h>

#include <algorithm>
#include <limits>

#include "codegen/llvm/kernel_code.h"
#include "node/walk.h"
#include "runtime/core/kernel_abi.h"
#include "tir/while.h"

namespace relay::codegen {
namespace {

constexpr int64_t kOpenExtent = int64_t{1} << 14;
// Some tens of milliseconds of a thread; shorter kernels do not ask.
constexpr int64_t kLongKernel = int64_t{1} << 28;
// About a millisecond.
constexpr int64_t kBetweenPolls = int64_t{1} << 22;
// Some microseconds: a loop of the program that takes less at its greatest length has no poll, so that LLVM may unroll it
// or move what it stores out of it.
constexpr int64_t kShortLoop = int64_t{1} << 12;
// Around a tile in registers, which a call would write to memory and read again.
constexpr int64_t kBetweenPollsOfTiles = int64_t{1} << 26;
// What a factor of an estimate is at most, so that sums of a few products are numbers.
constexpr int64_t kMostWork = int64_t{1} << 30;

int64_t work_of_leaf(const StmtNode* s) {
  int64_t work = 1;
  post_order(ref(*s), [&](const Node& n) {
    auto* binary = as<tir::BinaryNode>(&n);
    bool divides =
        binary != nullptr && (binary->op == tir::BinaryOp::Div || binary->op == tir::BinaryOp::Mod);
    if (n.kind() == tir::ExprKind::Load) work += 1;
    if (divides) work += 8;
    auto* call = as<tir::CallNode>(&n);
    if (call != nullptr && call->name != "fma") work += 8;
  });
  return work;
}

int64_t times(int64_t a, int64_t b) { return std::min(a, kMostWork) * std::min(b, kMostWork); }

}  // namespace

std::optional<KernelBuilder::Length> KernelBuilder::most_iterations(PrimExpr extent) const {
  for (auto d = definitions_.find(extent.get()); d != definitions_.end();
       d = definitions_.find(extent.get())) {
    extent = d->second;
  }
  // A negative extent is none.
  if (auto length = as_int(extent)) return Length{std::max<int64_t>(*length, 0), true};
  auto* b = as<tir::BinaryNode>(extent);
  const auto by = b == nullptr ? std::nullopt : as_int(b->b);
  if (!by) return std::nullopt;
  if (b->op == tir::BinaryOp::Min) return Length{std::max<int64_t>(*by, 0), false};
  const bool rest = b->op == tir::BinaryOp::FloorMod || b->op == tir::BinaryOp::Mod;
  return rest && *by > 0 ? std::optional(Length{*by - 1, false}) : std::nullopt;
}

KernelBuilder::Survey KernelBuilder::survey(const StmtNode* s, Around around) {
  auto inside = [&](const Stmt& inner) { return survey(inner.get(), around); };
  switch (s->kind()) {
    case StmtKind::Seq: {
      Survey all;
      for (const Stmt& inner : static_cast<const SeqNode*>(s)->stmts) {
        all += inside(inner);
        all.work = std::min(all.work, kMostWork * kMostWork);
      }
      return all;
    }
    case StmtKind::If: {
      auto& i = *static_cast<const tir::IfNode*>(s);
      Survey all = inside(i.then_body);
      if (i.else_body) all += inside(i.else_body);
      return all;
    }
    case StmtKind::LetStmt: {
      auto& l = *static_cast<const LetStmtNode*>(s);
      definitions_[l.var.get()] = l.value;
      return inside(l.body);
    }
    case StmtKind::Allocate: {
      auto& a = *static_cast<const AllocateNode*>(s);
      if (matrix_uses_.contains(a.buffer.get())) {
        around = Around::MatrixRegisters;
      } else if (a.buffer->scope == Scope::Register && around == Around::Nothing) {
        around = Around::Tile;
      }
      return inside(a.body);
    }
    // It may run for ever, whatever its body asks.
    case StmtKind::While: {
      Survey body = inside(static_cast<const tir::WhileNode*>(s)->body);
      polls_[s] = {body.work, false, true, body.jump()};
      return {kLongKernel, true, true};
    }
    case StmtKind::For: {
      auto& l = *static_cast<const ForNode*>(s);
      Survey body = inside(l.body);
      if (l.hints.program) {
        const auto length = most_iterations(l.extent);
        if (length && !body.asks && times(length->most, body.work) <= kShortLoop) {
          // One that may be shorter counts for none: a run has no more jumps than its fuel is charged for.
          const int64_t jumps = length->exact ? length->most * (1 + body.jumps) : 0;
          return {times(length->most, body.work), false, false, jumps};
        }
        polls_[s] = {body.work, !body.has_loop, true, body.jump()};
        return {kLongKernel, true, true};
      }
      Survey whole{times(as_int(l.extent).value_or(kOpenExtent), body.work), body.asks, true};
      int64_t least = around == Around::Tile ? kBetweenPollsOfTiles : kBetweenPolls;
      if (!body.asks && around != Around::MatrixRegisters && whole.work > least) {
        polls_[&l] = {body.work, !body.has_loop, false, 0};
        whole.asks = true;
      }
      return whole;
    }
    default:
      return {work_of_leaf(s), false, false};
  }
}

void KernelBuilder::find_polls() {
  if (survey(f_.body.get(), Around::Nothing).work < kLongKernel) polls_.clear();
}

Value* KernelBuilder::work_now(const StmtNode* s, int64_t* inner) {
  switch (s->kind()) {
    case StmtKind::Seq: {
      Value* all = b_.getInt64(0);
      for (const Stmt& one : static_cast<const SeqNode*>(s)->stmts)
        all = b_.CreateAdd(all, work_now(one.get(), inner));
      return all;
    }
    case StmtKind::If: {
      auto& i = *static_cast<const tir::IfNode*>(s);
      Value* then_work = work_now(i.then_body.get());
      return i.else_body ? b_.CreateAdd(then_work, work_now(i.else_body.get())) : then_work;
    }
    case StmtKind::While:
      // An inner loop asks for itself.
      return b_.getInt64(1);
    case StmtKind::LetStmt:
      return work_now(static_cast<const LetStmtNode*>(s)->body.get(), inner);
    case StmtKind::Allocate:
      return work_now(static_cast<const AllocateNode*>(s)->body.get(), inner);
    case StmtKind::For: {
      auto& l = *static_cast<const ForNode*>(s);
      bool known = true;
      post_order(l.extent, [&](const Node& n) {
        known = known && n.kind() != tir::ExprKind::Load &&
                (n.kind() != tir::ExprKind::Var || vars_.contains(&n));
      });
      auto poll = polls_.find(&l);
      if (l.hints.program && poll != polls_.end()) {
        if (!known || inner == nullptr || !poll->second.innermost ||
            l.hints.order == tir::LoopOrder::Backward)
          return b_.getInt64(1);
        counted_around_.insert(&l);
        const int64_t work = std::clamp<int64_t>(poll->second.work, 1, kMostWork);
        *inner = std::max(*inner, std::clamp<int64_t>(poll->second.jump, 1, kMostWork));
        Value* extent = b_.CreateSExt(expr(l.extent), b_.getInt64Ty());
        Value* most = b_.getInt64(kMostWork);
        Value* length =
            b_.CreateBinaryIntrinsic(llvm::Intrinsic::smax, b_.getInt64(0),
                                     b_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, extent, most));
        return b_.CreateMul(length, b_.getInt64(work));
      }
      // One that is known later only is taken for a small one: a loop asks more often than it must.
      Value* extent = known ? b_.CreateSExt(expr(l.extent), b_.getInt64Ty()) : b_.getInt64(16);
      if (known && l.hints.program)
        extent = b_.CreateBinaryIntrinsic(llvm::Intrinsic::smax, b_.getInt64(0), extent);
      auto bounded = [&](Value* v) {
        return b_.CreateSelect(b_.CreateICmpULT(v, b_.getInt64(kMostWork)), v,
                               b_.getInt64(kMostWork));
      };
      return b_.CreateMul(bounded(extent), bounded(work_now(l.body.get())));
    }
    default:
      return b_.getInt64(static_cast<uint64_t>(work_of_leaf(s)));
  }
}

void KernelBuilder::ask_to_go_on(int64_t jumps) {
  auto* type = llvm::FunctionType::get(
      b_.getInt32Ty(), {b_.getPtrTy(), b_.getPtrTy(), b_.getPtrTy(), b_.getInt64Ty()}, false);
  Value* callback = context_pointer(b_, ctx_, offsetof(relay_kernel_context, parallel_for));
  Value* none = llvm::ConstantPointerNull::get(b_.getPtrTy());
  Value* count = none;
  if (jumps > 0)
    count = b_.CreateIntToPtr(b_.getInt64(static_cast<uint64_t>(jumps)), b_.getPtrTy());
  Value* code = b_.CreateCall(type, callback, {ctx_, none, count, b_.getInt64(0)});
  require(b_.CreateICmpEQ(code, b_.getInt32(0)), code);
}

int64_t KernelBuilder::iterations_between_polls(int64_t work) {
  return std::max<int64_t>(kBetweenPolls / std::max<int64_t>(work, 1), 1);
}

int64_t KernelBuilder::jumps_between_polls(const Poll& poll) {
  return poll.program ? iterations_between_polls(poll.jump) : 0;
}

void KernelBuilder::ask_after(Value* work, int64_t jumps) {
  if (work_left_ == nullptr) {
    work_left_ = stack_slot(b_.getInt64Ty());
    llvm::IRBuilder<> at(entry_, entry_->end());
    at.CreateStore(b_.getInt64(kBetweenPolls), work_left_);
  }
  // `usub.with.overflow` keeps subtraction and test together through all optimisations: an iteration of a loop costs
  // one subtraction and one jump that is not taken.
  Value* left = b_.CreateBinaryIntrinsic(llvm::Intrinsic::usub_with_overflow,
                                         b_.CreateLoad(b_.getInt64Ty(), work_left_), work);
  b_.CreateStore(b_.CreateExtractValue(left, 0), work_left_);
  auto* ask = BasicBlock::Create(context_, "ask", function_);
  auto* next = BasicBlock::Create(context_, "next", function_);
  b_.CreateCondBr(b_.CreateExtractValue(left, 1), ask, next,
                  llvm::MDBuilder(context_).createUnlikelyBranchWeights());
  b_.SetInsertPoint(ask);
  ask_to_go_on(jumps);
  b_.CreateStore(b_.getInt64(kBetweenPolls), work_left_);
  b_.CreateBr(next);
  b_.SetInsertPoint(next);
}

void KernelBuilder::polled_loop(const ForNode& l, const Poll& poll, Value* begin, Value* end,
                                const std::function<void(Value*, Value*)>& loop) {
  // The end of the last block may need more bits than that of the loop.
  llvm::Type *type = begin->getType(), *wide = b_.getInt64Ty();
  begin = b_.CreateSExt(begin, wide);
  end = b_.CreateSExt(end, wide);
  const int64_t block = std::min<int64_t>(iterations_between_polls(poll.work),
                                          std::numeric_limits<int32_t>::max() / 2);
  // A loop without loops inside is cut into blocks, between which it asks: its body stays what it is. Mostly there is one
  // block, which costs little to enter.
  auto* before = b_.GetInsertBlock();
  auto* head = BasicBlock::Create(context_, l.var->name + "_block", function_);
  auto* again = BasicBlock::Create(context_, "again", function_);
  auto* next = BasicBlock::Create(context_, "next", function_);
  b_.CreateCondBr(b_.CreateICmpSLT(begin, end), head, next);
  b_.SetInsertPoint(head);
  auto* first = b_.CreatePHI(wide, 2);
  first->addIncoming(begin, before);
  const bool counted = counted_around_.contains(&l);
  if (!poll.program) ask_to_go_on();
  Value* full = b_.CreateAdd(first, b_.getInt64(static_cast<uint64_t>(block)));
  Value* stop = b_.CreateSelect(b_.CreateICmpSLT(full, end), full, end);
  if (poll.program && !counted) {
    Value* work = b_.getInt64(static_cast<uint64_t>(std::max<int64_t>(poll.work, 1)));
    ask_after(b_.CreateMul(b_.CreateSub(stop, first), work), jumps_between_polls(poll));
  }
  loop(b_.CreateTrunc(first, type), b_.CreateTrunc(stop, type));
  b_.CreateCondBr(b_.CreateICmpSLT(stop, end), again, next);
  b_.SetInsertPoint(again);
  if (counted) ask_to_go_on(jumps_between_polls(poll));
  first->addIncoming(stop, b_.GetInsertBlock());
  b_.CreateBr(head);
  b_.SetInsertPoint(next);
}

}  // namespace relay::codegen
