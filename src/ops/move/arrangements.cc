// Operators that place elements by sizes that are known: windows, blocks, diagonals, sparse matrices.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/quantities.h"
#include "ops/composed.h"
#include "ops/contraction/fourier.h"
#include "ops/gradient.h"
#include "ops/rows.h"

namespace relay::ops {
namespace {

using relay::CallNode;

// ---- slice_like

struct SliceLikeAttrs : AttrsOf<SliceLikeAttrs> {
  std::optional<Ints> axes;
  static AttrsList describe() {
    return {"relay.attrs.SliceLikeAttrs",
            {attribute("axes", &Self::axes, "The axes that are cut; None: all.")}};
  }
};

Expr slice_like(const CallNode& call) {
  Expr out = call.args[0];
  const std::vector<Dim>&have = type_of(out).shape, &wanted = type_of(call.args[1]).shape;
  Ints axes = attrs_of<SliceLikeAttrs>(call).axes.value_or(Ints{});
  if (axes.empty()) {
    for (size_t d = 0; d < have.size(); ++d) axes.push_back(static_cast<int64_t>(d));
  }
  for (int64_t a : axes) {
    const auto axis = static_cast<size_t>(axis_in(call, a, rank_of(call.args[0])));
    demand(call, axis < wanted.size(), "the other tensor has no such axis",
           counted(have.size(), "axis"), std::to_string(wanted.size()));
    auto mine = as_const(have[axis]), others = as_const(wanted[axis]);
    demand(call, !mine || !others || *others <= *mine,
           "axis " + std::to_string(axis) + " has too few elements", to_string(wanted[axis]),
           to_string(have[axis]));
    out = slice_axis(out, static_cast<int64_t>(axis), dim(0), wanted[axis]);
  }
  return out;
}

// ---- strided_set

struct StridedSetAttrs : AttrsOf<StridedSetAttrs> {
  Ints begin, end, strides;
  static AttrsList describe() {
    return {"relay.attrs.StridedSetAttrs",
            {attribute("begin", &Self::begin, "The first place, for each axis."),
             attribute("end", &Self::end, "The place behind the last; at the most the size."),
             attribute("strides", &Self::strides, "The steps between places; none: 1.")}};
  }
};

// The places of data[begin:end:stride], as Python has them.
Ints places(int64_t begin, int64_t end, int64_t stride, int64_t size) {
  auto bounded = [&](int64_t v) {
    if (v < 0) v += size;
    return stride > 0 ? std::clamp<int64_t>(v, 0, size) : std::clamp<int64_t>(v, -1, size - 1);
  };
  Ints out;
  for (int64_t i = bounded(begin), last = bounded(end); stride > 0 ? i < last : i > last;
       i += stride)
    out.push_back(i);
  return out;
}

Expr strided_set(const CallNode& call) {
  auto& a = attrs_of<StridedSetAttrs>(call);
  const Expr& data = call.args[0];
  Ints sizes = numbers_of(call, type_of(data).shape, "a size of the data");
  Ints given = numbers_of(call, type_of(call.args[1]).shape, "a size of the values");
  const bool plain = a.strides.empty();
  demand(call,
         a.begin.size() == a.end.size() && (plain || a.strides.size() == a.begin.size()) &&
             a.begin.size() <= sizes.size() && given.size() == sizes.size(),
         "begin, end and strides have a number for each axis, and the values all axes");
  demand(call, std::ranges::find(a.strides, 0) == a.strides.end(), "a stride is 0",
         "1 or more, -1 or less", "0");
  demand_few(call, element_count(sizes), kMostElements, "places");
  Expr values = call.args[1];
  std::vector<bool> inside{true};
  for (size_t d = 0; d < sizes.size(); ++d) {
    Ints set = d < a.begin.size() ? places(a.begin[d], a.end[d], plain ? 1 : a.strides[d], sizes[d])
                                  : places(0, sizes[d], 1, sizes[d]);
    demand(call, static_cast<int64_t>(set.size()) == given[d],
           "axis " + std::to_string(d) + " of the values has another size",
           std::to_string(set.size()), std::to_string(given[d]));
    if (set.empty()) return data;
    Ints from(static_cast<size_t>(sizes[d]), 0);
    std::vector<bool> chosen(from.size(), false), next;
    for (size_t i = 0; i < set.size(); ++i) {
      from[static_cast<size_t>(set[i])] = static_cast<int64_t>(i);
      chosen[static_cast<size_t>(set[i])] = true;
    }
    for (bool outer : inside) {
      for (bool c : chosen) next.push_back(outer && c);
    }
    inside = std::move(next);
    values = taken(values, indices_constant(from, {sizes[d]}), static_cast<int64_t>(d));
  }
  return choose(mask_constant(inside, sizes), values, data);
}

// ---- contrib_reverse_reshape

struct ReverseReshapeAttrs : AttrsOf<ReverseReshapeAttrs> {
  Ints newshape;
  static AttrsList describe() {
    return {"relay.attrs.ReverseReshapeAttrs",
            {attribute("newshape", &Self::newshape,
                       "Sizes, and the codes 0 (the same size), -1 (what is left), -2 (all further "
                       "sizes) and -3 (two axes as one), read from the right.")}};
  }
};

Expr reverse_reshape(const CallNode& call) {
  Ints sizes = numbers_of(call, type_of(call.args[0]).shape, "a size of the data");
  const Ints& codes = attrs_of<ReverseReshapeAttrs>(call).newshape;
  std::ranges::reverse(sizes);
  Ints out;
  size_t at = 0;
  for (size_t i = codes.size(); i-- > 0;) {
    const int64_t code = codes[i];
    demand(call, code >= -3, "the code is not one from the right", "a size, 0, -1, -2 or -3",
           std::to_string(code));
    if (code > 0 || code == -1) {
      out.push_back(code);
      ++at;
      continue;
    }
    const size_t left = at < sizes.size() ? sizes.size() - at : 0;
    const size_t take = code == 0 ? 1 : code == -3 ? 2 : left;
    demand(call, take <= left, "the codes ask for more axes than there are");
    if (code == -3) {
      out.push_back(sizes[at] * sizes[at + 1]);
    } else {
      out.insert(out.end(), sizes.begin() + static_cast<std::ptrdiff_t>(at),
                 sizes.begin() + static_cast<std::ptrdiff_t>(at + take));
    }
    at += take;
  }
  std::ranges::reverse(out);
  return reshaped(call.args[0], out);
}

// ---- sliding_window

struct SlidingWindowAttrs : AttrsOf<SlidingWindowAttrs> {
  int64_t axis = 0;
  Ints window_shape, strides;
  static AttrsList describe() {
    return {"relay.attrs.SlidingWindowAttrs",
            {attribute("axis", &Self::axis, "The first axis of the windows."),
             attribute("window_shape", &Self::window_shape, "Sizes of a window, from there on."),
             attribute("strides", &Self::strides, "Steps between windows.")}};
  }
};

// The places [0, width), and those `step` further on as often as windows fit into an axis whose size a run knows.
Expr open_windows(const Expr& data, int64_t axis, int64_t width, int64_t step) {
  const Dim& size = type_of(data).shape[static_cast<size_t>(axis)];
  Expr begin;
  if (is_any(size)) {
    Expr sizes = apply("shape_of", {data}, {{"dtype", "int64"}});
    Expr last = taken(sizes, indices_constant({axis}, {}), 0) - indices_constant({width - 1}, {});
    begin = apply("dyn.arange", {indices_constant({0}, {}), last, indices_constant({step}, {})});
  } else {
    const Dim number = floor_div(size - dim(width), dim(step)) + dim(1);
    begin = iota(max(number, dim(0))) * indices_constant({step}, {});
  }
  Ints places(static_cast<size_t>(width));
  std::iota(places.begin(), places.end(), 0);
  return expanded(begin, 1) + indices_constant(places, {width});
}

Expr windows(const CallNode& call, Expr data, int64_t first, const Ints& shape,
             const Ints& strides) {
  const int64_t rank = rank_of(data), axis = axis_in(call, first, rank);
  const auto count = static_cast<int64_t>(shape.size());
  demand(call, shape.size() == strides.size() && count == rank - axis,
         "a window has a size and a stride for each axis", std::to_string(rank - axis),
         std::to_string(count));
  for (int64_t w = count; w-- > 0;) {
    const auto known = as_const(type_of(call.args[0]).shape[static_cast<size_t>(axis + w)]);
    const int64_t width = shape[static_cast<size_t>(w)], step = strides[static_cast<size_t>(w)];
    const int64_t size = known.value_or(kLargestStep);
    demand(call, width >= 1 && width <= size && step >= 1, "the window does not fit",
           "1 to " + std::to_string(size), std::to_string(width));
    if (!known) {
      data = taken(data, open_windows(data, axis + w, width, step), axis + w);
      continue;
    }
    const int64_t number = (size - width) / step + 1;
    demand_few(call, static_cast<double>(number) * static_cast<double>(width), kMostElements,
               "places of windows");
    Ints from;
    for (int64_t i = 0; i < number; ++i) {
      for (int64_t k = 0; k < width; ++k) from.push_back(i * step + k);
    }
    data = taken(data, indices_constant(from, {number, width}), axis + w);
  }
  Ints order;
  for (int64_t d = 0; d < axis; ++d) order.push_back(d);
  for (int64_t part : {0, 1}) {
    for (int64_t w = 0; w < count; ++w) order.push_back(axis + 2 * w + part);
  }
  return transposed(data, order);
}

Expr sliding_window(const CallNode& call) {
  auto& a = attrs_of<SlidingWindowAttrs>(call);
  return windows(call, call.args[0], a.axis, a.window_shape, a.strides);
}

// ---- nn.fifo_buffer

struct FifoBufferAttrs : AttrsOf<FifoBufferAttrs> {
  int64_t axis = 0;
  static AttrsList describe() {
    return {"relay.attrs.FIFOBufferAttrs", {attribute("axis", &Self::axis, "The axis of time.")}};
  }
};

Expr fifo_buffer(const CallNode& call) {
  const int64_t rank = rank_of(call.args[1]);
  const int64_t axis = axis_in(call, attrs_of<FifoBufferAttrs>(call).axis, rank);
  Expr both = joined({call.args[1], call.args[0]}, axis);
  const auto d = static_cast<size_t>(axis);
  return slice_axis(both, axis, type_of(call.args[0]).shape[d], type_of(call.args[1]).shape[d]);
}

// ---- Blocks

struct SpaceToBatchAttrs : AttrsOf<SpaceToBatchAttrs> {
  Ints block_shape{1, 1};
  std::vector<Ints> paddings{{0, 0}, {0, 0}};
  double pad_value = 0;
  static AttrsList describe() {
    return {
        "relay.attrs.SpaceToBatchNDAttrs",
        {attribute("block_shape", &Self::block_shape, "Sizes of a block."),
         attribute("paddings", &Self::paddings, "What is put around, for each axis of a block."),
         attribute("pad_value", &Self::pad_value, "What is put there.")}};
  }
};
struct BatchToSpaceAttrs : AttrsOf<BatchToSpaceAttrs> {
  Ints block_shape{1, 1};
  std::vector<Ints> crops{{0, 0}, {0, 0}};
  static AttrsList describe() {
    return {"relay.attrs.BatchToSpaceNDAttrs",
            {attribute("block_shape", &Self::block_shape, "Sizes of a block."),
             attribute("crops", &Self::crops, "What is cut off, for each axis of a block.")}};
  }
};

void check_pairs(const CallNode& call, const Ints& block, const std::vector<Ints>& pairs) {
  auto is_pair = [](const Ints& p) { return p.size() == 2 && p[0] >= 0 && p[1] >= 0; };
  demand(call,
         pairs.size() == block.size() && std::ranges::all_of(pairs, is_pair) &&
             std::ranges::all_of(block, [](int64_t b) { return b >= 1 && b <= kLargestStep; }) &&
             static_cast<int64_t>(block.size()) < rank_of(call.args[0]),
         "a block has a size of 1 or more, and a pair of widths, for each of its axes");
}

Expr space_to_batch(const CallNode& call) {
  auto& a = attrs_of<SpaceToBatchAttrs>(call);
  check_pairs(call, a.block_shape, a.paddings);
  std::vector<Ints> widths{{0, 0}};
  widths.insert(widths.end(), a.paddings.begin(), a.paddings.end());
  widths.resize(static_cast<size_t>(rank_of(call.args[0])), Ints{0, 0});
  Expr data = padded(call.args[0], widths, scalar(a.pad_value, call.args[0]));
  Ints sizes = numbers_of(call, type_of(data).shape, "a size of the data");
  const auto count = static_cast<int64_t>(a.block_shape.size());
  Ints split{sizes[0]}, out{sizes[0]}, order, outer;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t b = a.block_shape[static_cast<size_t>(i)], n = sizes[static_cast<size_t>(i + 1)];
    demand(call, n % b == 0, "blocks do not fill the axis", "a multiple of " + std::to_string(b),
           std::to_string(n));
    split.insert(split.end(), {n / b, b});
    out[0] *= b;
    out.push_back(n / b);
    order.push_back(2 * i + 2);
    outer.push_back(2 * i + 1);
  }
  order.push_back(0);
  order.insert(order.end(), outer.begin(), outer.end());
  for (size_t d = static_cast<size_t>(count) + 1; d < sizes.size(); ++d) {
    order.push_back(static_cast<int64_t>(d) + count);
    split.push_back(sizes[d]);
    out.push_back(sizes[d]);
  }
  return reshaped(transposed(reshaped(data, split), order), out);
}

Expr batch_to_space(const CallNode& call) {
  auto& a = attrs_of<BatchToSpaceAttrs>(call);
  check_pairs(call, a.block_shape, a.crops);
  Ints sizes = numbers_of(call, type_of(call.args[0]).shape, "a size of the data");
  const auto count = static_cast<int64_t>(a.block_shape.size());
  int64_t blocks = 1;
  for (int64_t b : a.block_shape) blocks *= b;
  demand(call, sizes[0] % blocks == 0, "the batch is not of whole blocks",
         "a multiple of " + std::to_string(blocks), std::to_string(sizes[0]));
  Ints split = a.block_shape, order{count}, whole{sizes[0] / blocks}, axes, begin, end;
  split.push_back(sizes[0] / blocks);
  split.insert(split.end(), sizes.begin() + 1, sizes.end());
  for (int64_t i = 0; i < count; ++i) {
    const auto d = static_cast<size_t>(i);
    order.insert(order.end(), {count + 1 + i, i});
    whole.push_back(sizes[d + 1] * a.block_shape[d]);
    axes.push_back(i + 1);
    begin.push_back(a.crops[d][0]);
    end.push_back(whole.back() - a.crops[d][1]);
    demand(call, begin.back() <= end.back(), "more is cut off than there is");
  }
  for (size_t d = static_cast<size_t>(count) + 1; d < sizes.size(); ++d) {
    order.push_back(static_cast<int64_t>(d) + count);
    whole.push_back(sizes[d]);
  }
  Expr data = reshaped(transposed(reshaped(call.args[0], split), order), whole);
  return sliced(data, axes, begin, end, Ints(axes.size(), 1));
}

struct YoloReorgAttrs : AttrsOf<YoloReorgAttrs> {
  int64_t stride = 1;
  static AttrsList describe() {
    return {"relay.attrs.YoloReorgAttrs", {attribute("stride", &Self::stride, "Size of a block.")}};
  }
};

// The image is read as one of stride times its height and width and stride^2 times fewer channels;
// the channels of the result are the places in its blocks.
Expr yolo_reorg(const CallNode& call) {
  const int64_t s = attrs_of<YoloReorgAttrs>(call).stride;
  demand_rank(call, 0, 4);
  Ints n = numbers_of(call, type_of(call.args[0]).shape, "a size of the data");
  demand(call, s >= 1 && s <= kLargestStep && n[1] % (s * s) == 0 && n[2] % s == 0 && n[3] % s == 0,
         "the stride does not divide the sizes", "channels by its square, height and width",
         std::to_string(s));
  Expr blocks = reshaped(call.args[0], {n[0], n[1] / (s * s), n[2], s, n[3], s});
  return reshaped(transposed(blocks, {0, 3, 5, 1, 2, 4}), {n[0], n[1] * s * s, n[2] / s, n[3] / s});
}

// ---- matrix_set_diag

struct MatrixSetDiagAttrs : AttrsOf<MatrixSetDiagAttrs> {
  int64_t k1 = 0, k2 = 0;
  bool super_diag_right_align = true, sub_diag_right_align = false;
  static AttrsList describe() {
    return {
        "relay.attrs.MatrixSetDiagAttrs",
        {attribute("k1", &Self::k1, "The lowest diagonal that is set; 0 is the main one."),
         attribute("k2", &Self::k2, "The highest."),
         attribute("super_diag_right_align", &Self::super_diag_right_align,
                   "Shorter diagonals above the main one are at the right of `diagonal`."),
         attribute("sub_diag_right_align", &Self::sub_diag_right_align, "So are those below it.")}};
  }
};

Expr matrix_set_diag(const CallNode& call) {
  auto& a = attrs_of<MatrixSetDiagAttrs>(call);
  demand(call, a.k1 <= a.k2, "the lowest diagonal is above the highest");
  demand(call, a.k1 >= -kLargestStep && a.k2 <= kLargestStep, "there is no such diagonal");
  const std::vector<Dim>& shape = type_of(call.args[0]).shape;
  demand(call, shape.size() >= 2, "takes matrices", "2 axes or more", std::to_string(shape.size()));
  const int64_t rows = number_of(call, shape[shape.size() - 2], "the number of rows"),
                columns = number_of(call, shape.back(), "the number of columns");
  demand_few(call, element_count({rows, columns}), kMostElements, "elements of a matrix");
  Ints sizes = numbers_of(call, type_of(call.args[1]).shape, "a size of the diagonals");
  const int64_t count = a.k2 - a.k1 + 1;
  demand(call, sizes.size() + (count == 1) == shape.size(), "the diagonals have other axes");
  demand(call, count == 1 || sizes[sizes.size() - 2] == count, "there are other diagonals",
         std::to_string(count), shape_text(type_of(call.args[1]).shape));
  const int64_t longest = sizes.back();
  const int64_t wanted =
      std::min(rows + std::min<int64_t>(a.k2, 0), columns - std::max<int64_t>(a.k1, 0));
  demand(call, longest == wanted, "the diagonals have another length", std::to_string(wanted),
         std::to_string(longest));
  Expr diagonal = call.args[1];
  if (count > 1) {
    sizes.pop_back();
    sizes.back() = count * longest;
    diagonal = reshaped(diagonal, sizes);
  }
  Ints from;
  std::vector<bool> inside;
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j) {
      const int64_t d = j - i;
      const int64_t length =
          std::min(rows + std::min<int64_t>(d, 0), columns - std::max<int64_t>(d, 0));
      const bool right = d >= 0 ? a.super_diag_right_align : a.sub_diag_right_align;
      inside.push_back(a.k1 <= d && d <= a.k2);
      const int64_t shift = right && count > 1 ? longest - length : 0;
      from.push_back(inside.back() ? (a.k2 - d) * longest + std::min(i, j) + shift : 0);
    }
  }
  Expr values = taken(diagonal, indices_constant(from, {rows, columns}), rank_of(diagonal) - 1);
  return choose(mask_constant(inside, {rows, columns}), values, call.args[0]);
}

// ---- Sparse tensors

struct SparseToDenseAttrs : AttrsOf<SparseToDenseAttrs> {
  Ints output_shape;
  static AttrsList describe() {
    return {"relay.attrs.SparseToDenseAttrs",
            {attribute("output_shape", &Self::output_shape, "The shape of the result.")}};
  }
};

Expr sparse_to_dense(const CallNode& call) {
  const Ints& shape = attrs_of<SparseToDenseAttrs>(call).output_shape;
  Expr places = call.args[0];
  const std::vector<Dim>& given = type_of(places).shape;
  demand(call, given.size() <= 2, "an index is a number or a vector", "2 axes at the most",
         std::to_string(given.size()));
  // One axis: a place is a number.
  const Dim count = given.empty() ? dim(1) : given[0];
  if (given.size() < 2) places = reshape_to(places, {count, dim(1)});
  demand(call, as_const(type_of(places).shape[1]) == static_cast<int64_t>(shape.size()),
         "an index has a number for each axis", std::to_string(shape.size()),
         to_string(type_of(places).shape[1]));
  Expr values = apply("broadcast_to", {call.args[1]}, {{"shape", shape_value({count})}});
  Expr base = apply("full", {call.args[2]}, {{"shape", to_value(shape)}});
  return apply("scatter_nd", {base, transposed(places, {1, 0}), values},
               {{"mode", std::string("update")}});
}

// Elements for the rows that have none, where they belong; the elements of a row keep their order.
Expr sparse_fill_empty_rows(const CallNode& call) {
  const Expr &indices = call.args[0], &values = call.args[1], &shape = call.args[2];
  demand(
      call,
      rank_of(indices) == 2 && rank_of(values) == 1 && rank_of(shape) == 1 &&
          type_of(indices).dtype.is_integer() && type_of(shape).dtype == type_of(indices).dtype,
      "takes the places, values and sizes of a sparse tensor",
      "(n, axes), (n,) and (axes,), integers of one dtype for places and sizes",
      to_string(indices->type) + ", " + to_string(values->type) + " and " + to_string(shape->type));
  const int64_t axes = number_of(call, type_of(indices).shape[1], "the number of axes");
  demand(call, axes >= 1 && axes <= kLargestStep && as_const(type_of(shape).shape[0]) == axes,
         "dense_shape has a size for each axis", std::to_string(axes),
         to_string(type_of(shape).shape[0]));
  const std::vector<Dim>& fill = type_of(call.args[3]).shape;
  demand(call,
         type_of(call.args[3]).dtype == type_of(values).dtype &&
             (fill.empty() || (fill.size() == 1 && as_const(fill[0]) == 1)),
         "default_value is one value of the values' dtype", type_of(values).dtype.to_string(),
         to_string(call.args[3]->type));
  Expr rows = slice_axis(shape, 0, dim(0), dim(1)), row = slice_axis(indices, 1, dim(0), dim(1));
  Expr none = apply("dyn.full", {indices_constant({0}, {}), as_index(rows)});
  row = apply("squeeze", {as_index(row)}, {{"axis", to_value(Ints{1})}});
  Expr counts = apply("scatter_elements", {none, row, as_index(ones_like(row))},
                      {{"axis", int64_t{0}}, {"reduction", std::string("add")}});
  Expr is_empty = is_equal(counts, 0);
  // (missing, axes): the number of a row, and zeros.
  Expr missing = cast_to(apply("argwhere", {is_empty}), type_of(indices).dtype);
  Ints first(static_cast<size_t>(axes), 0);
  first[0] = 1;
  Expr places = missing * cast_to(indices_constant(first, {axes}), type_of(indices).dtype);
  Expr like = apply("squeeze", {missing}, {{"axis", to_value(Ints{1})}});
  Expr fills =
      apply("full_like", {cast_to(like, type_of(values).dtype), reshape_to(call.args[3], {})});
  Expr order = order_of(joined({row, as_index(like)}, 0), 0);
  return tuple({taken(joined({indices, places}, 0), order, 0),
                taken(joined({values, fills}, 0), order, 0), is_empty});
}

// The sparse matrix of arguments 1 to 3 (values, their columns, and where rows begin) as a plain one, as wide as the first.
Expr dense_of(const CallNode& call) {
  demand_rank(call, 0, 1, kAnyRank);
  for (size_t i : {1, 2, 3}) demand_rank(call, i, 1);
  const Expr &values = call.args[1], &columns = call.args[2], &starts = call.args[3];
  const Dim width = type_of(call.args[0]).shape.back();
  const Dim rows = type_of(starts).shape[0] - dim(1), count = type_of(values).shape[0];
  // The row of an element: as many rows end in front of it or at it.
  Expr ends = expanded(as_index(slice_axis(starts, 0, dim(1), rows)), 0);
  Expr behind = apply("less_equal", {ends, expanded(iota(count), 1)});
  Expr row = sum_over(as_index(behind), {1});
  Expr zeros =
      apply("zeros", {},
            {{"shape", shape_value({rows, width})}, {"dtype", type_of(values).dtype.to_string()}});
  return apply("scatter_nd", {zeros, stacked({row, as_index(columns)}, 0), values},
               {{"mode", std::string("add")}});
}

struct SparseDenseAttrs : AttrsOf<SparseDenseAttrs> {
  bool sparse_lhs = false;
  static AttrsList describe() {
    return {"relay.attrs.SparseDenseAttrs",
            {attribute("sparse_lhs", &Self::sparse_lhs,
                       "The sparse matrix by the transpose of the other.")}};
  }
};

Expr sparse_dense(const CallNode& call) {
  Expr plain = dense_of(call);
  return attrs_of<SparseDenseAttrs>(call).sparse_lhs ? apply("nn.dense", {plain, call.args[0]})
                                                     : apply("nn.dense", {call.args[0], plain});
}
Expr sparse_add(const CallNode& call) { return call.args[0] + dense_of(call); }

// The rows of a square matrix are the columns of the result: elements in the order of their columns.
Expr sparse_transpose(const CallNode& call) {
  for (size_t i : {0, 1, 2}) demand_rank(call, i, 1);
  const Expr &values = call.args[0], &columns = call.args[1], &starts = call.args[2];
  const Dim rows = type_of(starts).shape[0] - dim(1), count = type_of(values).shape[0];
  const DType dtype = type_of(columns).dtype;
  Expr ends = expanded(as_index(slice_axis(starts, 0, dim(1), rows)), 0);
  Expr row = sum_over(as_index(apply("less_equal", {ends, expanded(iota(count), 1)})), {1});
  Expr order = order_of(columns, 0);
  Expr before =
      apply("less", {expanded(as_index(columns), 0), expanded(iota(type_of(starts).shape[0]), 1)});
  return tuple({taken(values, order, 0), cast_to(taken(row, order, 0), dtype),
                cast_to(sum_over(as_index(before), {1}), type_of(starts).dtype)});
}

Expr sparse_reshape(const CallNode& call) {
  const DType dtype = type_of(call.args[0]).dtype;
  Expr places = as_index(call.args[0]), old = as_index(call.args[1]), made = as_index(call.args[2]);
  demand(call, rank_of(places) == 2 && rank_of(old) == 1 && rank_of(made) == 1,
         "takes indices of two axes, and two shapes");
  Expr one = constant(1, DType::Int(64)), minus = constant(-1, DType::Int(64));
  // What is left for a size of -1.
  Expr open = is_equal(made, minus);
  Expr product = apply("prod", {choose(open, one, made)});
  Expr total = apply("prod", {old});
  Expr sizes = choose(open, apply("floor_divide", {total, product}), made);
  auto strides = [&](const Expr& shape) {
    Expr turned = apply("reverse", {shape}, {{"axis", int64_t{0}}});
    Expr steps = apply("cumprod", {turned}, {{"axis", int64_t{0}}, {"exclusive", true}});
    return apply("reverse", {steps}, {{"axis", int64_t{0}}});
  };
  Expr flat = sum_over(places * strides(old), {1}, true);
  Expr moved = apply("floor_mod", {apply("floor_divide", {flat, strides(sizes)}), sizes});
  return tuple({cast_to(moved, dtype), cast_to(sizes, type_of(call.args[2]).dtype)});
}

// ---- Fourier transforms

struct DftAttrs : AttrsOf<DftAttrs> {
  bool inverse = false;
  static AttrsList describe() {
    return {"relay.attrs.DFTAttrs",
            {attribute("inverse", &Self::inverse, "The inverse transform.")}};
  }
};

// Numbers for each point that a transform is made of, at the most.
constexpr double kWaves = 16;

// The transform is linear in both parts: none of the products with imaginary parts that are zeros is needed.
bool is_zero(const Expr& e) { return is_call_to(e, "zeros") || is_call_to(e, "zeros_like"); }

Expr dft(const CallNode& call) {
  demand_rank(call, 0, 1, kAnyRank);
  const Expr &re = call.args[0], &im = call.args[1];
  const int64_t count = number_of(call, type_of(re).shape.back(), "the number of points");
  demand_few(call, kWaves * static_cast<double>(count), kMostElements, "waves");
  if (count == 0) return tuple({re, im});
  auto rows = [&](const Expr& e) { return reshaped(e, {-1, count}); };
  ComplexExpr out =
      fourier({rows(re), is_zero(im) ? Expr() : rows(im)}, count, attrs_of<DftAttrs>(call).inverse);
  return tuple({reshape_like(out.re, re), reshape_like(out.im, re)});
}

struct StftAttrs : AttrsOf<StftAttrs> {
  int64_t n_fft = 1, hop_length = 1, win_length = 1;
  bool normalized = false, onesided = true;
  static AttrsList describe() {
    return {"relay.attrs.StftAttrs",
            {attribute("n_fft", &Self::n_fft, "Points of a transform."),
             attribute("hop_length", &Self::hop_length, "Steps between windows."),
             attribute("win_length", &Self::win_length, "Size of the window, n_fft at the most."),
             attribute("normalized", &Self::normalized, "Divided by the root of n_fft."),
             attribute("onesided", &Self::onesided, "Frequencies up to the half only.")}};
  }
};

Expr stft(const CallNode& call) {
  auto& a = attrs_of<StftAttrs>(call);
  demand(call, a.n_fft >= 1 && a.hop_length >= 1 && a.win_length >= 1 && a.win_length <= a.n_fft,
         "the sizes of windows do not fit");
  demand_rank(call, 0, 2);
  demand_rank(call, 1, 1);
  demand_few(call, kWaves * static_cast<double>(a.n_fft), kMostElements, "waves");
  Expr frames = windows(call, call.args[0], 1, {a.n_fft}, {a.hop_length});
  const int64_t front = (a.n_fft - a.win_length) / 2;
  Expr window =
      padded(call.args[1], {{front, a.n_fft - a.win_length - front}}, scalar(0, call.args[1]));
  frames = frames * window;
  const int64_t kept = a.onesided ? a.n_fft / 2 + 1 : a.n_fft;
  ComplexExpr all = fourier({reshaped(frames, {-1, a.n_fft}), Expr()}, a.n_fft, false);
  auto part = [&](const Expr& e) {
    return reshape_like(slice_axis(e, 1, dim(0), dim(kept)),
                        slice_axis(frames, 2, dim(0), dim(kept)));
  };
  Expr out = transposed(stacked({part(all.re), part(all.im)}, 3), {0, 2, 1, 3});
  return a.normalized ? (1 / std::sqrt(static_cast<double>(a.n_fft))) * out : out;
}

const ArgInfo kData{"data", "The input."};
const std::vector<ArgInfo> kSparse{{"sparse_data", "The values of a sparse matrix."},
                                   {"sparse_indices", "Their columns."},
                                   {"sparse_indptr", "Where rows begin, and the last ends."}};
std::vector<ArgInfo> dense_and_sparse() {
  std::vector<ArgInfo> out{{"dense_data", "A matrix."}};
  out.insert(out.end(), kSparse.begin(), kSparse.end());
  return out;
}
// A matrix of 3 rows and 4 columns: values, columns, where rows begin.
OpExample sparse_example(std::string dense, size_t size, std::string attrs = "") {
  std::vector<double> values(size);
  for (size_t i = 0; i < size; ++i) values[i] = 0.5 * static_cast<double>(i) - 2;
  return {.args = {std::move(dense), "Tensor[(4,), float32]", "Tensor[(4,), int32]",
                   "Tensor[(4,), int32]"},
          .attrs = std::move(attrs),
          .inputs = {std::move(values), {1, 2, 3, 4}, {0, 3, 1, 2}, {0, 2, 3, 4}},
          .results = {}};
}

}  // namespace

template <>
std::span<const OpInfo> rows_of<Family::Arrangements>() {
  static const OpInfo rows[] = {
      composed_row("slice_like", "The first elements along the axes, as many as the other has.",
                   {kData, {"shape_like", "A tensor of the sizes that are wanted."}},
                   &SliceLikeAttrs::static_info(), slice_like,
                   {{{"Tensor[(4, 5, 3), float32]", "Tensor[(2, 3, 3), float32]"}, ""},
                    {{"Tensor[(4, 5), float32]", "Tensor[(2, 3), int8]"}, "axes=[-1]"}}),
      composed_row(
          "strided_set", "The data with other values at data[begin:end:strides].",
          {kData, {"v", "The values, of the shape of the slice."}}, &StridedSetAttrs::static_info(),
          strided_set,
          {{{"Tensor[(4, 5), float32]", "Tensor[(2, 2), float32]"},
            "begin=[1, 4], end=[3, 0], strides=[1, -2]"},
           {{"Tensor[(4, 3), float32]", "Tensor[(3, 3), float32]"}, "begin=[0], end=[-1]"}}),
      composed_row("contrib_reverse_reshape",
                   "The elements in a shape that is read from the right.", {kData},
                   &ReverseReshapeAttrs::static_info(), reverse_reshape,
                   {{{"Tensor[(10, 5, 4), float32]"}, "newshape=[-1, 0]"},
                    {{"Tensor[(2, 3, 4), float32]"}, "newshape=[0, -3]"}}),
      composed_row(
          "sliding_window",
          "All windows over the axes from one on: their numbers, then what is in them.", {kData},
          &SlidingWindowAttrs::static_info(), sliding_window,
          {{{"Tensor[(2, 7, 6), float32]"}, "axis=1, window_shape=[3, 2], strides=[2, 3]"}}),
      composed_row(
          "nn.fifo_buffer", "The buffer with the data behind it, and as much of its front gone.",
          {kData, {"buffer", "What has come before."}}, &FifoBufferAttrs::static_info(),
          fifo_buffer, {{{"Tensor[(2, 1, 3), float32]", "Tensor[(2, 4, 3), float32]"}, "axis=1"}}),
      composed_row("nn.space_to_batch_nd",
                   "The elements of every block as images of their own, along the batch.", {kData},
                   &SpaceToBatchAttrs::static_info(), space_to_batch,
                   {{{"Tensor[(2, 3, 4, 2), float32]"},
                     "block_shape=[2, 2], paddings=[[1, 0], [0, 2]], pad_value=0.5f"}}),
      composed_row(
          "nn.batch_to_space_nd",
          "The images along the batch put together to blocks, cut at the borders.", {kData},
          &BatchToSpaceAttrs::static_info(), batch_to_space,
          {{{"Tensor[(8, 2, 3, 2), float32]"}, "block_shape=[2, 2], crops=[[1, 0], [0, 2]]"}}),
      composed_row(
          "vision.yolo_reorg",
          "An image of stride^2 times as many channels, which are the places in the blocks "
          "of the image that the elements are when they are read as stride times as high "
          "and wide.",
          {kData}, &YoloReorgAttrs::static_info(), yolo_reorg,
          {{{"Tensor[(2, 8, 4, 6), float32]"}, "stride=2"}}),
      composed_row("matrix_set_diag", "Matrices with other diagonals, from the k1-th to the k2-th.",
                   {{"input", "The matrices."},
                    {"diagonal", "The diagonals, the highest first, as long as the longest."}},
                   &MatrixSetDiagAttrs::static_info(), matrix_set_diag,
                   {{{"Tensor[(2, 3, 4), float32]", "Tensor[(2, 3), float32]"}, ""},
                    {{"Tensor[(4, 3), float32]", "Tensor[(3, 3), float32]"}, "k1=-2, k2=0"}}),
      composed_row("sparse_to_dense",
                   "One value everywhere but at some places, which have their own.",
                   {{"sparse_indices", "The places: (n, axes), or (n,) of one axis."},
                    {"sparse_values", "Their values, or one for all."},
                    {"default_value", "The value of the others."}},
                   &SparseToDenseAttrs::static_info(), sparse_to_dense,
                   {{.args = {"Tensor[(2, 2), int32]", "Tensor[(2,), float32]", "float32"},
                     .attrs = "output_shape=[3, 4]",
                     .inputs = {{0, 1, 2, 3}, {5, 6}, {1}},
                     .results = {}}}),
      composed_row("sparse_fill_empty_rows",
                   "The places and values of a sparse tensor row by row, with a place in column 0 "
                   "of each row that has none, and which rows these are.",
                   {{"sparse_indices", "The places, (n, axes)."},
                    {"sparse_values", "Their values."},
                    {"dense_shape", "The sizes of all axes."},
                    {"default_value", "The value of the new places."}},
                   nullptr, sparse_fill_empty_rows,
                   {{.args = {"Tensor[(4, 2), int64]", "Tensor[(4,), int64]", "Tensor[(2,), int64]",
                              "Tensor[(1,), int64]"},
                     .attrs = "",
                     .inputs = {{0, 1, 0, 3, 2, 0, 3, 1}, {1, 2, 3, 4}, {5, 6}, {10}},
                     .results = {}},
                    {.args = {"Tensor[(3, 3), int32]", "Tensor[(3,), float32]",
                              "Tensor[(3,), int32]", "float32"},
                     .attrs = "",
                     .inputs = {{1, 0, 1, 1, 1, 1, 3, 0, 0}, {5, 6, 7}, {4, 2, 2}, {-1}},
                     .results = {}}}),
      composed_row("nn.sparse_dense",
                   "A matrix by the transpose of a sparse one. The sparse one is made dense.",
                   dense_and_sparse(), &SparseDenseAttrs::static_info(), sparse_dense,
                   {sparse_example("Tensor[(2, 4), float32]", 8),
                    sparse_example("Tensor[(2, 4), float32]", 8, "sparse_lhs=True")}),
      composed_row("nn.sparse_add", "The sum of a matrix and a sparse one.", dense_and_sparse(),
                   nullptr, sparse_add, {sparse_example("Tensor[(3, 4), float32]", 12)}),
      composed_row(
          "nn.sparse_transpose", "The transpose of a sparse square matrix, as one.", kSparse,
          nullptr, sparse_transpose,
          {{.args = {"Tensor[(4,), float32]", "Tensor[(4,), int32]", "Tensor[(4,), int32]"},
            .attrs = "",
            .inputs = {{1, 2, 3, 4}, {0, 2, 1, 2}, {0, 2, 3, 4}},
            .results = {}}}),
      composed_row(
          "sparse_reshape",
          "The places of the elements of a sparse tensor in another shape, and that shape.",
          {{"sparse_indices", "The places, (n, axes)."},
           {"prev_shape", "The shape that they are in."},
           {"new_shape", "The other; -1 is what is left."}},
          nullptr, sparse_reshape,
          {{.args = {"Tensor[(3, 2), int32]", "Tensor[(2,), int32]", "Tensor[(3,), int32]"},
            .attrs = "",
            .inputs = {{0, 1, 1, 3, 2, 0}, {3, 4}, {2, -1, 3}},
            .results = {}}}),
      composed_row("dft", "The discrete Fourier transform along the last axis, of any length.",
                   {{"re_data", "The real parts."}, {"im_data", "The imaginary parts."}},
                   &DftAttrs::static_info(), dft,
                   {{{"Tensor[(2, 3, 6), float32]", "Tensor[(2, 3, 6), float32]"}, ""},
                    {{"Tensor[(2, 5), float32]", "Tensor[(2, 5), float32]"}, "inverse=True"},
                    {{"Tensor[(3, 96), float32]", "Tensor[(3, 96), float32]"}, ""},
                    {{"Tensor[(2, 509), float64]", "Tensor[(2, 509), float64]"}, "inverse=True"}}),
      composed_row(
          "stft",
          "The Fourier transforms of windows: (batch, frequency, window, real or imaginary).",
          {{"data", "Signals, (batch, time)."}, {"window", "The weights, (win_length,)."}},
          &StftAttrs::static_info(), stft,
          {{{"Tensor[(2, 12), float32]", "Tensor[(3,), float32]"},
            "n_fft=4, hop_length=2, win_length=3, normalized=True"}}),
  };
  return rows;
}

}  // namespace relay::ops
