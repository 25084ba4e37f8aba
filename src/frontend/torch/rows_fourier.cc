// Discrete Fourier transforms along axes, of the parts of complex numbers (complex.h).
#include <algorithm>
#include <cmath>
#include <optional>

#include "base/codes/frontend.h"
#include "frontend/torch/node_context.h"

namespace relay::frontend::torch {
namespace {

struct Parts {
  Expr re, im;
};

// The transform along an axis, not divided by anything.
Parts transformed(NodeContext& ctx, const Parts& z, int64_t axis, bool forward) {
  const int64_t n = ctx.const_dim(z.re, axis, "the length of the transform");
  ctx.charge_bytes(4 * n, Builder::dtype_of(z.re));
  std::vector<int64_t> order = Builder::all_axes(Builder::rank_of(z.re));
  std::swap(order[static_cast<size_t>(axis)], order.back());  // is its own inverse
  // The inverse transform is the transform with real and imaginary parts exchanged, before and after.
  Expr re = ctx.transpose(z.re, order), im = ctx.transpose(z.im, order);
  Expr out = ctx.call("dft", {forward ? re : im, forward ? im : re}, {{"inverse", false}});
  Expr first = ctx.transpose(ctx.item(out, 0), order);
  Expr second = ctx.transpose(ctx.item(out, 1), order);
  return forward ? Parts{first, second} : Parts{second, first};
}

Parts parts_of(NodeContext& ctx) {
  Expr re = ctx.tensor("re"), im = ctx.tensor_or_null("im");
  return {re, im ? im : ctx.call("zeros_like", {re})};
}
std::vector<int64_t> axes_of(NodeContext& ctx, const Parts& z) {
  return ctx.axes(ctx.ints("dim"), Builder::rank_of(z.re));
}

Parts scaled(NodeContext& ctx, Parts z, const std::vector<int64_t>& lengths) {
  enum { kNone, kByRoot, kByCount };
  const int64_t how = ctx.integer("normalization");
  double count = 1;
  for (int64_t n : lengths) count *= static_cast<double>(n);
  if (how == kNone || count == 0) return z;
  Expr by = ctx.scalar_like(how == kByRoot ? 1 / std::sqrt(count) : 1 / count, z.re);
  return {ctx.mul(z.re, by), z.im ? ctx.mul(z.im, by) : nullptr};
}

std::vector<int64_t> lengths_along(NodeContext& ctx, const Expr& e,
                                   const std::vector<int64_t>& axes) {
  std::vector<int64_t> out;
  for (int64_t a : axes) out.push_back(ctx.const_dim(e, a, "the length of the transform"));
  return out;
}

Values complex_to_complex(NodeContext& ctx) {
  Parts z = parts_of(ctx);
  const std::vector<int64_t> axes = axes_of(ctx, z);
  const std::vector<int64_t> lengths = lengths_along(ctx, z.re, axes);
  const bool forward = ctx.truth("forward", true);
  for (int64_t a : axes) z = transformed(ctx, z, a, forward);
  z = scaled(ctx, z, lengths);
  return {value_of(z.re), value_of(z.im)};
}

// The last axis first: half of its bins mirror the others.
Values real_to_complex(NodeContext& ctx) {
  Parts z = parts_of(ctx);
  const std::vector<int64_t> axes = axes_of(ctx, z);
  const std::vector<int64_t> lengths = lengths_along(ctx, z.re, axes);
  const bool onesided = ctx.truth("onesided", true);
  for (size_t i = axes.size(); i-- > 0;) {
    z = transformed(ctx, z, axes[i], true);
    if (!onesided || i + 1 < axes.size()) continue;
    const int64_t bins = lengths[i] / 2 + 1;
    z = {ctx.slice(z.re, axes[i], 0, bins), ctx.slice(z.im, axes[i], 0, bins)};
  }
  z = scaled(ctx, z, lengths);
  return {value_of(z.re), value_of(z.im)};
}

// The last axis last: its bins are mirrored, conjugate, before they are transformed.
Values complex_to_real(NodeContext& ctx) {
  Parts z = parts_of(ctx);
  const std::vector<int64_t> axes = axes_of(ctx, z);
  const int64_t n = ctx.integer("last_dim_size");
  if (axes.empty()) ctx.fail(codes::frontend_attribute, "there is no axis to transform");
  std::vector<int64_t> lengths = lengths_along(ctx, z.re, axes);
  if (n < 1 || lengths.back() != n / 2 + 1) {
    ctx.fail(codes::frontend_attribute, "the spectrum has another length than the signal says",
             std::to_string(n / 2 + 1), std::to_string(lengths.back()));
  }
  for (size_t i = 0; i + 1 < axes.size(); ++i) z = transformed(ctx, z, axes[i], false);
  const int64_t axis = axes.back();
  auto whole = [&](const Expr& half, bool negative) {
    const int64_t mirrored = n - lengths.back();
    if (mirrored == 0) return half;
    Expr rest = ctx.call("reverse", {ctx.slice(half, axis, 1, 1 + mirrored)}, {{"axis", axis}});
    return ctx.concat({half, negative ? ctx.call("negative", {rest}) : rest}, axis);
  };
  z = transformed(ctx, {whole(z.re, false), whole(z.im, true)}, axis, false);
  lengths.back() = n;
  return {value_of(scaled(ctx, {z.re, nullptr}, lengths).re)};
}

}  // namespace

template <>
std::span<const Row> rows<Family::Fourier>() {
  static constexpr Row kRows[] = {
      {"relay.fft_c2c", complex_to_complex, kInFloat32},
      {"relay.fft_c2r", complex_to_real, kInFloat32},
      {"relay.fft_r2c", real_to_complex, kInFloat32},
  };
  return kRows;
}

}  // namespace relay::frontend::torch
