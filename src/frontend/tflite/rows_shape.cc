// Other shapes for the same elements, and sizes as values.
#include <algorithm>

#include "base/codes/frontend.h"
#include "frontend/common/open_args.h"
#include "frontend/common/reshape.h"
#include "frontend/common/shape_args.h"
#include "frontend/tflite/node_context.h"

namespace relay::frontend::tflite {
namespace {

// The new shape is an input, or an option of older files.
Values reshape(NodeContext& ctx) {
  auto by_option = [&](NodeContext& known) {
    std::vector<Dim> target;
    if (const auto* list = known.options<schema::Reshape>().new_shape())
      for (int32_t d : *list) target.push_back(dim(d));
    return one(reshape_to(known, known.in(0), target, ZeroSize::Empty));
  };
  if (!ctx.has(1)) return by_option(ctx);
  return known_or_open(
      ctx,
      [](NodeContext& known) {
        return one(reshape_to(known, known.in(0), shape_elements(known, 1, "the new shape"),
                              ZeroSize::Empty));
      },
      [](NodeContext& open) {
        return one(reshape_at_run_time(open, open.in(0), int_vector(open, 1, "the new shape"),
                                       ZeroSize::Empty));
      });
}

Values squeeze(NodeContext& ctx) {
  const auto* list = ctx.options<schema::Squeeze>().axes();
  if (list == nullptr || list->size() == 0) return one(remove_single_axes(ctx, ctx.in(0)));
  return one(remove_axes(ctx, ctx.in(0), std::vector<int64_t>(list->begin(), list->end())));
}

Values expand_dims(NodeContext& ctx) {
  return one(insert_axes(ctx, ctx.in(0), {ctx.const_int(1, "the axis")}));
}

Values transpose(NodeContext& ctx) {
  Expr x = ctx.in(0);
  const int64_t rank = Builder::rank_of(x);
  const std::vector<int64_t> order = ctx.axes_of(1, rank);
  std::vector<int64_t> sorted = order;
  std::ranges::sort(sorted);
  if (sorted != Builder::all_axes(rank)) {
    ctx.fail(codes::frontend_attribute, "the permutation does not name every axis once",
             std::to_string(rank) + " axes");
  }
  return one(ctx.transpose(x, order));
}

Values shape(NodeContext& ctx) {
  return one(ctx.call("shape_of", {ctx.in(0)}, {{"dtype", to_value(ctx.out_dtype())}}));
}

Values rank(NodeContext& ctx) {
  return {value_of(known_scalar(dim(Builder::rank_of(ctx.in(0))), DType::Int(32)))};
}

Values broadcast_to(NodeContext& ctx) {
  return known_or_open(
      ctx,
      [](NodeContext& known) {
        return one(expand_to(known, known.in(0), shape_elements(known, 1, "the new shape")));
      },
      [](NodeContext& open) {
        return one(expand_at_run_time(open, open.in(0), int_vector(open, 1, "the new shape")));
      });
}

// The shape to which tensors of two shapes broadcast.
Values broadcast_args(NodeContext& ctx) {
  const DType dtype = ctx.in_dtype(0);
  std::vector<Expr> shapes{ctx.in(0), ctx.in(1)};
  const int64_t a = ctx.const_dim(shapes[0], 0, "the number of sizes"),
                b = ctx.const_dim(shapes[1], 0, "the number of sizes");
  for (size_t i : {0, 1}) {
    const int64_t missing = std::max(a, b) - (i == 0 ? a : b);
    if (missing == 0) continue;
    shapes[i] = ctx.concat(
        {ctx.ints(std::vector<int64_t>(static_cast<size_t>(missing), 1), dtype), shapes[i]}, 0);
  }
  Expr single = ctx.call("equal", {shapes[0], ctx.scalar(1, dtype)});
  return one(ctx.where(single, shapes[1], shapes[0]));
}

Values tile(NodeContext& ctx) {
  return known_or_open(
      ctx,
      [](NodeContext& known) {
        return one(repeat_to(known, known.in(0), shape_elements(known, 1, "the list of repeats")));
      },
      [](NodeContext& open) {
        Expr x = open.in(0),
             reps = int_vector_of(open, 1, "the list of repeats", Builder::rank_of(x));
        return one(open.call("dyn.tile", {x, reps}));
      });
}

}  // namespace

template <>
std::span<const Row> rows<Family::Shape>() {
  using O = schema::Options;
  constexpr auto kNoOptions2 = schema::Options2::NONE;
  static constexpr Row kRows[] = {
      {"BROADCAST_ARGS", broadcast_args},
      {"BROADCAST_TO", broadcast_to, O::broadcast_to},
      {"EXPAND_DIMS", expand_dims, O::expand_dims, {}, kNoOptions2, /*moves=*/true},
      {"RANK", rank, O::rank},
      {"RESHAPE", reshape, O::reshape, {}, kNoOptions2, /*moves=*/true},
      {"SHAPE", shape, O::shape},
      {"SQUEEZE", squeeze, O::squeeze, {}, kNoOptions2, /*moves=*/true},
      {"TILE", tile, O::tile},
      {"TRANSPOSE", transpose, O::transpose},
  };
  return kRows;
}

}  // namespace relay::frontend::tflite
