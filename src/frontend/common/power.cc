#include "frontend/common/power.h"

namespace relay::frontend {

Expr short_power(const Builder& build, const Expr& x, double exponent) {
  if (exponent == 1) return x;
  if (exponent == 2) return build.mul(x, x);
  if (exponent == 3) return build.mul(build.mul(x, x), x);
  if (!Builder::dtype_of(x).is_floating()) return nullptr;
  if (exponent == 0.5) return build.call("sqrt", {x});
  if (exponent == -1) return build.div(build.scalar_like(1, x), x);
  return nullptr;
}

Expr atan2(const Builder& build, const Expr& y, const Expr& x) {
  constexpr double kPi = 3.141592653589793;
  auto number = [&](double v) { return build.scalar_like(v, x); };
  auto equal = [&](const Expr& a, const Expr& b) { return build.call("equal", {a, b}); };
  // The arc tangent of the quotient of the smaller and the greater of both.
  Expr ax = build.call("abs", {x}), ay = build.call("abs", {y});
  Expr steep = build.call("greater", {ay, ax});
  Expr least = build.where(steep, ax, ay), most = build.where(steep, ay, ax);
  // 0 / 0 is 0, and inf / inf is 1.
  Expr quotient = build.where(equal(most, number(0)), number(0),
                              build.where(equal(least, most), number(1), build.div(least, most)));
  Expr angle = build.call("atan", {quotient});
  angle = build.where(steep, build.sub(number(kPi / 2), angle), angle);
  // Of -0 the reciprocal is below 0.
  auto is_negative = [&](const Expr& e) {
    Expr signed_number = build.where(equal(e, number(0)), build.div(number(1), e), e);
    return build.call("less", {signed_number, number(0)});
  };
  angle = build.where(is_negative(x), build.sub(number(kPi), angle), angle);
  angle = build.where(is_negative(y), build.call("negative", {angle}), angle);
  Expr nan = build.call("logical_or", {build.call("isnan", {x}), build.call("isnan", {y})});
  return build.where(nan, build.add(x, y), angle);
}

}  // namespace relay::frontend
