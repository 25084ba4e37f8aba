#include "codegen/llvm/host_function.h"

#include <algorithm>

#include "hostcode/tail_calls.h"
#include "runtime/core/immediate.h"
#include "runtime/core/native_layout.h"
#include "runtime/core/scalar_ops.h"
#include "target/architectures.h"

namespace relay::codegen {
namespace {

namespace hc = hostcode;
using hc::Inst;
using hc::LocalId;
using hc::Op;
using runtime::FloatOp;
using runtime::IntOp;
using runtime::NativeLayout;
using runtime::ObjectKind;
using runtime::ScalarConversion;

#define RELAY_HELPER(name) offsetof(relay_native_helpers, name)

// Of the parts that all functions call: the slow half of counting.
class SharedBuilder : public HostBuilder {
 public:
  SharedBuilder(HostModule& m, llvm::Function* f, Value* context) : HostBuilder(m, f, context) {
    b_.SetInsertPoint(block("entry"));
  }

  // void (context, word)
  void build_release(Value* word) {
    BasicBlock *last = block("last"), *more = block("more"), *end = block("end");
    branch(b_.CreateICmpEQ(count_of(word), b_.getInt32(1)), last, more);
    b_.SetInsertPoint(more);
    Value* before =
        b_.CreateAtomicRMW(llvm::AtomicRMWInst::Sub, at(word, NativeLayout::kRefs), b_.getInt32(1),
                           llvm::Align(4), llvm::AtomicOrdering::AcquireRelease);
    branch(b_.CreateICmpEQ(before, b_.getInt32(1)), last, end);
    b_.SetInsertPoint(last);
    call_helper(RELAY_HELPER(destroy), {word}, false);
    go_on_in(end);
    b_.CreateRetVoid();
  }

  // int64 (context): whether a helper that a function asks at its entry or in a loop says that the run ends.
  void build_question(size_t helper) {
    b_.CreateRet(b_.CreateExtractValue(call_helper(helper, {}), 1));
  }

  // void (cell, place, field, moves)
  void build_field(Value* cell, Value* place, Value* field, Value* moves) {
    BasicBlock *own = block("own"), *shared = block("shared"), *move = block("move"),
               *keep = block("keep");
    branch(b_.CreateICmpEQ(count_of(cell), b_.getInt32(1)), own, shared);
    b_.SetInsertPoint(shared);
    retain_object(field, false);
    b_.CreateRetVoid();
    b_.SetInsertPoint(own);
    branch(moves, move, keep);
    b_.SetInsertPoint(move);
    b_.CreateAlignedStore(i64(0), place, llvm::Align(8));
    b_.CreateRetVoid();
    b_.SetInsertPoint(keep);
    retain_object(field, true);
    b_.CreateRetVoid();
  }
};

class FunctionBuilder : public HostBuilder {
 public:
  FunctionBuilder(HostModule& m, const hc::Function& f, llvm::Function* function)
      : HostBuilder(m, function, function->getArg(0)), f_(f) {}

  void build() {
    b_.SetInsertPoint(block("entry"));
    for (size_t i = 0; i < f_.locals.size(); ++i)
      slots_.push_back(b_.CreateAlloca(b_.getInt64Ty()));
    for (size_t i = 0; i < f_.signature.params.size(); ++i) {
      const auto n = static_cast<unsigned>(i);
      Value* arg = f_.kind == hc::FunctionKind::entry
                       ? b_.CreateAlignedLoad(b_.getInt64Ty(), at(function_->getArg(1), 8 * i),
                                              llvm::Align(8))
                       : static_cast<Value*>(function_->getArg(n + 1));
      b_.CreateStore(arg, slots_[i]);
    }
    for (size_t i = 0; i < f_.blocks.size(); ++i) blocks_.push_back(block("b"));
    b_.CreateBr(blocks_[0]);
    for (size_t i = 0; i < f_.blocks.size(); ++i) {
      b_.SetInsertPoint(blocks_[i]);
      for (const Inst& inst : f_.blocks[i].insts) emit(inst);
    }
  }

 private:
  Value* get(LocalId id) { return b_.CreateLoad(b_.getInt64Ty(), slots_[static_cast<size_t>(id)]); }
  Value* get(const Inst& inst, size_t operand) { return get(inst.operands[operand]); }
  void set(const Inst& inst, Value* value) {
    b_.CreateStore(value, slots_[static_cast<size_t>(inst.result)]);
  }

  // Where a failure goes on: releases the words and fails. `taken`: also what the instruction takes over.
  BasicBlock* failure(const Inst& inst, bool taken = false) {
    std::vector<LocalId> words = inst.cleanup;
    for (size_t i = 0; taken && i < inst.operands.size(); ++i) {
      const LocalId id = inst.operands[i];
      if (f_.is_counted(id) && hc::takes_over(inst, i)) words.push_back(id);
    }
    std::ranges::sort(words);
    // Lists with equal beginnings share the blocks for these, so the code grows with the program and not with the number
    // of words that are alive at each instruction.
    llvm::IRBuilderBase::InsertPointGuard guard(b_);
    if (failed_ == nullptr) {
      failed_ = block("failed");
      b_.SetInsertPoint(failed_);
      b_.CreateRet(result(i64(0), true));
    }
    BasicBlock* out = failed_;
    for (LocalId id : words) {
      BasicBlock*& known = failures_[{out, id}];
      if (known == nullptr) {
        known = block("failure");
        b_.SetInsertPoint(known);
        release(get(id));
        b_.CreateBr(out);
      }
      out = known;
    }
    return out;
  }
  Value* result(Value* value, bool failed) {
    Value* out = llvm::PoisonValue::get(m_.result);
    out = b_.CreateInsertValue(out, value, 0);
    return b_.CreateInsertValue(out, i64(failed ? 1 : 0), 1);
  }
  // Calls a helper whose failure is the instruction's.
  Value* ask(const Inst& inst, size_t offset, std::vector<Value*> args, bool taken = false) {
    Value* out = call_helper(offset, std::move(args));
    branch_rarely(failed_of(out), failure(inst, taken));
    return value_of(out);
  }
  // A block that ends the run.
  BasicBlock* fatal(const Inst& inst, relay_native_failure kind, std::vector<Value*> args = {},
                    bool taken = false) {
    BasicBlock* out = block("fatal");
    BasicBlock* end = failure(inst, taken);
    llvm::IRBuilderBase::InsertPointGuard guard(b_);
    b_.SetInsertPoint(out);
    args.insert(args.begin(), i64(kind));
    args.resize(4, i64(0));
    call_helper(RELAY_HELPER(fail), args);
    b_.CreateBr(end);
    return out;
  }

  // Emits `part` for a condition that seldom holds; behind it both ways go on.
  template <class F>
  void rarely(Value* condition, F&& part) {
    BasicBlock* rare = block("rare");
    branch_rarely(condition, rare);
    BasicBlock* next = b_.GetInsertBlock();
    b_.SetInsertPoint(rare);
    part();
    go_on_in(next);
  }

  void spend(const Inst& inst) {
    Value* place = at(context_, offsetof(relay_native_context, fuel));
    Value* left =
        b_.CreateSub(b_.CreateAlignedLoad(b_.getInt64Ty(), place, llvm::Align(8)), i64(1));
    b_.CreateAlignedStore(left, place, llvm::Align(8));
    rarely(b_.CreateICmpSLT(left, i64(0)), [&] { ask_to_go_on(inst, m_.out_of_fuel); });
  }
  // Registers stay as they are, so that functions without other calls save none.
  void ask_to_go_on(const Inst& inst, llvm::Function* question) {
    auto* ends = b_.CreateCall(question, {context_});
    ends->setCallingConv(question->getCallingConv());
    branch_rarely(b_.CreateICmpNE(ends, i64(0)), failure(inst));
  }

  void enter(const Inst& inst) {
    auto& context = m_.module.getContext();
    auto* name = llvm::MDNode::get(context, {llvm::MDString::get(context, m_.calls.stack_pointer)});
    Value* sp = b_.CreateIntrinsic(llvm::Intrinsic::read_register, {b_.getInt64Ty()},
                                   {llvm::MetadataAsValue::get(context, name)});
    Value* limit = b_.CreateAlignedLoad(
        b_.getInt64Ty(), at(context_, offsetof(relay_native_context, stack_limit)), llvm::Align(8));
    rarely(b_.CreateICmpULT(sp, limit), [&] { ask_to_go_on(inst, m_.more_stack); });
    spend(inst);
  }

  Value* wrapped(Value* value, int64_t bits) {
    if (bits != 32) return value;
    return b_.CreateSExt(b_.CreateTrunc(value, b_.getInt32Ty()), b_.getInt64Ty());
  }
  Value* truth(Value* condition) { return b_.CreateZExt(condition, b_.getInt64Ty()); }
  Value* is_true(Value* scalar) { return b_.CreateICmpNE(scalar, i64(0)); }

  Value* quotient(const Inst& inst, Value* x, Value* y) {
    const auto op = static_cast<IntOp>(inst.sub);
    const bool floor = op == IntOp::floor_div || op == IntOp::floor_mod;
    branch_rarely(b_.CreateICmpEQ(y, i64(0)),
                  fatal(inst, floor ? RELAY_NATIVE_SIZE_DIVISION : RELAY_NATIVE_DIVISION));
    // The smallest number by -1 is out of range.
    Value* negates = b_.CreateICmpEQ(y, i64(-1));
    Value* q = b_.CreateSDiv(x, b_.CreateSelect(negates, i64(1), y));
    q = b_.CreateSelect(negates, b_.CreateNeg(x), q);
    if (!floor) return q;
    Value* rest = b_.CreateSub(x, b_.CreateMul(q, y));
    Value* unequal_signs = b_.CreateICmpSLT(b_.CreateXor(x, y), i64(0));
    Value* less = b_.CreateAnd(is_true(rest), unequal_signs);
    return b_.CreateSub(q, truth(less));
  }

  Value* int_op(const Inst& inst) {
    Value *x = get(inst, 0), *y = get(inst, 1);
    switch (static_cast<IntOp>(inst.sub)) {
      case IntOp::add:
        return b_.CreateAdd(x, y);
      case IntOp::sub:
        return b_.CreateSub(x, y);
      case IntOp::mul:
        return b_.CreateMul(x, y);
      case IntOp::floor_div:
      case IntOp::div:
        return quotient(inst, x, y);
      case IntOp::floor_mod:
      case IntOp::mod:
        return b_.CreateSub(x, b_.CreateMul(quotient(inst, x, y), y));
      case IntOp::min:
        return b_.CreateSelect(b_.CreateICmpSLT(y, x), y, x);
      case IntOp::max:
        return b_.CreateSelect(b_.CreateICmpSLT(x, y), y, x);
      case IntOp::eq:
        return truth(b_.CreateICmpEQ(x, y));
      case IntOp::ne:
        return truth(b_.CreateICmpNE(x, y));
      case IntOp::lt:
        return truth(b_.CreateICmpSLT(x, y));
      case IntOp::le:
        return truth(b_.CreateICmpSLE(x, y));
      case IntOp::both:
        return truth(b_.CreateAnd(is_true(x), is_true(y)));
      case IntOp::either:
        return truth(b_.CreateOr(is_true(x), is_true(y)));
      case IntOp::bit_and:
        return b_.CreateAnd(x, y);
      case IntOp::bit_or:
        return b_.CreateOr(x, y);
      case IntOp::bit_xor:
        return b_.CreateXor(x, y);
      case IntOp::shift_left:
        return b_.CreateShl(x, b_.CreateAnd(y, i64(63)));
      case IntOp::shift_right:
        return b_.CreateAShr(x, b_.CreateAnd(y, i64(63)));
    }
    return nullptr;
  }

  Value* as_float(Value* bits, bool single) {
    if (!single) return b_.CreateBitCast(bits, b_.getDoubleTy());
    return b_.CreateBitCast(b_.CreateTrunc(bits, b_.getInt32Ty()), b_.getFloatTy());
  }
  Value* bits_of(Value* value) {
    if (value->getType()->isDoubleTy()) return b_.CreateBitCast(value, b_.getInt64Ty());
    return b_.CreateSExt(b_.CreateBitCast(value, b_.getInt32Ty()), b_.getInt64Ty());
  }

  Value* float_op(const Inst& inst) {
    Value *x = as_float(get(inst, 0), inst.number == 32),
          *y = as_float(get(inst, 1), inst.number == 32);
    switch (static_cast<FloatOp>(inst.sub)) {
      case FloatOp::add:
        return bits_of(b_.CreateFAdd(x, y));
      case FloatOp::sub:
        return bits_of(b_.CreateFSub(x, y));
      case FloatOp::mul:
        return bits_of(b_.CreateFMul(x, y));
      case FloatOp::div:
        return bits_of(b_.CreateFDiv(x, y));
      case FloatOp::eq:
        return truth(b_.CreateFCmpOEQ(x, y));
      case FloatOp::ne:
        return truth(b_.CreateFCmpUNE(x, y));
      case FloatOp::lt:
        return truth(b_.CreateFCmpOLT(x, y));
      case FloatOp::le:
        return truth(b_.CreateFCmpOLE(x, y));
    }
    return nullptr;
  }

  Value* convert(const Inst& inst) {
    Value* x = get(inst, 0);
    switch (static_cast<ScalarConversion>(inst.sub)) {
      case ScalarConversion::int_to_float32:
        return bits_of(b_.CreateSIToFP(x, b_.getFloatTy()));
      case ScalarConversion::int_to_float64:
        return bits_of(b_.CreateSIToFP(x, b_.getDoubleTy()));
      case ScalarConversion::float32_to_float64:
        return bits_of(b_.CreateFPExt(as_float(x, true), b_.getDoubleTy()));
      case ScalarConversion::float64_to_float32:
        return bits_of(b_.CreateFPTrunc(as_float(x, false), b_.getFloatTy()));
    }
    return nullptr;
  }

  void index(const Inst& inst) {
    Value *given = get(inst, 0), *size = get(inst, 1);
    Value* from_end = b_.CreateAdd(given, size);
    Value* place = b_.CreateSelect(b_.CreateICmpSLT(given, i64(0)), from_end, given);
    Value* outside = b_.CreateOr(b_.CreateICmpSLT(place, i64(0)), b_.CreateICmpSGE(place, size));
    branch_rarely(outside, fatal(inst, RELAY_NATIVE_INDEX, {given, size, i64(inst.text)}));
    set(inst, place);
  }

  void box(const Inst& inst) {
    namespace form = runtime::detail;
    Value* bits = get(inst, 0);
    if (inst.dtype == runtime::DType::Float(64)) {
      BasicBlock *common = block("common"), *other = block("other"), *round = block("round"),
                 *tensor = block("tensor"), *end = block("boxed");
      Value* low = b_.CreateSub(bits, i64(static_cast<int64_t>(form::kLeastExponent)));
      Value* is_common = b_.CreateICmpEQ(b_.CreateAnd(low, i64(int64_t{1} << 62)), i64(0));
      branch(is_common, common, other);
      b_.SetInsertPoint(common);
      Value* rotated =
          b_.CreateIntrinsic(llvm::Intrinsic::fshl, {b_.getInt64Ty()}, {low, low, i64(2)});
      set(inst, b_.CreateOr(rotated, i64(1)));
      b_.CreateBr(end);
      b_.SetInsertPoint(other);
      Value* last = b_.CreateAnd(bits, i64(static_cast<int64_t>(form::kImmediateMask)));
      branch(b_.CreateICmpEQ(last, i64(0)), round, tensor);
      b_.SetInsertPoint(round);
      set(inst, b_.CreateOr(bits, i64(static_cast<int64_t>(form::kOtherDouble))));
      b_.CreateBr(end);
      b_.SetInsertPoint(tensor);
      set(inst, ask(inst, RELAY_HELPER(box), {bits, i64(inst.dtype.key())}));
      go_on_in(end);
      return;
    }
    const auto code =
        static_cast<int64_t>(reinterpret_cast<uintptr_t>(runtime::make_immediate(0, inst.dtype)));
    Value* shifted = b_.CreateShl(bits, i64(form::kImmediateShift));
    set(inst, b_.CreateOr(shifted, i64(code)));
    if (inst.dtype != runtime::DType::Int(64)) return;
    Value* back = b_.CreateAShr(shifted, i64(form::kImmediateShift));
    rarely(b_.CreateICmpNE(back, bits), [&] {
      set(inst, ask(inst, RELAY_HELPER(box), {bits, i64(inst.dtype.key())}));
    });
  }

  void unbox(const Inst& inst) {
    namespace form = runtime::detail;
    Value* word = get(inst, 0);
    BasicBlock *tensor = block("tensor"), *immediate = block("immediate"), *end = block("unboxed");
    branch(is_immediate(word), immediate, tensor);
    b_.SetInsertPoint(immediate);
    if (inst.dtype == runtime::DType::Float(64)) {
      Value* low = b_.CreateXor(word, i64(1));
      Value* rotated =
          b_.CreateIntrinsic(llvm::Intrinsic::fshr, {b_.getInt64Ty()}, {low, low, i64(2)});
      Value* common = b_.CreateAdd(rotated, i64(static_cast<int64_t>(form::kLeastExponent)));
      Value* other = b_.CreateXor(word, i64(static_cast<int64_t>(form::kOtherDouble)));
      Value* is_common = b_.CreateICmpNE(b_.CreateAnd(word, i64(1)), i64(0));
      set(inst, b_.CreateSelect(is_common, common, other));
    } else {
      set(inst, b_.CreateAShr(word, i64(form::kImmediateShift)));
    }
    b_.CreateBr(end);
    b_.SetInsertPoint(tensor);
    set(inst, ask(inst, RELAY_HELPER(unbox), {word, i64(inst.dtype.key())}));
    go_on_in(end);
  }

  Value* kind_of(Value* word) {
    return b_.CreateAlignedLoad(b_.getInt8Ty(), at(word, NativeLayout::kKind), llvm::Align(1));
  }
  Value* number_of(Value* word, uint64_t offset) {
    return b_.CreateAlignedLoad(b_.getInt32Ty(), at(word, offset), llvm::Align(4));
  }

  void tag(const Inst& inst) {
    Value* word = get(inst, 0);
    BasicBlock *object = block("object"), *immediate = block("immediate"), *end = block("tag");
    BasicBlock* wrong = fatal(inst, RELAY_NATIVE_NOT_DATA);
    branch(is_immediate(word), immediate, object);
    b_.SetInsertPoint(immediate);
    const auto empty = static_cast<int64_t>(
        reinterpret_cast<uintptr_t>(runtime::make_empty_cell(ObjectKind::adt, 0)));
    branch_rarely(b_.CreateICmpNE(b_.CreateAnd(word, i64(15)), i64(empty)), wrong);
    set(inst, b_.CreateLShr(word, i64(4)));
    b_.CreateBr(end);
    b_.SetInsertPoint(object);
    branch_rarely(b_.CreateICmpNE(kind_of(word), b_.getInt8(static_cast<uint8_t>(ObjectKind::adt))),
                  wrong);
    set(inst, b_.CreateSExt(number_of(word, NativeLayout::kTag), b_.getInt64Ty()));
    go_on_in(end);
  }

  void field(const Inst& inst) {
    static_assert(static_cast<int>(ObjectKind::adt) == 1 &&
                  static_cast<int>(ObjectKind::tuple) == 2);
    Value* word = get(inst, 0);
    BasicBlock* wrong = fatal(inst, RELAY_NATIVE_NOT_DATA);
    branch_rarely(is_immediate(word), wrong);
    Value* kind = b_.CreateSub(kind_of(word), b_.getInt8(1));
    branch_rarely(b_.CreateICmpUGT(kind, b_.getInt8(1)), wrong);
    branch_rarely(b_.CreateICmpULE(number_of(word, NativeLayout::kCount),
                                   b_.getInt32(static_cast<uint32_t>(inst.number))),
                  wrong);
    set(inst, field_of(word, b_.getInt1(inst.moves), static_cast<uint64_t>(inst.number)));
  }

  void cell(const Inst& inst) {
    if (inst.operands.empty() &&
        runtime::has_empty_form(inst.kind, static_cast<int32_t>(inst.number))) {
      set(inst, i64(static_cast<int64_t>(reinterpret_cast<uintptr_t>(
                    runtime::make_empty_cell(inst.kind, static_cast<int32_t>(inst.number))))));
      return;
    }
    Value* made = ask(inst, RELAY_HELPER(cell),
                      {i64(static_cast<int64_t>(inst.kind)), i64(inst.number),
                       i64(static_cast<int64_t>(inst.operands.size()))},
                      true);
    for (size_t i = 0; i < inst.operands.size(); ++i) {
      b_.CreateAlignedStore(get(inst, i), at(made, NativeLayout::kFields + 8 * i), llvm::Align(8));
    }
    set(inst, made);
  }

  std::vector<Value*> arguments(const Inst& inst, size_t from) {
    std::vector<Value*> out{context_};
    for (size_t i = from; i < inst.operands.size(); ++i) out.push_back(get(inst, i));
    return out;
  }

  llvm::CallInst* call_body(const Inst& inst) {
    auto body = m_.program.bodies[static_cast<size_t>(inst.number)];
    llvm::Function* callee = m_.functions[static_cast<size_t>(body)];
    auto* out = b_.CreateCall(callee, arguments(inst, 0));
    out->setCallingConv(callee->getCallingConv());
    return out;
  }

  // The function of a closure that the operands are arguments of, after the first.
  llvm::CallInst* call_closure(const Inst& inst, bool gives_up) {
    Value* closure = get(inst, 0);
    BasicBlock* wrong = fatal(inst, RELAY_NATIVE_NOT_A_FUNCTION, {}, true);
    branch_rarely(is_immediate(closure), wrong);
    branch_rarely(
        b_.CreateICmpNE(kind_of(closure), b_.getInt8(static_cast<uint8_t>(ObjectKind::closure))),
        wrong);
    auto known = m_.closures.find(inst.operands.size() - 1);
    std::vector<llvm::Type*> types{b_.getPtrTy(), b_.getInt64Ty(), b_.getInt64Ty()};
    types.resize(types.size() + inst.operands.size() - 1, b_.getInt64Ty());
    auto* type = llvm::FunctionType::get(m_.result, types, false);
    Value* code = llvm::Constant::getNullValue(b_.getPtrTy());
    if (known != m_.closures.end()) {
      llvm::GlobalVariable* table = known->second;
      auto* table_type = llvm::cast<llvm::ArrayType>(table->getValueType());
      Value* tag = b_.CreateZExt(number_of(closure, NativeLayout::kTag), b_.getInt64Ty());
      branch_rarely(b_.CreateICmpUGE(tag, i64(static_cast<int64_t>(table_type->getNumElements()))),
                    wrong);
      Value* place = b_.CreateInBoundsGEP(table_type, table, {i64(0), tag});
      code = b_.CreateAlignedLoad(b_.getPtrTy(), place, llvm::Align(8));
    }
    branch_rarely(b_.CreateIsNull(code), wrong);
    std::vector<Value*> args = arguments(inst, 1);
    args.insert(args.begin() + 1, {closure, i64(gives_up ? 1 : 0)});
    auto* out = b_.CreateCall(type, code, args);
    out->setCallingConv(m_.calls.repeating);
    return out;
  }

  void take_result(const Inst& inst, Value* out) {
    // The entry of a function is no caller of the program.
    const bool caller = f_.kind == hc::FunctionKind::body;
    branch_rarely(failed_of(out),
                  caller ? fatal(inst, RELAY_NATIVE_CALLED, {i64(f_.index), i64(inst.where)})
                         : failure(inst));
    set(inst, value_of(out));
  }
  void end_in(llvm::CallInst* call) {
    const bool repeats = function_->getCallingConv() == llvm::CallingConv::Tail &&
                         call->getCallingConv() == llvm::CallingConv::Tail;
    call->setTailCallKind(repeats ? llvm::CallInst::TCK_MustTail : llvm::CallInst::TCK_Tail);
    b_.CreateRet(call);
  }

  void emit(const Inst& inst) {
    switch (inst.op) {
      case Op::enter:
        return enter(inst);
      case Op::poll:
        return spend(inst);
      case Op::number:
        return set(inst, i64(inst.number));
      case Op::copy:
      case Op::move:
        return set(inst, get(inst, 0));
      case Op::int_op:
        return set(inst, wrapped(int_op(inst), inst.number));
      case Op::float_op:
        return set(inst, float_op(inst));
      case Op::convert:
        return set(inst, convert(inst));
      case Op::index:
        return index(inst);
      case Op::check:
        return branch_rarely(b_.CreateICmpEQ(get(inst, 0), i64(0)),
                             fatal(inst, RELAY_NATIVE_CHECK, {i64(inst.text), i64(inst.where)}));
      case Op::box:
        return box(inst);
      case Op::unbox:
        return unbox(inst);
      case Op::constant:
        return set(inst, ask(inst, RELAY_HELPER(constant), {i64(inst.number)}));
      case Op::tag:
        return tag(inst);
      case Op::field:
        return field(inst);
      case Op::capture:
        return set(inst, field_of(get(inst, 0), is_true(get(inst, 1)),
                                  static_cast<uint64_t>(inst.number)));
      case Op::let_go: {
        BasicBlock *gone = block("gone"), *end = block("end");
        branch(is_true(get(inst, 1)), gone, end);
        b_.SetInsertPoint(gone);
        release(get(inst, 0));
        return go_on_in(end);
      }
      case Op::cell:
        return cell(inst);
      case Op::ref_new:
        return set(inst, ask(inst, RELAY_HELPER(ref_new), {get(inst, 0)}));
      case Op::ref_read:
        return set(inst, ask(inst, RELAY_HELPER(ref_read), {get(inst, 0)}));
      case Op::ref_write:
        ask(inst, RELAY_HELPER(ref_write), {get(inst, 0), get(inst, 1)});
        return;
      case Op::call:
        return take_result(inst, call_body(inst));
      case Op::invoke:
        return take_result(inst, call_closure(inst, inst.moves));
      case Op::retain:
        return retain(get(inst, 0));
      case Op::release:
        return release(get(inst, 0));
      case Op::jump:
        b_.CreateBr(blocks_[static_cast<size_t>(inst.targets[0])]);
        return;
      case Op::branch:
        return branch(is_true(get(inst, 0)), blocks_[static_cast<size_t>(inst.targets[0])],
                      blocks_[static_cast<size_t>(inst.targets[1])]);
      case Op::ret:
        b_.CreateRet(result(get(inst, 0), false));
        return;
      case Op::tail_call:
        return end_in(call_body(inst));
      case Op::tail_invoke:
        return end_in(call_closure(inst, true));
      case Op::no_match:
        b_.CreateBr(fatal(
            inst, RELAY_NATIVE_NO_MATCH,
            {i64(inst.where), i64(inst.text + 1), inst.operands.empty() ? i64(0) : get(inst, 0)}));
        return;
    }
  }

  const hc::Function& f_;
  std::vector<llvm::AllocaInst*> slots_;
  std::vector<BasicBlock*> blocks_;
  BasicBlock* failed_ = nullptr;  // returns a failure
  // By a block of a failure and a word: releases the word and goes on there.
  std::map<std::pair<BasicBlock*, LocalId>, BasicBlock*> failures_;
};

llvm::Function* declare(HostModule& m, llvm::FunctionType* type, const std::string& name,
                        unsigned convention) {
  auto* f = llvm::Function::Create(type, llvm::Function::InternalLinkage, name, m.module);
  f->setCallingConv(convention);
  f->addFnAttr(llvm::Attribute::NoUnwind);
  f->addFnAttr("target-cpu", m.target.cpu);
  f->addFnAttr("target-features", code_features(m.target));
  // A frame that is larger than a page touches each of its pages, so none is beyond the guard of the stack.
  f->addFnAttr("probe-stack", "inline-asm");
  // What is folded has the values that the mode of the run gives.
  if (!m.target.keeps_denormals) f->addFnAttr("denormal-fp-math", "preserve-sign,preserve-sign");
  return f;
}

void declare_functions(HostModule& m) {
  llvm::LLVMContext& context = m.module.getContext();
  auto* pointer = llvm::PointerType::get(context, 0);
  auto* i64 = llvm::Type::getInt64Ty(context);
  const std::vector<bool> plain = hc::plain_functions(m.program);
  for (size_t n = 0; n < plain.size(); ++n) {
    const hc::Function& f = m.program.functions[n];
    const bool entry = f.kind == hc::FunctionKind::entry;
    std::vector<llvm::Type*> types{pointer};
    if (entry) {
      types.push_back(pointer);
    } else {
      types.resize(1 + f.signature.params.size(), i64);
    }
    llvm::CallingConv::ID convention = m.calls.repeating;
    if (plain[n]) convention = llvm::CallingConv::Fast;
    if (entry) convention = llvm::CallingConv::C;
    const char* kind = entry ? "entry" : f.kind == hc::FunctionKind::body ? "body" : "closure";
    m.functions.push_back(
        declare(m, llvm::FunctionType::get(m.result, types, false),
                "relay_native_" + std::string(kind) + "_" + std::to_string(f.index), convention));
  }
}

void build_shared(HostModule& m) {
  llvm::LLVMContext& context = m.module.getContext();
  auto* pointer = llvm::PointerType::get(context, 0);
  auto* i64 = llvm::Type::getInt64Ty(context);
  auto* none = llvm::Type::getVoidTy(context);
  m.release_object = declare(m, llvm::FunctionType::get(none, {pointer, i64}, false),
                             "relay_native_release", llvm::CallingConv::Fast);
  m.field_of_object = declare(
      m, llvm::FunctionType::get(none, {i64, pointer, i64, llvm::Type::getInt1Ty(context)}, false),
      "relay_native_field", llvm::CallingConv::Fast);
  auto question = [&](const char* name, size_t helper) {
    llvm::Function* f =
        declare(m, llvm::FunctionType::get(i64, {pointer}, false), name, m.calls.questions);
    SharedBuilder(m, f, f->getArg(0)).build_question(helper);
    return f;
  };
  m.more_stack = question("relay_native_more_stack", RELAY_HELPER(more_stack));
  m.out_of_fuel = question("relay_native_out_of_fuel", RELAY_HELPER(out_of_fuel));
  SharedBuilder(m, m.release_object, m.release_object->getArg(0))
      .build_release(m.release_object->getArg(1));
  llvm::Function* f = m.field_of_object;
  SharedBuilder(m, f, nullptr).build_field(f->getArg(0), f->getArg(1), f->getArg(2), f->getArg(3));
}

llvm::GlobalVariable* table_of(HostModule& m, const std::string& name,
                               const std::vector<llvm::Constant*>& entries) {
  auto* type =
      llvm::ArrayType::get(llvm::PointerType::get(m.module.getContext(), 0), entries.size());
  auto* out = define_constant(m.module, name, llvm::ConstantArray::get(type, entries));
  out->setLinkage(llvm::GlobalValue::InternalLinkage);
  return out;
}

void build_closure_tables(HostModule& m) {
  std::map<size_t, std::vector<llvm::Constant*>> tables;
  auto* null = llvm::Constant::getNullValue(llvm::PointerType::get(m.module.getContext(), 0));
  for (size_t i = 0; i < m.program.functions.size(); ++i) {
    const hc::Function& f = m.program.functions[i];
    if (f.kind != hc::FunctionKind::closure) continue;
    auto& table = tables[f.signature.params.size() - 2];
    table.resize(std::max(table.size(), static_cast<size_t>(f.index) + 1), null);
    table[static_cast<size_t>(f.index)] = m.functions[i];
  }
  for (const auto& [args, entries] : tables) {
    m.closures[args] = table_of(m, "relay_native_closures_" + std::to_string(args), entries);
  }
}

void build_descriptor(HostModule& m) {
  llvm::LLVMContext& context = m.module.getContext();
  auto* i32 = llvm::Type::getInt32Ty(context);
  auto* i64 = llvm::Type::getInt64Ty(context);
  std::vector<llvm::Constant*> entries;
  for (int32_t f : m.program.entries) entries.push_back(m.functions[static_cast<size_t>(f)]);
  auto* table = table_of(m, "relay_native_functions", entries);
  auto* type = llvm::StructType::get(context, {i32, i32, i64, llvm::PointerType::get(context, 0)});
  define_constant(
      m.module, RELAY_NATIVE_DESCRIPTOR_SYMBOL,
      llvm::ConstantStruct::get(type, {llvm::ConstantInt::get(i32, RELAY_NATIVE_DESCRIPTOR_MAGIC),
                                       llvm::ConstantInt::get(i32, RELAY_NATIVE_ABI_VERSION),
                                       llvm::ConstantInt::get(i64, entries.size()), table}));
}

}  // namespace

const LlvmHostCalls* host_calls_of(std::string_view arch) {
  const LlvmArchitecture* found = find_llvm_architecture(arch);
  return found == nullptr ? nullptr : found->host_calls;
}

void build_host_functions(llvm::Module& module, const hostcode::Program& program,
                          const Target& target) {
  auto* i64 = llvm::Type::getInt64Ty(module.getContext());
  HostModule m{module,
               program,
               target,
               *host_calls_of(target.arch),
               llvm::StructType::get(module.getContext(), {i64, i64}),
               {},
               nullptr,
               nullptr,
               nullptr,
               nullptr,
               {}};
  declare_functions(m);
  build_shared(m);
  build_closure_tables(m);
  for (size_t i = 0; i < program.functions.size(); ++i) {
    FunctionBuilder(m, program.functions[i], m.functions[i]).build();
  }
  build_descriptor(m);
}

}  // namespace relay::codegen
