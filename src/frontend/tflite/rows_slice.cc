// Slices, splits, pads and reversals.
#include <algorithm>
#include <limits>

#include "base/codes/frontend.h"
#include "frontend/common/open_args.h"
#include "frontend/common/shape_args.h"
#include "frontend/common/slices.h"
#include "frontend/tflite/node_context.h"

namespace relay::frontend::tflite {
namespace {

constexpr int64_t kMost = std::numeric_limits<int64_t>::max();

Values slice(NodeContext& ctx) {
  return known_or_open(
      ctx,
      [](NodeContext& known) {
        const std::vector<Dim> begin = shape_elements(known, 1, "the list of begins"),
                               size = shape_elements(known, 2, "the list of sizes");
        if (begin.size() != size.size())
          known.fail(codes::frontend_attribute, "begins and sizes differ in length");
        SliceSpec s;
        s.starts = begin;
        for (size_t i = 0; i < size.size(); ++i)
          s.ends.push_back(as_const(size[i]) == -1 ? dim(kMost) : begin[i] + size[i]);
        return one(strided_slice(known, known.in(0), std::move(s)));
      },
      [](NodeContext& open) {
        Expr x = open.in(0);
        const int64_t n = Builder::rank_of(x);
        Expr begin = int_vector_of(open, 1, "the list of begins", n),
             size = int_vector_of(open, 2, "the list of sizes", n);
        Expr rest = open.call("equal", {size, open.scalar(-1, DType::Int(64))});
        Expr end = open.where(rest, sizes_of(open, x), open.add(begin, size));
        return one(
            slice_at_run_time(open, x, {.begin = begin, .end = end, .axes = Builder::all_axes(n)}));
      });
}

// One entry for each axis of the input, or a new axis; an ellipsis stands for the axes that no entry names.
Values strided_slice_of(NodeContext& ctx) {
  const auto& o = ctx.options<schema::StridedSlice>();
  Expr x = ctx.in(0);
  const std::vector<Dim> begin = shape_elements(ctx, 1, "the list of begins"),
                         end = shape_elements(ctx, 2, "the list of ends");
  const std::vector<int64_t> steps = ctx.const_ints(3, "the list of steps");
  if (end.size() != begin.size() || steps.size() != begin.size() || begin.size() > 31)
    ctx.fail(codes::frontend_attribute, "begins, ends and steps differ in length");
  const auto has = [](int32_t mask, size_t i) { return (mask >> i & 1) != 0; };
  int64_t named = 0, ellipses = 0;
  for (size_t i = 0; i < begin.size(); ++i) {
    ellipses += has(o.ellipsis_mask(), i);
    named += !has(o.ellipsis_mask(), i) && !has(o.new_axis_mask(), i);
  }
  if (ellipses > 1)
    ctx.fail(codes::frontend_attribute, "the slice has more than one ellipsis", "at most 1",
             std::to_string(ellipses));
  const int64_t rank = Builder::rank_of(x);
  if (named > rank) {
    ctx.fail(codes::frontend_attribute, "the slice names more axes than there are",
             "at most " + std::to_string(rank), std::to_string(named));
  }
  SliceSpec s;
  std::vector<int64_t> removed, inserted;
  int64_t axis = 0, place = 0;  // in the input, and in the result
  for (size_t i = 0; i < begin.size(); ++i) {
    if (has(o.ellipsis_mask(), i)) {
      axis += rank - named;
      place += rank - named;
      continue;
    }
    if (has(o.new_axis_mask(), i)) {
      inserted.push_back(place++);
      continue;
    }
    const bool shrinks = has(o.shrink_axis_mask(), i);
    if (steps[i] == 0) ctx.fail(codes::frontend_attribute, "a step is zero", "a step of not 0");
    const bool back = steps[i] < 0 && !shrinks;
    Dim first = has(o.begin_mask(), i) && !shrinks ? dim(back ? kMost : 0) : begin[i];
    Dim last = has(o.end_mask(), i) ? dim(back ? -kMost : kMost)
               : o.offset()         ? begin[i] + end[i]
                                    : end[i];
    if (shrinks) {
      last = as_const(first) == -1 ? dim(kMost) : first + dim(1);
      removed.push_back(axis);
    } else {
      ++place;
    }
    s.starts.push_back(first);
    s.ends.push_back(last);
    s.axes.push_back(axis++);
    s.steps.push_back(shrinks ? 1 : steps[i]);
  }
  if (!s.starts.empty()) x = strided_slice(ctx, x, std::move(s));
  if (!removed.empty()) x = ctx.squeeze(x, removed);
  for (int64_t at : inserted) x = ctx.expand_dims(x, at);
  return one(x);
}

// (axis, x) to equal parts.
Values split(NodeContext& ctx) {
  Expr x = ctx.in(1);
  const int64_t axis = ctx.axis(ctx.const_int(0, "the axis"), Builder::rank_of(x));
  return values_of(split_evenly(ctx, x, static_cast<int64_t>(ctx.num_outputs()), axis));
}

// (x, sizes, axis), where one size may be -1: what the others leave over.
Values split_v(NodeContext& ctx) {
  Expr x = ctx.in(0);
  const int64_t axis = ctx.axis(ctx.const_int(2, "the axis"), Builder::rank_of(x));
  std::vector<int64_t> sizes = ctx.const_ints(1, "the list of sizes");
  int64_t sum = 0, rest = -1;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] < 0) {
      if (rest >= 0) ctx.fail(codes::frontend_attribute, "more than one size is -1");
      rest = static_cast<int64_t>(i);
    } else if (__builtin_add_overflow(sum, sizes[i], &sum)) {
      ctx.fail(codes::frontend_attribute, "the parts are larger than the axis");
    }
  }
  if (rest >= 0) {
    const int64_t left = ctx.const_dim(x, axis, "the size of the axis") - sum;
    if (left < 0) ctx.fail(codes::frontend_attribute, "the parts are larger than the axis");
    sizes[static_cast<size_t>(rest)] = left;
  }
  if (sizes.size() != ctx.num_outputs())
    ctx.fail(codes::frontend_attribute, "the parts are not as many as the outputs");
  return values_of(split_into(ctx, x, sizes, axis));
}

// The pads of (rank, 2): before each axis, then behind it.
std::vector<int64_t> pads_of(NodeContext& ctx, int64_t rank) {
  const std::vector<int64_t> list = ctx.const_ints(1, "the list of pads");
  if (static_cast<int64_t>(list.size()) != 2 * rank) {
    ctx.fail(codes::frontend_attribute, "the pads do not fit the rank", std::to_string(2 * rank),
             std::to_string(list.size()));
  }
  std::vector<int64_t> out(list.size());
  for (size_t a = 0; a < static_cast<size_t>(rank); ++a) {
    out[a] = list[2 * a];
    out[a + static_cast<size_t>(rank)] = list[2 * a + 1];
  }
  return out;
}

Values pad_of(NodeContext& ctx) {
  Expr x = ctx.in(0);
  const DType dtype = ctx.in_dtype(0);
  Expr fill;
  if (ctx.has(2)) {
    fill = ctx.scalar_of(2, dtype);
  } else {
    const double zero =
        ctx.is_quantized() ? static_cast<double>(ctx.out_quantization().zero[0]) : 0;
    fill = ctx.scalar(zero, dtype);
  }
  return one(pad(ctx, x, pads_of(ctx, Builder::rank_of(x)), "constant", fill));
}

Values mirror_pad(NodeContext& ctx) {
  Expr x = ctx.in(0);
  const bool symmetric = ctx.options<schema::MirrorPad>().mode() == schema::MirrorMode::symmetric;
  const int64_t rank = Builder::rank_of(x);
  const std::vector<int64_t> pads = pads_of(ctx, rank);
  ValueList widths;
  for (size_t a = 0; a < static_cast<size_t>(rank); ++a)
    widths.push_back(to_value({pads[a], pads[a + static_cast<size_t>(rank)]}));
  return one(ctx.call("nn.mirror_pad", {x},
                      {{"pad_width", AttrValue(std::move(widths))},
                       {"mode", std::string(symmetric ? "SYMMETRIC" : "REFLECT")}}));
}

Values reverse(NodeContext& ctx) {
  Expr x = ctx.in(0);
  for (int64_t axis : ctx.axes_of(1, Builder::rank_of(x)))
    x = ctx.call("reverse", {x}, {{"axis", axis}});
  return one(x);
}

Values reverse_sequence(NodeContext& ctx) {
  const auto& o = ctx.options<schema::ReverseSequence>();
  const int64_t rank = Builder::rank_of(ctx.in(0));
  return one(ctx.call(
      "reverse_sequence", {ctx.in(0), ctx.cast(ctx.in(1), DType::Int(32))},
      {{"seq_axis", ctx.axis(o.seq_dim(), rank)}, {"batch_axis", ctx.axis(o.batch_dim(), rank)}}));
}

}  // namespace

template <>
std::span<const Row> rows<Family::Slice>() {
  using O = schema::Options;
  static constexpr Row kRows[] = {
      {"MIRROR_PAD", mirror_pad, O::mirror_pad},
      {"PAD", pad_of, O::pad},
      {"PADV2", pad_of, O::pad_v2},
      {"REVERSE_SEQUENCE", reverse_sequence, O::reverse_sequence},
      {"REVERSE_V2", reverse, O::reverse},
      {"SLICE", slice, O::slice},
      {"SPLIT", split, O::split},
      {"SPLIT_V", split_v, O::split_v},
      {"STRIDED_SLICE", strided_slice_of, O::strided_slice},
  };
  return kRows;
}

}  // namespace relay::frontend::tflite
