// What mathematical functions on scalars and vectors of a type of floats are written with.
#pragma once

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Intrinsics.h>

#include <initializer_list>

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

  llvm::IRBuilder<>& b_;
  llvm::Type* type_;
};

}  // namespace relay::codegen
