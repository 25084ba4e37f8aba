// Fourier transforms and the parts of complex numbers, which are lists of a real and an imaginary tensor.
#include <cmath>

#include "base/codes/frontend.h"
#include "base/codes/types.h"
#include "frontend/common/fourier.h"
#include "frontend/tflite/node_context.h"

namespace relay::frontend::tflite {
namespace {

// (x, the two sizes of the transform): along the last axis one-sided, then along the axis before it.
Values rfft_2d(NodeContext& ctx) {
  Expr x = ctx.in_of_rank(0, 2);
  const std::vector<int64_t> sizes = ctx.const_ints(1, "the sizes of the transform");
  if (sizes.size() != 2 || sizes[0] < 1 || sizes[1] < 1)
    ctx.fail(codes::frontend_attribute, "the sizes of the transform are out of range",
             "2 sizes of 1 or more");
  const int64_t rank = Builder::rank_of(x);
  ComplexParts z = fourier_of_lines(ctx, {x, nullptr}, sizes[1], {.onesided = true});
  const std::vector<Dim>& shape = Builder::shape_of(x);
  if (sizes[0] != 1 || as_const(shape[static_cast<size_t>(rank - 2)]) != 1) {
    auto turned = [&](const ComplexParts& e) {
      return ComplexParts{ctx.swap_last(e.re), ctx.swap_last(e.im)};
    };
    z = turned(fourier_of_lines(ctx, turned(z), sizes[0], {}));
  }
  return {frontend::list_of(Values{value_of(z.re), value_of(z.im)})};
}

Values real(NodeContext& ctx) { return one(ctx.complex_in(0).first); }
Values imaginary(NodeContext& ctx) { return one(ctx.complex_in(0).second); }

// The larger part times sqrt(1 + ratio^2): no square overflows. Like hypot, it is infinite where a part is infinite.
Values complex_abs(NodeContext& ctx) {
  const auto [re, im] = ctx.complex_in(0);
  Expr a = ctx.call("abs", {re}), b = ctx.call("abs", {im});
  Expr large = ctx.maximum(a, b), none = ctx.call("equal", {large, ctx.scalar_like(0, large)});
  Expr ratio = ctx.div(ctx.minimum(a, b), ctx.where(none, ctx.scalar_like(1, large), large));
  Expr square = ctx.add(ctx.mul(ratio, ratio), ctx.scalar_like(1, ratio));
  Expr infinity = ctx.scalar_like(HUGE_VAL, large);
  Expr infinite =
      ctx.call("logical_or", {ctx.call("equal", {a, infinity}), ctx.call("equal", {b, infinity})});
  return one(ctx.where(infinite, infinity, ctx.mul(large, ctx.call("sqrt", {square}))));
}

}  // namespace

template <>
std::span<const Row> rows<Family::Signal>() {
  using O = schema::Options;
  static constexpr Row kRows[] = {
      {"COMPLEX_ABS", complex_abs},
      {"IMAG", imaginary},
      {"REAL", real},
      {"RFFT2D", rfft_2d, O::rfft_2d},
  };
  return kRows;
}

}  // namespace relay::frontend::tflite
