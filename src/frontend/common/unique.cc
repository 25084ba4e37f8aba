#include "frontend/common/unique.h"

#include "frontend/common/open_args.h"
#include "frontend/common/shape_args.h"

namespace relay::frontend {
namespace {

const DType kI64 = DType::Int(64);

// Equal elements are neighbours once they are sorted.

// Lines along the first axis in order, and which of them differ from the one before.
struct Groups {
  Expr order;     // stable
  Expr is_first;  // of its group
};

Groups groups_of(const Builder& build, const Expr& x) {
  const std::vector<Dim> shape = Builder::shape_of(x);
  Expr order = build.call("argsort", {x}, {{"axis", int64_t{0}}, {"dtype", to_value(kI64)}});
  Expr sorted = build.call("gather", {x, order}, {{"axis", int64_t{0}}});
  Expr n = build.select(sizes_of(build, x), 0, 0), zero = build.scalar(0, kI64);
  Expr place = open_range(build, zero, n);
  Expr before = build.call("maximum", {build.sub(place, build.scalar(1, kI64)), zero});
  Expr previous = build.call("take", {sorted, before}, {{"axis", int64_t{0}}});
  Expr differs = build.call("not_equal", {sorted, previous});
  if (Builder::dtype_of(x).is_floating()) {
    // All NaNs are one element.
    Expr numbers = build.call("logical_or", {build.call("equal", {sorted, sorted}),
                                             build.call("equal", {previous, previous})});
    differs = build.call("logical_and", {differs, numbers});
  }
  Expr starts = build.expand_dims(build.call("equal", {place, zero}), 1,
                                  static_cast<int64_t>(shape.size()) - 1);
  return {order, build.call("logical_or", {differs, starts})};
}

// For each line along the first axis the number of its group, in the order of the elements.
Expr ranks(const Builder& build, const Expr& x) {
  Groups g = groups_of(build, x);
  Expr count = build.call("cumsum", {build.cast(g.is_first, kI64)},
                          {{"axis", int64_t{0}}, {"dtype", to_value(kI64)}});
  Expr number = build.sub(count, build.scalar(1, kI64));
  return build.call("scatter_elements", {build.call("zeros_like", {number}), g.order, number},
                    {{"axis", int64_t{0}}, {"reduction", std::string("update")}});
}

// One number for each row of a matrix, in the order of rows compared entry by entry: the ranks of pairs
// of columns, until one is left.
Expr row_ranks(const Builder& build, const Expr& matrix, int64_t columns) {
  Expr r = ranks(build, matrix);
  Expr n = build.select(sizes_of(build, matrix), 0, 0);
  while (columns > 1) {
    if (columns % 2 != 0) {
      Expr none = build.call("zeros_like", {build.slice(r, 1, 0, 1)});
      r = build.concat({r, none}, 1);
      ++columns;
    }
    columns /= 2;
    Expr pairs = build.reshape(r, {Builder::shape_of(r)[0], dim(columns), dim(2)});
    r = ranks(build, build.add(build.mul(build.select(pairs, 2, 0), n), build.select(pairs, 2, 1)));
  }
  return build.squeeze(r, {1});
}

}  // namespace

Unique unique(const Builder& build, const Expr& input, std::optional<int64_t> along, bool sorted) {
  Expr x = input, key;
  const int64_t axis = along.value_or(0);
  if (along) {
    if (Builder::dtype_of(x).is_string()) build.unsupported("lines of strings along an axis");
    const int64_t rank = Builder::rank_of(x);
    std::vector<int64_t> first{axis};
    int64_t columns = 1;
    for (int64_t a = 0; a < rank; ++a) {
      if (a == axis) continue;
      first.push_back(a);
      columns *= build.const_dim(x, a, "the size of what is compared");
    }
    if (columns < 1) build.unsupported("a comparison of empty parts");
    const Dim& lines = Builder::shape_of(x)[static_cast<size_t>(axis)];
    key =
        row_ranks(build, build.reshape(build.transpose(x, first), {lines, dim(columns)}), columns);
  } else {
    const std::vector<Dim>& shape = Builder::shape_of(x);
    x = build.reshape(x, {product(shape, 0, shape.size())});
    key = x;
  }
  Groups g = groups_of(build, key);
  Expr starts = build.cast(build.reshape(build.call("argwhere", {g.is_first}), {dim_any()}), kI64);
  auto at = [&](const Expr& vector, const Expr& places) {
    return build.call("take", {vector, places}, {{"axis", int64_t{0}}});
  };
  Expr indices = at(g.order, starts);
  Expr end = entries(build, sizes_of(build, key), 0, 1);
  Expr bounds = build.concat({starts, end}, 0);
  Expr groups =
      open_range(build, build.scalar(1, kI64), build.select(sizes_of(build, bounds), 0, 0));
  Expr counts = build.sub(at(bounds, groups), starts);
  Expr inverse = ranks(build, key);
  if (!sorted) {
    // In the order in which they come first.
    Expr order =
        build.call("argsort", {indices}, {{"axis", int64_t{0}}, {"dtype", to_value(kI64)}});
    inverse = at(build.call("invert_permutation", {order}), inverse);
    indices = at(indices, order);
    counts = at(counts, order);
  }
  Expr y = build.call("take", {x, indices}, {{"axis", axis}});
  return {y, indices, inverse, counts};
}

}  // namespace relay::frontend
