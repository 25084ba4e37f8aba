#include "frontend/common/slices.h"

#include <algorithm>
#include <limits>

#include "base/codes/frontend.h"
#include "base/codes/types.h"
#include "frontend/common/open_args.h"
#include "frontend/common/shape_args.h"

namespace relay::frontend {
namespace {

constexpr int64_t kMaxInt = std::numeric_limits<int64_t>::max();
// Exporters say "to the end" by an end that no dimension reaches; the smallest in use is 10^9.
constexpr int64_t kToTheEnd = 1'000'000'000;

// Start and end within a dimension of known size. As Python's slice.indices gives them, but a start
// before the first element is the first one, whatever the direction.
std::pair<int64_t, int64_t> clamp_slice(int64_t start, int64_t end, int64_t step, int64_t size) {
  auto fix = [&](int64_t v) {
    if (v < 0) v = v < -size ? -1 : v + size;
    return step > 0 ? std::clamp<int64_t>(v, 0, size) : std::clamp<int64_t>(v, -1, size - 1);
  };
  int64_t low = std::max<int64_t>(fix(start), size > 0 || step > 0 ? 0 : -1);
  // Before the first element means 0 when going up.
  int64_t high = step > 0 ? std::max<int64_t>(fix(end), 0) : fix(end);
  return {low, high};
}

// All lists of a slice in full, axes counted from the front.
void complete(const Builder& build, SliceSpec& s, int64_t rank) {
  size_t n = s.starts.size();
  if (s.axes.empty()) {
    for (size_t i = 0; i < n; ++i) s.axes.push_back(static_cast<int64_t>(i));
  }
  if (s.steps.empty()) s.steps.assign(n, 1);
  if (s.ends.size() != n || s.axes.size() != n || s.steps.size() != n) {
    build.fail(codes::frontend_attribute, "starts, ends, axes and steps differ in length",
               std::to_string(n) + " each");
  }
  s.axes = build.axes(s.axes, rank);
  for (int64_t& step : s.steps) {
    if (step == 0) {
      build.fail(codes::frontend_attribute, "a step is impossible", "a step of not 0",
                 std::to_string(step));
    }
    // Its negative is a number, and no dimension has room for two steps.
    step = std::max(step, -kMaxInt);
  }
}

}  // namespace

Expr strided_slice(const Builder& build, Expr x, SliceSpec s) {
  const std::vector<Dim> shape = Builder::shape_of(x);
  complete(build, s, static_cast<int64_t>(shape.size()));
  Dims begin, end;
  std::vector<int64_t> strides, axes;
  for (size_t i = 0; i < s.axes.size(); ++i) {
    const Dim& size = shape[static_cast<size_t>(s.axes[i])];
    auto from = as_const(s.starts[i]), to = as_const(s.ends[i]);
    int64_t step = s.steps[i];
    if (to == std::nullopt && dim_equal(s.ends[i], size)) to = kMaxInt;
    // "The end minus a few" of an open dimension counts from its end.
    if (!to) {
      if (auto less = as_const(s.ends[i] - size); less && *less < 0) to = *less;
    }
    if (!from) {
      if (auto less = as_const(s.starts[i] - size); less && *less < 0) from = *less;
    }
    if ((!from || !to) && is_size(s.starts[i]) && is_size(s.ends[i])) {
      begin.push_back(from ? dim(*from) : s.starts[i]);
      end.push_back(to ? dim(*to) : s.ends[i]);
      strides.push_back(step);
      axes.push_back(s.axes[i]);
      continue;
    }
    // Only a run knows whether that is before the first element, which is the first one then.
    const bool before = step < 0 && from && *from < -1 && !as_const(size);
    if (!from || !to || before) {
      build.fail(codes::frontend_dynamic, "a bound depends on an input's open dimension",
                 "a number", to_string(from && !before ? s.ends[i] : s.starts[i]),
                 "give the input's shape, as in --input NAME=1x3x224x224");
    }
    if (auto n = as_const(size)) {
      auto [low, high] = clamp_slice(*from, *to, step, *n);
      if (low == 0 && high == *n && step == 1) continue;
      // -1 would count from the end; so much below zero is before the first element.
      auto place = [&](int64_t at) { return at < 0 ? -*n - 1 : at; };
      begin.push_back(dim(place(low)));
      end.push_back(dim(place(high)));
    } else if (*from == 0 && *to >= kToTheEnd && step == 1) {
      continue;
    } else if (*from >= 0 && *from < kToTheEnd && *to == *from + 1 && step == 1) {
      // One element of an open dimension, kept as a dimension.
      x = build.slice(x, s.axes[i], *from, *to);
      continue;
    } else {
      begin.push_back(dim(*from));
      end.push_back(dim(*to));
    }
    strides.push_back(step);
    axes.push_back(s.axes[i]);
  }
  if (axes.empty()) return x;
  return build.call("strided_slice", {x},
                    {{"begin", relay::to_value(begin)},
                     {"end", relay::to_value(end)},
                     {"strides", to_value(strides)},
                     {"axes", to_value(axes)}});
}

Expr slice_at_run_time(const Builder& build, const Expr& x, const OpenSlice& slice) {
  const DType i64 = DType::Int(64);
  const int64_t rank = Builder::rank_of(x);
  Expr begin = slice.begin, end = slice.end, which = slice.which;
  Expr steps = slice.steps ? slice.steps : ones_for(build, begin);
  std::vector<int64_t> axes;
  if (slice.axes) {
    axes = *slice.axes;
  } else if (!which && !has_open_length(begin)) {
    axes = Builder::all_axes(length_of_vector(begin));
  } else {
    // All axes are cut: those that are not named at the bounds that they have.
    if (!which) {
      which = open_range(build, build.scalar(0, i64), build.select(sizes_of(build, begin), 0, 0));
    }
    begin = spread(build, build.full(0, {dim(rank)}, i64), which, begin);
    end = spread(build, sizes_of(build, x), which, end);
    steps = spread(build, build.full(1, {dim(rank)}, i64), which, steps);
    axes = Builder::all_axes(rank);
  }
  if (!slice.forward) {
    // A start before the first element is the first one.
    Expr sizes = build.call("take", {sizes_of(build, x), build.ints(axes)}, {{"axis", int64_t{0}}});
    begin = build.maximum(begin, build.call("negative", {sizes}));
  }
  return open_slice(build, x, begin, end, steps, axes);
}

namespace {

void check_parts(const Builder& build, int64_t parts) {
  if (parts < 1) {
    build.fail(codes::frontend_attribute, "the number of parts is out of range", "1 or more",
               std::to_string(parts));
  }
}

}  // namespace

std::vector<Expr> split_into(const Builder& build, Expr x, const std::vector<int64_t>& sizes,
                             int64_t axis) {
  const Dim whole = Builder::shape_of(x)[static_cast<size_t>(axis)];
  check_parts(build, static_cast<int64_t>(sizes.size()));
  int64_t sum = 0;
  for (int64_t s : sizes) {
    if (s < 0 || __builtin_add_overflow(sum, s, &sum)) {
      build.fail(codes::frontend_attribute, "a part has an impossible size", "sizes of 0 or more",
                 std::to_string(s));
    }
  }
  if (auto n = as_const(whole); n && *n != sum) {
    build.fail(codes::type_shape, "the parts do not add up", to_string(whole) + " together",
               std::to_string(sum) + " together");
  }
  if (!as_const(whole)) x = with_size(build, x, axis, dim(sum));
  if (sizes.size() == 1) return {x};
  std::vector<int64_t> indices;
  int64_t at = 0;
  for (size_t i = 0; i + 1 < sizes.size(); ++i) indices.push_back(at += sizes[i]);
  bool equal = std::all_of(sizes.begin(), sizes.end(), [&](int64_t s) { return s == sizes[0]; });
  AttrValue parts =
      equal && sizes[0] > 0 ? AttrValue(static_cast<int64_t>(sizes.size())) : to_value(indices);
  Expr all = build.call("split", {x}, {{"indices_or_sections", parts}, {"axis", axis}});
  std::vector<Expr> out;
  for (size_t i = 0; i < sizes.size(); ++i) {
    out.push_back(build.item(all, static_cast<int64_t>(i)));
  }
  return out;
}

std::vector<Expr> split_evenly(const Builder& build, const Expr& x, int64_t parts, int64_t axis) {
  check_parts(build, parts);
  const Dim& whole = Builder::shape_of(x)[static_cast<size_t>(axis)];
  auto n = as_const(whole);
  if (!n) {
    if (as_const(mod(whole, dim(parts))) != 0) {
      build.fail(codes::frontend_dynamic, "an open dimension is split into equal parts", "a number",
                 to_string(whole), "give the input's shape, as in --input NAME=1x3x224x224");
    }
    return build.split(x, axis, parts);
  }
  std::vector<int64_t> sizes;
  const int64_t each = (*n + parts - 1) / parts;
  for (int64_t i = 0; i < parts; ++i) sizes.push_back(std::clamp<int64_t>(*n - i * each, 0, each));
  return split_into(build, x, sizes, axis);
}

std::vector<Expr> split_at_run_time(const Builder& build, const Expr& x, const Expr& sizes,
                                    int64_t axis) {
  Expr all = build.call("dyn.split", {x, sizes}, {{"axis", axis}});
  std::vector<Expr> out;
  for (int64_t i = 0; i < length_of_vector(sizes); ++i) out.push_back(build.item(all, i));
  return out;
}

Expr even_sizes(const Builder& build, const Expr& x, int64_t parts, int64_t axis) {
  check_parts(build, parts);
  Expr n = entries(build, sizes_of(build, x), axis, axis + 1);
  auto number = [&](int64_t v) { return build.scalar(static_cast<double>(v), DType::Int(64)); };
  Expr each = build.call("floor_divide", {build.add(n, number(parts - 1)), number(parts)});
  Expr begin = build.mul(numbers_below(build, parts), each);
  Expr rest = build.maximum(build.sub(n, begin), number(0));
  return build.minimum(rest, each);
}

namespace {

// Periodic continuation along one axis.
Expr pad_wrap(const Builder& build, Expr x, int64_t axis, int64_t before, int64_t after) {
  int64_t n = build.const_dim(x, axis, "the size of a dimension padded by wrapping");
  if (n == 0) build.unsupported("wrapping an empty dimension");
  auto whole = [n](int64_t width) { return (width + n - 1) / n; };
  std::vector<Dim> sizes = Builder::shape_of(x);
  std::vector<int64_t> reps(sizes.size(), 1);
  reps[static_cast<size_t>(axis)] = whole(before) + 1 + whole(after);
  sizes[static_cast<size_t>(axis)] = dim(n) * dim(reps[static_cast<size_t>(axis)]);
  check_sizes(build, sizes);
  int64_t begin = whole(before) * n - before;
  return build.slice(build.call("tile", {std::move(x)}, {{"reps", to_value(reps)}}), axis, begin,
                     begin + before + n + after);
}

}  // namespace

Expr pad(const Builder& build, Expr x, const std::vector<int64_t>& pads, const std::string& mode,
         Expr fill) {
  int64_t rank = Builder::rank_of(x);
  if (static_cast<int64_t>(pads.size()) != 2 * rank) {
    build.fail(codes::frontend_attribute, "the list of pads has the wrong length",
               std::to_string(2 * rank), std::to_string(pads.size()));
  }
  if (mode != "constant" && mode != "edge" && mode != "reflect" && mode != "wrap") {
    build.fail(codes::frontend_attribute, "there is no such way to pad",
               "constant, edge, reflect or wrap", mode);
  }
  // Negative pads remove elements, which happens first: what is repeated is what is left.
  ValueList widths, cuts;
  bool pads_any = false, cuts_any = false;
  for (int64_t a = 0; a < rank; ++a) {
    int64_t before = pads[static_cast<size_t>(a)], after = pads[static_cast<size_t>(a + rank)];
    constexpr int64_t kMaxPad = int64_t{1} << 40;
    if (std::max(std::abs(before / 2), std::abs(after / 2)) > kMaxPad / 2) {
      build.fail(codes::frontend_limit, "a pad is too large", "at most 2^40",
                 std::to_string(before));
    }
    cuts_any |= before < 0 || after < 0;
    cuts.push_back(to_value({std::min<int64_t>(before, 0), std::min<int64_t>(after, 0)}));
    pads_any |= before > 0 || after > 0;
    widths.push_back(to_value({std::max<int64_t>(before, 0), std::max<int64_t>(after, 0)}));
  }
  if (cuts_any) {
    x = build.call("nn.pad", {x, build.scalar_like(0, x)},
                   {{"pad_width", AttrValue(std::move(cuts))}});
  }
  if (!pads_any) return x;
  if (mode != "wrap") {
    return build.call("nn.pad", {x, std::move(fill)},
                      {{"pad_width", AttrValue(std::move(widths))}, {"pad_mode", mode}});
  }
  for (int64_t a = 0; a < rank; ++a) {
    int64_t before = std::max<int64_t>(pads[static_cast<size_t>(a)], 0);
    int64_t after = std::max<int64_t>(pads[static_cast<size_t>(a + rank)], 0);
    if (before > 0 || after > 0) x = pad_wrap(build, x, a, before, after);
  }
  return x;
}

}  // namespace relay::frontend
