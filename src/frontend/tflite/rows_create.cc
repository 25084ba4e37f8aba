// Constants and tensors by their sizes.
#include <cmath>

#include "base/codes/frontend.h"
#include "frontend/common/gather.h"
#include "frontend/common/open_args.h"
#include "frontend/common/range.h"
#include "frontend/common/shape_args.h"
#include "frontend/tflite/node_context.h"

namespace relay::frontend::tflite {
namespace {

// (shape, value)
Values fill(NodeContext& ctx) {
  return known_or_open(
      ctx,
      [](NodeContext& known) {
        const std::vector<Dim> shape = shape_elements(known, 0, "the shape");
        check_sizes(known, shape);
        return one(known.broadcast_to(known.in(1), shape));
      },
      [](NodeContext& open) {
        return one(open.call("dyn.full", {open.in(1), int_vector(open, 0, "the shape")}));
      });
}

// (start, limit, step). Of float32 the length is computed in float32, too, and each known element is the one before it
// plus the step.
Values range(NodeContext& ctx) {
  if (ctx.in_dtype(0) != DType::Float(32)) return {range_of(ctx)};
  return known_or_open(
      ctx,
      [](NodeContext& known) {
        const KnownValue start = known.must_know(0, "the start"),
                         limit = known.must_know(1, "the limit"),
                         step = known.must_know(2, "the step");
        if (start.size() != 1 || limit.size() != 1 || step.size() != 1 || start.is_int() ||
            limit.is_int() || step.is_int()) {
          known.fail(codes::frontend_attribute, "start, limit and step must be one float each");
        }
        auto element = static_cast<float>(start.float_at(0));
        const auto by = static_cast<float>(step.float_at(0)),
                   end = static_cast<float>(limit.float_at(0));
        const bool down = by < 0;
        if (!(down ? end <= element : by > 0 && element <= end)) {
          known.fail(codes::frontend_attribute,
                     "the step does not lead from the start to the limit",
                     "a step of not 0 in the direction of the limit", std::to_string(by));
        }
        const float count = std::ceil(std::abs((end - element) / by));
        if (!(count < 1e15f)) known.fail(codes::frontend_limit, "the range is too long");
        const auto n = static_cast<int64_t>(count);
        known.charge_bytes(n, DType::Float(32));
        Tensor t = Tensor::empty(DType::Float(32), {n});
        for (int64_t i = 0; i < n; ++i, element += by) t.data<float>()[i] = element;
        return Values{value_of(std::move(t))};
      },
      [](NodeContext& open) {
        const DType f32 = DType::Float(32), i64 = DType::Int(64);
        Expr start = open.scalar_of(0, f32), step = open.scalar_of(2, f32);
        Expr count = open.call("ceil", {open.div(open.sub(open.scalar_of(1, f32), start), step)});
        // A step of 0 is refused by the range of places, and one that leads away gives no elements.
        Expr moves = open.call("not_equal", {step, open.scalar(0, f32)});
        count = open.where(moves, open.clip(count, 0, 1e15), open.scalar(0, f32));
        Expr places = open.call(
            "dyn.arange", {open.scalar(0, i64), open.cast(count, i64), open.cast(moves, i64)});
        return one(open.add(start, open.mul(open.cast(places, f32), step)));
      });
}

Values zeros_like(NodeContext& ctx) { return one(ctx.call("zeros_like", {ctx.in(0)})); }

// (places, depth, on, off)
Values one_hot_of(NodeContext& ctx) {
  const DType dtype = ctx.in_dtype(2);
  const int64_t axis =
      ctx.axis(ctx.options<schema::OneHot>().axis(), Builder::rank_of(ctx.in(0)) + 1);
  const int64_t depth = ctx.const_int(1, "the depth");
  if (depth < 1)
    ctx.fail(codes::frontend_attribute, "the depth is out of range", "1 or more",
             std::to_string(depth));
  // Places outside of the axis are nowhere on; the builder counts negative ones from the end.
  Expr places = ctx.cast(ctx.in(0), DType::Int(64));
  Expr outside = ctx.call("less", {places, ctx.scalar(0, DType::Int(64))});
  places = ctx.where(outside, ctx.scalar(static_cast<double>(depth), DType::Int(64)), places);
  return one(one_hot(ctx, places, depth, ctx.scalar_of(2, dtype), ctx.scalar_of(3, dtype), axis));
}

// A matrix with this diagonal for every line of the input.
Expr diagonal_matrix(NodeContext& ctx, const Expr& base, const Expr& diagonal) {
  return ctx.call("matrix_set_diag", {base, diagonal});
}

Values matrix_diag(NodeContext& ctx) {
  Expr x = ctx.in_of_rank(0, 1);
  std::vector<Dim> shape = Builder::shape_of(x);
  shape.push_back(shape.back());
  return one(diagonal_matrix(ctx, ctx.full(0, shape, ctx.in_dtype(0)), x));
}

Values matrix_set_diag(NodeContext& ctx) { return one(diagonal_matrix(ctx, ctx.in(0), ctx.in(1))); }

// (x, dilations, fill): elements with others between them.
Values dilate(NodeContext& ctx) {
  const std::vector<int64_t> steps = ctx.const_ints(1, "the list of dilations");
  const auto value = ctx.const_scalar(2);
  if (!value) ctx.unsupported("a fill that is known only when the model runs");
  return one(ctx.call("nn.dilate", {ctx.in(0)},
                      {{"strides", to_value(steps)}, {"dilation_value", *value}}));
}

}  // namespace

template <>
std::span<const Row> rows<Family::Create>() {
  using O = schema::Options;
  static constexpr Row kRows[] = {
      {"DILATE", dilate},
      {"FILL", fill, O::fill},
      {"MATRIX_DIAG", matrix_diag, O::matrix_diag},
      {"MATRIX_SET_DIAG", matrix_set_diag, O::matrix_set_diag},
      {"ONE_HOT", one_hot_of, O::one_hot},
      {"RANGE", range, O::range},
      {"ZEROS_LIKE", zeros_like, O::zeros_like},
  };
  return kRows;
}

}  // namespace relay::frontend::tflite
