#include "codegen/llvm/kernel_code.h"

#include <bit>
#include <cmath>
#include <limits>
#include <optional>

#include "node/structural.h"
#include "node/walk.h"

namespace relay::codegen {

Value* KernelBuilder::expr(const PrimExprNode& e) {
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

Value* KernelBuilder::compute(const PrimExprNode& e) {
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
      return llvm::ConstantFP::get(value_type(e.dtype), static_cast<const FloatImmNode&>(e).value);
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
      return b_.CreateVectorSplat(e.dtype.lanes, expr(static_cast<const BroadcastNode&>(e).value));
    case tir::ExprKind::Let: {
      auto& l = static_cast<const tir::LetNode&>(e);
      counting_.define(l.var, l.value);
      vars_[l.var.get()] = expr(l.value);
      Value* v = expr(l.body);
      vars_.erase(l.var.get());
      return v;
    }
    default:
      unsupported(f_.name, "expression " + std::string(e.info().name) + " is not lowered");
  }
}

Value* KernelBuilder::binary(const BinaryNode& n) {
  DType d = n.a->dtype;
  if (auto* dot = n.op == BinaryOp::Add ? as<tir::CallNode>(n.b) : nullptr; dot != nullptr) {
    if (Value* v = add_word_dot(n.a, *dot)) return v;
  }
  if (n.op == BinaryOp::Add) {
    if (Value* v = add_short_product(n.a, n.b)) return v;
  }
  if (Value* lanes = n.op == BinaryOp::Lt ? lanes_below(n) : nullptr) return lanes;
  if (n.op == BinaryOp::FloorDiv || n.op == BinaryOp::FloorMod) {
    for (const auto& [division, value] : divided_) {
      if (structural_equal(division, PrimExpr(&n))) return value;
    }
  }
  Value* a = expr(n.a);
  Value* b = expr(n.b);
  bool is_float = d.is_floating();
  bool is_signed = d.is_int();
  switch (n.op) {
    case BinaryOp::Add:
      return is_float ? rounded(d, b_.CreateFAdd(a, b)) : b_.CreateAdd(a, b, "", false, counts(n));
    case BinaryOp::Sub:
      return is_float ? rounded(d, difference(n, a, b)) : b_.CreateSub(a, b, "", false, counts(n));
    case BinaryOp::Mul:
      return is_float ? rounded(d, b_.CreateFMul(a, b)) : b_.CreateMul(a, b, "", false, counts(n));
    case BinaryOp::Div:
      return is_float ? rounded(d, b_.CreateFDiv(a, b)) : quotient(a, b, division(n));
    case BinaryOp::Mod:
      return is_float ? rounded(d, float_call("fmod", d, {a, b})) : remainder(a, b, division(n));
    case BinaryOp::FloorDiv: {
      if (is_float) return rounded(d, unary(llvm::Intrinsic::floor, b_.CreateFDiv(a, b)));
      const Division how = division(n);
      if (how == Division::Unsigned) return quotient(a, b, how);
      if (auto power = log2_of(n.b)) return b_.CreateAShr(a, constant_int(a->getType(), *power));
      Value* q = quotient(a, b, how);
      return b_.CreateSub(q, b_.CreateZExt(rounds_down(a, b, how), a->getType()));
    }
    case BinaryOp::FloorMod: {
      if (is_float) {
        Value* r = float_call("fmod", d, {a, b});
        Value* zero = llvm::Constant::getNullValue(r->getType());
        Value* other_sign = b_.CreateXor(b_.CreateFCmpOLT(r, zero), b_.CreateFCmpOLT(b, zero));
        Value* up = b_.CreateAnd(b_.CreateFCmpONE(r, zero), other_sign);
        return rounded(d, b_.CreateSelect(up, b_.CreateFAdd(r, b), r));
      }
      const Division how = division(n);
      if (how == Division::Unsigned) return remainder(a, b, how);
      if (auto power = log2_of(n.b))
        return b_.CreateAnd(a, constant_int(a->getType(), (int64_t{1} << *power) - 1));
      Value* r = remainder(a, b, how);
      return b_.CreateAdd(r, b_.CreateSelect(rounds_down(a, b, how), b,
                                             llvm::Constant::getNullValue(b->getType())));
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

KernelBuilder::Division KernelBuilder::division(const BinaryNode& quotient) {
  const DType d = quotient.a->dtype;
  if (!d.is_int()) return Division::Unsigned;
  if (!bounds_ || !(d == tir::kIndex)) return Division::Signed;
  const auto by = as_int(quotient.b);
  if (by) {
    const bool natural = *by > 0 && bounds_->bounds(quotient.a).min >= 0;
    return natural ? Division::Unsigned : Division::Signed;
  }
  return counts(*quotient.b.get()) ? Division::Signed : Division::ByNumber;
}

Value* KernelBuilder::lanes_below(const BinaryNode& n) {
  constexpr int kMostLanes = 127;
  const DType d = n.a->dtype;
  auto* places = as<RampNode>(n.a);
  auto* end = as<BroadcastNode>(n.b);
  if (places == nullptr || end == nullptr || !counts(*places) || !counts(*end) ||
      as_int(places->stride) != 1 || d.lanes > kMostLanes ||
      d.lanes * d.bits <= target_.vector_bits) {
    return nullptr;
  }
  Value *last = expr(end->value), *first = expr(places->base);
  Value* count = b_.CreateSub(last, first, "", false, true);
  count = extreme(false, d.element(), count, constant_int(count->getType(), 0));
  count = extreme(true, d.element(), count, constant_int(count->getType(), d.lanes));
  llvm::SmallVector<llvm::Constant*, 64> lanes;
  for (unsigned i = 0; i < d.lanes; ++i) lanes.push_back(b_.getInt8(static_cast<uint8_t>(i)));
  return b_.CreateICmpULT(llvm::ConstantVector::get(lanes),
                          b_.CreateVectorSplat(d.lanes, b_.CreateTrunc(count, b_.getInt8Ty())));
}

Value* KernelBuilder::difference(const BinaryNode& n, Value* a, Value* b) {
  auto is_number = [](const PrimExpr& e) {
    auto* lanes = as<BroadcastNode>(e);
    return isa<FloatImmNode>(lanes != nullptr ? lanes->value : e);
  };
  auto apart = [&](const PrimExpr& e, Value* v) {
    auto* product = as<BinaryNode>(e);
    bool is_product = product != nullptr && product->op == BinaryOp::Mul &&
                      !is_number(product->a) && !is_number(product->b);
    return is_product ? b_.CreateArithmeticFence(v, v->getType()) : v;
  };
  return b_.CreateFSub(apart(n.a, a), apart(n.b, b));
}

Value* KernelBuilder::extreme(bool least, DType d, Value* a, Value* b) {
  if (d.is_floating()) {
    auto* v = llvm::cast<llvm::Instruction>(b_.CreateIntrinsic(
        least ? llvm::Intrinsic::minimum : llvm::Intrinsic::maximum, {a->getType()}, {b, a}));
    v->setHasNoSignedZeros(true);
    return v;
  }
  Value* less = d.is_int() ? b_.CreateICmpSLT(a, b) : b_.CreateICmpULT(a, b);
  return least ? b_.CreateSelect(less, a, b) : b_.CreateSelect(less, b, a);
}

Value* KernelBuilder::tame_zero(Value* b) {
  Value* zero = b_.CreateICmpEQ(b, llvm::Constant::getNullValue(b->getType()));
  return b_.CreateSelect(zero, constant_int(b->getType(), 1), b);
}

Value* KernelBuilder::tame_divisor(Value* a, Value* b, Division how) {
  if (how == Division::Unsigned) return tame_zero(b);
  auto never = [](Value* condition) {
    auto* known = llvm::dyn_cast<llvm::Constant>(condition);
    return known != nullptr && known->isNullValue();
  };
  llvm::Type* t = b->getType();
  Value* one = constant_int(t, 1);
  if (how == Division::ByNumber) {
    return b_.CreateSelect(b_.CreateICmpULE(b_.CreateAdd(b, one), one), one, b);
  }
  Value* bad = b_.CreateICmpEQ(b, constant_int(t, -1));
  auto least = llvm::APInt::getSignedMinValue(t->getScalarSizeInBits());
  if (!never(bad)) bad = b_.CreateAnd(bad, b_.CreateICmpEQ(a, llvm::ConstantInt::get(t, least)));
  if (Value* zero = b_.CreateICmpEQ(b, llvm::Constant::getNullValue(t)); !never(zero)) {
    bad = never(bad) ? zero : b_.CreateOr(bad, zero);
  }
  return never(bad) ? b : b_.CreateSelect(bad, one, b);
}

namespace {

// x86 and NEON do not divide vectors of integers: quotients of vectors of at most 32 bits are computed in floating
// point. The distance of a quotient that is not whole from the next whole number is more than half of its last bit, so
// truncation is exact.
bool divides_in_floats(const Target& target, const Value* b) {
  const LlvmArchitecture* arch = find_llvm_architecture(target.arch);
  return arch != nullptr && !arch->divides_integers && b->getType()->isVectorTy() &&
         b->getType()->getScalarSizeInBits() <= 32 && !llvm::isa<llvm::Constant>(b);
}

}  // namespace

Value* KernelBuilder::quotient(Value* a, Value* b, Division how) {
  const bool is_signed = how != Division::Unsigned;
  if (!divides_in_floats(target_, b)) {
    Value* divisor = tame_divisor(a, b, how);
    if (!is_signed) return b_.CreateUDiv(a, divisor);
    Value* q = b_.CreateSDiv(a, divisor);
    if (how == Division::Signed) return q;
    Value* negates = b_.CreateICmpEQ(b, constant_int(b->getType(), -1));
    return b_.CreateSelect(negates, b_.CreateNeg(a), q);
  }
  llvm::IRBuilder<>::FastMathFlagGuard guard(b_);
  b_.clearFastMathFlags();
  llvm::Type* t = a->getType();
  llvm::Type* element = t->getScalarSizeInBits() <= 16 ? b_.getFloatTy() : b_.getDoubleTy();
  llvm::Type* floats = t->getWithNewType(element);
  auto converted = [&](Value* v) {
    return is_signed ? b_.CreateSIToFP(v, floats) : b_.CreateUIToFP(v, floats);
  };
  Value* q = b_.CreateFDiv(converted(a), converted(tame_zero(b)));
  if (!is_signed) return b_.CreateFPToUI(q, t);
  // The least number by -1 does not fit.
  Value* negates = b_.CreateICmpEQ(b, constant_int(t, -1));
  return b_.CreateSelect(negates, b_.CreateNeg(a), b_.CreateFPToSI(q, t));
}

Value* KernelBuilder::remainder(Value* a, Value* b, Division how) {
  if (divides_in_floats(target_, b)) {
    return b_.CreateSub(a, b_.CreateMul(quotient(a, b, how), tame_zero(b)));
  }
  Value* divisor = tame_divisor(a, b, how);
  return how == Division::Unsigned ? b_.CreateURem(a, divisor) : b_.CreateSRem(a, divisor);
}

Value* KernelBuilder::rounds_down(Value* a, Value* b, Division how) {
  Value* r = remainder(a, b, how);
  Value* zero = llvm::Constant::getNullValue(r->getType());
  Value* signs = b_.CreateICmpSLT(b_.CreateXor(r, b), zero);
  return b_.CreateAnd(b_.CreateICmpNE(r, zero), signs);
}

std::optional<int64_t> KernelBuilder::log2_of(const PrimExpr& divisor) {
  auto v = as_int(divisor);
  if (!v || *v <= 0 || (*v & (*v - 1)) != 0) return std::nullopt;
  return std::countr_zero(static_cast<uint64_t>(*v));
}

Value* KernelBuilder::shift(BinaryOp op, bool is_signed, Value* a, Value* b) {
  llvm::Type* t = a->getType();
  unsigned bits = t->getScalarSizeInBits();
  Value* in_range = b_.CreateICmpULT(b, constant_int(t, bits));
  Value* amount = b_.CreateSelect(in_range, b, constant_int(t, bits - 1));
  if (op == BinaryOp::Shr && is_signed) return b_.CreateAShr(a, amount);
  Value* v = op == BinaryOp::Shl ? b_.CreateShl(a, amount) : b_.CreateLShr(a, amount);
  return b_.CreateSelect(in_range, v, llvm::Constant::getNullValue(t));
}

Value* KernelBuilder::select(const SelectNode& n) {
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

Value* KernelBuilder::masked(const PrimExpr& e, Value* mask) {
  Value* outer = side_mask_;
  if (outer != nullptr && outer->getType() == mask->getType()) mask = b_.CreateAnd(outer, mask);
  side_mask_ = mask;
  size_t mark = cached_.size();
  Value* v = expr(e);
  forget(mark);
  side_mask_ = outer;
  return v;
}

Value* KernelBuilder::to_integer(Value* v, DType to) {
  llvm::Type *t = value_type(to), *f = v->getType();
  if (!f->isVectorTy()) {
    return b_.CreateIntrinsic(
        to.is_int() ? llvm::Intrinsic::fptosi_sat : llvm::Intrinsic::fptoui_sat, {t, f}, {v});
  }
  // The saturating intrinsic on vectors becomes code for each lane.
  auto number = [&](double x) { return llvm::ConstantFP::get(f, x); };
  const double low = to.is_int() ? -std::ldexp(1, to.bits - 1) : 0;
  const double beyond = std::ldexp(1, to.is_int() ? to.bits - 1 : to.bits);
  if (to.bits <= 16) {
    // Every such integer is a float: the greatest and the least bound the number itself. NaN is not above the least, which
    // is 0 for unsigned ones.
    Value* x = to.is_int() ? b_.CreateSelect(b_.CreateFCmpUNO(v, v), number(0), v) : v;
    x = b_.CreateSelect(b_.CreateFCmpOGT(x, number(low)), x, number(low));
    x = b_.CreateSelect(b_.CreateFCmpOLT(x, number(beyond - 1)), x, number(beyond - 1));
    return b_.CreateTrunc(b_.CreateFPToSI(x, lanes_of(b_.getInt32Ty(), f)), t);
  }
  Value* x = b_.CreateSelect(b_.CreateFCmpUNO(v, v), number(0), v);
  x = b_.CreateSelect(b_.CreateFCmpOLT(x, number(low)), number(low), x);
  Value* large = b_.CreateFCmpOGE(x, number(beyond));
  x = b_.CreateSelect(large, number(0), x);
  Value* y = to.is_int() ? b_.CreateFPToSI(x, t) : b_.CreateFPToUI(x, t);
  auto bits = static_cast<unsigned>(to.bits);
  llvm::APInt most =
      to.is_int() ? llvm::APInt::getSignedMaxValue(bits) : llvm::APInt::getMaxValue(bits);
  return b_.CreateSelect(large, llvm::ConstantInt::get(t, most), y);
}

// round(value) + offset, whose offset is an integer of at most 16 bits.
struct RoundedNumber {
  PrimExpr value;
  double offset = 0;
};

static std::optional<RoundedNumber> rounded_number(const PrimExpr& e) {
  auto round_of = [](const PrimExpr& x) {
    auto* c = as<CallNode>(x);
    return c != nullptr && c->name == "round" ? c->args[0] : PrimExpr();
  };
  if (PrimExpr x = round_of(e)) return RoundedNumber{x};
  auto* sum = as<BinaryNode>(e);
  if (sum == nullptr || sum->op != BinaryOp::Add) return std::nullopt;
  PrimExpr x = round_of(sum->a), offset = sum->b;
  if (!x) return std::nullopt;
  if (auto* all = as<BroadcastNode>(offset)) offset = all->value;
  auto number = as_float(offset);
  constexpr double kMost = 1 << 16;
  if (!number || std::trunc(*number) != *number || std::abs(*number) > kMost) return std::nullopt;
  return RoundedNumber{x, *number};
}

// A number is bounded first, then rounded by a sum of so large a number that its last bit is 1: the bits of the sum are the
// integer. Rounding, adding and converting are more instructions; a quantisation to uint8 takes 0.8 of the time.
Value* KernelBuilder::round_to_integer(Value* v, double offset, DType to) {
  constexpr double kUnits = 12582912;  // 1.5 * 2^23
  constexpr int64_t kUnitBits = 0x4B400000;
  llvm::Type* f = v->getType();
  auto number = [&](double x) { return llvm::ConstantFP::get(f, x); };
  const double low = (to.is_int() ? -std::ldexp(1, to.bits - 1) : 0) - offset;
  const double high = std::ldexp(1, to.is_int() ? to.bits - 1 : to.bits) - 1 - offset;
  Value* x = to.is_int() ? b_.CreateSelect(b_.CreateFCmpUNO(v, v), number(-offset), v) : v;
  x = b_.CreateSelect(b_.CreateFCmpOGT(x, number(low)), x, number(low));
  x = b_.CreateSelect(b_.CreateFCmpOLT(x, number(high)), x, number(high));
  llvm::Type* words = lanes_of(b_.getInt32Ty(), f);
  Value* bits = b_.CreateBitCast(b_.CreateFAdd(x, number(kUnits)), words);
  const int64_t moved = static_cast<int64_t>(offset) - kUnitBits;
  return b_.CreateTrunc(b_.CreateAdd(bits, constant_int(words, moved)), value_type(to));
}

Value* KernelBuilder::cast_value(const CastNode& n) {
  DType from = n.value->dtype, to = n.dtype;
  if (from.element() == DType::Float(32) && from.lanes > 1 && to.is_integer() && !to.is_bool() &&
      to.bits <= 16) {
    if (auto r = rounded_number(n.value)) return round_to_integer(expr(r->value), r->offset, to);
  }
  Value* v = expr(n.value);
  llvm::Type* t = value_type(to);
  if (from == to) return v;
  if (to.is_bool()) {
    if (from.is_floating()) return b_.CreateFCmpUNE(v, llvm::Constant::getNullValue(v->getType()));
    return b_.CreateICmpNE(v, llvm::Constant::getNullValue(v->getType()));
  }
  if (from.is_bool()) return to.is_floating() ? b_.CreateUIToFP(v, t) : b_.CreateZExt(v, t);
  if (from.is_floating() && to.is_floating()) return rounded(to, b_.CreateFPCast(v, t));
  if (from.is_floating()) return to_integer(v, to);
  if (to.is_floating())
    return rounded(to, from.is_int() ? b_.CreateSIToFP(v, t) : b_.CreateUIToFP(v, t));
  return b_.CreateIntCast(v, t, from.is_int());
}

}  // namespace relay::codegen
