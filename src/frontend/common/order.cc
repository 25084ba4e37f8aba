#include "frontend/common/order.h"

#include <limits>
#include <vector>

#include "base/codes/frontend.h"
#include "frontend/common/open_args.h"

namespace relay::frontend {
namespace {

// The operator takes a k of 0 for all.
Ordered first_of(const Builder& build, const Expr& x, int64_t k, const TopSpec& spec) {
  Expr both = build.call("topk", {x},
                         {{"k", k},
                          {"axis", spec.axis},
                          {"ret_type", std::string("both")},
                          {"is_ascend", spec.least},
                          {"dtype", to_value(DType::Int(64))}});
  return {build.item(both, 0), build.item(both, 1)};
}

}  // namespace

Ordered sorted(const Builder& build, const Expr& x, const TopSpec& spec) {
  return first_of(build, x, 0, spec);
}

Ordered top_k(const Builder& build, const Expr& x, int64_t k, const TopSpec& spec) {
  const int64_t size = as_const(Builder::shape_of(x)[static_cast<size_t>(spec.axis)])
                           .value_or(std::numeric_limits<int64_t>::max());
  if (k < 0 || k > size) {
    build.fail(codes::frontend_attribute, "k is out of range", "0 to " + std::to_string(size),
               std::to_string(k));
  }
  Ordered out = first_of(build, x, k, spec);
  if (k > 0) return out;
  return {build.slice(out.values, spec.axis, 0, 0), build.slice(out.places, spec.axis, 0, 0)};
}

Ordered top_k_at_run_time(const Builder& build, const Expr& x, const Expr& k, const TopSpec& spec) {
  Ordered all = sorted(build, x, spec);
  auto first = [&](const Expr& e) {
    return open_slice(build, e, build.ints({0}), k, build.ints({1}), {spec.axis}, true);
  };
  return {first(all.values), first(all.places)};
}

Expr running(const Builder& build, Running kind, const Expr& x, int64_t axis, bool exclusive,
             bool reverse) {
  return build.call(kind == Running::Sum ? "cumsum" : "cumprod", {x},
                    {{"axis", axis},
                     {"dtype", to_value(Builder::dtype_of(x))},
                     {"exclusive", exclusive},
                     {"reverse", reverse}});
}

}  // namespace relay::frontend
