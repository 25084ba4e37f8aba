// Operators that choose by data how many elements their results have.
#include <limits>
#include <numeric>

#include "base/codes/frontend.h"
#include "base/codes/types.h"
#include "frontend/common/open_args.h"
#include "frontend/common/shape_args.h"
#include "frontend/onnx/importer.h"

namespace relay::frontend::onnx {
namespace {

const DType kI64 = DType::Int(64);

Values convert_non_max_suppression(NodeContext& ctx) {
  Expr boxes = ctx.in(0), scores = ctx.in(1);
  if (NodeContext::rank_of(boxes) == 3 && NodeContext::rank_of(scores) == 3) {
    // Models name the same size twice, and differently.
    boxes = with_size(ctx, boxes, 2, dim(4));
    scores = with_size(ctx, scores, 2, NodeContext::shape_of(boxes)[1]);
    scores = with_size(ctx, scores, 0, NodeContext::shape_of(boxes)[0]);
  }
  auto number = [&](size_t input, double otherwise, DType dtype) {
    return ctx.has(input) ? one_number(ctx, input, dtype) : ctx.scalar(otherwise, dtype);
  };
  const DType f32 = DType::Float(32);
  return {value_of(ctx.call("vision.all_class_non_max_suppression",
                            {boxes, scores, number(2, 0, kI64), number(3, 0, f32),
                             number(4, -std::numeric_limits<double>::infinity(), f32)},
                            {{"center_point_box", ctx.attr("center_point_box", 0) != 0}}))};
}

// ---- Unique: equal elements are neighbours once they are sorted

// Lines along the first axis in order, and which of them differ from the one before.
struct Groups {
  Expr order;     // stable
  Expr is_first;  // of its group
};

Groups groups_of(NodeContext& ctx, const Expr& x) {
  const std::vector<Dim> shape = NodeContext::shape_of(x);
  Expr order = ctx.call("argsort", {x}, {{"axis", int64_t{0}}, {"dtype", to_value(kI64)}});
  Expr sorted = ctx.call("gather", {x, order}, {{"axis", int64_t{0}}});
  Expr n = ctx.select(sizes_of(ctx, x), 0, 0), zero = ctx.scalar(0, kI64);
  Expr place = open_range(ctx, zero, n);
  Expr before = ctx.call("maximum", {ctx.sub(place, ctx.scalar(1, kI64)), zero});
  Expr previous = ctx.call("take", {sorted, before}, {{"axis", int64_t{0}}});
  Expr differs = ctx.call("not_equal", {sorted, previous});
  if (NodeContext::dtype_of(x).is_floating()) {
    // All NaNs are one element.
    Expr numbers = ctx.call("logical_or", {ctx.call("equal", {sorted, sorted}),
                                           ctx.call("equal", {previous, previous})});
    differs = ctx.call("logical_and", {differs, numbers});
  }
  Expr starts =
      ctx.expand_dims(ctx.call("equal", {place, zero}), 1, static_cast<int64_t>(shape.size()) - 1);
  return {order, ctx.call("logical_or", {differs, starts})};
}

// For each line along the first axis the number of its group, in the order of the elements.
Expr ranks(NodeContext& ctx, const Expr& x) {
  Groups g = groups_of(ctx, x);
  Expr count = ctx.call("cumsum", {ctx.cast(g.is_first, kI64)},
                        {{"axis", int64_t{0}}, {"dtype", to_value(kI64)}});
  Expr number = ctx.sub(count, ctx.scalar(1, kI64));
  return ctx.call("scatter_elements", {ctx.call("zeros_like", {number}), g.order, number},
                  {{"axis", int64_t{0}}, {"reduction", std::string("update")}});
}

// One number for each row of a matrix, in the order of rows compared entry by entry: the ranks of pairs
// of columns, until one is left.
Expr row_ranks(NodeContext& ctx, const Expr& matrix, int64_t columns) {
  Expr r = ranks(ctx, matrix);
  Expr n = ctx.select(sizes_of(ctx, matrix), 0, 0);
  while (columns > 1) {
    if (columns % 2 != 0) {
      Expr none = ctx.call("zeros_like", {ctx.slice(r, 1, 0, 1)});
      r = ctx.concat({r, none}, 1);
      ++columns;
    }
    columns /= 2;
    Expr pairs = ctx.reshape(r, {NodeContext::shape_of(r)[0], dim(columns), dim(2)});
    r = ranks(ctx, ctx.add(ctx.mul(ctx.select(pairs, 2, 0), n), ctx.select(pairs, 2, 1)));
  }
  return ctx.squeeze(r, {1});
}

// For each string of a vector how many are before it: numbers in the order of the strings, equal ones for equal ones.
Expr places_of_strings(NodeContext& ctx, const Expr& words) {
  Expr before = ctx.call("less", {ctx.expand_dims(words, 0), ctx.expand_dims(words, 1)});
  return ctx.reduce("sum", ctx.cast(before, kI64), {1}, false);
}

Values convert_unique(NodeContext& ctx) {
  Expr x = ctx.in(0), key;
  int64_t axis = 0;
  if (ctx.has_attr("axis")) {
    if (NodeContext::dtype_of(x).is_string()) ctx.unsupported("lines of strings along an axis");
    const int64_t rank = NodeContext::rank_of(x);
    axis = ctx.axis(ctx.attr("axis", 0), rank);
    std::vector<int64_t> first{axis};
    int64_t columns = 1;
    for (int64_t a = 0; a < rank; ++a) {
      if (a == axis) continue;
      first.push_back(a);
      columns *= ctx.const_dim(x, a, "the size of what is compared");
    }
    if (columns < 1) ctx.unsupported("a comparison of empty parts");
    const Dim& lines = NodeContext::shape_of(x)[static_cast<size_t>(axis)];
    key = row_ranks(ctx, ctx.reshape(ctx.transpose(x, first), {lines, dim(columns)}), columns);
  } else {
    const std::vector<Dim>& shape = NodeContext::shape_of(x);
    x = ctx.reshape(x, {product(shape, 0, shape.size())});
    key = x;
  }
  if (NodeContext::dtype_of(key).is_string()) key = places_of_strings(ctx, key);
  Groups g = groups_of(ctx, key);
  Expr starts = ctx.cast(ctx.reshape(ctx.call("argwhere", {g.is_first}), {dim_any()}), kI64);
  auto at = [&](const Expr& vector, const Expr& places) {
    return ctx.call("take", {vector, places}, {{"axis", int64_t{0}}});
  };
  Expr indices = at(g.order, starts);
  Expr end = entries(ctx, sizes_of(ctx, key), 0, 1);
  Expr bounds = ctx.concat({starts, end}, 0);
  Expr groups = open_range(ctx, ctx.scalar(1, kI64), ctx.select(sizes_of(ctx, bounds), 0, 0));
  Expr counts = ctx.sub(at(bounds, groups), starts);
  Expr inverse = ranks(ctx, key);
  if (ctx.attr("sorted", 1) == 0) {
    // In the order in which they come first.
    Expr order = ctx.call("argsort", {indices}, {{"axis", int64_t{0}}, {"dtype", to_value(kI64)}});
    inverse = at(ctx.call("invert_permutation", {order}), inverse);
    indices = at(indices, order);
    counts = at(counts, order);
  }
  Expr y = ctx.call("take", {x, indices}, {{"axis", axis}});
  return {value_of(y), value_of(indices), value_of(inverse), value_of(counts)};
}

}  // namespace

template <>
std::span<const ConverterRow> converter_rows<Converters::Select>() {
  static constexpr ConverterRow rows[] = {
      {kOnnx, "NonMaxSuppression", 10, convert_non_max_suppression},
      {kOnnx, "Unique", 11, convert_unique},
  };
  return rows;
}

}  // namespace relay::frontend::onnx
