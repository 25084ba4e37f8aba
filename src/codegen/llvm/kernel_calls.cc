#include "codegen/llvm/kernel_code.h"

#include "codegen/llvm/architecture.h"
#include "codegen/llvm/vector_math.h"
#include "runtime/core/string_functions.h"
#include "tir/intrinsics.h"

namespace relay::codegen {

Value* KernelBuilder::unary(llvm::Intrinsic::ID id, Value* v) {
  return b_.CreateIntrinsic(id, {v->getType()}, {v});
}

Value* KernelBuilder::call(const tir::CallNode& n) {
  DType d = n.dtype;
  const std::string& name = n.name;
  if (auto defect = intrinsic_defect(name, d, n.args)) unsupported(f_.name, *defect);
  if (name == "likely") return expr(n.args[0]);
  if (name == "prefetch") return prefetch(n);
  if (tir::find_intrinsic(name)->rule == tir::IntrinsicRule::String) return string_call(n);
  if (name == "load_word") return load_word(n);
  if (name == "byte_dot" || name == "bfloat16_dot") {
    const PrimExpr& zero = kept(tir::broadcast(tir::imm(d.element(), 0), d.lanes));
    Value* dot = add_word_dot(zero, n);
    return dot != nullptr ? dot : expr(kept(tir::in_plain_terms(n)));
  }
  if (name == "fixed_point_product") {
    const LlvmArchitecture* arch = find_llvm_architecture(target_.arch);
    Value* product = arch == nullptr || arch->fixed_point_product == nullptr
                         ? nullptr
                         : arch->fixed_point_product(b_, expr(n.args[0]), expr(n.args[1]));
    return product != nullptr ? product : expr(kept(tir::in_plain_terms(n)));
  }
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
    // By its bits: LLVM makes a test of classes of a comparison with infinity, lane by lane in long vectors.
    llvm::Type* type = args[0]->getType();
    const unsigned width = type->getScalarSizeInBits();
    llvm::Type* integers = lanes_of(b_.getIntNTy(width), type);
    Value* magnitude =
        b_.CreateAnd(b_.CreateBitCast(args[0], integers),
                     llvm::ConstantInt::get(integers, llvm::APInt::getSignedMaxValue(width)));
    Value* infinity = b_.CreateBitCast(llvm::ConstantFP::getInfinity(type), integers);
    return name == "isinf" ? b_.CreateICmpEQ(magnitude, infinity)
                           : b_.CreateICmpULT(magnitude, infinity);
  }
  if (name.starts_with("reduce_")) return reduce_lanes(name, n.args[0]->dtype, args[0]);
  if (name == "popcount") return unary(llvm::Intrinsic::ctpop, args[0]);
  if (name == "abs" && d.is_int())
    return b_.CreateIntrinsic(llvm::Intrinsic::abs, {args[0]->getType()}, {args[0], b_.getFalse()});
  if (name == "abs" && !d.is_floating()) return args[0];
  if (name == "pow" && !d.is_floating()) return integer_power(d, args[0], args[1]);
  if (!d.is_floating()) unsupported(f_.name, "intrinsic " + name + " on " + d.to_string());
  return rounded(d, float_call(name, d, args));
}

Value* KernelBuilder::float_call(const std::string& name, DType d,
                                 const std::vector<Value*>& args) {
  static const std::map<std::string, llvm::Intrinsic::ID> direct{
      {"sqrt", llvm::Intrinsic::sqrt},   {"abs", llvm::Intrinsic::fabs},
      {"floor", llvm::Intrinsic::floor}, {"ceil", llvm::Intrinsic::ceil},
      {"trunc", llvm::Intrinsic::trunc}, {"round", llvm::Intrinsic::rint},
  };
  // Rounding is an instruction on the least level of every architecture.
  if (auto it = direct.find(name); it != direct.end()) return unary(it->second, args[0]);
  if (name == "fma") return b_.CreateIntrinsic(llvm::Intrinsic::fma, {args[0]->getType()}, args);
  if (name == "rsqrt") {
    return b_.CreateFDiv(llvm::ConstantFP::get(args[0]->getType(), 1.0),
                         unary(llvm::Intrinsic::sqrt, args[0]));
  }
  if (Value* v = emit_math(b_, target_, name, args)) {
    auto limit = inline_limit(name);
    return limit ? within(*limit, name, args[0], v) : v;
  }
  if (name == "fmod" && target_.has_fma) return remainder(args[0], args[1]);
  // Approximations are of float32.
  if (name.starts_with("fast_")) return float_call(name.substr(5), d, args);
  if (name == "sigmoid") {
    Value* e = float_call("exp", d, {b_.CreateFNeg(args[0])});
    Value* one = llvm::ConstantFP::get(e->getType(), 1.0);
    return b_.CreateFDiv(one, b_.CreateFAdd(one, e));
  }
  return per_lane(name, args);
}

// While the quotient is a whole number of the mantissa, a - quotient * b is exact as one multiply-add. The division rounds, so the
// quotient may be one too large, where it is within half a unit of the next whole number: then that difference has the other sign.
Value* KernelBuilder::remainder(Value* a, Value* b) {
  llvm::Type* type = a->getType();
  Value* zero = llvm::Constant::getNullValue(type);
  Value* quotient = unary(llvm::Intrinsic::trunc, b_.CreateFDiv(a, b));
  double limit = type->getScalarType()->isDoubleTy() ? 0x1p52 : 0x1p23;
  // Infinities and what is not a number as well.
  Value* beyond =
      b_.CreateFCmpUGE(unary(llvm::Intrinsic::fabs, quotient), llvm::ConstantFP::get(type, limit));
  Value* rest = b_.CreateIntrinsic(llvm::Intrinsic::fma, {type}, {b_.CreateFNeg(quotient), b, a});
  // A quotient of 0 may be that by an infinity.
  rest = b_.CreateSelect(b_.CreateFCmpOEQ(quotient, zero), a, rest);
  Value* other_sign = b_.CreateXor(b_.CreateFCmpOLT(rest, zero), b_.CreateFCmpOLT(a, zero));
  Value* over = b_.CreateAnd(b_.CreateFCmpONE(rest, zero), other_sign);
  auto with_sign = [&](Value* x) {
    return b_.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, x, a);
  };
  rest = with_sign(b_.CreateSelect(over, b_.CreateFAdd(rest, with_sign(b)), rest));
  Value* any = type->isVectorTy() ? b_.CreateOrReduce(beyond) : beyond;
  Value* far = guarded(any, type, [&] { return per_lane("fmod", {a, b}); });
  return b_.CreateSelect(beyond, far, rest);
}

Value* KernelBuilder::within(double limit, const std::string& name, Value* x, Value* y) {
  Value* beyond =
      b_.CreateFCmpOGT(unary(llvm::Intrinsic::fabs, x), llvm::ConstantFP::get(x->getType(), limit));
  Value* any = x->getType()->isVectorTy() ? b_.CreateOrReduce(beyond) : beyond;
  Value* far = guarded(any, x->getType(), [&] { return per_lane(name, {x}); });
  return b_.CreateSelect(beyond, far, y);
}

Value* KernelBuilder::reduce_lanes(const std::string& name, DType d, Value* v) {
  for (unsigned lanes = d.lanes; lanes > 1; lanes /= 2) {
    RELAY_CHECK(lanes % 2 == 0, "lanes to combine are not a power of two");
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

Value* KernelBuilder::integer_power(DType d, Value* x, Value* n) {
  llvm::Type* type = x->getType();
  Value* zero = llvm::Constant::getNullValue(type);
  Value* one = llvm::ConstantInt::get(type, 1);
  Value* negative = d.is_int() ? b_.CreateICmpSLT(n, zero) : nullptr;
  Value* exponent = negative != nullptr ? b_.CreateSelect(negative, zero, n) : n;
  auto* before = b_.GetInsertBlock();
  auto* loop = BasicBlock::Create(context_, "power", function_);
  auto* next = BasicBlock::Create(context_, "next", function_);
  b_.CreateBr(loop);
  b_.SetInsertPoint(loop);
  auto phi = [&](Value* begin) {
    auto* p = b_.CreatePHI(type, 2);
    p->addIncoming(begin, before);
    return p;
  };
  auto* result = phi(one);
  auto* square = phi(x);
  auto* bits = phi(exponent);
  auto is_odd = [&](Value* v) { return b_.CreateICmpNE(b_.CreateAnd(v, one), zero); };
  Value* product = b_.CreateSelect(is_odd(bits), b_.CreateMul(result, square), result);
  Value* rest = b_.CreateLShr(bits, one);
  result->addIncoming(product, loop);
  square->addIncoming(b_.CreateMul(square, square), loop);
  bits->addIncoming(rest, loop);
  Value* more = b_.CreateICmpNE(rest, zero);
  b_.CreateCondBr(type->isVectorTy() ? b_.CreateOrReduce(more) : more, loop, next);
  b_.SetInsertPoint(next);
  if (negative == nullptr) return product;
  Value* minus = llvm::Constant::getAllOnesValue(type);
  Value* inverse = b_.CreateSelect(
      b_.CreateICmpEQ(x, one), one,
      b_.CreateSelect(b_.CreateICmpEQ(x, minus), b_.CreateSelect(is_odd(n), minus, one), zero));
  return b_.CreateSelect(negative, inverse, product);
}

Value* KernelBuilder::simple_power(const tir::CallNode& n) {
  if (auto exponent = as_int(n.args[1]); exponent && *exponent >= 0) {
    Value* square = expr(n.args[0]);
    Value* result = llvm::ConstantInt::get(square->getType(), 1);
    for (auto rest = static_cast<uint64_t>(*exponent); rest != 0; rest >>= 1) {
      if ((rest & 1) != 0) result = b_.CreateMul(result, square);
      square = b_.CreateMul(square, square);
    }
    return result;
  }
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

llvm::FunctionCallee KernelBuilder::library_function(const std::string& name, llvm::Type* number,
                                                     size_t count) {
  auto* type = llvm::FunctionType::get(number, std::vector<llvm::Type*>(count, number), false);
  return module_.getOrInsertFunction(name + (number->isFloatTy() ? "f" : ""), type);
}

Value* KernelBuilder::per_lane(const std::string& name, const std::vector<Value*>& args) {
  llvm::Type* type = args[0]->getType();
  llvm::FunctionCallee callee = library_function(name, type->getScalarType(), args.size());
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

Value* KernelBuilder::string_call(const tir::CallNode& n) {
  llvm::Type* word = b_.getInt64Ty();
  auto* type = llvm::FunctionType::get(word, {b_.getPtrTy(), b_.getPtrTy()}, false);
  std::vector<Value*> args;
  for (const PrimExpr& a : n.args) args.push_back(expr(a));
  Value* room = stack_slot(llvm::ArrayType::get(word, args.size()), sizeof(int64_t));
  Value* table = b_.CreateLoad(
      b_.getPtrTy(),
      b_.CreateConstGEP1_64(b_.getInt8Ty(), ctx_, offsetof(relay_kernel_context, strings)));
  auto place = static_cast<uint64_t>(runtime::string_function(n.name));
  Value* function =
      b_.CreateLoad(b_.getPtrTy(), b_.CreateConstGEP1_64(b_.getPtrTy(), table, place));
  auto lane = [&](Value* v, unsigned i) {
    return n.dtype.lanes == 1 ? v : b_.CreateExtractElement(v, i);
  };
  Value* out = llvm::PoisonValue::get(value_type(n.dtype));
  for (unsigned i = 0; i < n.dtype.lanes; ++i) {
    for (size_t k = 0; k < args.size(); ++k) {
      b_.CreateStore(lane(args[k], i), b_.CreateConstGEP1_64(word, room, k));
    }
    Value* v = b_.CreateBitCast(b_.CreateCall(type, function, {ctx_, room}),
                                value_type(n.dtype.element()));
    out = n.dtype.lanes == 1 ? v : b_.CreateInsertElement(out, v, i);
  }
  return out;
}

Value* KernelBuilder::prefetch(const tir::CallNode& n) {
  auto* l = as<LoadNode>(n.args[0]);
  RELAY_CHECK(l != nullptr, "prefetch takes a load");
  // It may point behind the buffer's end.
  Value* p = b_.CreateGEP(memory_type(l->buffer->dtype.element()), buffer(l->buffer),
                          expr(flat_index(l->indices, l->buffer)));
  b_.CreateIntrinsic(llvm::Intrinsic::prefetch, {b_.getPtrTy()},
                     {p, b_.getInt32(0), b_.getInt32(3), b_.getInt32(1)});
  return llvm::Constant::getNullValue(value_type(n.dtype));
}

Value* KernelBuilder::load_word(const tir::CallNode& n) {
  auto* l = as<LoadNode>(n.args[0]);
  RELAY_CHECK(l != nullptr, "load_word takes a load");
  constexpr int64_t kWordBits = 32;
  const PrimExpr& at = flat_index(l->indices, l->buffer);
  // Words of their own are put together from bytes, which a mask can leave out.
  if (l->predicate || side_mask_ != nullptr) return expr(kept(tir::in_plain_terms(n)));
  auto read = [&](llvm::Type* type, const PrimExpr& index) {
    return b_.CreateAlignedLoad(type, address(l->buffer, expr(index)), llvm::Align(1));
  };
  if (n.dtype.lanes == 1) return read(b_.getInt32Ty(), at);
  // Words side by side.
  auto* r = as<RampNode>(at);
  if (r != nullptr && as_int(r->stride) == kWordBits / l->dtype.bits)
    return read(value_type(n.dtype), r->base);
  return expr(kept(tir::in_plain_terms(n)));
}

Value* KernelBuilder::add_short_product(const PrimExpr& acc, const PrimExpr& n) {
  auto* product = as<BinaryNode>(n);
  if (product == nullptr || product->op != BinaryOp::Mul || n->dtype.element() != DType::Int(32) ||
      n->dtype.lanes == 1) {
    return nullptr;
  }
  // An element, or one element in all lanes.
  auto is_short = [](const PrimExpr& e) {
    auto* lanes = as<BroadcastNode>(e);
    auto* widened = as<CastNode>(lanes != nullptr ? lanes->value : e);
    if (widened == nullptr) return false;
    const DType from = widened->value->dtype;
    return (from.is_int() && from.bits <= 16) || (from.is_uint() && from.bits <= 8);
  };
  const LlvmArchitecture* arch = find_llvm_architecture(target_.arch);
  if (arch == nullptr || arch->add_short_product == nullptr || !is_short(product->a) ||
      !is_short(product->b)) {
    return nullptr;
  }
  Value *sum = expr(acc), *x = expr(product->a), *y = expr(product->b);
  return arch->add_short_product(b_, target_, sum, x, y);
}

Value* KernelBuilder::add_word_dot(const PrimExpr& acc, const tir::CallNode& n) {
  const LlvmArchitecture* arch = find_llvm_architecture(target_.arch);
  auto dot = arch == nullptr            ? nullptr
             : n.name == "byte_dot"     ? arch->byte_dot
             : n.name == "bfloat16_dot" ? arch->bfloat16_dot
                                        : nullptr;
  if (dot == nullptr) return nullptr;
  Value* operands[] = {expr(acc), expr(n.args[0]), expr(n.args[1])};
  if (n.dtype.lanes != 1) return dot(b_, target_, operands[0], operands[1], operands[2]);
  for (Value*& v : operands) v = b_.CreateVectorSplat(1, v);
  Value* sum = dot(b_, target_, operands[0], operands[1], operands[2]);
  return sum == nullptr ? nullptr : b_.CreateExtractElement(sum, uint64_t{0});
}

}  // namespace relay::codegen
