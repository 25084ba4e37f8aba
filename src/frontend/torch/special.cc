#include "frontend/torch/special.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numbers>
#include <span>
#include <vector>

#include "frontend/common/step_loop.h"
#include "frontend/torch/special_tables.h"

namespace relay::frontend::torch {
namespace {

using namespace special_tables;  // NOLINT

constexpr double kPi = std::numbers::pi, kInf = std::numeric_limits<double>::infinity(),
                 kNan = std::numeric_limits<double>::quiet_NaN();

// Formulas over one argument: numbers have its dtype.
class Formula {
 public:
  Formula(const Builder& build, const Expr& x) : build_(build), x_(x) {}

  const Expr& x() const { return x_; }
  Expr number(double v) const { return build_.scalar_like(v, x_); }
  Expr add(const Expr& a, const Expr& b) const { return build_.add(a, b); }
  Expr sub(const Expr& a, const Expr& b) const { return build_.sub(a, b); }
  Expr mul(const Expr& a, const Expr& b) const { return build_.mul(a, b); }
  Expr div(const Expr& a, const Expr& b) const { return build_.div(a, b); }
  Expr plus(const Expr& a, double v) const { return v == 0 ? a : build_.add(a, number(v)); }
  Expr times(const Expr& a, double v) const { return v == 1 ? a : build_.mul(a, number(v)); }
  Expr over(double v, const Expr& a) const { return build_.div(number(v), a); }
  Expr call(const char* op, const Expr& a) const { return build_.call(op, {a}); }
  Expr negative(const Expr& a) const { return call("negative", a); }
  Expr exp(const Expr& a) const { return call("exp", a); }
  Expr log(const Expr& a) const { return call("log", a); }
  Expr sqrt(const Expr& a) const { return call("sqrt", a); }
  Expr abs(const Expr& a) const { return call("abs", a); }
  Expr less(const Expr& a, double v) const { return build_.call("less", {a, number(v)}); }
  Expr at_most(const Expr& a, double v) const { return build_.call("less_equal", {a, number(v)}); }
  Expr greater(const Expr& a, double v) const { return build_.call("greater", {a, number(v)}); }
  Expr at_least(const Expr& a, double v) const {
    return build_.call("greater_equal", {a, number(v)});
  }
  Expr equal(const Expr& a, const Expr& b) const { return build_.call("equal", {a, b}); }
  Expr both(const Expr& a, const Expr& b) const { return build_.call("logical_and", {a, b}); }
  Expr where(const Expr& c, const Expr& a, const Expr& b) const { return build_.where(c, a, b); }
  Expr where(const Expr& c, double a, const Expr& b) const { return where(c, number(a), b); }

  // c[0] + c[1] y + c[2] y^2 + ...
  Expr polynomial(const Expr& y, const std::vector<double>& c) const {
    Expr out = number(c.back());
    for (size_t i = c.size() - 1; i-- > 0;) out = plus(mul(out, y), c[i]);
    return out;
  }
  // c[0] T_0(t) + c[1] T_1(t) + ..., by Clenshaw's recurrence; as many terms as the dtype can tell from none.
  Expr chebyshev(const Expr& t, std::span<const double> c) const {
    if (Builder::dtype_of(x_).bits == 32) {
      double greatest = 0;
      for (double v : c) greatest = std::max(greatest, std::abs(v));
      constexpr double kNone = 3e-9;
      while (c.size() > 2 && std::abs(c.back()) < kNone * greatest) c = c.first(c.size() - 1);
    }
    Expr twice = times(t, 2), next = number(c.back()), after = number(0);
    for (size_t i = c.size() - 1; i-- > 1;) {
      Expr now = sub(plus(mul(twice, next), c[i]), after);
      after = next;
      next = now;
    }
    return sub(plus(mul(t, next), c[0]), after);
  }
  // The same over u in [low, high].
  Expr chebyshev_on(double low, double high, const Expr& u, std::span<const double> c) const {
    const double scale = 2 / (high - low);
    return chebyshev(plus(times(u, scale), -low * scale - 1), c);
  }

 private:
  const Builder& build_;
  Expr x_;
};

// The distance to the nearest whole number, which is exact.
Expr from_whole(const Formula& f, const Expr& x) { return f.sub(x, f.call("round", x)); }

// pi * cot(pi * x)
Expr pi_cotangent(const Formula& f, const Expr& x) {
  return f.over(kPi, f.call("tan", f.times(from_whole(f, x), kPi)));
}

// An argument of at least `least` at which a series is asymptotic, from one above 0: larger by a whole number of steps.
// Each step sees the argument before it.
template <class Each>
Expr stepped_up(const Formula& f, Expr y, int least, const Each& each) {
  for (int i = 0; i < least; ++i) {
    Expr small = f.less(y, least);
    each(small, y);
    y = f.where(small, f.plus(y, 1), y);
  }
  return y;
}

// B(2), B(4), ...
constexpr double kBernoulli[] = {1.0 / 6,       -1.0 / 30,      1.0 / 42, -1.0 / 30,
                                 5.0 / 66,      -691.0 / 2730,  7.0 / 6,  -3617.0 / 510,
                                 43867.0 / 798, -174611.0 / 330};

Expr digamma(const Formula& f) {
  const Expr& x = f.x();
  Expr reflects = f.less(x, 0.5), sum = f.number(0);
  Expr start = f.where(reflects, f.sub(f.number(1), x), x);
  constexpr int kLeast = 10;
  Expr y = stepped_up(f, start, kLeast, [&](const Expr& small, const Expr& at) {
    sum = f.sub(sum, f.where(small, f.over(1, at), f.number(0)));
  });
  std::vector<double> series;
  for (size_t k = 0; k < 7; ++k) series.push_back(kBernoulli[k] / (2 * static_cast<double>(k) + 2));
  Expr inverse = f.over(1, f.mul(y, y));
  Expr tail = f.mul(inverse, f.polynomial(inverse, series));
  Expr out = f.add(sum, f.sub(f.sub(f.log(y), f.over(0.5, y)), tail));
  out = f.where(reflects, f.sub(out, pi_cotangent(f, x)), out);
  Expr whole = f.both(f.equal(x, f.call("floor", x)), f.less(x, 0));
  out = f.where(whole, kNan, out);
  // A pole whose sign is that of the zero.
  return f.where(f.equal(x, f.number(0)), f.over(-1, x), out);
}

// x to the power of a small whole number.
Expr whole_power(const Formula& f, const Expr& x, int64_t n) {
  Expr out, square = x;
  for (; n > 0; n /= 2) {
    if (n % 2 == 1) out = out ? f.mul(out, square) : square;
    if (n > 1) square = f.mul(square, square);
  }
  return out ? out : f.number(1);
}

// Hurwitz's sum of 1 / (y + k)^s for a whole s above 1 and a y above 0, by Euler and Maclaurin.
Expr hurwitz_zeta(const Formula& f, int64_t s, const Expr& start) {
  Expr sum = f.number(0);
  constexpr int kLeast = 10;
  Expr y = stepped_up(f, start, kLeast, [&](const Expr& small, const Expr& at) {
    sum = f.add(sum, f.where(small, f.over(1, whole_power(f, at, s)), f.number(0)));
  });
  // y^-s (y / (s - 1) + 1/2 + sum of B(2k) s (s + 1) ... (s + 2k - 2) / (2k)! y^(1 - 2k))
  std::vector<double> series;
  double factor = static_cast<double>(s) / 2;
  for (size_t k = 1; k <= std::size(kBernoulli); ++k) {
    series.push_back(kBernoulli[k - 1] * factor);
    const auto twice = 2 * static_cast<double>(k), order = static_cast<double>(s);
    factor *= (order + twice - 1) * (order + twice) / ((twice + 1) * (twice + 2));
  }
  Expr inverse = f.over(1, y), square = f.mul(inverse, inverse);
  Expr tail = f.mul(inverse, f.polynomial(square, series));
  Expr body = f.add(f.plus(f.times(y, 1 / static_cast<double>(s - 1)), 0.5), tail);
  return f.add(sum, f.mul(body, f.over(1, whole_power(f, y, s))));
}

// Whether a condition holds for an element, as a scalar.
Expr any_of(const Builder& build, const Expr& condition) {
  const DType i64 = DType::Int(64);
  Expr most = build.reduce("max", build.cast(condition, i64),
                           Builder::all_axes(Builder::rank_of(condition)), false);
  return build.call("greater", {most, build.scalar(0, i64)});
}

// Repeats a step as long as an element needs it.
std::vector<Expr> repeated(
    const Builder& build, std::vector<Expr> initial,
    const std::function<Step(const Expr& t, const std::vector<Expr>&)>& step) {
  StepLoop loop;
  loop.initial = std::move(initial);
  loop.go = build.scalar(1, DType::Bool());
  return run_steps(build, loop,
                   [&](const Expr& t, const Expr&, const std::vector<Expr>& states) {
                     return step(t, states);
                   })
      .states;
}

// The sum of x^n / (a (a + 1) ... (a + n)), for x below a + 1 (Abramowitz and Stegun, 6.5.29).
Expr gamma_series(const Formula& f, const Builder& build, const Expr& a, const Expr& x) {
  constexpr double kNone = 0x1p-54;
  Expr first = f.over(1, a);
  return repeated(build, {first, first, a}, [&](const Expr&, const std::vector<Expr>& s) -> Step {
    Expr n = f.plus(s[2], 1), term = f.mul(s[0], f.div(x, n)), sum = f.add(s[1], term);
    return {{term, sum, n}, {}, any_of(build, build.call("greater", {term, f.times(sum, kNone)}))};
  })[1];
}

// The continued fraction of Q, for x from a + 1 on, by Lentz's method (Abramowitz and Stegun, 6.5.31).
Expr gamma_fraction(const Formula& f, const Builder& build, const Expr& a, const Expr& x) {
  constexpr double kTiny = 0x1p-1000, kNone = 1e-15;
  auto nonzero = [&](const Expr& v) { return f.where(f.less(f.abs(v), kTiny), kTiny, v); };
  Expr b = f.plus(f.sub(x, a), 1), d = f.over(1, nonzero(b));
  Expr c = build.broadcast_to(f.number(1 / kTiny), Builder::shape_of(b));
  return repeated(build, {b, c, d, d}, [&](const Expr& t, const std::vector<Expr>& s) -> Step {
    Expr i = f.plus(build.cast(t, DType::Float(64)), 1);
    Expr factor = f.mul(i, f.sub(a, i)), next = f.plus(s[0], 2);
    Expr denominator = f.over(1, nonzero(f.add(f.mul(factor, s[2]), next)));
    Expr numerator = nonzero(f.add(next, f.div(factor, s[1])));
    Expr ratio = f.mul(numerator, denominator);
    Expr go = any_of(build, f.greater(f.abs(f.plus(ratio, -1)), kNone));
    return {{next, numerator, denominator, f.mul(s[3], ratio)}, {}, go};
  })[3];
}

// The n-th derivative of cot(pi x) as a polynomial of cot(pi x).
std::vector<double> cotangent_derivative(int64_t n) {
  std::vector<double> p{0, 1};
  for (int64_t i = 0; i < n; ++i) {
    // d/dx p(c) = -pi (1 + c^2) p'(c)
    std::vector<double> next(p.size() + 1, 0.0);
    for (size_t k = 1; k < p.size(); ++k) {
      const double slope = -kPi * static_cast<double>(k) * p[k];
      next[k - 1] += slope;
      next[k + 1] += slope;
    }
    p = std::move(next);
  }
  return p;
}

// J and Y above 8: sqrt(2 / (pi x)) (P cos - Q sin) and (P sin + Q cos) of x less (2 order + 1) pi / 4.
struct Phase {
  Expr p, q, cos, sin;
};
Phase hankel(const Formula& f, int order, const Expr& x) {
  Expr inverse = f.over(8, x), u = f.mul(inverse, inverse);
  const std::span<const double> p = order == 0 ? std::span<const double>(kP0) : kP1;
  const std::span<const double> q = order == 0 ? std::span<const double>(kQ0) : kQ1;
  Expr scale = f.sqrt(f.over(2 / kPi, x));
  Expr angle = f.plus(x, -(2 * order + 1) * kPi / 4);
  return {f.mul(scale, f.chebyshev_on(0, 1, u, p)),
          f.mul(scale, f.mul(inverse, f.chebyshev_on(0, 1, u, q))), f.call("cos", angle),
          f.call("sin", angle)};
}

constexpr double kSeriesEnd = 8;

// J of a positive argument up to 8.
Expr small_j(const Formula& f, int order, const Expr& x) {
  Expr u = f.mul(x, x);
  constexpr double kEnd = kSeriesEnd * kSeriesEnd;
  if (order == 0) return f.chebyshev_on(0, kEnd, u, kJ0Small);
  return f.mul(x, f.chebyshev_on(0, kEnd, u, kJ1Small));
}

// I of a positive argument, times exp(-x).
Expr scaled_i(const Formula& f, int order, const Expr& x) {
  Expr small, large;
  Expr z = f.over(kSeriesEnd, x);
  if (order == 0) {
    small = f.chebyshev_on(0, kSeriesEnd, x, kI0Small);
    large = f.chebyshev_on(0, 1, z, kI0Large);
  } else {
    small = f.mul(x, f.chebyshev_on(0, kSeriesEnd, x, kI1Small));
    large = f.chebyshev_on(0, 1, z, kI1Large);
  }
  return f.where(f.at_most(x, kSeriesEnd), small, f.div(large, f.sqrt(x)));
}

// Of an x from 0 on.
Expr positive_scaled_erfc(const Formula& f, const Expr& x) {
  constexpr double kMiddle = 3.75;
  Expr t = f.div(f.plus(x, -kMiddle), f.plus(x, kMiddle));
  // At infinity the quotient has no value.
  Expr y = f.div(f.chebyshev(t, kErfcx), f.plus(f.times(x, 2), 1));
  return f.where(f.equal(x, f.number(kInf)), 0, y);
}

}  // namespace

Expr log_gamma(const Builder& build, const Expr& x) {
  const Formula f(build, x);
  Expr reflects = f.less(x, 0.5), product = f.number(1);
  Expr start = f.where(reflects, f.sub(f.number(1), x), x);
  constexpr int kLeast = 8;
  Expr y = stepped_up(f, start, kLeast, [&](const Expr& small, const Expr& at) {
    product = f.where(small, f.mul(product, at), product);
  });
  std::vector<double> series;
  for (size_t k = 0; k < 7; ++k) {
    const auto twice = 2 * static_cast<double>(k) + 2;
    series.push_back(kBernoulli[k] / (twice * (twice - 1)));
  }
  Expr inverse = f.over(1, y);
  Expr tail = f.mul(inverse, f.polynomial(f.mul(inverse, inverse), series));
  Expr stirling = f.plus(f.sub(f.mul(f.plus(y, -0.5), f.log(y)), y), std::log(2 * kPi) / 2);
  Expr out = f.sub(f.add(stirling, tail), f.log(product));
  // log(pi / |sin(pi x)|) less the logarithm at 1 - x.
  Expr rest = from_whole(f, x);
  Expr sine = f.abs(f.call("sin", f.times(rest, kPi)));
  Expr mirrored = f.sub(f.log(f.over(kPi, sine)), out);
  out = f.where(reflects, mirrored, out);
  Expr infinite = f.equal(f.abs(x), f.number(kInf));
  Expr pole = f.both(f.equal(x, f.call("floor", x)), f.at_most(x, 0));
  return f.where(build.call("logical_or", {infinite, pole}), kInf, out);
}

Expr polygamma(const Builder& build, int64_t n, const Expr& x) {
  const Formula f(build, x);
  if (n == 0) return digamma(f);
  Expr reflects = f.less(x, 0.5);
  Expr start = f.where(reflects, f.sub(f.number(1), x), x);
  const double sign = n % 2 == 1 ? 1 : -1;
  Expr out = f.times(hurwitz_zeta(f, n + 1, start), sign * std::tgamma(static_cast<double>(n) + 1));
  out = f.where(f.equal(x, f.number(kInf)), f.number(0), out);
  if (n == 1) {
    // Beside a pole the angle is exact; at one below 0 the sine is that of the rounded product, which is not 0.
    Expr angle = from_whole(f, x);
    angle = f.where(f.equal(angle, f.number(0)), x, angle);
    Expr sine = f.call("sin", f.times(angle, kPi));
    Expr mirrored = f.sub(f.div(f.number(kPi * kPi), f.mul(sine, sine)), out);
    return f.where(reflects, mirrored, out);
  }
  // At 1 - x: the n-th derivative of psi(1 - x) - psi(x) = pi cot(pi x).
  Expr cotangent = f.times(pi_cotangent(f, x), 1 / kPi);
  std::vector<double> derivative = cotangent_derivative(n);
  for (double& c : derivative) c *= -kPi;
  Expr mirrored = f.add(f.polynomial(cotangent, derivative), f.times(out, -sign));
  out = f.where(reflects, mirrored, out);
  Expr pole = f.both(f.equal(x, f.call("floor", x)), f.at_most(x, 0));
  // Every pole counts as one from above: a sum with an infinite term.
  return f.where(pole, sign * kInf, out);
}

Expr zeta(const Builder& build, const Expr& s, const Expr& q) {
  const Formula f(build, q);
  auto is_whole = [&](const Expr& e) { return f.equal(e, f.call("floor", e)); };
  auto either = [&](const Expr& a, const Expr& b) { return build.call("logical_or", {a, b}); };
  Expr positive = f.greater(q, 0), pole = f.both(f.at_most(q, 0), is_whole(q));
  Expr regular = f.both(f.greater(s, 1),
                        f.both(either(positive, is_whole(s)), build.call("logical_not", {pole})));
  constexpr double kLeast = 9;
  Expr order = f.where(regular, s, f.number(2)), start = f.where(regular, q, f.number(kLeast + 1));
  Expr exponent = f.negative(order);
  auto power = [&](const Expr& y) { return build.call("power", {y, exponent}); };
  // At least 9 terms, after which the sum has converged where the order is large and the series below does not.
  auto is_small = [&](const Expr& t, const Expr& y) {
    return either(build.call("less", {t, build.scalar(kLeast, DType::Int(64))}),
                  f.at_most(y, kLeast));
  };
  Expr none = build.broadcast_to(f.number(0), Builder::shape_of(start));
  const std::vector<Expr> moved =
      repeated(build, {none, start}, [&](const Expr& t, const std::vector<Expr>& now) -> Step {
        Expr small = is_small(t, now[1]);
        Expr sum = f.where(small, f.add(now[0], power(now[1])), now[0]);
        Expr y = f.where(small, f.plus(now[1], 1), now[1]);
        Expr after = build.add(t, build.scalar(1, DType::Int(64)));
        return {{sum, y}, {}, any_of(build, is_small(after, y))};
      });
  const Expr &sum = moved[0], &y = moved[1];
  // y^-s (y / (s - 1) + 1/2 + sum of B(2k) s (s + 1) ... (s + 2k - 2) / (2k)! y^(1 - 2k))
  Expr inverse = f.over(1, y), factor = f.mul(f.times(order, 0.5), inverse);
  Expr body = f.plus(f.div(y, f.plus(order, -1)), 0.5);
  for (size_t k = 1; k <= std::size(kBernoulli); ++k) {
    body = f.add(body, f.times(factor, kBernoulli[k - 1]));
    const auto twice = 2 * static_cast<double>(k);
    Expr one = f.mul(f.plus(order, twice - 1), inverse), two = f.mul(f.plus(order, twice), inverse);
    factor = f.times(f.mul(factor, f.mul(one, two)), 1 / ((twice + 1) * (twice + 2)));
  }
  Expr last = power(y);
  Expr converged = build.call("less", {last, f.times(sum, 0x1p-53)});
  Expr out = f.where(converged, sum, f.add(sum, f.mul(last, body)));
  out = f.where(regular, out, f.number(kNan));
  out = f.where(f.both(build.call("logical_not", {f.less(s, 1)}), pole), kInf, out);
  return f.where(f.equal(s, f.number(1)), kInf, out);
}

Expr incomplete_gamma(const Builder& build, const Expr& a, const Expr& x, bool upper) {
  const Formula f(build, x);
  Expr regular =
      f.both(f.both(f.greater(a, 0), f.less(a, kInf)), f.both(f.greater(x, 0), f.less(x, kInf)));
  Expr near = f.both(regular, build.call("less", {x, f.plus(a, 1)}));
  Expr far = f.both(regular, build.call("logical_not", {near}));
  // Elements that a formula is not for converge in its first step.
  auto kept = [&](const Expr& which, const Expr& e, double otherwise) {
    return f.where(which, e, f.number(otherwise));
  };
  Expr series = gamma_series(f, build, kept(near, a, 1), kept(near, x, 0));
  Expr fraction = gamma_fraction(f, build, kept(far, a, 1), kept(far, x, 2));
  Expr b = kept(regular, a, 1), y = kept(regular, x, 1);
  Expr scale = f.exp(f.sub(f.sub(f.mul(b, f.log(y)), y), log_gamma(build, b)));
  Expr out = f.mul(scale, f.where(near, series, fraction));
  Expr complement = upper ? near : far;
  out = f.where(complement, f.sub(f.number(1), out), out);
  // P is 1 at an infinite x and at a = 0, and 0 at an infinite a and at x = 0; NaN where both are infinite or both are 0.
  const double least = upper ? 1 : 0, most = 1 - least;
  Expr infinity = f.number(kInf), x_infinite = f.equal(x, infinity), nan = f.number(kNan);
  out = f.where(x_infinite, most, f.where(regular, out, nan));
  out = f.where(f.equal(a, infinity), f.where(x_infinite, nan, f.number(least)), out);
  out = f.where(f.equal(x, f.number(0)), least, out);
  out = f.where(f.equal(a, f.number(0)), f.where(f.greater(x, 0), f.number(most), nan), out);
  return f.where(build.call("logical_or", {f.less(a, 0), f.less(x, 0)}), nan, out);
}

Expr bessel_j(const Builder& build, int order, const Expr& x) {
  const Formula f(build, x);
  Expr size = f.abs(x);
  const Phase h = hankel(f, order, size);
  Expr out = f.where(f.at_most(size, kSeriesEnd), small_j(f, order, size),
                     f.sub(f.mul(h.p, h.cos), f.mul(h.q, h.sin)));
  return order == 0 ? out : f.where(f.less(x, 0), f.negative(out), out);
}

Expr bessel_y(const Builder& build, int order, const Expr& x) {
  const Formula f(build, x);
  const Phase h = hankel(f, order, x);
  Expr u = f.mul(x, x), j = small_j(f, order, x), small;
  constexpr double kEnd = kSeriesEnd * kSeriesEnd, kTwoOverPi = 2 / kPi;
  if (order == 0) {
    small = f.add(f.chebyshev_on(0, kEnd, u, kY0Small), f.times(f.mul(f.log(x), j), kTwoOverPi));
  } else {
    Expr singular = f.sub(f.mul(f.log(x), j), f.over(1, x));
    small = f.add(f.mul(x, f.chebyshev_on(0, kEnd, u, kY1Small)), f.times(singular, kTwoOverPi));
  }
  Expr out = f.where(f.at_most(x, kSeriesEnd), small, f.add(f.mul(h.p, h.sin), f.mul(h.q, h.cos)));
  out = f.where(f.equal(x, f.number(0)), -kInf, out);
  return f.where(f.less(x, 0), kNan, out);
}

Expr bessel_i(const Builder& build, int order, const Expr& x, bool scaled) {
  const Formula f(build, x);
  Expr size = f.abs(x);
  Expr out = scaled_i(f, order, size);
  if (!scaled) out = f.mul(out, f.exp(size));
  return order == 0 ? out : f.where(f.less(x, 0), f.negative(out), out);
}

Expr bessel_k(const Builder& build, int order, const Expr& x, bool scaled) {
  const Formula f(build, x);
  constexpr double kEnd = 2;
  Expr u = f.mul(x, x), z = f.over(kEnd, x), half = f.log(f.times(x, 0.5));
  Expr i = f.mul(scaled_i(f, order, x), f.exp(x)), small, large;
  if (order == 0) {
    small = f.sub(f.chebyshev_on(0, kEnd * kEnd, u, kK0Small), f.mul(half, i));
    large = f.chebyshev_on(0, 1, z, kK0Large);
  } else {
    small = f.add(f.div(f.chebyshev_on(0, kEnd * kEnd, u, kK1Small), x), f.mul(half, i));
    large = f.chebyshev_on(0, 1, z, kK1Large);
  }
  large = f.div(large, f.sqrt(x));
  if (scaled) {
    small = f.mul(small, f.exp(x));
  } else {
    large = f.mul(large, f.exp(f.negative(x)));
  }
  Expr out = f.where(f.at_most(x, kEnd), small, large);
  out = f.where(f.equal(x, f.number(0)), kInf, out);
  return f.where(f.less(x, 0), kNan, out);
}

Expr spherical_bessel_j0(const Builder& build, const Expr& x) {
  const Formula f(build, x);
  Expr square = f.mul(x, x);
  Expr near = f.polynomial(square, {1, -1.0 / 6, 1.0 / 120, -1.0 / 5040, 1.0 / 362880,
                                    -1.0 / 39916800, 1.0 / 6227020800});
  Expr out = f.where(f.less(f.abs(x), 0.5), near, f.div(f.call("sin", x), x));
  return f.where(f.equal(f.abs(x), f.number(kInf)), 0, out);
}

Expr airy_ai(const Builder& build, const Expr& x) {
  const Formula f(build, x);
  constexpr double kLeast = -4, kGreatest = 2, kUnderflow = 103.892;
  auto zeta_at = [](double v) { return 2.0 / 3 * std::pow(v, 1.5); };
  Expr size = f.abs(x), root = f.sqrt(size), fourth = f.sqrt(root);
  Expr zeta = f.times(f.mul(size, root), 2.0 / 3);
  Expr middle = f.chebyshev_on(kLeast, kGreatest, x, kAiryMiddle);
  Expr tail = f.chebyshev_on(0, 1, f.over(zeta_at(kGreatest), zeta), kAiryTail);
  tail = f.div(f.mul(tail, f.exp(f.negative(zeta))), f.times(fourth, 2 * std::sqrt(kPi)));
  Expr inverse = f.over(zeta_at(-kLeast), zeta), u = f.mul(inverse, inverse);
  Expr angle = f.plus(zeta, -kPi / 4);
  Expr p = f.chebyshev_on(0, 1, u, kAiryP), q = f.mul(inverse, f.chebyshev_on(0, 1, u, kAiryQ));
  Expr wave = f.add(f.mul(p, f.call("cos", angle)), f.mul(q, f.call("sin", angle)));
  wave = f.div(wave, f.times(fourth, std::sqrt(kPi)));
  Expr out = f.where(f.less(x, kLeast), wave, f.where(f.at_most(x, kGreatest), middle, tail));
  out = f.where(f.at_most(x, kUnderflow), out, f.where(f.equal(x, x), f.number(0), x));
  return f.where(f.equal(size, f.number(kInf)), kNan, out);
}

Expr scaled_erfc(const Builder& build, const Expr& x) {
  const Formula f(build, x);
  Expr out = positive_scaled_erfc(f, f.abs(x));
  Expr mirrored = f.sub(f.times(f.exp(f.mul(x, x)), 2), out);
  return f.where(f.less(x, 0), mirrored, out);
}

Expr log_one_plus(const Builder& build, const Expr& x) {
  // log(u) * x / (u - 1) with u = 1 + x: the error of the sum is in both.
  const Formula f(build, x);
  Expr one = f.number(1), u = f.plus(x, 1), log = f.log(u);
  Expr small = f.less(f.abs(x), 1), same = f.equal(u, one);
  Expr below = f.where(same, one, f.sub(u, one));
  Expr exact = f.where(same, x, f.mul(log, f.div(x, below)));
  return f.where(small, exact, log);
}

Expr log_normal_distribution(const Builder& build, const Expr& x) {
  const Formula f(build, x);
  Expr t = f.times(x, 1 / std::numbers::sqrt2);
  Expr size = f.abs(t), scaled = positive_scaled_erfc(f, size);
  Expr square = f.mul(t, t);
  Expr low = f.sub(f.log(f.times(scaled, 0.5)), square);
  // erfc(t) / 2 of the size, which is small above -1 and far from 1 below 0.
  Expr rest = f.times(f.mul(scaled, f.exp(f.negative(square))), 0.5);
  rest = f.where(f.less(t, 0), f.sub(f.number(1), rest), rest);
  return f.where(f.less(x, -1), low, log_one_plus(build, f.negative(rest)));
}

Expr normal_quantile(const Builder& build, const Expr& p) {
  const Formula f(build, p);
  const double tail = std::exp(-2.0), width = 0.5 - tail;
  Expr mirrored = f.greater(p, 1 - tail);
  Expr least = f.where(mirrored, f.sub(f.number(1), p), p);
  Expr w = f.plus(p, -0.5);
  Expr centre = f.mul(w, f.chebyshev_on(0, width * width, f.mul(w, w), kQuantileCentre));
  Expr s = f.sqrt(f.times(f.log(least), -2)), z = f.over(1, s);
  Expr near = f.chebyshev_on(1.0 / 8, 1.0 / 2, z, kQuantileTail);
  Expr far = f.chebyshev_on(1.0 / 64, 1.0 / 8, z, kQuantileFar);
  Expr rest = f.mul(z, f.where(f.less(s, kSeriesEnd), near, far));
  Expr size = f.sub(f.sub(s, f.mul(f.log(s), z)), rest);
  Expr outer = f.where(mirrored, size, f.negative(size));
  Expr out = f.where(f.greater(least, tail), centre, outer);
  out = f.where(f.equal(p, f.number(0)), -kInf, f.where(f.equal(p, f.number(1)), kInf, out));
  return f.where(f.both(f.at_least(p, 0), f.at_most(p, 1)), out, f.number(kNan));
}

}  // namespace relay::frontend::torch
