#include "frontend/common/reshape.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <unordered_set>

#include "base/codes/frontend.h"
#include "base/codes/types.h"
#include "base/quantities.h"
#include "frontend/common/open_args.h"
#include "frontend/common/shape_args.h"
#include "node/walk.h"

namespace relay::frontend {
namespace {

// Whether the i-th size of a shape may be a 0 that stands for the input's size: where it is
// made of sizes that the input has not. One that is made of the input's is 0 where the input is empty.
bool may_copy_size(const std::vector<Dim>& from, const std::vector<Dim>& target, size_t i,
                   ZeroSize zero) {
  if (zero == ZeroSize::Empty || i >= from.size() || as_const(target[i]) || is_any(target[i]))
    return false;
  std::unordered_set<const Node*> of_input;
  auto names = [](const Dim& d, const std::function<void(const Node*)>& visit) {
    post_order(d, [&](const Node& n) {
      if (auto* name = as<DimVarNode>(&n)) visit(name->var.get());
    });
  };
  for (const Dim& d : from) names(d, [&](const Node* name) { of_input.insert(name); });
  bool other = false;
  names(target[i], [&](const Node* name) { other = other || !of_input.contains(name); });
  return other;
}

int64_t checked_rank(const Builder& build, int64_t rank) {
  if (rank > kMaxRank) {
    build.fail(codes::frontend_limit, "the result has too many dimensions",
               "at most " + std::to_string(kMaxRank));
  }
  return rank;
}

}  // namespace

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

Expr reshape_to(const Builder& build, const Expr& x, std::vector<Dim> target, ZeroSize zero) {
  const std::vector<Dim>& from = Builder::shape_of(x);
  for (size_t i = 0; i < target.size(); ++i) {
    if (may_copy_size(from, target, i, zero)) {
      build.fail(codes::frontend_dynamic, "a size of the new shape may be a 0 that copies a size",
                 "a size that is known", to_string(target[i]),
                 "give fixed input shapes, as in --input NAME=1x3x224x224");
    }
    if (zero == ZeroSize::Empty || as_const(target[i]) != 0) continue;
    if (i >= from.size()) {
      build.fail(codes::type_shape, "the new shape copies a dimension that the input lacks",
                 "at least " + counted(i + 1, "dimension"), std::to_string(from.size()));
    }
    target[i] = from[i];
  }
  return build.reshape(x, inferred_shape(build, from, std::move(target)));
}

// Of the sizes some are known, or none. One that is not known is what is left over, as long as the others
// are no sizes that may be 0 where the tensor has elements.
Expr reshape_at_run_time(const Builder& build, const Expr& x, const Expr& sizes, ZeroSize zero) {
  const bool copies = zero == ZeroSize::Copies;
  const std::vector<Dim>& from = Builder::shape_of(x);
  std::vector<Dim> told(static_cast<size_t>(length_of_vector(sizes)), dim_any());
  if (auto known = build.partly_known(sizes); known && known->is_int()) told = known->ints;
  bool sure = true;
  for (size_t i = 0; i < told.size(); ++i) {
    auto c = as_const(told[i]);
    if (c == 0 && copies && i < from.size()) told[i] = from[i];
    if ((c && *c < 0) || may_copy_size(from, told, i, zero)) told[i] = dim_any();
    sure =
        sure && (is_any(told[i]) || as_const(told[i]).value_or(0) > 0 || isa<DimVarNode>(told[i]));
  }
  auto at_run_time = [&](const Builder& open) {
    Expr y = open.call("dyn.reshape", {x, sizes}, {{"allowzero", !copies}});
    return open.with_sizes(y, told);
  };
  if (!sure || std::ranges::count_if(told, is_any) > 1) return at_run_time(build);
  auto what_is_left = [&](const Builder& open) {
    std::vector<Dim> target = told;
    std::ranges::replace_if(target, is_any, dim(-1));
    return open.reshape(x, inferred_shape(open, from, std::move(target)));
  };
  return known_or_open(build, what_is_left, at_run_time);
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

Expr expand_at_run_time(const Builder& build, const Expr& x, const Expr& given) {
  Expr target = given;
  int64_t from = Builder::rank_of(x), to = length_of_vector(target);
  Expr have = sizes_of(build, x);
  const DType i64 = DType::Int(64);
  auto ones_before = [&](const Expr& sizes, int64_t count) {
    return count > 0 ? build.concat({build.full(1, {dim(count)}, i64), sizes}, 0) : sizes;
  };
  have = ones_before(have, to - from);
  target = ones_before(target, from - to);
  // A target of 1 keeps the input's size.
  Expr keeps = build.call("equal", {target, build.scalar(1, i64)});
  Expr y = build.call("dyn.broadcast_to", {x, build.call("where", {keeps, have, target})});
  std::vector<Dim> told(static_cast<size_t>(Builder::rank_of(y)), dim_any());
  if (auto known = build.partly_known(target); known && known->is_int()) told = known->ints;
  const std::vector<Dim>& own = Builder::shape_of(x);
  for (size_t i = 0; i < told.size(); ++i) {
    size_t lead = told.size() - own.size();
    if (i >= lead && !is_any(told[i])) told[i] = broadcast(own[i - lead], told[i]);
  }
  return build.with_sizes(y, told);
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
  const int64_t rank = checked_rank(build, Builder::rank_of(x) + static_cast<int64_t>(axes.size()));
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

Expr insert_axes_at_run_time(const Builder& build, const Expr& x, const Expr& axes) {
  const int64_t rank = checked_rank(build, Builder::rank_of(x) + length_of_vector(axes));
  Expr ones = build.full(1, {dim(rank)}, DType::Int(64));
  Expr sizes = spread(build, ones, other_axes(build, axes, rank), sizes_of(build, x));
  return open_reshape(build, x, sizes);
}

Expr remove_axes(const Builder& build, const Expr& x, std::vector<int64_t> axes) {
  axes = build.axes(axes, Builder::rank_of(x));
  for (int64_t a : axes) {
    auto c = as_const(Builder::shape_of(x)[static_cast<size_t>(a)]);
    if (c && *c != 1) {
      build.fail(codes::type_shape, "only a dimension of 1 can be removed", "1",
                 std::to_string(*c));
    }
  }
  std::ranges::sort(axes);
  return build.squeeze(x, axes);
}

Expr remove_single_axes(const Builder& build, const Expr& x) {
  std::vector<int64_t> axes;
  for (int64_t a = 0; a < Builder::rank_of(x); ++a) {
    if (as_const(Builder::shape_of(x)[static_cast<size_t>(a)]) == 1) axes.push_back(a);
  }
  return build.squeeze(x, axes);
}

// The sizes of the axes that are left; that the others are 1 is what the number of elements says.
Expr remove_axes_at_run_time(const Builder& build, const Expr& x, const Expr& axes) {
  Expr left = other_axes(build, axes, Builder::rank_of(x));
  Expr sizes = build.call("take", {sizes_of(build, x), left}, {{"axis", int64_t{0}}});
  return open_reshape(build, x, sizes);
}

}  // namespace relay::frontend
