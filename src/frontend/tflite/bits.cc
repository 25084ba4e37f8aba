#include "frontend/tflite/bits.h"

#include <vector>

#include "base/codes/types.h"

namespace relay::frontend::tflite {
namespace {

Expr reinterpreted(const Builder& build, const Expr& e, DType dtype) {
  if (Builder::dtype_of(e) == dtype) return e;
  return build.call("reinterpret", {e}, {{"dtype", to_value(dtype)}});
}

// 0, 1, ... below `count`, times `bits`, as uint64.
Expr shifts(const Builder& build, int64_t count, int bits) {
  std::vector<int64_t> values;
  for (int64_t i = 0; i < count; ++i) values.push_back(i * bits);
  return build.ints(values, DType::UInt(64));
}

}  // namespace

Expr wide_bits(const Builder& build, const Expr& e) {
  const DType dtype = Builder::dtype_of(e), bits = DType::UInt(dtype.bits);
  return build.cast(dtype.is_bool() ? e : reinterpreted(build, e, bits), DType::UInt(64));
}

Expr with_bits_of(const Builder& build, const Expr& e, DType dtype) {
  const int from = Builder::dtype_of(e).bits, to = dtype.bits;
  if (from == to) return reinterpreted(build, e, dtype);
  const int64_t rank = Builder::rank_of(e);
  Expr bits = wide_bits(build, e);
  if (from > to) {
    bits = build.call("right_shift", {build.expand_dims(bits, rank), shifts(build, from / to, to)});
  } else {
    const int64_t parts = to / from;
    if (rank == 0 || as_const(Builder::shape_of(e).back()) != parts)
      build.fail(codes::type_shape, "the last axis does not hold the parts of one element",
                 std::to_string(parts) + " elements", to_string(e->type));
    bits = build.call("left_shift", {bits, shifts(build, parts, from)});
    bits = build.reduce("sum", bits, {rank - 1}, false);
  }
  return reinterpreted(build, build.cast(bits, DType::UInt(to)), dtype);
}

}  // namespace relay::frontend::tflite
