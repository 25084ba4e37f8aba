#include "frontend/common/fourier.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/codes/types.h"
#include "frontend/common/open_args.h"

namespace relay::frontend {
namespace {

// Real and imaginary parts along a new last axis.
Expr joined(const Builder& build, const Expr& real, const Expr& imaginary) {
  const int64_t last = Builder::rank_of(real);
  return build.concat({build.expand_dims(real, last), build.expand_dims(imaginary, last)}, last);
}

}  // namespace

int64_t complex_parts(const Builder& build, const Expr& x) {
  auto parts = Builder::rank_of(x) < 2 ? std::nullopt : as_const(Builder::shape_of(x).back());
  if (parts != 1 && parts != 2) {
    build.fail(codes::type_shape, "the last axis must hold real, or real and imaginary parts",
               "1 or 2", to_string(x->type));
  }
  return *parts;
}

ComplexParts fourier_of_lines(const Builder& build, const ComplexParts& lines, int64_t n,
                              const FourierSpec& spec) {
  const int64_t last = Builder::rank_of(lines.re) - 1;
  const int64_t given = build.const_dim(lines.re, last, "the length of the signal");
  // No constant of the transform has more elements than this.
  build.charge_bytes(4 * std::min(n, int64_t{1} << 40), Builder::dtype_of(lines.re));
  auto fitted = [&](Expr e) {
    e = build.slice(std::move(e), last, 0, std::min(given, n));
    if (given >= n) return e;
    ValueList widths(static_cast<size_t>(last), to_value({0, 0}));
    widths.push_back(to_value({0, n - given}));
    return build.call("nn.pad", {e, build.scalar_like(0, e)}, {{"pad_width", AttrValue(widths)}});
  };
  Expr re = fitted(lines.re), im = lines.im ? fitted(lines.im) : build.call("zeros_like", {re});
  Expr out = build.call("dft", {re, im}, {{"inverse", spec.inverse}});
  auto bins = [&](int64_t part) {
    Expr e = build.item(out, part);
    return spec.onesided ? build.slice(e, last, 0, n / 2 + 1) : e;
  };
  return {bins(0), bins(1)};
}

Expr fourier(const Builder& build, const Expr& signal, int64_t axis, int64_t n,
             const FourierSpec& spec) {
  const int64_t last = Builder::rank_of(signal) - 1, parts = complex_parts(build, signal);
  build.const_dim(signal, axis, "the length of the signal");
  return build.with_axis_last(signal, axis, [&](const Expr& lines) {
    // The parts are the last axis but one now.
    ComplexParts x{build.select(lines, last - 1, 0), nullptr};
    if (parts == 2) x.im = build.select(lines, last - 1, 1);
    const ComplexParts y = fourier_of_lines(build, x, n, spec);
    return build.concat({build.expand_dims(y.re, last - 1), build.expand_dims(y.im, last - 1)},
                        last - 1);
  });
}

Expr fourier_at_run_time(const Builder& build, const Expr& x, int64_t parts, const Expr& count,
                         const FourierSpec& spec) {
  const DType f64 = DType::Float(64);
  const int64_t rank = Builder::rank_of(x), axis = rank - 2;
  auto number = [&](double v) { return build.scalar(v, f64); };
  Expr given = build.cast(build.select(sizes_of(build, x), 0, axis), f64);
  // Of a one-sided spectrum of k bins the transform has 2 (k - 1) elements.
  const bool mirrored = spec.inverse && spec.onesided;
  Expr n = count      ? build.cast(count, f64)
           : mirrored ? build.mul(build.sub(given, number(1)), number(2))
                      : given;
  Expr half = build.add(build.call("floor", {build.div(n, number(2))}), number(1));
  // What a signal lacks the matrix lacks, too.
  Expr used = build.call("minimum", {given, mirrored ? half : n});
  auto as_sizes = [&](const Expr& e) {
    return build.reshape(build.cast(e, DType::Int(64)), std::vector<int64_t>{1});
  };
  Expr signal = open_slice(build, x, build.ints({0}), as_sizes(used), build.ints({1}), {axis});
  Expr t = open_range(build, number(0), used);
  Expr k = open_range(build, number(0), spec.onesided && !spec.inverse ? half : n);
  Expr turns = build.mul(build.expand_dims(t, 1), build.expand_dims(k, 0));
  turns = build.sub(turns, build.mul(build.call("floor", {build.div(turns, n)}), n));
  Expr angle = build.div(build.mul(turns, number(2 * std::numbers::pi)), n);
  Expr cosines = build.call("cos", {angle}), sines = build.call("sin", {angle});
  if (spec.inverse) {
    Expr scale = build.div(number(1), n);
    if (mirrored) {
      // Each bin but the first, and the last of an even length, stands for its mirror image, too.
      Expr first = build.call("equal", {t, number(0)});
      Expr middle = build.call("equal", {build.mul(t, number(2)), n});
      Expr weight =
          build.call("where", {build.call("logical_or", {first, middle}), number(1), number(2)});
      scale = build.expand_dims(build.mul(weight, scale), 1);
    }
    cosines = build.mul(cosines, scale);
    sines = build.call("negative", {build.mul(sines, scale)});
  }
  DType dtype = Builder::dtype_of(x);
  cosines = build.cast(cosines, dtype);
  sines = build.cast(sines, dtype);
  auto product = [&](const Expr& e, const Expr& matrix) { return build.matmul(e, matrix); };
  Expr re = build.select(signal, rank - 1, 0), im;
  if (parts == 2) im = build.select(signal, rank - 1, 1);
  // (re + i im)(cos - i sin)
  Expr out_re = product(re, cosines);
  if (im) out_re = build.add(out_re, product(im, sines));
  if (mirrored) return build.expand_dims(out_re, rank - 1);
  Expr out_im = build.call("negative", {product(re, sines)});
  if (im) out_im = build.add(out_im, product(im, cosines));
  return joined(build, out_re, out_im);
}

Expr short_time_fourier(const Builder& build, const Expr& x, const Expr& step, const Expr& length,
                        const Expr& window, const FourierSpec& spec) {
  const DType i64 = DType::Int(64);
  Expr whole = build.select(sizes_of(build, x), 0, 1), zero = build.scalar(0, i64);
  Expr count =
      build.add(build.call("floor_divide", {build.sub(whole, length), step}), build.scalar(1, i64));
  Expr begins = build.mul(open_range(build, zero, count), step);
  Expr places = build.add(build.expand_dims(begins, 1),
                          build.expand_dims(open_range(build, zero, length), 0));
  Expr frames = build.call("take", {x, places}, {{"axis", int64_t{1}}});
  if (window) frames = build.mul(frames, build.expand_dims(window, 1));
  if (auto known = as_const(Builder::shape_of(frames)[2])) {
    return fourier(build, frames, 2, *known, spec);
  }
  return fourier_at_run_time(build, frames, complex_parts(build, x), nullptr, spec);
}

}  // namespace relay::frontend
