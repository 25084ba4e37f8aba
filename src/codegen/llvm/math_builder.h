// What mathematical functions on scalars and vectors of a type of floats are written with.
#pragma once

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Intrinsics.h>

#include <initializer_list>
#include <limits>

namespace relay::codegen {

class MathBuilder {
 public:
  MathBuilder(llvm::IRBuilder<>& b, llvm::Type* type) : b_(b), type_(type) {}

 protected:
  using Value = llvm::Value;

  Value* c(double v) const { return llvm::ConstantFP::get(type_, v); }
  // A type with as many lanes.
  llvm::Type* like(llvm::Type* t) const {
    auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(type_);
    return vector == nullptr ? t : llvm::FixedVectorType::get(t, vector->getNumElements());
  }
  Value* intrinsic(llvm::Intrinsic::ID id, std::initializer_list<Value*> args) {
    return b_.CreateIntrinsic(id, {type_}, llvm::ArrayRef<Value*>(args.begin(), args.size()));
  }
  Value* fma(Value* x, Value* y, Value* z) { return b_.CreateFAdd(b_.CreateFMul(x, y), z); }
  // NaN in x stays NaN.
  Value* clamp(Value* x, double low, double high) {
    Value* up = b_.CreateSelect(b_.CreateFCmpOLT(x, c(low)), c(low), x);
    return b_.CreateSelect(b_.CreateFCmpOGT(up, c(high)), c(high), up);
  }
  // Horner's scheme; the first coefficient belongs to the highest power.
  Value* polynomial(Value* x, std::initializer_list<double> coefficients) {
    auto number = [&](double v) { return llvm::ConstantFP::get(x->getType(), v); };
    Value* sum = nullptr;
    for (double k : coefficients) sum = sum == nullptr ? number(k) : fma(sum, x, number(k));
    return sum;
  }
  // x to the power y, whose magnitude is `r` where neither is special: what the C standard says of signs and of special values.
  Value* signed_power(Value* x, Value* y, Value* r) {
    Value* magnitude = intrinsic(llvm::Intrinsic::fabs, {x});
    Value* whole = b_.CreateFCmpOEQ(y, intrinsic(llvm::Intrinsic::rint, {y}));
    Value* half = b_.CreateFMul(y, c(0.5));
    Value* odd =
        b_.CreateAnd(whole, b_.CreateFCmpONE(half, intrinsic(llvm::Intrinsic::rint, {half})));
    Value* one = b_.CreateAnd(b_.CreateFCmpOEQ(magnitude, c(1.0)), b_.CreateFCmpORD(y, y));
    one = b_.CreateOr(one, b_.CreateFCmpOEQ(x, c(1.0)));
    one = b_.CreateOr(one, b_.CreateFCmpOEQ(y, c(0.0)));
    r = b_.CreateSelect(one, c(1.0), r);
    llvm::Type* bits = like(b_.getIntNTy(type_->getScalarSizeInBits()));
    Value* sign = b_.CreateICmpSLT(b_.CreateBitCast(x, bits), llvm::Constant::getNullValue(bits));
    r = b_.CreateSelect(b_.CreateAnd(odd, sign), b_.CreateFNeg(r), r);
    const double infinity = std::numeric_limits<double>::infinity();
    Value* finite_negative =
        b_.CreateAnd(b_.CreateFCmpOLT(x, c(0.0)), b_.CreateFCmpOGT(x, c(-infinity)));
    Value* finite = b_.CreateAnd(finite_negative, b_.CreateNot(whole));
    return b_.CreateSelect(finite, c(std::numeric_limits<double>::quiet_NaN()), r);
  }

  llvm::IRBuilder<>& b_;
  llvm::Type* type_;
};

}  // namespace relay::codegen
