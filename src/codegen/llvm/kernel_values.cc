#include "codegen/llvm/architecture.h"
#include "codegen/llvm/kernel_code.h"

namespace relay::codegen {

llvm::Type* KernelBuilder::value_type(DType d) {
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

llvm::Type* KernelBuilder::memory_type(DType d) {
  llvm::Type* t = d.is_bool()       ? b_.getInt8Ty()
                  : d.is_bfloat16() ? b_.getInt16Ty()
                  : d.is_float(16)  ? (target_.converts_float16 ? b_.getHalfTy() : b_.getInt16Ty())
                                    : value_type(d.element());
  return d.lanes > 1 ? llvm::FixedVectorType::get(t, d.lanes) : t;
}

llvm::Type* KernelBuilder::lanes_of(llvm::Type* element, llvm::Type* like) {
  auto* v = llvm::dyn_cast<llvm::FixedVectorType>(like);
  return v == nullptr ? element : llvm::FixedVectorType::get(element, v->getNumElements());
}

Value* KernelBuilder::constant_int(llvm::Type* type, int64_t v) {
  return llvm::ConstantInt::get(type, static_cast<uint64_t>(v), true);
}

Value* KernelBuilder::from_memory(DType d, Value* v) {
  if (d.is_bool()) return b_.CreateICmpNE(v, llvm::Constant::getNullValue(v->getType()));
  if (d.is_bfloat16()) {
    Value* wide = b_.CreateZExt(v, lanes_of(b_.getInt32Ty(), v->getType()));
    return b_.CreateBitCast(b_.CreateShl(wide, 16), lanes_of(b_.getFloatTy(), v->getType()));
  }
  if (d.is_float(16)) {
    if (!target_.converts_float16) return half_to_float(v);
    Value* wide = b_.CreateFPExt(v, lanes_of(b_.getFloatTy(), v->getType()));
    // LLVM moves what is done with floats that were widened before the widening - comparisons, maxima, selections -, and a
    // processor that only converts float16 then does it lane by lane.
    return b_.CreateArithmeticFence(wide, wide->getType());
  }
  return v;
}

Value* KernelBuilder::to_memory(DType d, Value* v) {
  if (d.is_bool()) return b_.CreateZExt(v, lanes_of(b_.getInt8Ty(), v->getType()));
  if (d.is_bfloat16()) return float_to_bfloat(v);
  if (d.is_float(16)) {
    if (target_.converts_float16)
      return b_.CreateFPTrunc(v, lanes_of(b_.getHalfTy(), v->getType()));
    return float_to_half(v);
  }
  return v;
}

Value* KernelBuilder::float_to_bfloat(Value* v) {
  // One instruction, which takes denormals for zeros as kernels do.
  if (v->getType()->isVectorTy() && target_.rounds_bfloat16) {
    Value* narrow = b_.CreateFPTrunc(v, lanes_of(b_.getBFloatTy(), v->getType()));
    return b_.CreateBitCast(narrow, lanes_of(b_.getInt16Ty(), v->getType()));
  }
  llvm::Type* i32 = lanes_of(b_.getInt32Ty(), v->getType());
  Value* bits = b_.CreateBitCast(v, i32);
  Value* odd = b_.CreateAnd(b_.CreateLShr(bits, 16), 1);
  Value* up = b_.CreateAdd(b_.CreateAdd(bits, constant_int(i32, 0x7fff)), odd);
  Value* nan = b_.CreateFCmpUNO(v, v);
  Value* quiet = b_.CreateOr(bits, constant_int(i32, 0x400000));
  Value* result = b_.CreateLShr(b_.CreateSelect(nan, quiet, up), 16);
  return b_.CreateTrunc(result, lanes_of(b_.getInt16Ty(), v->getType()));
}

Value* KernelBuilder::half_to_float(Value* v) {
  llvm::Type* i32 = lanes_of(b_.getInt32Ty(), v->getType());
  llvm::Type* f32 = lanes_of(b_.getFloatTy(), v->getType());
  Value* wide = b_.CreateZExt(v, i32);
  Value* magnitude = b_.CreateShl(b_.CreateAnd(wide, 0x7fff), 13);
  Value* sign = b_.CreateShl(b_.CreateAnd(wide, 0x8000), 16);
  // The bits of a denormal are those behind 2^-14, which is taken off: kernels take denormal float32 for zeros.
  Value* normal = b_.CreateAdd(magnitude, constant_int(i32, int64_t{127 - 15} << 23));
  Value* behind = b_.CreateBitCast(b_.CreateAdd(normal, constant_int(i32, 1 << 23)), f32);
  Value* tiny = b_.CreateFSub(behind, llvm::ConstantFP::get(f32, 0x1p-14));
  Value* is_tiny = b_.CreateICmpULT(magnitude, constant_int(i32, 1 << 23));
  Value* bits = b_.CreateSelect(is_tiny, b_.CreateBitCast(tiny, i32), normal);
  Value* special = b_.CreateICmpUGE(magnitude, constant_int(i32, 0x7c00 << 13));
  bits = b_.CreateSelect(special, b_.CreateOr(magnitude, constant_int(i32, 0x7f800000)), bits);
  return b_.CreateBitCast(b_.CreateOr(bits, sign), f32);
}

Value* KernelBuilder::float_to_half(Value* v) {
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

Value* KernelBuilder::buffer(const Buffer& buf) {
  auto it = buffers_.find(buf.get());
  RELAY_CHECK(it != buffers_.end(), "buffer " + buf->name + " has no memory");
  return it->second;
}

Value* KernelBuilder::address(const Buffer& buf, Value* index) {
  return b_.CreateInBoundsGEP(memory_type(buf->dtype.element()), buffer(buf), index);
}

const RampNode* KernelBuilder::unit_ramp(const PrimExpr& index) {
  auto* r = as<RampNode>(index);
  return r != nullptr && as_int(r->stride) == 1 ? r : nullptr;
}

const PrimExpr& KernelBuilder::flat_index(const std::vector<PrimExpr>& indices, const Buffer& buf) {
  if (indices.empty()) {
    static const PrimExpr zero = index(0);
    return zero;
  }
  RELAY_CHECK(indices.size() == 1, "buffer " + buf->name + " is not flat");
  return indices[0];
}

Value* KernelBuilder::lane_mask(const PrimExpr& predicate, int lanes) {
  Value* mask = expr(predicate);
  return mask->getType()->isVectorTy() ? mask
                                       : b_.CreateVectorSplat(static_cast<unsigned>(lanes), mask);
}

Value* KernelBuilder::load_mask(const PrimExpr& predicate, int lanes) {
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

namespace {

// Whether so many neighbours from a place on lie in a buffer of the function's registers.
bool in_registers(const Buffer& buffer, const PrimExpr& first, int lanes) {
  auto at = as_int(first), bytes = bytes_in_memory(*buffer.get());
  return buffer->scope == Scope::Register && at && bytes && *at >= 0 &&
         (*at + lanes) * static_cast<int64_t>(buffer->dtype.element().bytes()) <= *bytes;
}

}  // namespace

Value* KernelBuilder::load(const LoadNode& l, bool as_bits) {
  const PrimExpr& at = flat_index(l.indices, l.buffer);
  DType element = l.buffer->dtype.element();
  if (as_bits) element = DType::UInt(element.bits);
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
    auto* zeros = llvm::Constant::getNullValue(type);
    if (in_registers(l.buffer, r->base, lanes)) {
      // What a masked load reads from would stay in memory: the tile of a sum whose result a condition selects is live to the end
      // of the kernel then, and the next tile has no registers.
      Value* all = b_.CreateAlignedLoad(type, p, align);
      return from_memory(element, b_.CreateSelect(mask, all, zeros));
    }
    return from_memory(element, b_.CreateMaskedLoad(type, p, align, mask, zeros));
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
  if (mask == nullptr && r != nullptr) {
    if (Value* v = load_with_stride(l, *r)) {
      return from_memory(element, as_bits ? b_.CreateBitCast(v, type) : v);
    }
  }
  // Under a mask each lane would be a branch; without one it depends on the processor.
  const LlvmArchitecture* a = find_llvm_architecture(target_.arch);
  const bool gathers = a != nullptr && a->gathers && element.bits >= 32;
  const bool fast = gathers && a->gathers_fast != nullptr && a->gathers_fast(target_);
  auto bytes = bytes_in_memory(*l.buffer.get());
  const bool narrow_places = bytes && *bytes <= INT32_MAX;
  if (gathers && (mask != nullptr || (narrow_places && r == nullptr && fast)) &&
      expr(at)->getType()->isVectorTy()) {
    Value* places = expr(at);
    // Lanes that read have a place in the buffer, so half of the bits are enough.
    if (narrow_places) {
      auto* narrow = llvm::FixedVectorType::get(b_.getInt32Ty(), static_cast<unsigned>(lanes));
      places = b_.CreateTrunc(places, narrow);
    }
    if (mask == nullptr) {
      auto* all = llvm::FixedVectorType::get(b_.getInt1Ty(), static_cast<unsigned>(lanes));
      mask = llvm::ConstantInt::getTrue(all);
    }
    Value* pointers = address(l.buffer, places);
    return from_memory(element, b_.CreateMaskedGather(type, pointers, align, mask,
                                                      llvm::Constant::getNullValue(type)));
  }
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

Value* KernelBuilder::load_with_stride(const LoadNode& l, const RampNode& at) {
  constexpr int64_t kMostStride = 4;
  auto stride = as_int(at.stride);
  int lanes = l.dtype.lanes;
  if (!stride || *stride < 2 || *stride > kMostStride || lanes < *stride) return nullptr;
  auto width = static_cast<int>(*stride);
  llvm::Type* type = memory_type(l.buffer->dtype.element().with_lanes(lanes));
  Value* base = expr(at.base);
  // The last vector ends with the last element, so that nothing behind it is read.
  std::vector<Value*> parts;
  std::vector<int> begins;
  for (int k = 0; k < width; ++k) {
    begins.push_back(k + 1 < width ? k * lanes : (lanes - 1) * width + 1 - lanes);
    Value* p = address(
        l.buffer,
        b_.CreateAdd(base, b_.getInt64(static_cast<uint64_t>(begins[static_cast<size_t>(k)]))));
    parts.push_back(b_.CreateAlignedLoad(type, p, align_of(l.buffer)));
  }
  // Lane i comes from the part that holds element i * stride; two parts are put together at a time.
  Value* out = parts[0];
  for (int k = 1; k < width; ++k) {
    llvm::SmallVector<int, 64> from;
    for (int i = 0; i < lanes; ++i) {
      int element = i * width;
      bool later = element >= (k + 1) * lanes && k + 1 < width;
      int before = k == 1 ? element : i;
      from.push_back(element < k * lanes ? before
                     : later             ? -1
                                         : lanes + element - begins[static_cast<size_t>(k)]);
    }
    out = b_.CreateShuffleVector(out, parts[static_cast<size_t>(k)], from);
  }
  return out;
}

std::vector<Value*> KernelBuilder::lane_indices(const PrimExpr& at, int lanes) {
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

Value* KernelBuilder::in_memory(DType element, const PrimExpr& value) {
  // 16-bit floats that only move keep every bit, and what becomes one is rounded once.
  if (element.is_floating() && element.bits == 16) {
    auto* l = as<LoadNode>(value);
    if (l != nullptr && l->dtype.element() == element) return load(*l, true);
    auto* cast = as<CastNode>(value);
    if (cast != nullptr && cast->value->dtype.element().is_float(32)) {
      return to_memory(element, expr(cast->value));
    }
  }
  return to_memory(element, expr(value));
}

void KernelBuilder::store(const StoreNode& s) {
  const PrimExpr& at = flat_index(s.indices, s.buffer);
  DType element = s.buffer->dtype.element();
  int lanes = s.value->dtype.lanes;
  llvm::Align align = align_of(s.buffer);
  if (lanes == 1) {
    auto write = [&] {
      Value* v = in_memory(element, s.value);
      b_.CreateAlignedStore(v, address(s.buffer, expr(at)), align);
    };
    if (s.predicate) {
      when(expr(s.predicate), write);
    } else {
      write();
    }
    return;
  }
  Value* v = in_memory(element, s.value);
  if (auto* r = unit_ramp(at)) {
    Value* p = address(s.buffer, expr(r->base));
    if (s.predicate && in_registers(s.buffer, r->base, lanes)) {
      // What a masked store writes to would stay in memory.
      Value* old = b_.CreateAlignedLoad(v->getType(), p, align);
      b_.CreateAlignedStore(b_.CreateSelect(lane_mask(s.predicate, lanes), v, old), p, align);
    } else if (s.predicate) {
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

}  // namespace relay::codegen
