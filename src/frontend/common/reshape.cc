#include "frontend/common/reshape.h"

#include <algorithm>
#include <optional>

#include "base/codes/frontend.h"
#include "base/codes/types.h"
#include "frontend/common/shape_args.h"
#include "frontend/common/tensor_bytes.h"

namespace relay::frontend {

std::vector<Dim> inferred_shape(const Builder& build, const std::vector<Dim>& from,
                                std::vector<Dim> target) {
  std::optional<size_t> inferred;
  for (size_t i = 0; i < target.size(); ++i) {
    auto c = as_const(target[i]);
    if (!c || *c >= 0) continue;
    if (*c != -1) {
      build.fail(codes::frontend_attribute, "the new shape has a negative dimension",
                 "sizes of 0 or more, or -1 once", std::to_string(*c));
    }
    if (inferred) build.fail(codes::frontend_attribute, "the new shape has two dimensions of -1");
    inferred = i;
  }
  auto mismatch = [&]() {
    std::vector<Dim> shown = target;
    if (inferred) shown[*inferred] = dim_any();
    build.fail(codes::type_shape, "the new shape does not hold as many elements",
               to_string(tensor_type(from, DType::Float(32))),
               to_string(tensor_type(shown, DType::Float(32))));
  };
  if (!inferred) {
    check_sizes(build, target);
    if (dim_differs(product(from, 0, from.size()), product(target, 0, target.size()))) mismatch();
    return target;
  }
  // Dimensions that are on both sides cancel; what is left over is the inferred one.
  std::vector<Dim> above = from;
  Dim below = dim(1);
  for (size_t i = 0; i < target.size(); ++i) {
    if (i == *inferred) continue;
    auto same = std::find_if(above.begin(), above.end(),
                             [&](const Dim& d) { return !as_const(d) && dim_equal(d, target[i]); });
    if (same != above.end()) {
      above.erase(same);
    } else {
      below = below * target[i];
    }
  }
  Dim total = product(above, 0, above.size());
  if (auto divisor = as_const(below)) {
    if (*divisor == 0) {
      build.fail(codes::type_shape,
                 "a dimension of -1 cannot be found for a shape without elements");
    }
    if (auto t = as_const(total); t && *t % *divisor != 0) mismatch();
    target[*inferred] = floor_div(total, below);
  } else {
    // Rows that were height by width become both again: what is left over is one of the other dimensions, or 1.
    above.push_back(dim(1));
    auto left = std::find_if(above.begin(), above.end(),
                             [&](const Dim& d) { return dim_equal(total, below * d); });
    if (left == above.end()) {
      build.fail(codes::frontend_dynamic,
                 "the dimension of -1 cannot be found from open dimensions", {},
                 to_string(total) + " / " + to_string(below),
                 "give the input's shape, as in --input NAME=1x3x224x224");
    }
    target[*inferred] = *left;
  }
  return target;
}

Expr expand_to(const Builder& build, const Expr& x, std::vector<Dim> target) {
  check_sizes(build, target);
  const std::vector<Dim>& from = Builder::shape_of(x);
  // Broadcasting goes both ways: a target of 1 keeps the input's size.
  while (target.size() < from.size()) target.insert(target.begin(), dim(1));
  size_t lead = target.size() - from.size();
  for (size_t i = 0; i < from.size(); ++i) {
    Dim& size = target[lead + i];
    if (as_const(size) == 1 || !dim_differs(from[i], size)) size = broadcast(from[i], size);
  }
  return build.broadcast_to(x, target);
}

Expr repeat_to(const Builder& build, const Expr& x, const std::vector<Dim>& counts) {
  const std::vector<Dim>& from = Builder::shape_of(x);
  for (const Dim& d : counts) {
    if (!is_size(d)) {
      build.fail(codes::frontend_dynamic, "a repeat may be negative", "0 or more", to_string(d));
    }
  }
  if (counts.size() != from.size()) {
    build.fail(codes::frontend_attribute, "the list of repeats has the wrong length",
               std::to_string(from.size()), std::to_string(counts.size()));
  }
  std::vector<Dim> result;
  for (size_t i = 0; i < counts.size(); ++i) {
    if (as_const(counts[i]).value_or(0) < 0) {
      build.fail(codes::frontend_attribute, "a repeat is negative");
    }
    result.push_back(from[i] * counts[i]);
  }
  check_sizes(build, result);
  if (std::ranges::all_of(counts, [](const Dim& r) { return as_const(r) == 1; })) return x;
  return build.call("tile", {x}, {{"reps", relay::to_value(Dims(counts.begin(), counts.end()))}});
}

Expr insert_axes(const Builder& build, Expr x, std::vector<int64_t> axes) {
  const int64_t rank = Builder::rank_of(x) + static_cast<int64_t>(axes.size());
  if (rank > kMaxRank) {
    build.fail(codes::frontend_limit, "the result has too many dimensions",
               "at most " + std::to_string(kMaxRank));
  }
  axes = build.axes(axes, rank);
  std::ranges::sort(axes);
  for (size_t i = 0; i < axes.size();) {
    size_t end = i + 1;
    while (end < axes.size() && axes[end] == axes[end - 1] + 1) ++end;
    x = build.expand_dims(x, axes[i], static_cast<int64_t>(end - i));
    i = end;
  }
  return x;
}

}  // namespace relay::frontend
