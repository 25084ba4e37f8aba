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

}  // namespace relay::frontend
