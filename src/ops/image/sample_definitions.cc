// What reads images at places that are data, in other operators: gradients follow from that.
//
// Where each axis has places of its own (boxes brought to one size), reading is a product with a matrix
// of weights along each axis: it is differentiated by matrix products, and so are the weights by the
// places. Where it has not (grids), the elements around each place are gathered.
#include <algorithm>

#include "base/codes/gradients.h"
#include "ops/composed.h"
#include "ops/gradient.h"
#include "ops/image/sample.h"
#include "ops/image/sampling.h"
#include "ops/image/window.h"

namespace relay::ops {
namespace {

using relay::CallNode;

[[noreturn]] void not_differentiable(const CallNode& call, const std::string& why,
                                     const std::string& help = {}) {
  throw UserError(Diagnostic(codes::grad_attributes, call.span,
                             as<OpNode>(call.op)->name + " has no gradient here: " + why)
                      .help(help));
}

void need_names(const CallNode& call) {
  for (const Expr& e : call.args) {
    if (std::ranges::any_of(type_of(e).shape, is_any))
      not_differentiable(call, "only the data tells a size");
  }
}

Expr both(const Expr& a, const Expr& b) { return apply("logical_and", {a, b}); }
Expr greatest(const Expr& a, double b) { return apply("maximum", {a, scalar(b, a)}); }
Expr least(const Expr& a, const Expr& b) { return apply("minimum", {a, b}); }
Expr floor_of(const Expr& e) { return apply("floor", {e}); }
Expr less_one(const Dim& size, const Expr& like) { return size_as(size - dim(1), like); }
// Places that are no numbers or far away stay within what an index can hold.
Expr bounded(const Expr& p, double otherwise) {
  Expr number = choose(is_equal(p, p), p, scalar(otherwise, p));
  return least(greatest(number, -0x1p30), scalar(0x1p30, p));
}
// From 0 to the last.
Expr clamped(const Expr& p, const Dim& size) { return least(greatest(p, 0), less_one(size, p)); }
Expr is_within(const Expr& p, double low, const Expr& high) {
  return both(apply("greater_equal", {p, scalar(low, p)}), apply("less_equal", {p, high}));
}
Expr column(const Expr& e, int64_t i) {
  return apply("squeeze", {slice_axis(e, 1, dim(i), dim(1))}, {{"axis", to_value(Ints{1})}});
}
Expr rounded_to(const Expr& e, DType dtype) {
  return cast_to(dtype.is_floating() ? e : apply("round", {e}), dtype);
}
Expr row_of_places(const Dim& size, const Expr& like) {
  return cast_to(iota(size), type_of(like).dtype);
}

// ---- Grids

// Coordinates outside are mirrored at the edges until they are inside.
Expr reflected(const Expr& p, const Dim& size, bool align_corners) {
  const double low = align_corners ? 0 : -0.5;
  Expr span = align_corners ? less_one(size, p) : size_as(size, p);
  // With one element and aligned corners there is nothing to walk over.
  Expr safe = greatest(span, 1), distance = apply("abs", {p - scalar(low, p)});
  Expr turns = floor_of(distance / safe), rest = distance - turns * safe;
  Expr is_odd = is_greater(turns - 2 * floor_of(0.5 * turns), 0.5);
  Expr inside = low + choose(is_odd, safe - rest, rest);
  return choose(is_greater(span, 0), inside, scalar(low, p));
}

// What is read along an axis: where, as floats, and with what weight (or null).
struct Tap {
  Expr at, weight;
};

// The weights at low - 1 to low + 2 of a place `part` behind low (Keys, 1981).
std::vector<Expr> cubic(const Expr& part, double alpha) {
  auto near = [&](const Expr& d) { return 1 + ((alpha + 2) * d - scalar(alpha + 3, d)) * d * d; };
  auto far = [&](const Expr& d) {
    return ((alpha * d - scalar(5 * alpha, d)) * d + scalar(8 * alpha, d)) * d -
           scalar(4 * alpha, d);
  };
  return {far(1 + part), near(part), near(1 - part), far(2 - part)};
}

// The taps along one axis of a grid, (n, 1, places) each.
std::vector<Tap> grid_taps(const GridSampleAttrs& a, const Expr& places, const Dim& size) {
  const bool cubic_taps = a.method == "bicubic";
  Expr n = size_as(size, places);
  Expr p = a.align_corners ? 0.5 * (1 + places) * less_one(size, places)
                           : 0.5 * ((1 + places) * n - scalar(1, places));
  auto inside = [&](const Expr& e) {
    if (a.padding_mode == "zeros") return e;
    return clamped(a.padding_mode == "reflection" ? reflected(e, size, a.align_corners) : e, size);
  };
  p = bounded(p, -1);
  if (!cubic_taps) p = inside(p);
  if (a.method == "nearest") return {{apply("round", {p}), nullptr}};
  Expr low = floor_of(p), part = p - low;
  if (!cubic_taps) return {{low, 1 - part}, {1 + low, part}};
  std::vector<Expr> weights = cubic(part, -0.75);
  std::vector<Tap> taps;
  for (size_t k = 0; k < weights.size(); ++k)
    taps.push_back({inside((static_cast<double>(k) - 1) + low), weights[k]});
  return taps;
}

}  // namespace

Expr defined_grid_sample(const CallNode& call) {
  need_names(call);
  auto& a = attrs_of<GridSampleAttrs>(call);
  const TensorTypeNode &x = type_of(call.args[0]), &grid = type_of(call.args[1]);
  const size_t dims = x.shape.size() - 2;
  const DType acc = grid.dtype.bits == 64 ? DType::Float(64) : sampling_dtype(x.dtype);
  Dim count = dim(1), elements = dim(1);
  for (size_t d = 0; d < dims; ++d) {
    count = count * grid.shape[d + 2];
    elements = elements * x.shape[d + 2];
  }
  Expr places =
      reshape_to(cast_to(call.args[1], acc), {x.shape[0], dim(static_cast<int64_t>(dims)), count});
  Expr image = reshape_to(call.args[0], {x.shape[0], x.shape[1], elements});
  std::vector<std::vector<Tap>> taps;
  for (size_t d = 0; d < dims; ++d) {
    Expr along = slice_axis(places, 1, dim(static_cast<int64_t>(dims - 1 - d)), dim(1));
    taps.push_back(grid_taps(a, along, x.shape[d + 2]));
  }
  const AttrValue everywhere = shape_value({x.shape[0], x.shape[1], count});
  // All combinations, the last axis fastest.
  std::vector<size_t> k(dims, 0);
  Expr sum;
  while (true) {
    Expr index, weight, inside;
    for (size_t d = 0; d < dims; ++d) {
      const Tap& tap = taps[d][k[d]];
      const Dim& size = x.shape[d + 2];
      Expr at = as_index(clamped(tap.at, size));
      index = index ? index * size_as(size, index) + at : at;
      if (tap.weight) weight = weight ? weight * tap.weight : tap.weight;
      Expr known = is_within(tap.at, 0, less_one(size, tap.at));
      inside = inside ? both(inside, known) : known;
    }
    index = apply("broadcast_to", {index}, {{"shape", everywhere}});
    Expr part = cast_to(apply("gather", {image, index}, {{"axis", int64_t{2}}}), acc);
    if (a.padding_mode == "zeros") part = kept(inside, part);
    if (weight) part = part * weight;
    sum = sum ? sum + part : part;
    size_t d = dims;
    while (d > 0 && ++k[d - 1] == taps[d - 1].size()) k[--d] = 0;
    if (d == 0) break;
  }
  std::vector<Dim> shape = grid.shape;
  shape[1] = x.shape[1];
  return reshape_to(rounded_to(sum, x.dtype), shape);
}

namespace {

// ---- Boxes

// The weights of an axis' elements for places (.., m): (.., m, size), those between two elements shared by them.
Expr weights_of(const Expr& places, const Dim& size) {
  Expr away = apply("abs", {expanded(places, rank_of(places)) - row_of_places(size, places)});
  return greatest(1 - away, 0);
}

// What rows (m, h, H) and columns (m, w, W) of weights make of the item of (N, C, H, W) that each of the m
// boxes is in: (m, C, h, w).
Expr weighted(const Expr& x, const Expr& item, const Expr& rows, const Expr& columns) {
  const std::vector<Dim>&from = type_of(x).shape, &r = type_of(rows).shape,
        &c = type_of(columns).shape;
  const Dim boxes = r[0], height = r[1], width = c[1];
  // The items are more rows, of which a box has those of one.
  Expr down = rows;
  if (as_const(from[0]) != 1) {
    Expr is_item = apply("equal", {expanded(item, 1), expanded(iota(from[0]), 0)});
    down = kept(expanded(expanded(is_item, 1), 3), expanded(rows, 2));
  }
  down = reshape_to(down, {boxes * height, from[0] * from[2]});
  Expr lines = reshape_to(transposed(x, {0, 2, 1, 3}), {from[0] * from[2], from[1] * from[3]});
  Expr part = apply("nn.matmul", {down, lines});
  part = reshape_to(part, {boxes, height * from[1], from[3]});
  Expr out = apply("nn.batch_matmul", {part, columns}, {{"transpose_b", true}});
  return transposed(reshape_to(out, {boxes, height, from[1], width}), {0, 2, 1, 3});
}

Expr item_of(const Expr& number, const Dim& items) {
  Expr i = as_index(number);
  return apply("minimum", {greatest(i, 0), less_one(items, i)});
}

// Behind which axes of another layout the axes of NCHW are.
Ints axes_in(const std::string& layout) {
  Ints out;
  for (char c : std::string("NCHW")) out.push_back(static_cast<int64_t>(layout.find(c)));
  return out;
}
Ints axes_back(const std::string& layout) {
  Ints out;
  for (char c : layout) out.push_back(static_cast<int64_t>(std::string("NCHW").find(c)));
  return out;
}

}  // namespace

Expr defined_crop_and_resize(const CallNode& call) {
  need_names(call);
  auto& a = attrs_of<CropAndResizeAttrs>(call);
  const DType dtype = type_of(call.args[0]).dtype, acc = sampling_dtype(dtype);
  Expr x = cast_to(transposed(call.args[0], axes_in(a.layout)), acc),
       boxes = cast_to(call.args[1], acc);
  Expr matrix[2], inside[2];
  for (size_t d = 0; d < 2; ++d) {
    const Dim& n = type_of(x).shape[d + 2];
    const int64_t size = a.crop_size[d];
    Expr begin = expanded(column(boxes, static_cast<int64_t>(d)), 1),
         end = expanded(column(boxes, static_cast<int64_t>(d) + 2), 1), last = less_one(n, begin);
    Expr places = 0.5 * (begin + end) * last;
    if (size > 1) {
      Expr step = (end - begin) * last / scalar(static_cast<double>(size - 1), begin);
      places = begin * last + row_of_places(dim(size), begin) * step;
    }
    inside[d] = is_within(places, 0, last);
    Expr at = a.method == "nearest_neighbor" ? floor_of(0.5 + places) : places;
    matrix[d] = weights_of(clamped(at, n), n);
  }
  Expr out = weighted(x, item_of(call.args[2], type_of(x).shape[0]), matrix[0], matrix[1]);
  Expr known = expanded(both(expanded(inside[0], 2), expanded(inside[1], 1)), 1);
  out = choose(known, out, scalar(a.extrapolation_value, out));
  const DType result = is_set(a.out_dtype) ? a.out_dtype : dtype;
  return transposed(rounded_to(out, result), axes_back(a.layout));
}

namespace {

// Where a region's samples lie along an axis: (regions, bins, samples), and how many samples a bin has, (regions, 1, 1).
struct Samples {
  Expr places, count;  // count: null where it is the last size of `places`
  Dim each;
};

Expr corner(const Expr& rois, int64_t k, double scale) {
  return expanded(bounded(scale * column(rois, k), 0), 1, 2);
}

Samples samples_of(const CallNode& call, const ROIAlignAttrs& a, const Expr& rois, size_t d) {
  const auto k = static_cast<int64_t>(d);
  Expr begin = corner(rois, 2 - k, a.spatial_scale), end = corner(rois, 4 - k, a.spatial_scale);
  Expr length = a.aligned ? end - begin : greatest(end - begin, 1);
  Expr bin = (1.0 / static_cast<double>(a.pooled_size[d])) * length;
  Samples out{nullptr, nullptr, dim(a.sample_ratio)};
  Expr count = scalar(static_cast<double>(a.sample_ratio), bin);
  if (a.sample_ratio <= 0) {
    // As many as a bin has elements; never more than twice the data's.
    out.each = dim(2) * type_of(call.args[0]).shape[d + 2];
    count = least(apply("ceil", {bin}), size_as(out.each, bin));
    out.count = count;
    if (a.aligned) count = greatest(count, 1);
  }
  Expr within = (0.5 + row_of_places(out.each, bin)) * (bin / count);
  out.places = begin + expanded(row_of_places(dim(a.pooled_size[d]), bin), 1) * bin + within;
  return out;
}

// The mean of a bin's samples as weights of the elements: (regions, bins, size).
Expr mean_weights(const Samples& s, const Dim& size) {
  Expr inside = is_within(s.places, -1, size_as(size, s.places));
  Expr divisor = size_as(s.each, s.places);
  if (s.count) {
    inside = both(inside, apply("less", {row_of_places(s.each, s.places), s.count}));
    divisor = greatest(apply("squeeze", {s.count}, {{"axis", to_value(Ints{2})}}), 1);
    divisor = expanded(divisor, 2);
  }
  Expr each = kept(expanded(inside, 3), weights_of(clamped(s.places, size), size));
  return sum_over(each, {2}) / divisor;
}

// The greatest of all samples of a bin, or of the four parts of each.
Expr greatest_sample(const ROIAlignAttrs& a, const Expr& x, const Expr& item,
                     const Samples (&s)[2]) {
  const std::vector<Dim>& shape = type_of(x).shape;
  // (regions, channels, rows, samples, columns, samples)
  auto spread = [](const Expr& e, size_t d) {
    return d == 0 ? expanded(expanded(e, 3, 2), 1) : expanded(e, 1, 3);
  };
  Expr inside, low[2], part[2];
  for (size_t d = 0; d < 2; ++d) {
    Expr places = spread(s[d].places, d),
         known = is_within(places, -1, size_as(shape[d + 2], places));
    inside = inside ? both(inside, known) : known;
    Expr p = clamped(places, shape[d + 2]);
    low[d] = floor_of(p);
    part[d] = p - low[d];
  }
  Expr first = expanded(item, 1, 5) * size_as(shape[1], item) + expanded(iota(shape[1]), 1, 4);
  std::vector<Expr> parts;
  for (int k = 0; k < 4; ++k) {
    Expr index = first, weight;
    for (size_t d = 0; d < 2; ++d) {
      const bool high = (d == 0 ? k / 2 : k % 2) == 1;
      Expr at = as_index(clamped(high ? 1 + low[d] : low[d], shape[d + 2]));
      index = index * size_as(shape[d + 2], index) + at;
      Expr w = high ? part[d] : 1 - part[d];
      weight = weight ? weight * w : w;
    }
    parts.push_back(apply("take", {x, index}) * weight);
  }
  Expr value = parts[0];
  for (size_t k = 1; k < 4; ++k)
    value = a.mode == "max" ? value + parts[k] : apply("maximum", {value, parts[k]});
  return apply("max", {kept(inside, value)}, {{"axis", to_value(Ints{3, 5})}});
}

}  // namespace

Expr defined_roi_align(const CallNode& call) {
  need_names(call);
  auto& a = attrs_of<ROIAlignAttrs>(call);
  const DType dtype = type_of(call.args[0]).dtype, acc = sampling_dtype(dtype);
  Expr x = cast_to(call.args[0], acc), rois = cast_to(call.args[1], acc);
  const std::vector<Dim>& shape = type_of(x).shape;
  Expr item = item_of(column(rois, 0), shape[0]);
  const Samples samples[2] = {samples_of(call, a, rois, 0), samples_of(call, a, rois, 1)};
  if (a.mode == "avg") {
    Expr out =
        weighted(x, item, mean_weights(samples[0], shape[2]), mean_weights(samples[1], shape[3]));
    return cast_to(out, dtype);
  }
  if (a.sample_ratio <= 0)
    not_differentiable(call, "each region has another number of samples",
                       "give sample_ratio, or take their average");
  return cast_to(greatest_sample(a, x, item, samples), dtype);
}

Expr defined_roi_pool(const CallNode& call) {
  need_names(call);
  Expr places = make_call("vision.roi_pool_places", call.args, attr_values(call.attrs), call.span);
  Expr found = apply("take", {call.args[0], greatest(places, 0)});
  return kept(apply("greater_equal", {places, scalar(0, places)}), found);
}

}  // namespace relay::ops
