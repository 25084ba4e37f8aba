// Elements read and written at computed places.
#include <algorithm>
#include <cmath>
#include <limits>

#include "base/codes/frontend.h"
#include "base/codes/types.h"
#include "frontend/common/gather.h"
#include "frontend/common/open_args.h"
#include "frontend/common/shape_args.h"
#include "frontend/tflite/node_context.h"

namespace relay::frontend::tflite {
namespace {

Values gather(NodeContext& ctx) {
  const auto& o = ctx.options<schema::Gather>();
  Expr x = ctx.in(0), places = ctx.in(1);
  const int64_t rank = Builder::rank_of(x), axis = ctx.axis(o.axis(), rank);
  int64_t batch = o.batch_dims();
  if (batch < 0) batch += Builder::rank_of(places);
  if (batch == 0) return one(take_along(ctx, x, ctx.value(1), axis));
  if (batch < 0 || batch > axis || batch > Builder::rank_of(places))
    ctx.fail(codes::frontend_attribute, "'batch_dims' is out of range");
  // The axis moved behind those of the batch, and what was between them, which comes before the axis, moved back.
  std::vector<int64_t> order = Builder::all_axes(rank);
  order.erase(order.begin() + axis);
  order.insert(order.begin() + batch, axis);
  const int64_t own = Builder::rank_of(places) - batch, between = axis - batch;
  Expr coordinates = ctx.expand_dims(places, Builder::rank_of(places));
  Expr y = gather_nd(ctx, ctx.transpose(x, order), ctx.program().with_known(value_of(coordinates)),
                     batch);
  std::vector<int64_t> back = Builder::all_axes(Builder::rank_of(y));
  std::rotate(back.begin() + batch, back.begin() + batch + own,
              back.begin() + batch + own + between);
  return one(ctx.transpose(y, back));
}

Values gather_nd_of(NodeContext& ctx) { return one(gather_nd(ctx, ctx.in(0), ctx.value(1), 0)); }

// (places, updates, shape): updates at places of a tensor of zeros, summed.
Values scatter_nd_of(NodeContext& ctx) {
  Expr updates = ctx.in(1);
  const std::vector<Dim> shape = shape_elements(ctx, 2, "the shape");
  check_sizes(ctx, shape);
  // Bools are added as "or".
  const DType dtype = Builder::dtype_of(updates);
  if (dtype.is_bool()) updates = ctx.cast(updates, DType::Int(32));
  Expr zeros = ctx.full(0, shape, Builder::dtype_of(updates));
  return one(ctx.cast(scatter_nd(ctx, zeros, ctx.value(0), updates, Scatter::Add), dtype));
}

// (places, shape, values, default): places are a number, a vector, or coordinates.
Values sparse_to_dense(NodeContext& ctx) {
  Expr places = ctx.in(0), values = ctx.in(2);
  const std::vector<Dim> shape = shape_elements(ctx, 1, "the shape");
  check_sizes(ctx, shape);
  const int64_t rank = Builder::rank_of(places);
  if (rank == 0) places = ctx.reshape(places, std::vector<int64_t>{1, 1});
  if (rank == 1) places = ctx.expand_dims(places, 1);
  if (rank > 2) ctx.fail(codes::frontend_attribute, "the places must be a matrix");
  const Dim count = Builder::shape_of(places)[0];
  if (Builder::rank_of(values) == 0) values = ctx.broadcast_to(values, {count});
  Expr base = ctx.broadcast_to(ctx.scalar_of(3, Builder::dtype_of(values)), shape);
  return one(
      scatter_nd(ctx, base, ctx.program().with_known(value_of(places)), values, Scatter::Update));
}

// (x, updates, start): the block of `updates` at `start`, which is moved inside.
Values dynamic_update_slice(NodeContext& ctx) {
  Expr x = ctx.in(0), updates = ctx.in(1), start = ctx.cast(ctx.in(2), DType::Int(64));
  const int64_t rank = Builder::rank_of(x);
  if (Builder::rank_of(updates) != rank) {
    ctx.fail(codes::type_rank, "the update has another rank than the tensor",
             "rank " + std::to_string(rank), to_string(updates->type));
  }
  std::vector<int64_t> room;
  bool empty = false;
  for (int64_t a = 0; a < rank; ++a) {
    const int64_t part = ctx.const_dim(updates, a, "a size of the update");
    room.push_back(ctx.const_dim(x, a, "a size of the tensor") - part);
    empty = empty || part == 0;
    if (room.back() < 0)
      ctx.fail(codes::frontend_attribute, "the update is larger than the tensor");
  }
  if (empty) return one(x);
  start = ctx.maximum(ctx.minimum(start, ctx.ints(room)), ctx.scalar(0, DType::Int(64)));
  // Along each axis: the place in the update that each place of the tensor has, and whether it has one.
  Expr inside, y = updates;
  for (int64_t a = 0; a < rank; ++a) {
    const int64_t size = *as_const(Builder::shape_of(x)[static_cast<size_t>(a)]);
    const int64_t part = *as_const(Builder::shape_of(updates)[static_cast<size_t>(a)]);
    if (room[static_cast<size_t>(a)] == 0) continue;
    Expr place = ctx.sub(numbers_below(ctx, size), ctx.select(start, 0, a));
    Expr within = ctx.call(
        "logical_and",
        {ctx.call("greater_equal", {place, ctx.scalar(0, DType::Int(64))}),
         ctx.call("less", {place, ctx.scalar(static_cast<double>(part), DType::Int(64))})});
    within = ctx.expand_dims(within, 1, rank - a - 1);
    inside = inside ? ctx.call("logical_and", {inside, within}) : within;
    Expr at = ctx.clip(place, 0, static_cast<double>(part - 1));
    y = ctx.call("take", {y, at}, {{"axis", a}, {"mode", std::string("fast")}});
  }
  return one(inside ? ctx.where(inside, y, x) : y);
}

// Lines whose numbers are equal are joined; (x, numbers).
Values segment_sum(NodeContext& ctx) {
  const std::vector<int64_t> segments = ctx.const_ints(1, "the numbers of segments");
  int64_t count = 0;
  for (int64_t s : segments) {
    if (s >= INT32_MAX) ctx.fail(codes::frontend_limit, "the number of a segment is too large");
    count = std::max(count, s + 1);
  }
  return one(ctx.call("segment_sum", {ctx.in(0), ctx.in(1)}, {{"num_segments", count}}));
}

// (x, numbers, count); lines of a negative number are left out.
template <Scatter kHow>
Values unsorted_segment(NodeContext& ctx) {
  Expr segments = ctx.cast(ctx.in(1), DType::Int(64));
  Expr x = ctx.in_of_rank(0, std::max<int64_t>(Builder::rank_of(segments), 1));
  const int64_t count = ctx.const_int(2, "the number of segments");
  if (count < 0 || count >= INT32_MAX) {
    ctx.fail(codes::frontend_attribute, "the number of segments is out of range", "0 to 2^31 - 2",
             std::to_string(count));
  }
  const DType dtype = ctx.in_dtype(0);
  const int64_t rank = Builder::rank_of(segments);
  if (rank > 1) {
    x = ctx.merge_axes(x, 0, static_cast<size_t>(rank));
    segments = ctx.merge_axes(segments, 0, static_cast<size_t>(rank));
  }
  // One line more for what is left out.
  Expr place = ctx.where(ctx.call("less", {segments, ctx.scalar(0, DType::Int(64))}),
                         ctx.scalar(static_cast<double>(count), DType::Int(64)), segments);
  std::vector<Dim> shape = Builder::shape_of(x);
  shape[0] = dim(count + 1);
  Expr start;
  if (kHow == Scatter::Add || kHow == Scatter::Mul) {
    start = ctx.full(kHow == Scatter::Mul ? 1 : 0, shape, dtype);
  } else {
    const bool max = kHow == Scatter::Max;
    double limit = 0;
    if (dtype.is_floating()) {
      limit = max ? std::numeric_limits<float>::lowest() : std::numeric_limits<float>::max();
    } else {
      limit = std::ldexp(max ? -1.0 : 1.0, dtype.bits - 1) - (max ? 0 : 1);
    }
    start = ctx.full(limit, shape, dtype);
  }
  Expr y = scatter_nd(ctx, start, value_of(ctx.expand_dims(place, 1)), x, kHow);
  return one(ctx.slice(y, 0, 0, count));
}

}  // namespace

template <>
std::span<const Row> rows<Family::Gather>() {
  using O = schema::Options;
  static constexpr Row kRows[] = {
      {"DYNAMIC_UPDATE_SLICE", dynamic_update_slice, O::dynamic_update_slice},
      {"GATHER", gather, O::gather},
      {"GATHER_ND", gather_nd_of, O::gather_nd},
      {"SCATTER_ND", scatter_nd_of, O::scatter_nd},
      {"SEGMENT_SUM", segment_sum, O::segment_sum},
      {"SPARSE_TO_DENSE", sparse_to_dense, O::sparse_to_dense},
      {"UNSORTED_SEGMENT_MAX", unsorted_segment<Scatter::Max>, O::unsorted_segment_max},
      {"UNSORTED_SEGMENT_MIN", unsorted_segment<Scatter::Min>, O::unsorted_segment_min},
      {"UNSORTED_SEGMENT_PROD", unsorted_segment<Scatter::Mul>, O::unsorted_segment_prod},
      {"UNSORTED_SEGMENT_SUM", unsorted_segment<Scatter::Add>, O::unsorted_segment_sum},
  };
  return kRows;
}

}  // namespace relay::frontend::tflite
