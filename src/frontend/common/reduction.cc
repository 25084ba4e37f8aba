#include "frontend/common/reduction.h"

#include "base/codes/frontend.h"
#include "frontend/common/open_args.h"

namespace relay::frontend {

Expr reduce_axes(const Builder& build, Reduction kind, const Expr& x,
                 const std::vector<int64_t>& axes, bool keepdims) {
  auto run = [&](const char* op, const Expr& e) { return build.reduce(op, e, axes, keepdims); };
  const DType dtype = Builder::dtype_of(x);
  switch (kind) {
    case Reduction::Sum:
      return run("sum", x);
    case Reduction::Mean:
      return run("mean", x);
    case Reduction::Max:
      return run(dtype.is_bool() ? "any" : "max", x);
    case Reduction::Min:
      return run(dtype.is_bool() ? "all" : "min", x);
    case Reduction::Prod:
      return run("prod", x);
    case Reduction::L1:
      return run("sum", build.call("abs", {x}));
    case Reduction::L2: {
      Expr squares = run("sum", build.mul(x, x));
      if (dtype.is_floating()) return build.call("sqrt", {squares});
      return build.cast(build.call("sqrt", {build.cast(squares, DType::Float(64))}), dtype);
    }
    case Reduction::SumSquare:
      return run("sum", build.mul(x, x));
    case Reduction::LogSum:
      return build.call("log", {run("sum", x)});
    case Reduction::LogSumExp:
      break;
  }
  return build.call("logsumexp", {x}, {{"axis", to_value(axes)}, {"keepdims", keepdims}});
}

Expr reduce_at_run_time(const Builder& build, Reduction kind, const Expr& x, const Expr& axes,
                        bool keeps, bool empty_is_all) {
  const DType i64 = DType::Int(64);
  const int64_t rank = Builder::rank_of(x);
  if (!has_open_length(axes) && length_of_vector(axes) > rank) {
    build.fail(codes::frontend_attribute, "there are more axes than dimensions",
               "at most " + std::to_string(rank), std::to_string(length_of_vector(axes)));
  }
  auto number = [&](double v) { return build.scalar(v, i64); };
  Expr taken = spread(build, build.full(0, {dim(rank)}, i64), axes, ones_for(build, axes));
  if (has_open_length(axes) && empty_is_all) {
    // An empty list means all axes.
    Expr none = build.call("equal", {build.reduce("max", taken, {0}, true), number(0)});
    taken = build.call("where", {none, number(1), taken});
  }
  // The order is stable: first those that are kept.
  Expr order = build.call("argsort", {taken}, {{"axis", int64_t{0}}, {"dtype", to_value(i64)}});
  Expr sizes = sizes_of(build, x), is_taken = build.call("not_equal", {taken, number(0)});
  Expr kept = build.call("where", {is_taken, number(1), sizes});
  Expr gone = build.call("where", {is_taken, sizes, number(1)});
  auto count = [&](const Expr& of) { return build.reduce("prod", of, {0}, true); };
  Expr y = open_reshape(build, build.call("dyn.transpose", {x, order}),
                        build.concat({count(kept), count(gone)}, 0));
  y = reduce_axes(build, kind, y, {1}, false);
  if (!keeps) {
    Expr left = entries(build, order, 0, rank - length_of_vector(axes));
    kept = build.call("take", {kept, left}, {{"axis", int64_t{0}}});
  }
  return open_reshape(build, y, kept);
}

}  // namespace relay::frontend
