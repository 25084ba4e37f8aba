#include "codegen/llvm/kernel_builder.h"

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/IntrinsicsX86.h>

#include <bit>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "base/diagnostic_codes.h"
#include "codegen/llvm/vector_math.h"
#include "node/walk.h"
#include "runtime/core/kernel_abi.h"
#include "tir/intrinsics.h"

namespace relay::codegen {
namespace {

using llvm::BasicBlock;
using llvm::Value;
using namespace tir;  // NOLINT: this file is about nothing else

// What a function keeps on the stack, at most; further buffers come from the runtime's scratch
// memory. Threads of the pool may have stacks as small as 256 KB.
constexpr int64_t kMaxStackBytes = 32 * 1024;

[[noreturn]] void unsupported(const std::string& kernel, const std::string& what) {
  throw UserError(Diagnostic(codes::codegen_failed, {}, "kernel " + kernel + ": " + what));
}

class KernelBuilder {
 public:
  KernelBuilder(llvm::Module& module, const PrimFuncNode& f, const Target& target)
      : module_(module), context_(module.getContext()), b_(context_), f_(f), target_(target) {
    llvm::FastMathFlags flags;
    flags.setAllowContract(true);
    b_.setFastMathFlags(flags);
  }

  void build() {
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
    for (size_t i = 0; i < f_.dims.size(); ++i) {
      vars_[f_.dims[i].get()] = body->getArg(static_cast<unsigned>(f_.params.size() + i));
    }
    ctx_ = body->getArg(static_cast<unsigned>(types.size() - 1));
    begin_function(body);
    statement(f_.body.get());
    finish_function();
    build_entry(body);
  }

 private:
  // ---- Functions

  // The inputs that may be the output's memory, and that output.
  void find_shared() {
    auto names = f_.attrs.find("in_place");
    if (names == f_.attrs.end()) return;
    shared_.insert(f_.params.back().get());
    for (const Buffer& b : f_.params) {
      if ((',' + names->second + ',').find(',' + b->name + ',') != std::string::npos) {
        shared_.insert(b.get());
      }
    }
  }

  llvm::Function* make_function(const std::string& name, const std::vector<llvm::Type*>& types,
                                bool internal) {
    auto* type = llvm::FunctionType::get(b_.getInt32Ty(), types, false);
    auto* f = llvm::Function::Create(
        type, internal ? llvm::Function::InternalLinkage : llvm::Function::ExternalLinkage, name,
        module_);
    f->addFnAttr("target-cpu", target_.cpu);
    f->addFnAttr("target-features", target_.features);
    f->addFnAttr("prefer-vector-width", std::to_string(target_.vector_bits));
    f->addFnAttr("min-legal-vector-width", std::to_string(target_.vector_bits));
    f->addFnAttr(llvm::Attribute::NoUnwind);
    f->addFnAttr("no-trapping-math", "true");
    return f;
  }

  void begin_function(llvm::Function* f) {
    function_ = f;
    stack_bytes_ = 0;
    cache_.clear();
    cached_.clear();
    entry_ = BasicBlock::Create(context_, "entry", f);
    auto* start = BasicBlock::Create(context_, "start", f);
    exit_ = BasicBlock::Create(context_, "exit");
    b_.SetInsertPoint(exit_);
    code_ = b_.CreatePHI(b_.getInt32Ty(), 2);
    b_.CreateRet(code_);
    b_.SetInsertPoint(start);
    start_ = start;
  }

  void finish_function() {
    fail_with(b_.getInt32(0));
    exit_->insertInto(function_);
    b_.SetInsertPoint(entry_);
    b_.CreateBr(start_);
  }

  // Leaves the function with a code; the current block ends.
  void fail_with(Value* code) {
    code_->addIncoming(code, b_.GetInsertBlock());
    b_.CreateBr(exit_);
  }

  // Goes on only when `ok`.
  void require(Value* ok, Value* code) {
    auto* next = BasicBlock::Create(context_, "ok", function_);
    code_->addIncoming(code, b_.GetInsertBlock());
    b_.CreateCondBr(ok, next, exit_);
    b_.SetInsertPoint(next);
  }

  void build_entry(llvm::Function* body) {
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
    b_.CreateRet(b_.CreateCall(body, args));
  }

  // ---- Types

  static bool is_half(DType d) { return d.is_bfloat16() || d.is_float(16); }

  // 16-bit floats are computed in float32 and rounded after each operation.
  llvm::Type* value_type(DType d) {
    llvm::Type* t = nullptr;
    if (d.is_bool()) {
      t = b_.getInt1Ty();
    } else if (d.is_integer()) {
      t = b_.getIntNTy(d.bits);
    } else {
      t = d.bits == 64 ? b_.getDoubleTy() : b_.getFloatTy();
    }
    return d.lanes > 1 ? llvm::FixedVectorType::get(t, d.lanes) : t;
  }
  llvm::Type* memory_type(DType d) {
    llvm::Type* t = d.is_bool()       ? b_.getInt8Ty()
                    : d.is_bfloat16() ? b_.getInt16Ty()
                    : d.is_float(16)  ? (target_.has_f16c ? b_.getHalfTy() : b_.getInt16Ty())
                                      : value_type(d.element());
    return d.lanes > 1 ? llvm::FixedVectorType::get(t, d.lanes) : t;
  }
  llvm::Type* lanes_of(llvm::Type* element, llvm::Type* like) {
    auto* v = llvm::dyn_cast<llvm::FixedVectorType>(like);
    return v == nullptr ? element : llvm::FixedVectorType::get(element, v->getNumElements());
  }
  Value* constant_int(llvm::Type* type, int64_t v) {
    return llvm::ConstantInt::get(type, static_cast<uint64_t>(v), true);
  }

  Value* from_memory(DType d, Value* v) {
    if (d.is_bool()) return b_.CreateICmpNE(v, llvm::Constant::getNullValue(v->getType()));
    if (d.is_bfloat16()) {
      Value* wide = b_.CreateZExt(v, lanes_of(b_.getInt32Ty(), v->getType()));
      return b_.CreateBitCast(b_.CreateShl(wide, 16), lanes_of(b_.getFloatTy(), v->getType()));
    }
    if (d.is_float(16)) {
      if (target_.has_f16c) return b_.CreateFPExt(v, lanes_of(b_.getFloatTy(), v->getType()));
      return half_to_float(v);
    }
    return v;
  }
  Value* to_memory(DType d, Value* v) {
    if (d.is_bool()) return b_.CreateZExt(v, lanes_of(b_.getInt8Ty(), v->getType()));
    if (d.is_bfloat16()) return float_to_bfloat(v);
    if (d.is_float(16)) {
      if (target_.has_f16c) return b_.CreateFPTrunc(v, lanes_of(b_.getHalfTy(), v->getType()));
      return float_to_half(v);
    }
    return v;
  }
  // What the value is after it has been stored in its dtype.
  Value* rounded(DType d, Value* v) { return is_half(d) ? from_memory(d, to_memory(d, v)) : v; }

  Value* float_to_bfloat(Value* v) {
    llvm::Type* i32 = lanes_of(b_.getInt32Ty(), v->getType());
    Value* bits = b_.CreateBitCast(v, i32);
    Value* odd = b_.CreateAnd(b_.CreateLShr(bits, 16), 1);
    Value* up = b_.CreateAdd(b_.CreateAdd(bits, constant_int(i32, 0x7fff)), odd);
    Value* nan = b_.CreateFCmpUNO(v, v);
    Value* quiet = b_.CreateOr(bits, constant_int(i32, 0x400000));
    Value* result = b_.CreateLShr(b_.CreateSelect(nan, quiet, up), 16);
    return b_.CreateTrunc(result, lanes_of(b_.getInt16Ty(), v->getType()));
  }

  // Without hardware: the exponent is moved by a multiplication, which also takes care of
  // denormals.
  Value* half_to_float(Value* v) {
    llvm::Type* i32 = lanes_of(b_.getInt32Ty(), v->getType());
    llvm::Type* f32 = lanes_of(b_.getFloatTy(), v->getType());
    Value* wide = b_.CreateZExt(v, i32);
    Value* magnitude = b_.CreateShl(b_.CreateAnd(wide, 0x7fff), 13);
    Value* sign = b_.CreateShl(b_.CreateAnd(wide, 0x8000), 16);
    Value* scaled =
        b_.CreateFMul(b_.CreateBitCast(magnitude, f32), llvm::ConstantFP::get(f32, 0x1p112));
    Value* special = b_.CreateICmpUGE(magnitude, constant_int(i32, 0x7c00 << 13));
    Value* bits = b_.CreateSelect(special, b_.CreateOr(magnitude, constant_int(i32, 0x7f800000)),
                                  b_.CreateBitCast(scaled, i32));
    return b_.CreateBitCast(b_.CreateOr(bits, sign), f32);
  }
  Value* float_to_half(Value* v) {
    llvm::Type* i32 = lanes_of(b_.getInt32Ty(), v->getType());
    llvm::Type* f32 = lanes_of(b_.getFloatTy(), v->getType());
    Value* bits = b_.CreateBitCast(v, i32);
    Value* sign = b_.CreateAnd(bits, constant_int(i32, 0x80000000u));
    Value* magnitude = b_.CreateXor(bits, sign);
    // Normal results round to even in the integer domain; small ones by adding a magic float.
    Value* odd = b_.CreateAnd(b_.CreateLShr(magnitude, 13), 1);
    Value* normal = b_.CreateAdd(
        b_.CreateAdd(magnitude, constant_int(i32, (int64_t{15 - 127} << 23) + 0xfff)), odd);
    normal = b_.CreateLShr(normal, 13);
    Value* magic = llvm::ConstantFP::get(f32, 0.5);
    Value* tiny =
        b_.CreateSub(b_.CreateBitCast(b_.CreateFAdd(b_.CreateBitCast(magnitude, f32), magic), i32),
                     constant_int(i32, 0x3f000000));
    Value* result =
        b_.CreateSelect(b_.CreateICmpULT(magnitude, constant_int(i32, 113 << 23)), tiny, normal);
    Value* big = b_.CreateICmpUGE(magnitude, constant_int(i32, (127 + 16) << 23));
    Value* nan = b_.CreateICmpUGT(magnitude, constant_int(i32, 0x7f800000));
    result = b_.CreateSelect(
        big, b_.CreateSelect(nan, constant_int(i32, 0x7e00), constant_int(i32, 0x7c00)), result);
    result = b_.CreateOr(result, b_.CreateLShr(sign, 16));
    return b_.CreateTrunc(result, lanes_of(b_.getInt16Ty(), v->getType()));
  }

  // ---- Memory

  Value* buffer(const Buffer& buf) {
    auto it = buffers_.find(buf.get());
    RELAY_CHECK(it != buffers_.end(), "buffer " + buf->name + " has no memory");
    return it->second;
  }

  llvm::Align align_of(const Buffer& buf) { return llvm::Align(alignment_.at(buf.get())); }

  Value* address(const Buffer& buf, Value* index) {
    return b_.CreateInBoundsGEP(memory_type(buf->dtype.element()), buffer(buf), index);
  }

  static const RampNode* unit_ramp(const PrimExpr& index) {
    auto* r = as<RampNode>(index);
    return r != nullptr && as_int(r->stride) == 1 ? r : nullptr;
  }

  const PrimExpr& flat_index(const std::vector<PrimExpr>& indices, const Buffer& buf) {
    if (indices.empty()) {
      static const PrimExpr zero = index(0);
      return zero;
    }
    RELAY_CHECK(indices.size() == 1, "buffer " + buf->name + " is not flat");
    return indices[0];
  }

  Value* lane_mask(const PrimExpr& predicate, int lanes) {
    Value* mask = expr(predicate);
    return mask->getType()->isVectorTy() ? mask
                                         : b_.CreateVectorSplat(static_cast<unsigned>(lanes), mask);
  }

  // The lanes in which a load reads: its predicate's, within those of the enclosing Select's side.
  // Null: all.
  Value* load_mask(const PrimExpr& predicate, int lanes) {
    Value* mask = nullptr;
    if (predicate) mask = lanes == 1 ? expr(predicate) : lane_mask(predicate, lanes);
    if (side_mask_ == nullptr) return mask;
    Value* side = side_mask_;
    auto* type = llvm::cast<llvm::FixedVectorType>(side->getType());
    if (static_cast<int>(type->getNumElements()) != lanes) {
      side = b_.CreateOrReduce(side);
      if (lanes > 1) side = b_.CreateVectorSplat(static_cast<unsigned>(lanes), side);
    }
    return mask == nullptr ? side : b_.CreateAnd(mask, side);
  }

  Value* load(const LoadNode& l) {
    const PrimExpr& at = flat_index(l.indices, l.buffer);
    DType element = l.buffer->dtype.element();
    int lanes = l.dtype.lanes;
    llvm::Align align = align_of(l.buffer);
    auto read = [&](Value* index) {
      Value* p = address(l.buffer, index);
      return from_memory(element, b_.CreateAlignedLoad(memory_type(element), p, align));
    };
    Value* mask = load_mask(l.predicate, lanes);
    if (lanes == 1) {
      Value* index = expr(at);
      if (mask == nullptr) return read(index);
      return guarded(mask, value_type(element), [&] { return read(index); });
    }
    llvm::Type* type = memory_type(element.with_lanes(lanes));
    if (auto* r = unit_ramp(at)) {
      Value* p = address(l.buffer, expr(r->base));
      if (mask == nullptr) return from_memory(element, b_.CreateAlignedLoad(type, p, align));
      return from_memory(
          element, b_.CreateMaskedLoad(type, p, align, mask, llvm::Constant::getNullValue(type)));
    }
    auto* r = as<RampNode>(at);
    if (r != nullptr && mask == nullptr && as_int(r->stride) == -1) {
      Value* first = b_.CreateSub(expr(r->base), b_.getInt64(static_cast<uint64_t>(lanes - 1)));
      return b_.CreateVectorReverse(
          from_memory(element, b_.CreateAlignedLoad(type, address(l.buffer, first), align)));
    }
    if (auto* s = as<BroadcastNode>(at); s != nullptr && mask == nullptr) {
      return b_.CreateVectorSplat(static_cast<unsigned>(lanes), read(expr(s->value)));
    }
    // Lane by lane: gathers are no faster on the machines at hand and need a mask of their own.
    std::vector<Value*> indices = lane_indices(at, lanes);
    Value* out = llvm::PoisonValue::get(value_type(element.with_lanes(lanes)));
    for (int i = 0; i < lanes; ++i) {
      auto one = [&] { return read(indices[static_cast<size_t>(i)]); };
      Value* v = mask == nullptr ? one()
                                 : guarded(b_.CreateExtractElement(mask, static_cast<uint64_t>(i)),
                                           value_type(element), one);
      out = b_.CreateInsertElement(out, v, static_cast<uint64_t>(i));
    }
    return out;
  }

  // The index of each lane, as scalars.
  std::vector<Value*> lane_indices(const PrimExpr& at, int lanes) {
    std::vector<Value*> out;
    auto* r = as<RampNode>(at);
    Value* base = r != nullptr ? expr(r->base) : expr(at);
    Value* stride = r != nullptr ? expr(r->stride) : nullptr;
    for (int i = 0; i < lanes; ++i) {
      if (r != nullptr) {
        out.push_back(b_.CreateAdd(base, b_.CreateMul(stride, constant_int(base->getType(), i))));
      } else if (base->getType()->isVectorTy()) {
        out.push_back(b_.CreateExtractElement(base, static_cast<uint64_t>(i)));
      } else {
        out.push_back(base);
      }
    }
    return out;
  }

  void store(const StoreNode& s) {
    const PrimExpr& at = flat_index(s.indices, s.buffer);
    DType element = s.buffer->dtype.element();
    int lanes = s.value->dtype.lanes;
    llvm::Align align = align_of(s.buffer);
    if (lanes == 1) {
      auto write = [&] {
        Value* v = to_memory(element, expr(s.value));
        b_.CreateAlignedStore(v, address(s.buffer, expr(at)), align);
      };
      if (s.predicate) {
        when(expr(s.predicate), write);
      } else {
        write();
      }
      return;
    }
    Value* v = to_memory(element, expr(s.value));
    if (auto* r = unit_ramp(at)) {
      Value* p = address(s.buffer, expr(r->base));
      if (s.predicate) {
        b_.CreateMaskedStore(v, p, align, lane_mask(s.predicate, lanes));
      } else {
        b_.CreateAlignedStore(v, p, align);
      }
      return;
    }
    std::vector<Value*> indices = lane_indices(at, lanes);
    Value* mask = s.predicate ? lane_mask(s.predicate, lanes) : nullptr;
    for (int i = 0; i < lanes; ++i) {
      uint64_t lane = static_cast<uint64_t>(i);
      auto write = [&] {
        b_.CreateAlignedStore(b_.CreateExtractElement(v, lane), address(s.buffer, indices[lane]),
                              align);
      };
      if (mask != nullptr) {
        when(b_.CreateExtractElement(mask, lane), write);
      } else {
        write();
      }
    }
  }

  // ---- Values computed so far
  // A node that occurs several times in one statement is computed once, so that a chain of n
  // operators that use their operand twice costs n and not 2^n. What is computed in a conditional
  // part is forgotten at its end; all is forgotten between statements, because memory changes.

  void forget(size_t mark) {
    for (; cached_.size() > mark; cached_.pop_back()) cache_.erase(cached_.back());
  }

  // ---- Control

  template <class F>
  void when(Value* cond, F&& body) {
    auto* then_block = BasicBlock::Create(context_, "then", function_);
    auto* next = BasicBlock::Create(context_, "next", function_);
    b_.CreateCondBr(cond, then_block, next);
    b_.SetInsertPoint(then_block);
    size_t mark = cached_.size();
    body();
    forget(mark);
    b_.CreateBr(next);
    b_.SetInsertPoint(next);
  }

  // The value when `cond`, else zero; the value is computed only then.
  template <class F>
  Value* guarded(Value* cond, llvm::Type* type, F&& body) {
    auto* from = b_.GetInsertBlock();
    auto* then_block = BasicBlock::Create(context_, "guarded", function_);
    auto* next = BasicBlock::Create(context_, "next", function_);
    b_.CreateCondBr(cond, then_block, next);
    b_.SetInsertPoint(then_block);
    size_t mark = cached_.size();
    Value* v = body();
    forget(mark);
    auto* end = b_.GetInsertBlock();
    b_.CreateBr(next);
    b_.SetInsertPoint(next);
    auto* phi = b_.CreatePHI(type, 2);
    phi->addIncoming(v, end);
    phi->addIncoming(llvm::Constant::getNullValue(type), from);
    return phi;
  }

  // The other statements of a sequence come after one that nests, so sequences are loops.
  void statement(const StmtNode* s) {
    forget(0);
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
        auto* then_block = BasicBlock::Create(context_, "then", function_);
        auto* else_block = i.else_body ? BasicBlock::Create(context_, "else", function_) : nullptr;
        auto* next = BasicBlock::Create(context_, "next", function_);
        b_.CreateCondBr(cond, then_block, else_block != nullptr ? else_block : next);
        b_.SetInsertPoint(then_block);
        statement(i.then_body.get());
        b_.CreateBr(next);
        if (else_block != nullptr) {
          b_.SetInsertPoint(else_block);
          statement(i.else_body.get());
          b_.CreateBr(next);
        }
        b_.SetInsertPoint(next);
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

  void loop(const ForNode& l) {
    if (l.loop_kind == ForKind::Parallel && !in_parallel_) {
      parallel_loop(l);
      return;
    }
    if (l.loop_kind == ForKind::ThreadBound) unsupported(f_.name, "GPU threads on a CPU");
    Value* begin = expr(l.min);
    Value* end = b_.CreateNSWAdd(begin, expr(l.extent));
    counted_loop(l, begin, end);
  }

  // A loop marked so goes from its end to its beginning.
  void counted_loop(const ForNode& l, Value* begin, Value* end) {
    auto order = l.annotations.find("order");
    bool backward = order != l.annotations.end() && order->second == "backward";
    auto body = [&] { statement(l.body.get()); };
    if (!backward) {
      counted_loop(l.var, begin, end, body);
      return;
    }
    Value* last =
        b_.CreateNSWSub(b_.CreateNSWAdd(begin, end), llvm::ConstantInt::get(begin->getType(), 1));
    Var count = tir::var(l.var->name + "_back", l.var->dtype);
    counted_loop(count, begin, end, [&] {
      vars_[l.var.get()] = b_.CreateNSWSub(last, vars_.at(count.get()));
      body();
      vars_.erase(l.var.get());
    });
  }

  template <class F>
  void counted_loop(const Var& var, Value* begin, Value* end, F&& body) {
    auto* before = b_.GetInsertBlock();
    auto* header = BasicBlock::Create(context_, var->name, function_);
    auto* next = BasicBlock::Create(context_, "next", function_);
    b_.CreateCondBr(b_.CreateICmpSLT(begin, end), header, next);
    b_.SetInsertPoint(header);
    auto* i = b_.CreatePHI(begin->getType(), 2, var->name);
    i->addIncoming(begin, before);
    vars_[var.get()] = i;
    body();
    vars_.erase(var.get());
    Value* step = b_.CreateNSWAdd(i, llvm::ConstantInt::get(i->getType(), 1));
    i->addIncoming(step, b_.GetInsertBlock());
    b_.CreateCondBr(b_.CreateICmpSLT(step, end), header, next);
    b_.SetInsertPoint(next);
  }

  // The body becomes a function of its own: entry (void* env, begin, end) unpacks what it needs
  // from the environment and calls the inner one, whose pointers are known not to alias.
  void parallel_loop(const ForNode& l) {
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
    Value* min = expr(l.min);
    b_.CreateStore(min, b_.CreateStructGEP(env_type, env, field++));
    b_.CreateStore(ctx_, b_.CreateStructGEP(env_type, env, field));
    Value* extent = expr(l.extent);
    auto* callback_type = llvm::FunctionType::get(
        b_.getInt32Ty(), {b_.getPtrTy(), b_.getPtrTy(), b_.getPtrTy(), b_.getInt64Ty()}, false);
    Value* callback = b_.CreateLoad(
        b_.getPtrTy(),
        b_.CreateConstGEP1_64(b_.getInt8Ty(), ctx_, offsetof(relay_kernel_context, parallel_for)));
    Value* code = b_.CreateCall(callback_type, callback, {ctx_, outer, env, extent});
    require(b_.CreateICmpEQ(code, b_.getInt32(0)), code);

    // The functions, with this one's state put aside.
    auto saved = std::make_tuple(function_, entry_, start_, exit_, code_, ctx_, buffers_, vars_,
                                 stack_bytes_, b_.saveIP());
    b_.SetInsertPoint(BasicBlock::Create(context_, "entry", outer));
    std::vector<Value*> args;
    for (unsigned i = 0; i < env_types.size(); ++i) {
      args.push_back(
          b_.CreateLoad(env_types[i], b_.CreateStructGEP(env_type, outer->getArg(0), i)));
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
    Value* begin = b_.CreateNSWAdd(first, inner->getArg(arg++));
    Value* end = b_.CreateNSWAdd(first, inner->getArg(arg));
    counted_loop(l, begin, end);
    finish_function();
    forget(0);
    in_parallel_ = false;
    std::tie(function_, entry_, start_, exit_, code_, ctx_, buffers_, vars_, stack_bytes_,
             std::ignore) = saved;
    b_.restoreIP(std::get<9>(saved));
  }

  // Buffers and variables that a loop uses and does not define, in order of first use.
  void free_values(const ForNode& l, std::vector<const Node*>& pointers,
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

  // Memory in the function's entry block, so that it exists once and can become registers.
  Value* stack_slot(llvm::Type* type, uint64_t align = 8) {
    llvm::IRBuilder<> at(entry_, entry_->end());
    auto* slot = at.CreateAlloca(type);
    slot->setAlignment(llvm::Align(align));
    return slot;
  }

  Value* scratch(llvm::IRBuilder<>& at, Value* bytes) {
    auto* type = llvm::FunctionType::get(at.getPtrTy(), {at.getPtrTy(), at.getInt64Ty()}, false);
    Value* callback = at.CreateLoad(
        at.getPtrTy(),
        at.CreateConstGEP1_64(at.getInt8Ty(), ctx_, offsetof(relay_kernel_context, scratch)));
    auto* call = at.CreateCall(type, callback, {ctx_, bytes});
    call->addRetAttr(llvm::Attribute::NoAlias);
    return call;
  }

  void allocate(const AllocateNode& a) {
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
    bool tile = a.buffer->scope == Scope::Register && bytes <= kMaxStackBytes;
    bool on_stack = constant && (tile || stack_bytes_ + bytes <= kMaxStackBytes);
    if (on_stack) {
      stack_bytes_ += bytes;
      buffers_[a.buffer.get()] = stack_slot(
          llvm::ArrayType::get(element, static_cast<uint64_t>(std::max<int64_t>(elements, 1))), 64);
    } else {
      Value* memory = nullptr;
      if (constant) {
        // In the entry block, so that a loop around the allocation asks once.
        llvm::IRBuilder<> at(entry_, entry_->end());
        memory = scratch(at, at.getInt64(static_cast<uint64_t>(bytes)));
      } else {
        Value* size = b_.getInt64(a.buffer->dtype.element().bytes());
        for (const PrimExpr& d : a.buffer->shape) size = b_.CreateMul(size, expr(d));
        memory = scratch(b_, size);
      }
      require(b_.CreateIsNotNull(memory), b_.getInt32(RELAY_KERNEL_OUT_OF_MEMORY));
      buffers_[a.buffer.get()] = memory;
    }
    alignment_[a.buffer.get()] = a.buffer->dtype.element().bytes();
    statement(a.body.get());
    buffers_.erase(a.buffer.get());
  }

  // ---- Expressions

  Value* expr(const PrimExpr& e) { return expr(*e.get()); }

  Value* expr(const PrimExprNode& e) {
    switch (e.kind()) {
      case tir::ExprKind::Var:
      case tir::ExprKind::IntImm:
      case tir::ExprKind::FloatImm:
        return compute(e);
      default:
        break;
    }
    if (auto it = cache_.find(&e); it != cache_.end()) return it->second;
    Value* v = compute(e);
    if (cache_.emplace(&e, v).second) cached_.push_back(&e);
    return v;
  }

  Value* compute(const PrimExprNode& e) {
    switch (e.kind()) {
      case tir::ExprKind::Var: {
        auto it = vars_.find(&e);
        RELAY_CHECK(it != vars_.end(),
                    "variable " + static_cast<const tir::VarNode&>(e).name + " is not bound");
        return it->second;
      }
      case tir::ExprKind::IntImm:
        return constant_int(value_type(e.dtype), static_cast<const IntImmNode&>(e).value);
      case tir::ExprKind::FloatImm:
        return llvm::ConstantFP::get(value_type(e.dtype),
                                     static_cast<const FloatImmNode&>(e).value);
      case tir::ExprKind::Binary:
        return binary(static_cast<const BinaryNode&>(e));
      case tir::ExprKind::Not:
        return b_.CreateNot(expr(static_cast<const NotNode&>(e).a));
      case tir::ExprKind::Select:
        return select(static_cast<const SelectNode&>(e));
      case tir::ExprKind::Cast:
        return cast_value(static_cast<const CastNode&>(e));
      case tir::ExprKind::Call:
        return call(static_cast<const tir::CallNode&>(e));
      case tir::ExprKind::Load:
        return load(static_cast<const LoadNode&>(e));
      case tir::ExprKind::Ramp: {
        auto& r = static_cast<const RampNode&>(e);
        unsigned lanes = e.dtype.lanes;
        Value* base = b_.CreateVectorSplat(lanes, expr(r.base));
        Value* stride = b_.CreateVectorSplat(lanes, expr(r.stride));
        llvm::SmallVector<llvm::Constant*, 16> steps;
        for (unsigned i = 0; i < lanes; ++i) {
          steps.push_back(llvm::ConstantInt::get(value_type(e.dtype.element()), i));
        }
        return b_.CreateAdd(base, b_.CreateMul(stride, llvm::ConstantVector::get(steps)));
      }
      case tir::ExprKind::Broadcast:
        return b_.CreateVectorSplat(e.dtype.lanes,
                                    expr(static_cast<const BroadcastNode&>(e).value));
      case tir::ExprKind::Let: {
        auto& l = static_cast<const tir::LetNode&>(e);
        vars_[l.var.get()] = expr(l.value);
        Value* v = expr(l.body);
        vars_.erase(l.var.get());
        return v;
      }
      default:
        unsupported(f_.name, "expression " + std::string(e.info().name) + " is not lowered");
    }
  }

  Value* binary(const BinaryNode& n) {
    DType d = n.a->dtype;
    Value* a = expr(n.a);
    Value* b = expr(n.b);
    bool is_float = d.is_floating();
    bool is_signed = d.is_int();
    switch (n.op) {
      case BinaryOp::Add:
        return is_float ? rounded(d, b_.CreateFAdd(a, b))
                        : b_.CreateAdd(a, b, "", false, is_index(d));
      case BinaryOp::Sub:
        return is_float ? rounded(d, b_.CreateFSub(a, b))
                        : b_.CreateSub(a, b, "", false, is_index(d));
      case BinaryOp::Mul:
        return is_float ? rounded(d, b_.CreateFMul(a, b))
                        : b_.CreateMul(a, b, "", false, is_index(d));
      case BinaryOp::Div:
        return is_float    ? rounded(d, b_.CreateFDiv(a, b))
               : is_signed ? safe_div(a, b)
                           : b_.CreateUDiv(a, tame_divisor(a, b));
      case BinaryOp::Mod:
        return is_float    ? rounded(d, float_call("fmod", d, {a, b}))
               : is_signed ? safe_rem(a, b)
                           : b_.CreateURem(a, tame_divisor(a, b));
      case BinaryOp::FloorDiv: {
        if (is_float) return rounded(d, unary(llvm::Intrinsic::floor, b_.CreateFDiv(a, b)));
        if (!is_signed) return b_.CreateUDiv(a, tame_divisor(a, b));
        if (auto power = log2_of(n.b)) return b_.CreateAShr(a, constant_int(a->getType(), *power));
        Value* q = safe_div(a, b);
        return b_.CreateSub(q, b_.CreateZExt(rounds_down(a, b), a->getType()));
      }
      case BinaryOp::FloorMod: {
        if (is_float) {
          Value* r = float_call("fmod", d, {a, b});
          Value* zero = llvm::Constant::getNullValue(r->getType());
          Value* other_sign = b_.CreateXor(b_.CreateFCmpOLT(r, zero), b_.CreateFCmpOLT(b, zero));
          Value* up = b_.CreateAnd(b_.CreateFCmpONE(r, zero), other_sign);
          return rounded(d, b_.CreateSelect(up, b_.CreateFAdd(r, b), r));
        }
        if (!is_signed) return b_.CreateURem(a, tame_divisor(a, b));
        if (auto power = log2_of(n.b))
          return b_.CreateAnd(a, constant_int(a->getType(), (int64_t{1} << *power) - 1));
        Value* r = safe_rem(a, b);
        return b_.CreateAdd(
            r, b_.CreateSelect(rounds_down(a, b), b, llvm::Constant::getNullValue(b->getType())));
      }
      case BinaryOp::Min:
      case BinaryOp::Max:
        return extreme(n.op == BinaryOp::Min, d, a, b);
      case BinaryOp::Eq:
        return is_float ? b_.CreateFCmpOEQ(a, b) : b_.CreateICmpEQ(a, b);
      case BinaryOp::Ne:
        return is_float ? b_.CreateFCmpUNE(a, b) : b_.CreateICmpNE(a, b);
      case BinaryOp::Lt:
        return is_float    ? b_.CreateFCmpOLT(a, b)
               : is_signed ? b_.CreateICmpSLT(a, b)
                           : b_.CreateICmpULT(a, b);
      case BinaryOp::Le:
        return is_float    ? b_.CreateFCmpOLE(a, b)
               : is_signed ? b_.CreateICmpSLE(a, b)
                           : b_.CreateICmpULE(a, b);
      case BinaryOp::Gt:
        return is_float    ? b_.CreateFCmpOGT(a, b)
               : is_signed ? b_.CreateICmpSGT(a, b)
                           : b_.CreateICmpUGT(a, b);
      case BinaryOp::Ge:
        return is_float    ? b_.CreateFCmpOGE(a, b)
               : is_signed ? b_.CreateICmpSGE(a, b)
                           : b_.CreateICmpUGE(a, b);
      case BinaryOp::And:
      case BinaryOp::BitAnd:
        return b_.CreateAnd(a, b);
      case BinaryOp::Or:
      case BinaryOp::BitOr:
        return b_.CreateOr(a, b);
      case BinaryOp::BitXor:
        return b_.CreateXor(a, b);
      case BinaryOp::Shl:
        return shift(n.op, is_signed, a, b);
      case BinaryOp::Shr:
        return shift(n.op, is_signed, a, b);
    }
    return nullptr;
  }

  // NaN on either side wins, as in NumPy.
  Value* extreme(bool least, DType d, Value* a, Value* b) {
    if (d.is_floating()) {
      auto* v = llvm::cast<llvm::Instruction>(b_.CreateIntrinsic(
          least ? llvm::Intrinsic::minimum : llvm::Intrinsic::maximum, {a->getType()}, {b, a}));
      v->setHasNoSignedZeros(true);
      return v;
    }
    Value* less = d.is_int() ? b_.CreateICmpSLT(a, b) : b_.CreateICmpULT(a, b);
    return least ? b_.CreateSelect(less, a, b) : b_.CreateSelect(less, b, a);
  }

  static bool is_index(DType d) { return d.is_int() && d.bits == 64; }

  // INT_MIN / -1 and division by zero stop the processor; such divisors are taken as one.
  // Divisors that are constants need no care.
  Value* tame_divisor(Value* a, Value* b) {
    if (llvm::isa<llvm::Constant>(b)) return b;
    llvm::Type* t = b->getType();
    unsigned bits = t->getScalarSizeInBits();
    Value* overflow = b_.CreateAnd(
        b_.CreateICmpEQ(b, constant_int(t, -1)),
        b_.CreateICmpEQ(a, llvm::ConstantInt::get(t, llvm::APInt::getSignedMinValue(bits))));
    Value* zero = b_.CreateICmpEQ(b, llvm::Constant::getNullValue(t));
    return b_.CreateSelect(b_.CreateOr(overflow, zero), constant_int(t, 1), b);
  }
  Value* safe_div(Value* a, Value* b) { return b_.CreateSDiv(a, tame_divisor(a, b)); }
  Value* safe_rem(Value* a, Value* b) { return b_.CreateSRem(a, tame_divisor(a, b)); }
  // Truncation went the other way than floor.
  Value* rounds_down(Value* a, Value* b) {
    Value* r = safe_rem(a, b);
    Value* zero = llvm::Constant::getNullValue(r->getType());
    Value* signs = b_.CreateICmpSLT(b_.CreateXor(r, b), zero);
    return b_.CreateAnd(b_.CreateICmpNE(r, zero), signs);
  }

  // The exponent when the divisor is a positive power of two.
  static std::optional<int64_t> log2_of(const PrimExpr& divisor) {
    auto v = as_int(divisor);
    if (!v || *v <= 0 || (*v & (*v - 1)) != 0) return std::nullopt;
    return std::countr_zero(static_cast<uint64_t>(*v));
  }

  // Shifting by the width or more gives what is left of the number: its sign, or zero.
  Value* shift(BinaryOp op, bool is_signed, Value* a, Value* b) {
    llvm::Type* t = a->getType();
    unsigned bits = t->getScalarSizeInBits();
    Value* in_range = b_.CreateICmpULT(b, constant_int(t, bits));
    Value* amount = b_.CreateSelect(in_range, b, constant_int(t, bits - 1));
    if (op == BinaryOp::Shr && is_signed) return b_.CreateAShr(a, amount);
    Value* v = op == BinaryOp::Shl ? b_.CreateShl(a, amount) : b_.CreateLShr(a, amount);
    return b_.CreateSelect(in_range, v, llvm::Constant::getNullValue(t));
  }

  Value* select(const SelectNode& n) {
    Value* cond = expr(n.cond);
    bool reads = false;
    for (const PrimExpr& side : {n.true_value, n.false_value}) {
      post_order(side, [&](const Node& x) { reads |= x.kind() == tir::ExprKind::Load; });
    }
    if (!reads) return b_.CreateSelect(cond, expr(n.true_value), expr(n.false_value));
    if (!cond->getType()->isVectorTy()) {
      auto* then_block = BasicBlock::Create(context_, "then", function_);
      auto* else_block = BasicBlock::Create(context_, "else", function_);
      auto* next = BasicBlock::Create(context_, "next", function_);
      b_.CreateCondBr(cond, then_block, else_block);
      b_.SetInsertPoint(then_block);
      size_t mark = cached_.size();
      Value* t = expr(n.true_value);
      forget(mark);
      auto* then_end = b_.GetInsertBlock();
      b_.CreateBr(next);
      b_.SetInsertPoint(else_block);
      Value* f = expr(n.false_value);
      forget(mark);
      auto* else_end = b_.GetInsertBlock();
      b_.CreateBr(next);
      b_.SetInsertPoint(next);
      auto* phi = b_.CreatePHI(t->getType(), 2);
      phi->addIncoming(t, then_end);
      phi->addIncoming(f, else_end);
      return phi;
    }
    // Each side reads only in its own lanes.
    Value* t = masked(n.true_value, cond);
    Value* f = masked(n.false_value, b_.CreateNot(cond));
    return b_.CreateSelect(cond, t, f);
  }

  // The expression with its loads limited to the lanes of `mask`.
  Value* masked(const PrimExpr& e, Value* mask) {
    Value* outer = side_mask_;
    if (outer != nullptr && outer->getType() == mask->getType()) mask = b_.CreateAnd(outer, mask);
    side_mask_ = mask;
    size_t mark = cached_.size();
    Value* v = expr(e);
    forget(mark);
    side_mask_ = outer;
    return v;
  }

  Value* cast_value(const CastNode& n) {
    DType from = n.value->dtype, to = n.dtype;
    Value* v = expr(n.value);
    llvm::Type* t = value_type(to);
    if (from == to) return v;
    if (to.is_bool()) {
      if (from.is_floating())
        return b_.CreateFCmpUNE(v, llvm::Constant::getNullValue(v->getType()));
      return b_.CreateICmpNE(v, llvm::Constant::getNullValue(v->getType()));
    }
    if (from.is_bool()) return to.is_floating() ? b_.CreateUIToFP(v, t) : b_.CreateZExt(v, t);
    if (from.is_floating() && to.is_floating()) return rounded(to, b_.CreateFPCast(v, t));
    if (from.is_floating()) {
      return b_.CreateIntrinsic(
          to.is_int() ? llvm::Intrinsic::fptosi_sat : llvm::Intrinsic::fptoui_sat,
          {t, v->getType()}, {v});
    }
    if (to.is_floating())
      return rounded(to, from.is_int() ? b_.CreateSIToFP(v, t) : b_.CreateUIToFP(v, t));
    return b_.CreateIntCast(v, t, from.is_int());
  }

  Value* unary(llvm::Intrinsic::ID id, Value* v) {
    return b_.CreateIntrinsic(id, {v->getType()}, {v});
  }

  Value* call(const tir::CallNode& n) {
    DType d = n.dtype;
    const std::string& name = n.name;
    if (auto defect = intrinsic_defect(name, d, n.args)) unsupported(f_.name, *defect);
    if (name == "likely") return expr(n.args[0]);
    if (name == "prefetch") return prefetch(n);
    if (name == "bitcast") {
      Value* v = to_memory(n.args[0]->dtype.element(), expr(n.args[0]));
      return from_memory(d.element(), b_.CreateBitCast(v, memory_type(d)));
    }
    if (name == "pow") {
      if (Value* v = simple_power(n)) return rounded(d, v);
    }
    std::vector<Value*> args;
    for (const PrimExpr& a : n.args) args.push_back(expr(a));
    if (name == "isnan") return b_.CreateFCmpUNO(args[0], args[0]);
    if (name == "isinf" || name == "isfinite") {
      Value* magnitude = unary(llvm::Intrinsic::fabs, args[0]);
      Value* infinity = llvm::ConstantFP::getInfinity(args[0]->getType());
      return name == "isinf" ? b_.CreateFCmpOEQ(magnitude, infinity)
                             : b_.CreateFCmpONE(magnitude, infinity);
    }
    if (name.starts_with("reduce_")) return reduce_lanes(name, n.args[0]->dtype, args[0]);
    if (name == "popcount") return unary(llvm::Intrinsic::ctpop, args[0]);
    if (name == "abs" && d.is_int())
      return b_.CreateIntrinsic(llvm::Intrinsic::abs, {args[0]->getType()},
                                {args[0], b_.getFalse()});
    if (name == "abs" && !d.is_floating()) return args[0];
    if (!d.is_floating()) unsupported(f_.name, "intrinsic " + name + " on " + d.to_string());
    return rounded(d, float_call(name, d, args));
  }

  Value* float_call(const std::string& name, DType d, const std::vector<Value*>& args) {
    static const std::map<std::string, llvm::Intrinsic::ID> direct{
        {"sqrt", llvm::Intrinsic::sqrt},   {"abs", llvm::Intrinsic::fabs},
        {"floor", llvm::Intrinsic::floor}, {"ceil", llvm::Intrinsic::ceil},
        {"trunc", llvm::Intrinsic::trunc}, {"round", llvm::Intrinsic::rint},
    };
    // Without SSE4.1 rounding is a call; every supported target has it.
    if (auto it = direct.find(name); it != direct.end()) return unary(it->second, args[0]);
    if (name == "fma") return b_.CreateIntrinsic(llvm::Intrinsic::fma, {args[0]->getType()}, args);
    if (name == "rsqrt") {
      return b_.CreateFDiv(llvm::ConstantFP::get(args[0]->getType(), 1.0),
                           unary(llvm::Intrinsic::sqrt, args[0]));
    }
    if (Value* v = emit_math(b_, target_, name, args)) return v;
    // Approximations are of float32.
    if (name.starts_with("fast_")) return float_call(name.substr(5), d, args);
    if (name == "sigmoid") {
      Value* e = float_call("exp", d, {b_.CreateFNeg(args[0])});
      Value* one = llvm::ConstantFP::get(e->getType(), 1.0);
      return b_.CreateFDiv(one, b_.CreateFAdd(one, e));
    }
    return per_lane(name, args);
  }

  // All lanes combined into one value, halves first.
  Value* reduce_lanes(const std::string& name, DType d, Value* v) {
    for (unsigned lanes = d.lanes; lanes > 1; lanes /= 2) {
      RELAY_CHECK(lanes % 2 == 0, "lanes to combine are no power of two");
      llvm::SmallVector<int, 32> low, high;
      for (unsigned i = 0; i < lanes / 2; ++i) {
        low.push_back(static_cast<int>(i));
        high.push_back(static_cast<int>(i + lanes / 2));
      }
      Value* a = b_.CreateShuffleVector(v, low);
      Value* b = b_.CreateShuffleVector(v, high);
      bool is_float = d.is_floating();
      if (name == "reduce_add") {
        v = is_float ? b_.CreateFAdd(a, b) : b_.CreateAdd(a, b);
      } else if (name == "reduce_mul") {
        v = is_float ? b_.CreateFMul(a, b) : b_.CreateMul(a, b);
      } else if (name == "reduce_min" || name == "reduce_max") {
        v = extreme(name == "reduce_min", d, a, b);
      } else {
        v = name == "reduce_and" ? b_.CreateAnd(a, b) : b_.CreateOr(a, b);
      }
    }
    return b_.CreateExtractElement(v, uint64_t{0});
  }

  // x to a small constant power.
  Value* simple_power(const tir::CallNode& n) {
    auto exponent = as_float(n.args[1]);
    if (!exponent) return nullptr;
    if (*exponent == 2.0 || *exponent == 3.0) {
      Value* x = expr(n.args[0]);
      Value* square = b_.CreateFMul(x, x);
      return *exponent == 2.0 ? square : b_.CreateFMul(square, x);
    }
    if (*exponent == 1.0) return expr(n.args[0]);
    return nullptr;
  }

  // A call of libm for each lane.
  Value* per_lane(const std::string& name, const std::vector<Value*>& args) {
    llvm::Type* type = args[0]->getType();
    llvm::Type* scalar = type->getScalarType();
    std::string symbol = name + (scalar->isFloatTy() ? "f" : "");
    auto* f_type =
        llvm::FunctionType::get(scalar, std::vector<llvm::Type*>(args.size(), scalar), false);
    llvm::FunctionCallee callee = module_.getOrInsertFunction(symbol, f_type);
    auto* v = llvm::dyn_cast<llvm::FixedVectorType>(type);
    if (v == nullptr) return b_.CreateCall(callee, args);
    Value* out = llvm::PoisonValue::get(type);
    for (unsigned i = 0; i < v->getNumElements(); ++i) {
      std::vector<Value*> lane;
      for (Value* a : args) lane.push_back(b_.CreateExtractElement(a, i));
      out = b_.CreateInsertElement(out, b_.CreateCall(callee, lane), i);
    }
    return out;
  }

  Value* prefetch(const tir::CallNode& n) {
    auto* l = as<LoadNode>(n.args[0]);
    RELAY_CHECK(l != nullptr, "prefetch takes a load");
    Value* p = address(l->buffer, expr(flat_index(l->indices, l->buffer)));
    b_.CreateIntrinsic(llvm::Intrinsic::prefetch, {b_.getPtrTy()},
                       {p, b_.getInt32(0), b_.getInt32(3), b_.getInt32(1)});
    return llvm::Constant::getNullValue(value_type(n.dtype));
  }

  llvm::Module& module_;
  llvm::LLVMContext& context_;
  llvm::IRBuilder<> b_;
  const PrimFuncNode& f_;
  const Target& target_;
  llvm::Function* function_ = nullptr;
  BasicBlock* entry_ = nullptr;
  BasicBlock* start_ = nullptr;
  BasicBlock* exit_ = nullptr;
  llvm::PHINode* code_ = nullptr;
  Value* ctx_ = nullptr;
  bool in_parallel_ = false;
  int parallel_count_ = 0;
  int64_t stack_bytes_ = 0;
  Value* side_mask_ = nullptr;  // the lanes that the enclosing vector Select's side is for
  std::unordered_map<const Node*, Value*> cache_;
  std::vector<const Node*> cached_;  // the keys of cache_, in order
  std::unordered_map<const Node*, Value*> buffers_;
  std::unordered_map<const Node*, uint64_t> alignment_;
  std::unordered_set<const Node*> shared_;
  std::unordered_map<const Node*, Value*> vars_;
};

}  // namespace

std::string kernel_symbol(const PrimFuncNode& func) { return "relay_kernel_" + func.name; }

void build_kernel(llvm::Module& module, const PrimFunc& func, const Target& target) {
  KernelBuilder(module, *func.get(), target).build();
}

}  // namespace relay::codegen
