// Gradients of convolutions and of transposed ones: convolutions again.
#include <numeric>

#include "ops/contraction/conv.h"
#include "ops/gradient.h"
#include "ops/image/window.h"

namespace relay::ops {
namespace {

// A tensor's axes from one layout to another, without blocks.
Expr in_axes(const Expr& e, const std::string& from, const std::string& to) {
  Ints axes;
  for (char c : to) axes.push_back(static_cast<int64_t>(from.find(c)));
  return transposed(e, axes);
}

// Whether only a run tells how large an image or a kernel in those layouts is.
bool has_open_places(const Expr& e) {
  const std::vector<Dim>& shape = type_of(e).shape;
  return std::any_of(shape.begin() + 2, shape.end(), [](const Dim& d) { return !as_const(d); });
}

// A convolution, or a transposed one, in the layouts NC.., OI.. (IO.. when transposed).
struct PlainConv {
  size_t dims;
  Ints strides, dilation, padding;
  int64_t groups;

  std::string name(bool transposed) const {
    return "nn.conv" + std::to_string(dims) + (transposed ? "d_transpose" : "d");
  }
  std::vector<std::pair<std::string, AttrValue>> attrs() const {
    return {{"strides", to_value(strides)},
            {"dilation", to_value(dilation)},
            {"padding", to_value(padding)},
            {"groups", groups}};
  }

  // The data's adjoint, of a convolution without steps: that of the result, convolved with the kernel turned round. Its
  // weights are packed like those of any convolution, and what is transposed has no kernel of its own.
  Expr mirrored(const Expr& g, const Expr& w) const {
    PlainConv back = *this;
    Expr turned = groups == 1 ? move_axis(w, 0, 1) : swapped_in_groups(w);
    for (size_t d = 0; d < dims; ++d) {
      int64_t kernel = *as_const(type_of(w).shape[d + 2]);
      for (size_t end : {d, dims + d}) {
        back.padding[end] = (kernel - 1) * dilation[d] - padding[end];
        if (back.padding[end] < 0) return nullptr;
      }
      if (kernel > 1) turned = apply("reverse", {turned}, {{"axis", static_cast<int64_t>(d) + 2}});
    }
    return apply(name(false), {g, turned}, back.attrs());
  }

  // (G * O, I, ..) as (G * I, O, ..): outputs and inputs change places in each group.
  Expr swapped_in_groups(const Expr& w) const {
    std::vector<Dim> split = type_of(w).shape, joined = split;
    const Dim outputs = floor_div(split[0], dim(groups)), inputs = split[1];
    split[0] = outputs;
    split.insert(split.begin(), dim(groups));
    joined[0] = dim(groups) * inputs;
    joined[1] = outputs;
    return reshape_to(move_axis(reshape_to(w, split), 1, 2), joined);
  }

  // The data's adjoint.
  Expr spread(const Expr& g, const Expr& w, const std::vector<Dim>& data) const {
    if (has_open_places(w)) return spread_kernel(g, w, data);
    if (std::ranges::all_of(strides, [](int64_t s) { return s == 1; })) {
      if (Expr out = mirrored(g, w)) return out;
    }
    return spread_windows(g, w, data);
  }

  // What the other kind of convolution makes of the result's adjoint, cut to the size.
  Expr spread_windows(const Expr& g, const Expr& w, const std::vector<Dim>& data) const {
    // Rows at the end that no window reaches are made by padding, and cut off.
    Ints extra;
    for (size_t d = 0; d < dims; ++d) {
      const Dim made = (type_of(g).shape[d + 2] - dim(1)) * dim(strides[d]) +
                       (type_of(w).shape[d + 2] - dim(1)) * dim(dilation[d]) + dim(1) -
                       dim(padding[d] + padding[dims + d]);
      auto missing = as_const(data[d + 2] - made);
      extra.push_back(missing && *missing >= 0 ? *missing : strides[d] - 1);
    }
    auto with_extra = attrs();
    with_extra.emplace_back("output_padding", to_value(extra));
    Expr out = apply(name(true), {g, w}, with_extra);
    for (size_t d = 0; d < dims; ++d)
      out = slice_axis(out, static_cast<int64_t>(d) + 2, dim(0), data[d + 2]);
    return out;
  }

  // The same for a kernel of a symbolic size, and a result of a constant one: they change places, and so do items of the data
  // and inputs of the kernel.
  Expr spread_kernel(const Expr& g, const Expr& w, const std::vector<Dim>& data) const {
    const PlainConv turned{dims, dilation, strides, padding, groups};
    const Expr out = turned.spread_windows(move_axis(w, 0, 1), move_axis(g, 0, 1), data);
    if (groups == 1) return move_axis(out, 0, 1);
    std::vector<Dim> split = type_of(out).shape;
    split[1] = data[0];
    split.insert(split.begin() + 1, dim(groups));
    Ints order(split.size());
    std::iota(order.begin(), order.end(), 0);
    std::swap(order[0], order[2]);
    return reshape_to(transposed(reshape_to(out, split), order), data);
  }

  // The data that windows reach, and the padding behind them: what no window reaches at the end would only make sums that
  // are cut off.
  std::pair<Expr, Ints> reached(const Expr& x, const Expr& g,
                                const std::vector<Dim>& weight) const {
    Expr data = x;
    Ints around = padding;
    for (size_t d = 0; d < dims; ++d) {
      const Dim &size = type_of(x).shape[d + 2], &steps = type_of(g).shape[d + 2];
      Dim reach =
          (steps - dim(1)) * dim(strides[d]) + (weight[d + 2] - dim(1)) * dim(dilation[d]) + dim(1);
      int64_t &begin = around[d], &end = around[dims + d];
      auto rest = as_const(size + dim(begin + end) - reach);
      if (!rest) {
        // How much is left over depends on the size.
        const auto axis = static_cast<int64_t>(d) + 2;
        data = slice_axis(pad_axis(data, axis, dim(begin), dim(end)), axis, dim(0), reach);
        begin = end = 0;
        continue;
      }
      if (*rest <= 0) continue;
      if (*rest > end)
        data = slice_axis(data, static_cast<int64_t>(d) + 2, dim(0), size - dim(*rest - end));
      end = std::max<int64_t>(end - *rest, 0);
    }
    return {data, around};
  }

  // The weight's adjoint, (O, I, ..): windows of the data, of the size of the result, weighted by its
  // adjoint. Items become channels to sum over, channels items.
  Expr correlate(const Expr& x, const Expr& g, const std::vector<Dim>& weight) const {
    auto fixed = [](const Dim& d) { return as_const(d).has_value(); };
    const bool open = has_open_places(g);
    if (fills_tiles(weight, open)) return correlate_as_they_lie(x, g, weight);
    if (open) return correlate_taps(x, g, weight);
    // Groups of fewer outputs fill no vector.
    constexpr int64_t kNarrow = 8;
    auto outputs = as_const(weight[0]);
    if (groups > 1 && outputs && *outputs < kNarrow * groups &&
        std::ranges::all_of(type_of(g).shape, fixed))
      return correlate_narrow(x, g, weight);
    auto reordered = [&](const Expr& e, bool groups_inside) {
      const std::vector<Dim>& shape = type_of(e).shape;
      std::vector<Dim> split = shape;
      split[1] = floor_div(shape[1], dim(groups));
      split.insert(split.begin() + 1, dim(groups));
      // (N, G, C, ..) to (C, G, N, ..) or (G, C, N, ..).
      Ints order = groups_inside ? Ints{2, 1, 0} : Ints{1, 2, 0};
      std::vector<Dim> joined = groups_inside ? std::vector<Dim>{split[2], split[1] * split[0]}
                                              : std::vector<Dim>{split[1] * split[2], split[0]};
      for (size_t d = 0; d < dims; ++d) {
        order.push_back(static_cast<int64_t>(d) + 3);
        joined.push_back(shape[d + 2]);
      }
      return reshape_to(transposed(reshape_to(e, split), order), joined);
    };
    const auto [data, around] = reached(x, g, weight);
    PlainConv turned{dims, dilation, strides, around, groups};
    Expr out = apply(name(false), {reordered(data, true), reordered(g, false)}, turned.attrs());
    for (size_t d = 0; d < dims; ++d)
      out = slice_axis(out, static_cast<int64_t>(d) + 2, dim(0), weight[d + 2]);
    return move_axis(out, 0, 1);
  }

  // Whether the taps of the kernel are the rows of a register tile, and each column of the result's adjoint is read for a few
  // such tiles only: then it is multiplied as it lies. On two cores of a Xeon with 2 MB of L2 it takes 0.72 to 0.98 of the time
  // with panels of columns, which are copied before, and 1.1 to 1.4 for more outputs. Where sizes are symbolic (`open`), it
  // takes, of the time of products for each tap, which read copied windows: 0.23 for 32 channels to 16 and images of 64 x 64,
  // 0.47 for 128 to 64 and 28 x 28, 0.65 for 64 to 64; 1.1 to 1.6 for 64 to 128, 1.8 for 256 to 256 and 7 x 7.
  bool fills_tiles(const std::vector<Dim>& weight, bool open) const {
    constexpr int64_t kLeastTaps = 6, kMostOutputs = 64, kVector = 16;
    if (groups > 1) return false;
    int64_t taps = 1;
    for (size_t d = 0; d < dims; ++d) taps *= as_const(weight[d + 2]).value_or(0);
    auto at_most = [](const Dim& d, int64_t n) { return as_const(d).value_or(n + 1) <= n; };
    return taps >= kLeastTaps &&
           (at_most(weight[0], kMostOutputs) || (open && at_most(weight[1], kVector - 1)));
  }

  // The weight's adjoint of one group. Items are the channels of the data, which stay where they are, and those of the kernel,
  // whose columns lie beside each other.
  Expr correlate_as_they_lie(const Expr& x, const Expr& g, const std::vector<Dim>& weight) const {
    const auto [data, around] = reached(x, g, weight);
    const std::string spatial(spatial_axes(dims));
    const auto last = static_cast<int64_t>(dims) + 1;
    auto turned = PlainConv{dims, dilation, strides, around, 1}.attrs();
    turned.emplace_back("data_layout", "CN" + spatial);
    turned.emplace_back("kernel_layout", "I" + spatial + "O");
    turned.emplace_back("out_layout", "N" + spatial + "C");
    Expr out = apply(name(false), {data, move_axis(g, 1, last)}, turned);
    for (size_t d = 0; d < dims; ++d)
      out = slice_axis(out, static_cast<int64_t>(d) + 1, dim(0), weight[d + 2]);
    return move_axis(out, last, 0);
  }

  // The same for results of symbolic sizes: sums over all items and places for each tap of the kernel. Channels that fill a
  // vector are the last axis of the windows, so that their rows are copied whole, and each tap has a matrix product. Windows
  // of fewer channels keep their places in rows, and one product has the channels of all taps as rows. Groups of one channel
  // and one output have no product: they are the lanes of the sums.
  Expr correlate_taps(const Expr& x, const Expr& g, const std::vector<Dim>& weight) const {
    constexpr int64_t kVector = 16;
    const Dim outputs = floor_div(weight[0], dim(groups));
    auto at_least = [](const Dim& d, int64_t n) { return as_const(d).value_or(n) >= n; };
    const bool depthwise = groups > 1 && !at_least(weight[1], 2) && !at_least(outputs, 2);
    const bool channels_last = depthwise || at_least(weight[1], kVector);
    const std::vector<Dim>& steps = type_of(g).shape;
    Dim places = steps[0];
    for (size_t d = 0; d < dims; ++d) places = places * steps[d + 2];
    const bool grouped = groups > 1 && !depthwise;
    // (items, places.., channels) or (channels, items, places..), behind an axis of groups if there are several.
    auto ordered = [&](const Expr& e, const Dim& channels, bool last) {
      const int64_t first = grouped ? 3 : 2;  // place
      Ints order, all;
      for (size_t d = 0; d < dims; ++d) all.push_back(first + static_cast<int64_t>(d));
      const int64_t of_channels = first - 1;
      if (grouped) order.push_back(1);
      if (!last) order.push_back(of_channels);
      order.push_back(0);
      order.insert(order.end(), all.begin(), all.end());
      if (last) order.push_back(of_channels);
      if (!grouped) return transposed(e, order);
      std::vector<Dim> split = type_of(e).shape;
      split[1] = channels;
      split.insert(split.begin() + 1, dim(groups));
      return transposed(reshape_to(e, split), order);
    };
    Expr padded = ordered(x, weight[1], channels_last);
    Ints axes, kernel;
    int64_t count = 1;
    for (size_t d = 0; d < dims; ++d) {
      axes.push_back(static_cast<int64_t>(d) + 1 + (grouped ? 1 : 0) + (channels_last ? 0 : 1));
      kernel.push_back(*as_const(weight[d + 2]));
      count *= kernel.back();
      padded = pad_axis(padded, axes.back(), dim(padding[d]), dim(padding[dims + d]));
    }
    std::vector<Expr> taps;
    for (int64_t tap = 0; tap < count; ++tap) {
      Dims begin(dims), end(dims);
      int64_t rest = tap;
      for (size_t d = dims; d-- > 0; rest /= kernel[d]) {
        begin[d] = dim(rest % kernel[d] * dilation[d]);
        end[d] = begin[d] + (steps[d + 2] - dim(1)) * dim(strides[d]) + dim(1);
      }
      taps.push_back(apply("strided_slice", {padded},
                           {{"begin", to_value(begin)},
                            {"end", to_value(end)},
                            {"strides", to_value(strides)},
                            {"axes", to_value(axes)}}));
    }
    auto stacked = [](std::vector<Expr> parts, int64_t axis) {
      return apply("stack", {tuple(std::move(parts))}, {{"axis", axis}});
    };
    if (depthwise) {
      const Expr adjoint = ordered(g, outputs, true);
      Ints summed(dims + 1);
      std::iota(summed.begin(), summed.end(), 0);
      for (Expr& tap : taps)
        tap = apply("sum", {apply("multiply", {tap, adjoint}, {})}, {{"axis", to_value(summed)}});
      return reshape_to(move_axis(stacked(std::move(taps), 0), 0, 1), weight);
    }
    if (channels_last) {
      const Expr adjoint = reshape_to(ordered(g, outputs, false), {dim(groups), outputs, places});
      for (Expr& tap : taps) {
        const Expr windows = reshape_to(tap, {dim(groups), places, weight[1]});
        tap = apply("nn.batch_matmul", {adjoint, windows}, {});
      }
      return reshape_to(move_axis(stacked(std::move(taps), 0), 0, 3), weight);
    }
    const Expr rows = reshape_to(stacked(std::move(taps), grouped ? 2 : 1),
                                 {dim(groups), weight[1] * dim(count), places});
    const Expr adjoint = reshape_to(ordered(g, outputs, true), {dim(groups), places, outputs});
    return reshape_to(move_axis(apply("nn.batch_matmul", {rows, adjoint}, {}), 2, 1), weight);
  }

  // The same where groups have few outputs: items are an axis of the windows, so that the groups are channels and lanes.
  Expr correlate_narrow(const Expr& x, const Expr& g, const std::vector<Dim>& weight) const {
    if (dims == 3) return correlate_slices(x, g, weight);
    const auto [data, around] = reached(x, g, weight);
    std::vector<Dim> split = type_of(data).shape, kernel = type_of(g).shape, result = weight;
    split[1] = weight[1];
    split.insert(split.begin() + 1, dim(groups));
    std::swap(kernel[0], kernel[1]);
    kernel.insert(kernel.begin() + 1, dim(1));
    std::swap(result[0], result[1]);
    Ints order{2, 1, 0};
    PlainConv turned{dims + 1, {1}, {1}, {0}, groups};
    for (size_t d = 0; d < dims; ++d) {
      order.push_back(static_cast<int64_t>(d) + 3);
      turned.strides.push_back(dilation[d]);
      turned.dilation.push_back(strides[d]);
      turned.padding.push_back(around[d]);
    }
    turned.padding.push_back(0);
    turned.padding.insert(turned.padding.end(), around.begin() + static_cast<std::ptrdiff_t>(dims),
                          around.end());
    Expr out =
        apply(turned.name(false),
              {transposed(reshape_to(data, split), order), reshape_to(move_axis(g, 0, 1), kernel)},
              turned.attrs());
    for (size_t d = 0; d < dims; ++d)
      out = slice_axis(out, static_cast<int64_t>(d) + 3, dim(0), weight[d + 2]);
    return move_axis(reshape_to(out, result), 0, 1);
  }

  // The same for three axes, tap by tap of the first: its places are items.
  Expr correlate_slices(const Expr& x, const Expr& g, const std::vector<Dim>& weight) const {
    auto flat = [&](const Expr& e) {
      std::vector<Dim> shape = type_of(e).shape;
      shape[0] = shape[0] * shape[2];
      shape.erase(shape.begin() + 2);
      return reshape_to(move_axis(e, 2, 1), shape);
    };
    Expr padded = pad_axis(x, 2, dim(padding[0]), dim(padding[3])), adjoint = flat(g);
    const PlainConv plane{2,
                          {strides.begin() + 1, strides.end()},
                          {dilation.begin() + 1, dilation.end()},
                          {padding[1], padding[2], padding[4], padding[5]},
                          groups};
    std::vector<Dim> tap = weight;
    tap.erase(tap.begin() + 2);
    std::vector<Expr> taps;
    const int64_t places = *as_const(type_of(g).shape[2]);
    for (int64_t k = 0; k < *as_const(weight[2]); ++k) {
      Ints begin{k * dilation[0]}, end{k * dilation[0] + (places - 1) * strides[0] + 1};
      Expr slice = apply("strided_slice", {padded},
                         {{"begin", to_value(begin)},
                          {"end", to_value(end)},
                          {"strides", to_value(Ints{strides[0]})},
                          {"axes", to_value(Ints{2})}});
      taps.push_back(plane.correlate(flat(slice), adjoint, tap));
    }
    return apply("stack", {tuple(std::move(taps))}, {{"axis", int64_t{2}}});
  }
};

Adjoints adjoints(const GradientContext& ctx, size_t dims, bool transposed) {
  auto& a = ctx.attrs<ConvAttrs>();
  const std::string spatial(spatial_axes(dims)), plain = "NC" + spatial,
                                                 kernel = (transposed ? "IO" : "OI") + spatial;
  const std::string out_layout = a.out_layout.empty() ? a.data_layout : a.out_layout;
  for (const std::string& layout : {a.data_layout, a.kernel_layout, out_layout}) {
    if (layout.size() != dims + 2)
      no_gradient(ctx, "a layout has blocks", "differentiate before layouts are changed");
  }
  DType dtype = type_of(ctx.arg(0)).dtype;
  Expr x = in_axes(ctx.arg(0), a.data_layout, plain);
  Expr w = in_axes(ctx.arg(1), a.kernel_layout, kernel);
  Expr g = in_axes(cast_to(ctx.adjoint(), dtype), out_layout, plain);
  for (const Expr& e : {x, g}) {
    if (std::ranges::any_of(type_of(e).shape, is_any))
      no_gradient(ctx, "only the data tells a size");
  }
  if (has_open_places(w) && has_open_places(g))
    no_gradient(ctx, "kernel and result both have symbolic sizes");
  PlainConv conv{dims, a.strides, a.dilation, *full_padding(a.padding, dims), a.groups};
  // A transposed convolution is the gradient of one that takes its result to its data.
  Expr dx = transposed ? apply(conv.name(false), {g, w}, conv.attrs())
                       : conv.spread(g, w, type_of(x).shape);
  if (transposed) {
    for (size_t d = 0; d < dims; ++d)
      dx = slice_axis(dx, static_cast<int64_t>(d) + 2, dim(0), type_of(x).shape[d + 2]);
  }
  Expr dw =
      transposed ? conv.correlate(g, x, type_of(w).shape) : conv.correlate(x, g, type_of(w).shape);
  return {in_axes(dx, plain, a.data_layout), in_axes(dw, kernel, a.kernel_layout)};
}

}  // namespace

GradientRule conv_gradient(size_t dims, bool transposed) {
  return [dims, transposed](const GradientContext& ctx) { return adjoints(ctx, dims, transposed); };
}

}  // namespace relay::ops
