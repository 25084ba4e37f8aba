// Arithmetic of float64 on numbers that a run knows.
#pragma once

#include "frontend/common/builder.h"
#include "frontend/common/open_args.h"

namespace relay::frontend {

struct Arithmetic {
  const Builder& build;
  Expr number(double v) const { return build.scalar(v, DType::Float(64)); }
  Expr minimum(const Expr& a, const Expr& b) const { return build.minimum(a, b); }
  Expr maximum(const Expr& a, const Expr& b) const { return build.maximum(a, b); }
  Expr floor(const Expr& a) const { return build.call("floor", {a}); }
  Expr ceil(const Expr& a) const { return build.call("ceil", {a}); }
  Expr equal(const Expr& a, double b) const { return build.call("equal", {a, number(b)}); }
  Expr where(const Expr& c, const Expr& a, const Expr& b) const { return build.where(c, a, b); }
  // 0, 1, ... below a scalar.
  Expr below(const Expr& n) const { return open_range(build, number(0), n); }
};

}  // namespace relay::frontend
