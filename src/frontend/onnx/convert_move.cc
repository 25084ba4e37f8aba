// Operators that move, join, cut, repeat and pad tensors.
#include <algorithm>

#include "base/codes/frontend.h"
#include "base/codes/types.h"
#include "frontend/common/open_args.h"
#include "frontend/common/reshape.h"
#include "frontend/common/shape_args.h"
#include "frontend/common/slices.h"
#include "frontend/onnx/graph_importer.h"
#include "frontend/onnx/importer.h"

namespace relay::frontend::onnx {
namespace {

// ---- Concat, Split, Slice ----------------------------------------------------------------------

Values convert_concat(NodeContext& ctx) {
  std::vector<Expr> parts = ctx.all();
  int64_t axis = ctx.axis(ctx.attr("axis", 1), NodeContext::rank_of(parts[0]));
  return {value_of(ctx.concat(std::move(parts), axis))};
}

Values split_known(NodeContext& ctx) {
  auto shape = shape_of_input(ctx, 0);
  if (!shape) shape = NodeContext::shape_of(ctx.in(0));
  int64_t axis = ctx.axis(ctx.attr("axis", 0), static_cast<int64_t>(shape->size()));
  const Dim& whole = (*shape)[static_cast<size_t>(axis)];
  auto outputs = static_cast<int64_t>(ctx.num_outputs());
  std::vector<int64_t> sizes;
  if (ctx.has_attr("split")) {
    sizes = ctx.attr_ints("split");
  } else if (ctx.has(1)) {
    sizes = ctx.const_ints(1, "the list of sizes");
  } else {
    int64_t parts = ctx.attr("num_outputs", outputs);
    if (parts != outputs || parts < 1) {
      ctx.fail(codes::frontend_attribute, "the number of outputs does not fit",
               std::to_string(parts), std::to_string(outputs));
    }
    auto n = as_const(whole);
    if (!n) {
      if (as_const(mod(whole, dim(parts))) != 0) {
        ctx.fail(codes::frontend_dynamic, "an open dimension is split into equal parts", "a number",
                 to_string(whole), "give the input's shape, as in --input NAME=1x3x224x224");
      }
      Values out;
      for (const Expr& e : ctx.split(ctx.in(0), axis, parts)) out.push_back(value_of(e));
      return out;
    }
    // The last part is smaller when the size does not divide.
    int64_t each = (*n + parts - 1) / parts;
    for (int64_t i = 0; i < parts; ++i) {
      sizes.push_back(std::clamp<int64_t>(*n - i * each, 0, each));
    }
  }
  int64_t sum = 0;
  for (int64_t s : sizes) {
    if (s < 0 || __builtin_add_overflow(sum, s, &sum)) {
      ctx.fail(codes::frontend_attribute, "a part has an impossible size", "sizes of 0 or more",
               std::to_string(s));
    }
  }
  auto n = as_const(whole);
  if (static_cast<int64_t>(sizes.size()) != outputs || (n && *n != sum)) {
    ctx.fail(codes::type_shape, "the parts do not add up",
             std::to_string(outputs) + " parts of " + to_string(whole) + " together",
             std::to_string(sizes.size()) + " parts of " + std::to_string(sum) + " together");
  }
  Values out;
  for (Expr& part : split_into(ctx, ctx.in(0), sizes, axis)) out.push_back(value_of(part));
  return out;
}

Values split_open(NodeContext& ctx) {
  Expr x = ctx.in(0), sizes;
  int64_t axis = ctx.axis(ctx.attr("axis", 0), NodeContext::rank_of(x));
  auto parts = static_cast<int64_t>(ctx.num_outputs());
  if (ctx.has(1)) {
    sizes = int_vector_of(ctx, 1, "the list of sizes", parts);
  } else {
    // Equal parts; the last is smaller when the size does not divide.
    const DType i64 = DType::Int(64);
    Expr n = entries(ctx, sizes_of(ctx, x), axis, axis + 1);
    auto number = [&](int64_t v) { return ctx.scalar(static_cast<double>(v), i64); };
    Expr each = ctx.call("floor_divide", {ctx.add(n, number(parts - 1)), number(parts)});
    Expr begin = ctx.mul(numbers_below(ctx, parts), each);
    Expr rest = ctx.call("maximum", {ctx.sub(n, begin), number(0)});
    sizes = ctx.call("minimum", {rest, each});
  }
  Expr all = ctx.call("dyn.split", {x, sizes}, {{"axis", axis}});
  Values out;
  for (int64_t i = 0; i < parts; ++i) out.push_back(value_of(ctx.item(all, i)));
  return out;
}

Values convert_split(NodeContext& ctx) { return known_or_open(ctx, split_known, split_open); }

SliceSpec slice_spec(NodeContext& ctx) {
  SliceSpec s;
  if (ctx.has_attr("starts")) {
    for (int64_t v : ctx.attr_ints("starts")) s.starts.push_back(dim(v));
    for (int64_t v : ctx.attr_ints("ends")) s.ends.push_back(dim(v));
    s.axes = ctx.attr_ints("axes");
  } else {
    s.starts = shape_elements(ctx, 1, "the list of starts");
    s.ends = shape_elements(ctx, 2, "the list of ends");
    if (ctx.has(3)) s.axes = ctx.const_ints(3, "the list of axes");
    if (ctx.has(4)) s.steps = ctx.const_ints(4, "the list of steps");
  }
  return s;
}

Values slice_known(NodeContext& ctx) {
  return {value_of(strided_slice(ctx, ctx.in(0), slice_spec(ctx)))};
}

Values slice_open(NodeContext& ctx) {
  Expr x = ctx.in(0);
  const int64_t rank = NodeContext::rank_of(x);
  if (!ctx.has(1)) return slice_known(ctx);
  const DType i64 = DType::Int(64);
  static constexpr const char* kWhat[] = {nullptr, "the list of starts", "the list of ends",
                                          "the list of axes", "the list of steps"};
  // All are as long as one of which that is known.
  std::optional<int64_t> n;
  for (size_t i = 1; i <= 4 && !n; ++i) {
    if (!ctx.has(i)) continue;
    if (Expr list = int_list(ctx, i, kWhat[i]); !has_open_length(list)) n = length_of_vector(list);
  }
  auto list = [&](size_t i) {
    return n ? int_vector_of(ctx, i, kWhat[i], *n) : int_list(ctx, i, kWhat[i]);
  };
  Expr begin = list(1), end = list(2);
  Expr steps = ctx.has(4) ? list(4) : ones_for(ctx, begin);
  Expr which = ctx.has(3) ? list(3) : nullptr;
  std::vector<int64_t> axes = Builder::all_axes(n.value_or(rank));
  auto known = which ? ctx.known(3) : std::nullopt;
  if (known && known->is_constant()) {
    axes = ctx.axes(ctx.const_ints(3, kWhat[3]), rank);
  } else if (which || !n) {
    // All axes are cut: those that are not named at the bounds that they have.
    if (!which) which = open_range(ctx, ctx.scalar(0, i64), ctx.select(sizes_of(ctx, begin), 0, 0));
    begin = spread(ctx, ctx.full(0, {dim(rank)}, i64), which, begin);
    end = spread(ctx, sizes_of(ctx, x), which, end);
    steps = spread(ctx, ctx.full(1, {dim(rank)}, i64), which, steps);
    axes = Builder::all_axes(rank);
  }
  auto known_steps = ctx.has(4) ? ctx.known(4) : std::nullopt;
  bool forward = !ctx.has(4) || (known_steps && known_steps->is_constant());
  for (int64_t i = 0; forward && known_steps && i < known_steps->size(); ++i) {
    forward = known_steps->int_at(i) > 0;
  }
  if (!forward) {
    // A start before the first element is the first one.
    Expr sizes = ctx.call("take", {sizes_of(ctx, x), ctx.ints(axes)}, {{"axis", int64_t{0}}});
    begin = ctx.call("maximum", {begin, ctx.call("negative", {sizes})});
  }
  return {value_of(open_slice(ctx, x, begin, end, steps, axes))};
}

Values convert_slice(NodeContext& ctx) { return known_or_open(ctx, slice_known, slice_open); }
Values convert_slice_attr(NodeContext& ctx) { return convert_slice(ctx); }

// ---- Expand, Tile, Pad -------------------------------------------------------------------------

Values expand_known(NodeContext& ctx) {
  return {value_of(expand_to(ctx, ctx.in(0), shape_elements(ctx, 1, "the new shape")))};
}

Values expand_open(NodeContext& ctx) {
  Expr x = ctx.in(0), target = int_vector(ctx, 1, "the new shape");
  int64_t from = NodeContext::rank_of(x), to = length_of_vector(target);
  Expr have = sizes_of(ctx, x);
  const DType i64 = DType::Int(64);
  auto ones_before = [&](const Expr& sizes, int64_t count) {
    return count > 0 ? ctx.concat({ctx.full(1, {dim(count)}, i64), sizes}, 0) : sizes;
  };
  have = ones_before(have, to - from);
  target = ones_before(target, from - to);
  // A target of 1 keeps the input's size.
  Expr keeps = ctx.call("equal", {target, ctx.scalar(1, i64)});
  Expr y = ctx.call("dyn.broadcast_to", {x, ctx.call("where", {keeps, have, target})});
  std::vector<Dim> told(static_cast<size_t>(NodeContext::rank_of(y)), dim_any());
  if (auto known = ctx.partly_known(target); known && known->is_int()) told = known->ints;
  const std::vector<Dim>& own = NodeContext::shape_of(x);
  for (size_t i = 0; i < told.size(); ++i) {
    size_t lead = told.size() - own.size();
    if (i >= lead && !is_any(told[i])) told[i] = broadcast(own[i - lead], told[i]);
  }
  return {value_of(ctx.with_sizes(y, told))};
}

Values convert_expand(NodeContext& ctx) { return known_or_open(ctx, expand_known, expand_open); }

Values tile_known(NodeContext& ctx) {
  return {value_of(repeat_to(ctx, ctx.in(0), shape_elements(ctx, 1, "the list of repeats")))};
}

Values tile_open(NodeContext& ctx) {
  Expr x = ctx.in(0), reps = int_vector_of(ctx, 1, "the list of repeats", NodeContext::rank_of(x));
  return {value_of(ctx.call("dyn.tile", {x, reps}))};
}

Values convert_tile(NodeContext& ctx) { return known_or_open(ctx, tile_known, tile_open); }

// One repetition for each element, along one axis.
Values convert_tile_axis(NodeContext& ctx) {
  Expr x = ctx.in(0);
  int64_t rank = NodeContext::rank_of(x);
  auto one = [&](size_t input, const char* what) {
    auto k = ctx.known(input);
    if (k && !k->is_int() && k->size() == 1) return static_cast<int64_t>(k->float_at(0));
    return ctx.const_int(input, what);
  };
  std::vector<int64_t> reps(static_cast<size_t>(rank), 1);
  reps[static_cast<size_t>(ctx.axis(one(2, "the axis"), rank))] = one(1, "the number of tiles");
  return {value_of(ctx.call("tile", {x}, {{"reps", to_value(reps)}}))};
}

Values convert_pad_attr(NodeContext& ctx) {
  Expr x = ctx.in(0);
  return {value_of(pad(ctx, x, ctx.attr_ints(ctx.opset() < 2 ? "paddings" : "pads"),
                       ctx.attr_string("mode", "constant"),
                       ctx.scalar_like(ctx.attr_float("value", 0), x)))};
}

Expr fill_of_pad(NodeContext& ctx, const Expr& x) {
  return ctx.has(2) ? one_number(ctx, 2, NodeContext::dtype_of(x)) : ctx.scalar_like(0, x);
}

Values pad_known(NodeContext& ctx) {
  Expr x = ctx.in(0);
  int64_t rank = NodeContext::rank_of(x);
  std::vector<int64_t> pads = ctx.const_ints(1, "the list of pads");
  if (ctx.has(3)) {
    std::vector<int64_t> axes = ctx.axes(ctx.const_ints(3, "the list of axes"), rank);
    if (pads.size() != 2 * axes.size()) {
      ctx.fail(codes::frontend_attribute, "the list of pads has the wrong length",
               std::to_string(2 * axes.size()), std::to_string(pads.size()));
    }
    std::vector<int64_t> all(static_cast<size_t>(2 * rank), 0);
    for (size_t i = 0; i < axes.size(); ++i) {
      all[static_cast<size_t>(axes[i])] = pads[i];
      all[static_cast<size_t>(axes[i] + rank)] = pads[i + axes.size()];
    }
    pads = std::move(all);
  }
  return {value_of(pad(ctx, x, pads, ctx.attr_string("mode", "constant"), fill_of_pad(ctx, x)))};
}

Values pad_open(NodeContext& ctx) {
  Expr x = ctx.in(0), pads;
  int64_t rank = NodeContext::rank_of(x);
  if (ctx.has(3)) {
    // A row of what comes before the axes, and one of what comes behind them.
    Expr axes = int_list(ctx, 3, "the list of axes");
    Expr rows = open_reshape(ctx, int_list(ctx, 1, "the list of pads"),
                             ctx.concat({ctx.ints({2}), length_at_run_time(ctx, axes)}, 0));
    Expr none = ctx.full(0, {dim(rank)}, DType::Int(64));
    auto side = [&](int64_t row) { return spread(ctx, none, axes, ctx.select(rows, 0, row)); };
    pads = ctx.concat({side(0), side(1)}, 0);
  } else {
    pads = int_vector_of(ctx, 1, "the list of pads", 2 * rank);
  }
  return {value_of(ctx.call("dyn.pad", {x, pads, fill_of_pad(ctx, x)},
                            {{"pad_mode", ctx.attr_string("mode", "constant")}}))};
}

Values convert_pad(NodeContext& ctx) { return known_or_open(ctx, pad_known, pad_open); }

Values center_crop_pad_known(NodeContext& ctx) {
  Expr x = ctx.in(0);
  int64_t rank = NodeContext::rank_of(x);
  std::vector<int64_t> target = ctx.const_ints(1, "the new shape");
  const std::vector<int64_t> axes = ctx.attr_axes(rank);
  if (axes.size() != target.size()) {
    ctx.fail(codes::frontend_attribute, "the new shape has the wrong length",
             std::to_string(axes.size()), std::to_string(target.size()));
  }
  std::vector<int64_t> pads(static_cast<size_t>(2 * rank), 0);
  for (size_t i = 0; i < axes.size(); ++i) {
    int64_t have = ctx.const_dim(x, axes[i], "the size of a cropped or padded axis");
    if (target[i] < 0) ctx.fail(codes::frontend_attribute, "a new size is negative");
    int64_t more = target[i] - have;
    if (more < 0) x = ctx.slice(x, axes[i], -more / 2, -more / 2 + target[i]);
    if (more > 0) {
      pads[static_cast<size_t>(axes[i])] = more / 2;
      pads[static_cast<size_t>(axes[i] + rank)] = more - more / 2;
    }
  }
  return {value_of(pad(ctx, x, pads, "constant", ctx.scalar_like(0, x)))};
}

Values center_crop_pad_open(NodeContext& ctx) {
  Expr x = ctx.in(0);
  int64_t rank = NodeContext::rank_of(x);
  const std::vector<int64_t> axes = ctx.attr_axes(rank);
  auto n = static_cast<int64_t>(axes.size());
  Expr target = int_vector_of(ctx, 1, "the new shape", n);
  const DType i64 = DType::Int(64);
  auto half = [&](const Expr& e) { return ctx.call("floor_divide", {e, ctx.scalar(2, i64)}); };
  auto positive = [&](const Expr& e) { return ctx.call("maximum", {e, ctx.scalar(0, i64)}); };
  Expr have = ctx.call("take", {sizes_of(ctx, x), ctx.ints(axes)}, {{"axis", int64_t{0}}});
  Expr begin = half(positive(ctx.sub(have, target)));
  Expr kept = ctx.call("minimum", {have, target});
  x = open_slice(ctx, x, begin, ctx.add(begin, kept), ctx.full(1, {dim(n)}, i64), axes);
  Expr more = positive(ctx.sub(target, have)), before = half(more);
  std::vector<int64_t> behind;
  for (int64_t a : axes) behind.push_back(a + rank);
  Expr pads = ctx.full(0, {dim(2 * rank)}, i64);
  pads = spread(ctx, pads, ctx.ints(axes), before);
  pads = spread(ctx, pads, ctx.ints(behind), ctx.sub(more, before));
  return {value_of(ctx.call("dyn.pad", {x, pads, ctx.scalar_like(0, x)}))};
}

Values convert_center_crop_pad(NodeContext& ctx) {
  return known_or_open(ctx, center_crop_pad_known, center_crop_pad_open);
}

// ---- Rearrangements ----------------------------------------------------------------------------

Values convert_trilu(NodeContext& ctx) {
  Expr k = ctx.has(1) ? ctx.in(1) : ctx.scalar(0, DType::Int(64));
  if (NodeContext::rank_of(k) > 0) k = ctx.reshape(k, std::vector<int64_t>{});
  return {value_of(ctx.call("trilu", {ctx.in(0), k}, {{"upper", ctx.attr("upper", 1) != 0}}))};
}

// The block size of an image that is rearranged, which must be (batch, channels, height, width).
int64_t block_size(NodeContext& ctx, const Expr& x) {
  int64_t block = ctx.attr("blocksize", 0);
  if (block < 1 || block > (1 << 16)) {
    ctx.fail(codes::frontend_attribute, "attribute 'blocksize' is out of range", "1 to 65536",
             std::to_string(block));
  }
  std::string mode = ctx.attr_string("mode", "DCR");
  if (mode != "DCR" && mode != "CRD") {
    ctx.fail(codes::frontend_attribute, "attribute 'mode' has an unknown value", "DCR or CRD",
             mode.substr(0, 100));
  }
  if (NodeContext::rank_of(x) != 4) {
    ctx.fail(codes::type_rank, "the input must be a batch of images", "rank 4", to_string(x->type));
  }
  return block;
}

// DCR has the block outside of the channels, CRD inside.
Values sub_pixel(NodeContext& ctx, const char* op) {
  Expr x = ctx.in(0);
  int64_t block = block_size(ctx, x);
  std::string mode = ctx.attr_string("mode", "DCR") == "CRD" ? "CDR" : "DCR";
  return {value_of(ctx.call(op, {x}, {{"block_size", block}, {"mode", mode}}))};
}

Values convert_depth_to_space(NodeContext& ctx) { return sub_pixel(ctx, "nn.depth_to_space"); }
Values convert_space_to_depth(NodeContext& ctx) { return sub_pixel(ctx, "nn.space_to_depth"); }

Values convert_reverse_sequence(NodeContext& ctx) {
  Expr x = ctx.in(0);
  int64_t rank = NodeContext::rank_of(x);
  int64_t time = ctx.axis(ctx.attr("time_axis", 0), rank);
  int64_t batch = ctx.axis(ctx.attr("batch_axis", 1), rank);
  return {value_of(
      ctx.call("reverse_sequence", {x, ctx.in(1)}, {{"seq_axis", time}, {"batch_axis", batch}}))};
}

Values convert_non_zero(NodeContext& ctx) {
  Tensor t = ctx.constant_data(0);
  if (!t) {
    // The places as rows, one column for each axis.
    Expr x = ctx.in(0);
    if (NodeContext::rank_of(x) == 0) x = ctx.reshape(x, std::vector<int64_t>{1});
    Expr places = ctx.transpose(ctx.call("argwhere", {x}), {1, 0});
    return {value_of(ctx.cast(places, DType::Int(64)))};
  }
  std::vector<int64_t> found;
  for (int64_t i = 0; i < t.num_elements(); ++i) {
    if (t.get_as_double(i) != 0) found.push_back(i);
  }
  auto rank = static_cast<int64_t>(t.shape().size());
  auto n = static_cast<int64_t>(found.size());
  ctx.charge_bytes(rank * n, DType::Int(64));
  Tensor out = Tensor::empty(DType::Int(64), {rank, n});
  for (int64_t i = 0; i < n; ++i) {
    int64_t at = found[static_cast<size_t>(i)];
    for (int64_t a = rank; a-- > 0;) {
      int64_t extent = t.dim(static_cast<size_t>(a));
      out.data<int64_t>()[a * n + i] = at % extent;
      at /= extent;
    }
  }
  return {value_of(std::move(out))};
}

Values convert_compress(NodeContext& ctx) {
  Expr x = ctx.in(0);
  int64_t axis = 0;
  if (ctx.has_attr("axis")) {
    axis = ctx.axis(ctx.attr("axis", 0), NodeContext::rank_of(x));
  } else {
    const std::vector<Dim>& shape = NodeContext::shape_of(x);
    x = ctx.reshape(x, {product(shape, 0, shape.size())});
  }
  Tensor condition = ctx.constant_data(1);
  auto whole = as_const(NodeContext::shape_of(x)[static_cast<size_t>(axis)]);
  if (!condition || !whole) {
    // The condition may be shorter than the axis; what it selects behind the end is an error.
    Expr kept = ctx.reshape(ctx.call("argwhere", {ctx.in(1)}), {dim_any()});
    kept = checked_index(ctx, std::move(kept), x, axis);
    return {value_of(ctx.call("take", {x, kept}, {{"axis", axis}}))};
  }
  const int64_t size = *whole;
  std::vector<int64_t> kept;
  for (int64_t i = 0; i < condition.num_elements(); ++i) {
    if (condition.get_as_double(i) == 0) continue;
    if (i >= size) {
      ctx.fail(codes::frontend_attribute,
               "the condition selects what is behind the end of the axis",
               "at most " + std::to_string(size) + " elements", std::to_string(i + 1));
    }
    kept.push_back(i);
  }
  return {value_of(ctx.call("take", {x, ctx.ints(kept)}, {{"axis", axis}}))};
}

}  // namespace

template <>
std::span<const ConverterRow> converter_rows<Converters::Move>() {
  static constexpr ConverterRow rows[] = {
      {kOnnx, "CenterCropPad", 18, convert_center_crop_pad},
      {kOnnx, "Compress", 9, convert_compress},
      {kOnnx, "Concat", 1, convert_concat},
      {kOnnx, "DepthToSpace", 1, convert_depth_to_space},
      {kOnnx, "Expand", 8, convert_expand},
      {kOnnx, "NonZero", 9, convert_non_zero},
      {kOnnx, "Pad", 1, convert_pad_attr},
      {kOnnx, "Pad", 11, convert_pad},
      {kOnnx, "ReverseSequence", 10, convert_reverse_sequence},
      {kOnnx, "Slice", 1, convert_slice_attr},
      {kOnnx, "Slice", 10, convert_slice},
      {kOnnx, "SpaceToDepth", 1, convert_space_to_depth},
      {kOnnx, "Split", 1, convert_split},
      {kOnnx, "Split", 13, convert_split},
      {kOnnx, "Tile", 1, convert_tile_axis},
      {kOnnx, "Tile", 6, convert_tile},
      {kOnnx, "Trilu", 14, convert_trilu},
      {kMicrosoft, "Pad", 1, convert_pad},
      {kMicrosoft, "Trilu", 1, convert_trilu},
  };
  return rows;
}

}  // namespace relay::frontend::onnx
