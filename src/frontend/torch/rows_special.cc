// Special functions of one element, and orthogonal polynomials of an element by their degree.
#include <cmath>
#include <limits>
#include <numbers>

#include "base/codes/frontend.h"
#include "frontend/common/step_loop.h"
#include "frontend/torch/node_context.h"
#include "frontend/torch/special.h"

namespace relay::frontend::torch {
namespace {

// The argument, in the default float type where it is an integer.
Expr float_argument(NodeContext& ctx) {
  Expr x = ctx.tensor(ctx.has("x") ? "x" : "self");
  return Builder::dtype_of(x).is_floating() ? x : ctx.cast(x, DType::Float(32));
}

template <Expr (*kFunction)(const Builder&, const Expr&)>
Values special(NodeContext& ctx) {
  return {value_of(kFunction(ctx, float_argument(ctx)))};
}
template <Expr (*kFunction)(const Builder&, int, const Expr&), int kOrder>
Values bessel(NodeContext& ctx) {
  return {value_of(kFunction(ctx, kOrder, float_argument(ctx)))};
}
template <Expr (*kFunction)(const Builder&, int, const Expr&, bool), int kOrder, bool kScaled>
Values modified_bessel(NodeContext& ctx) {
  return {value_of(kFunction(ctx, kOrder, float_argument(ctx), kScaled))};
}

Values digamma_row(NodeContext& ctx) { return {value_of(polygamma(ctx, 0, float_argument(ctx)))}; }

Values polygamma_row(NodeContext& ctx) {
  const int64_t n = ctx.integer("n");
  // The derivatives that a double can hold the factorials of.
  constexpr int64_t kMost = 20;
  if (n < 0 || n > kMost) ctx.unsupported("a polygamma function of an order above 20");
  Expr x = float_argument(ctx);
  const DType dtype = Builder::dtype_of(x);
  // Below 0 a derivative is a difference of large terms, of which float32 keeps too few digits.
  if (n > 0) x = ctx.cast(x, DType::Float(64));
  return {value_of(ctx.cast(polygamma(ctx, n, x), dtype))};
}

// The sum of the logarithms of gamma at x, x - 1/2, ..., and a constant.
Values mvlgamma(NodeContext& ctx) {
  Expr x = float_argument(ctx);
  const int64_t p = ctx.integer("p");
  constexpr int64_t kMost = 100;
  if (p < 1 || p > kMost) ctx.unsupported("mvlgamma of this dimension");
  const auto d = static_cast<double>(p);
  Expr sum = ctx.scalar_like(d * (d - 1) / 4 * std::log(std::numbers::pi), x);
  for (int64_t j = 0; j < p; ++j) {
    Expr at = j == 0 ? x : ctx.sub(x, ctx.scalar_like(static_cast<double>(j) / 2, x));
    sum = ctx.add(sum, log_gamma(ctx, at));
  }
  return {value_of(sum)};
}

// Functions of two elements, which are computed in float64.
struct Doubles {
  Expr a, b;
  DType dtype;  // of the result
};
Doubles doubles(NodeContext& ctx) {
  const NodeContext::Pair p = ctx.pair();
  const std::vector<Dim> shape = ctx.out_shape();
  auto wide = [&](const Expr& e) { return ctx.broadcast_to(ctx.cast(e, DType::Float(64)), shape); };
  return {wide(p.a), wide(p.b), p.dtype.is_floating() ? p.dtype : DType::Float(32)};
}
Values zeta_row(NodeContext& ctx) {
  const Doubles of = doubles(ctx);
  return {value_of(ctx.cast(zeta(ctx, of.a, of.b), of.dtype))};
}
template <bool kUpper>
Values incomplete_gamma_row(NodeContext& ctx) {
  const Doubles of = doubles(ctx);
  return {value_of(ctx.cast(incomplete_gamma(ctx, of.a, of.b, kUpper), of.dtype))};
}

// ---- Orthogonal polynomials --------------------------------------------------------------------

// P(0) = 1, P(1) = a x + b, and P(k + 1) from P(k) and P(k - 1).
struct Polynomials {
  double a = 1, b = 0;
  enum Recurrence {
    Chebyshev,  // 2 x P(k) - P(k - 1)
    HermiteH,   // 2 x P(k) - 2 k P(k - 1)
    HermiteHe,  // x P(k) - k P(k - 1)
    Laguerre,   // ((2 k + 1 - x) P(k) - k P(k - 1)) / (k + 1)
    Legendre,   // ((2 k + 1) x P(k) - k P(k - 1)) / (k + 1)
  } recurrence = Chebyshev;
  bool shifted = false;  // of 2 x - 1
};

Expr next_polynomial(const NodeContext& ctx, const Polynomials& of, const Expr& x, const Expr& now,
                     const Expr& before, const Expr& k) {
  auto number = [&](double v) { return ctx.scalar_like(v, x); };
  auto twice = [&](const Expr& e) { return ctx.add(e, e); };
  switch (of.recurrence) {
    case Polynomials::Chebyshev:
      return ctx.sub(ctx.mul(twice(x), now), before);
    case Polynomials::HermiteH:
      return ctx.sub(ctx.mul(twice(x), now), ctx.mul(twice(k), before));
    case Polynomials::HermiteHe:
      return ctx.sub(ctx.mul(x, now), ctx.mul(k, before));
    case Polynomials::Laguerre:
    case Polynomials::Legendre:
      break;
  }
  Expr odd = ctx.add(twice(k), number(1));
  Expr factor = of.recurrence == Polynomials::Laguerre ? ctx.sub(odd, x) : ctx.mul(odd, x);
  Expr sum = ctx.sub(ctx.mul(factor, now), ctx.mul(k, before));
  return ctx.div(sum, ctx.add(k, number(1)));
}

// Of the degree `n`, a number or a tensor; 0 below degree 0. A loop as long as the greatest degree.
Values polynomial(NodeContext& ctx, const Polynomials& of) {
  auto p = ctx.pair("x", "n");
  const DType dtype = p.dtype.is_floating() ? p.dtype : DType::Float(32);
  const std::vector<Dim> shape = ctx.out_shape();
  Expr x = ctx.broadcast_to(ctx.cast(p.a, dtype), shape);
  Expr n = ctx.call("trunc", {ctx.broadcast_to(ctx.cast(p.b, dtype), shape)});
  if (of.shifted) x = ctx.sub(ctx.add(x, x), ctx.scalar_like(1, x));
  Expr first = ctx.full(1, shape, dtype);
  Expr second = ctx.mul(x, ctx.scalar_like(of.a, x));
  if (of.b != 0) second = ctx.add(second, ctx.scalar_like(of.b, x));
  Expr none = ctx.full(0, shape, dtype);

  StepLoop loop;
  const DType i64 = DType::Int(64);
  Expr degrees = ctx.cast(n, i64);
  // Hermite's polynomials are NaN beyond the degree at which they overflow.
  const bool hermite =
      of.recurrence == Polynomials::HermiteH || of.recurrence == Polynomials::HermiteHe;
  const double limit = dtype.bits == 64 ? 512 : 128;
  if (hermite) degrees = ctx.minimum(degrees, ctx.scalar(limit, i64));
  Expr greatest = ctx.reduce("max", degrees, Builder::all_axes(Builder::rank_of(n)), false);
  loop.count = ctx.add(ctx.maximum(greatest, ctx.scalar(-1, i64)), ctx.scalar(1, i64));
  loop.initial = {first, second, none};
  StepResults done = run_steps(
      ctx, loop, [&](const Expr& t, const Expr&, const std::vector<Expr>& states) -> Step {
        Expr number = ctx.cast(t, dtype);
        Expr next = next_polynomial(ctx, of, x, states[1], states[0],
                                    ctx.add(number, ctx.scalar(1, dtype)));
        Expr found = ctx.where(ctx.call("equal", {n, number}), states[0], states[2]);
        return {{states[1], next, found}, {}};
      });
  Expr out = done.states[2];
  if (hermite) {
    Expr beyond = ctx.call("greater", {n, ctx.scalar_like(limit, n)});
    out = ctx.where(beyond, ctx.scalar_like(std::numeric_limits<double>::quiet_NaN(), out), out);
  }
  return {value_of(out)};
}

Values chebyshev_t(NodeContext& ctx) { return polynomial(ctx, {}); }
Values chebyshev_u(NodeContext& ctx) { return polynomial(ctx, {.a = 2}); }
Values chebyshev_v(NodeContext& ctx) { return polynomial(ctx, {.a = 2, .b = -1}); }
Values chebyshev_w(NodeContext& ctx) { return polynomial(ctx, {.a = 2, .b = 1}); }
Values shifted_t(NodeContext& ctx) { return polynomial(ctx, {.shifted = true}); }
Values shifted_u(NodeContext& ctx) { return polynomial(ctx, {.a = 2, .shifted = true}); }
Values shifted_v(NodeContext& ctx) { return polynomial(ctx, {.a = 2, .b = -1, .shifted = true}); }
Values shifted_w(NodeContext& ctx) { return polynomial(ctx, {.a = 2, .b = 1, .shifted = true}); }
Values hermite_h(NodeContext& ctx) {
  return polynomial(ctx, {.a = 2, .recurrence = Polynomials::HermiteH});
}
Values hermite_he(NodeContext& ctx) {
  return polynomial(ctx, {.recurrence = Polynomials::HermiteHe});
}
Values laguerre(NodeContext& ctx) {
  return polynomial(ctx, {.a = -1, .b = 1, .recurrence = Polynomials::Laguerre});
}
Values legendre(NodeContext& ctx) { return polynomial(ctx, {.recurrence = Polynomials::Legendre}); }

}  // namespace

template <>
std::span<const Row> rows<Family::Special>() {
  static constexpr Row kRows[] = {
      {"aten.lgamma.default", special<log_gamma>, kInFloat32},
      {"aten.special_gammaln.default", special<log_gamma>, kInFloat32},
      {"aten.digamma.default", digamma_row, kInFloat32},
      {"aten.special_digamma.default", digamma_row, kInFloat32},
      {"aten.special_psi.default", digamma_row, kInFloat32},
      {"aten.polygamma.default", polygamma_row, kInFloat32},
      {"aten.special_polygamma.default", polygamma_row, kInFloat32},
      {"aten.mvlgamma.default", mvlgamma, kInFloat32},
      {"aten.special_multigammaln.default", mvlgamma, kInFloat32},
      {"aten.i0.default", modified_bessel<bessel_i, 0, false>, kInFloat32},
      {"aten.special_i0.default", modified_bessel<bessel_i, 0, false>, kInFloat32},
      {"aten.special_i0e.default", modified_bessel<bessel_i, 0, true>, kInFloat32},
      {"aten.special_i1.default", modified_bessel<bessel_i, 1, false>, kInFloat32},
      {"aten.special_i1e.default", modified_bessel<bessel_i, 1, true>, kInFloat32},
      {"aten.special_modified_bessel_i0.default", modified_bessel<bessel_i, 0, false>, kInFloat32},
      {"aten.special_modified_bessel_i1.default", modified_bessel<bessel_i, 1, false>, kInFloat32},
      {"aten.special_modified_bessel_k0.default", modified_bessel<bessel_k, 0, false>, kInFloat32},
      {"aten.special_modified_bessel_k1.default", modified_bessel<bessel_k, 1, false>, kInFloat32},
      {"aten.special_scaled_modified_bessel_k0.default", modified_bessel<bessel_k, 0, true>,
       kInFloat32},
      {"aten.special_scaled_modified_bessel_k1.default", modified_bessel<bessel_k, 1, true>,
       kInFloat32},
      {"aten.special_bessel_j0.default", bessel<bessel_j, 0>, kInFloat32},
      {"aten.special_bessel_j1.default", bessel<bessel_j, 1>, kInFloat32},
      {"aten.special_bessel_y0.default", bessel<bessel_y, 0>, kInFloat32},
      {"aten.special_bessel_y1.default", bessel<bessel_y, 1>, kInFloat32},
      {"aten.special_spherical_bessel_j0.default", special<spherical_bessel_j0>, kInFloat32},
      {"aten.special_airy_ai.default", special<airy_ai>, kInFloat32},
      {"aten.special_zeta.default", zeta_row, kInFloat32},
      {"aten.special_zeta.other_scalar", zeta_row, kInFloat32},
      {"aten.special_zeta.self_scalar", zeta_row, kInFloat32},
      {"aten.igamma.default", incomplete_gamma_row<false>, kInFloat32},
      {"aten.special_gammainc.default", incomplete_gamma_row<false>, kInFloat32},
      {"aten.igammac.default", incomplete_gamma_row<true>, kInFloat32},
      {"aten.special_gammaincc.default", incomplete_gamma_row<true>, kInFloat32},
      {"aten.special_erfcx.default", special<scaled_erfc>, kInFloat32},
      {"aten.special_log_ndtr.default", special<log_normal_distribution>, kInFloat32},
      {"aten.special_ndtri.default", special<normal_quantile>, kInFloat32},
      {"aten.special_chebyshev_polynomial_t.default", chebyshev_t, kInFloat32},
      {"aten.special_chebyshev_polynomial_t.n_scalar", chebyshev_t, kInFloat32},
      {"aten.special_chebyshev_polynomial_t.x_scalar", chebyshev_t, kInFloat32},
      {"aten.special_chebyshev_polynomial_u.default", chebyshev_u, kInFloat32},
      {"aten.special_chebyshev_polynomial_u.n_scalar", chebyshev_u, kInFloat32},
      {"aten.special_chebyshev_polynomial_u.x_scalar", chebyshev_u, kInFloat32},
      {"aten.special_chebyshev_polynomial_v.default", chebyshev_v, kInFloat32},
      {"aten.special_chebyshev_polynomial_v.n_scalar", chebyshev_v, kInFloat32},
      {"aten.special_chebyshev_polynomial_v.x_scalar", chebyshev_v, kInFloat32},
      {"aten.special_chebyshev_polynomial_w.default", chebyshev_w, kInFloat32},
      {"aten.special_chebyshev_polynomial_w.n_scalar", chebyshev_w, kInFloat32},
      {"aten.special_chebyshev_polynomial_w.x_scalar", chebyshev_w, kInFloat32},
      {"aten.special_shifted_chebyshev_polynomial_t.default", shifted_t, kInFloat32},
      {"aten.special_shifted_chebyshev_polynomial_t.n_scalar", shifted_t, kInFloat32},
      {"aten.special_shifted_chebyshev_polynomial_t.x_scalar", shifted_t, kInFloat32},
      {"aten.special_shifted_chebyshev_polynomial_u.default", shifted_u, kInFloat32},
      {"aten.special_shifted_chebyshev_polynomial_u.n_scalar", shifted_u, kInFloat32},
      {"aten.special_shifted_chebyshev_polynomial_u.x_scalar", shifted_u, kInFloat32},
      {"aten.special_shifted_chebyshev_polynomial_v.default", shifted_v, kInFloat32},
      {"aten.special_shifted_chebyshev_polynomial_v.n_scalar", shifted_v, kInFloat32},
      {"aten.special_shifted_chebyshev_polynomial_v.x_scalar", shifted_v, kInFloat32},
      {"aten.special_shifted_chebyshev_polynomial_w.default", shifted_w, kInFloat32},
      {"aten.special_shifted_chebyshev_polynomial_w.n_scalar", shifted_w, kInFloat32},
      {"aten.special_shifted_chebyshev_polynomial_w.x_scalar", shifted_w, kInFloat32},
      {"aten.special_hermite_polynomial_h.default", hermite_h, kInFloat32},
      {"aten.special_hermite_polynomial_h.n_scalar", hermite_h, kInFloat32},
      {"aten.special_hermite_polynomial_h.x_scalar", hermite_h, kInFloat32},
      {"aten.special_hermite_polynomial_he.default", hermite_he, kInFloat32},
      {"aten.special_hermite_polynomial_he.n_scalar", hermite_he, kInFloat32},
      {"aten.special_hermite_polynomial_he.x_scalar", hermite_he, kInFloat32},
      {"aten.special_laguerre_polynomial_l.default", laguerre, kInFloat32},
      {"aten.special_laguerre_polynomial_l.n_scalar", laguerre, kInFloat32},
      {"aten.special_laguerre_polynomial_l.x_scalar", laguerre, kInFloat32},
      {"aten.special_legendre_polynomial_p.default", legendre, kInFloat32},
      {"aten.special_legendre_polynomial_p.n_scalar", legendre, kInFloat32},
      {"aten.special_legendre_polynomial_p.x_scalar", legendre, kInFloat32},
  };
  return kRows;
}

}  // namespace relay::frontend::torch
