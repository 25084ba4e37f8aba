#include "strategies/sub_pixel/rewrite.h"

#include <algorithm>
#include <optional>

#include "analysis/calls.h"
#include "analysis/constant_expressions.h"
#include "ir/dim_fields.h"
#include "ir/layout.h"
#include "ir/op.h"
#include "passes/layout/convert_layout.h"
#include "passes/layout/fewer_products.h"
#include "passes/simplify/rewrite_calls.h"

namespace relay {
namespace {

using Ints = std::vector<int64_t>;

// One spatial dimension of a transposed convolution. Position y of its result is place p of pixel
// q, y = stride * q + p, and sums the pixels q + d - a times the elements k + stride * a of the
// kernel, for all a; d and k depend on p.
struct Dimension {
  int64_t in;
  int64_t out;
  int64_t kernel;
  int64_t stride;  // places for each pixel
  int64_t cut;     // of the uncut result, at its beginning
  Dim size;        // what `in` stands for

  // Nullopt when the sizes say nothing about each other. Of an open one, `in` is a size that it may have: what is done
  // depends on the difference of the result from `stride` times it only.
  static std::optional<Dimension> make(const Dim& size, const Dim& result, int64_t kernel,
                                       int64_t stride, int64_t cut) {
    if (auto in = as_const(size)) {
      auto out = as_const(result);
      if (!out || *in == 0) return std::nullopt;
      return Dimension{*in, *out, kernel, *in == 1 ? kernel : stride, cut, size};
    }
    auto more = as_const(result - size * dim(stride));
    if (!more) return std::nullopt;
    return Dimension{kTypicalSize, kTypicalSize * stride + *more, kernel, stride, cut, size};
  }

  bool is_open() const { return !as_const(size); }
  // Of the result, the last one of which it may cut.
  int64_t whole_pixels() const { return (out + stride - 1) / stride; }
  // A number of pixels.
  Dim pixels(int64_t count) const { return is_open() ? size + dim(count - in) : dim(count); }

 private:
  static constexpr int64_t kTypicalSize = 64;

  Dimension(int64_t in, int64_t out, int64_t kernel, int64_t stride, int64_t cut, Dim size)
      : in(in), out(out), kernel(kernel), stride(stride), cut(cut), size(std::move(size)) {}
};

// One dimension of a convolution whose channels are the places: its window covers what any of them
// needs, so that some weights are zero.
struct Window {
  int64_t taps;
  int64_t before;  // zeros in front of the kernel, which is as long as `taps` strides
  int64_t pad_before;
  int64_t pad_after;
  int64_t pixels;  // results of the convolution
  int64_t begin;   // first place that is kept

  // With the first result `begin` places behind the first place.
  Window(const Dimension& d, int64_t first) : begin(first) {
    int64_t last = (d.stride - 1 + d.cut - begin) / d.stride;  // the window's end, from the pixel
    before = d.stride * last + begin - d.cut;
    taps = (d.kernel + before + d.stride - 1) / d.stride;
    pad_before = taps - 1 - last;
    // Pixels that are cut whole.
    begin += std::max<int64_t>(0, -pad_before) * d.stride;
    pad_before = std::max<int64_t>(0, pad_before);
    pixels = (begin + d.out + d.stride - 1) / d.stride;
    pad_after = std::max<int64_t>(0, pixels - (d.in + pad_before - taps + 1));
    pixels = d.in + pad_before + pad_after - taps + 1;
  }
  // The fewest taps.
  explicit Window(const Dimension& d) : Window(d, d.cut % d.stride) {}
};

// One place alone: a convolution of its own. Empty when no padding gives it the pixels that it needs.
struct PlaceOf {
  int64_t first;  // element of the kernel
  int64_t taps;   // 0: none reaches it
  int64_t pad_before;
  int64_t pad_after;

  static std::optional<PlaceOf> make(const Dimension& d, int64_t place) {
    PlaceOf out{};
    out.first = (place + d.cut) % d.stride;
    if (out.first >= d.kernel) return out;
    out.taps = (d.kernel - out.first + d.stride - 1) / d.stride;
    out.pad_before = out.taps - 1 - (place + d.cut) / d.stride;
    out.pad_after = d.whole_pixels() - (d.in + out.pad_before - out.taps + 1);
    if (out.pad_before < 0 || out.pad_after < 0) return std::nullopt;
    return out;
  }
};

class SpreadOut {
 public:
  // A transposed convolution over the axes of `space`.
  SpreadOut(const CallNode& c, std::string space, ConstantExpressions& constants,
            const PassContext& ctx)
      : c_(c),
        space_(std::move(space)),
        constants_(constants),
        lanes_(ctx.target.lanes(32)),
        ctx_(ctx) {}

  // The transposed convolution by convolutions, or null.
  Expr run() {
    auto *data = tensor_of(c_.args[0]), *out = tensor_of(Expr(&c_));
    auto weight = static_shape(c_.args[1]);
    // Weights that only a run tells: no zeros are put between them.
    const bool known = constants_.contains(c_.args[1]);
    if (data == nullptr || out == nullptr || !weight ||
        (known && !constants_.contains_finite(c_.args[1])) ||
        text_attr(c_, "data_layout") != "N" + space_ + "C" ||
        ints_attr(c_, "dilation") != Ints(space_.size(), 1) || as_const(data->shape[0]) == 0 ||
        is_any(data->shape[0]) || as_const(data->shape.back()) == 0) {
      return nullptr;
    }
    Ints strides = *ints_attr(c_, "strides"), padding = *ints_attr(c_, "padding");
    Layout layout = Layout::of(text_attr(c_, "kernel_layout"));
    auto axis = [&](char name) { return static_cast<int64_t>(layout.index_of(name)); };
    auto extent = [&](char name) { return (*weight)[static_cast<size_t>(axis(name))]; };
    images_ = data->shape[0];
    batch_ = as_const(images_).value_or(1);
    groups_ = int_attr(c_, "groups");
    inputs_ = extent('I') / groups_;
    outputs_ = extent('O');
    Ints order{axis('I'), axis('O')};
    for (size_t i = 0; i < space_.size(); ++i) {
      // One number, or one for each axis and then perhaps the ends.
      int64_t cut = padding.size() > 1 ? padding[i] : padding[0];
      auto d = Dimension::make(data->shape[i + 1], out->shape[i + 1], extent(space_[i]), strides[i],
                               cut);
      if (!d) return nullptr;
      dims_.push_back(std::move(*d));
      places_ *= dims_.back().stride;
      order.push_back(axis(space_[i]));
    }
    std::vector<Window> windows, even;
    for (const Dimension& d : dims_) {
      windows.emplace_back(d);
      even.emplace_back(d, 0);
    }
    if (places_ == 1 && product(windows, &Window::taps) == 1) return nullptr;
    if (!known && places_ == 1) return nullptr;
    kernel_ = make("transpose", c_.args[1], {{"axes", to_value(order)}});
    if (!known) {
      auto places = places_of();
      return places ? by_place(*places) : nullptr;
    }
    // The form with the least work.
    double least = vectors(places_) * static_cast<double>(product(windows, &Window::pixels) *
                                                          product(windows, &Window::taps));
    double minimal =
        kMinimalProducts * vectors(places_) * static_cast<double>(product(even, &Window::pixels));
    if (takes_fewer_products(even) && minimal < least) {
      least = minimal;
      windows = even;
    }
    if (auto places = places_of()) {
      double work = kKernelWork * static_cast<double>(places->size());
      int64_t pixels = 1;
      for (const Dimension& d : dims_) pixels *= d.whole_pixels();
      for (const Place& place : *places) {
        work += vectors(1) * static_cast<double>(pixels * product(place, &PlaceOf::taps));
      }
      if (work < least) return by_place(*places);
    }
    return at_once(windows);
  }

 private:
  using Place = std::vector<PlaceOf>;  // along each axis

  // What an algorithm with fewer products computes for each result, its transforms included.
  static constexpr double kMinimalProducts = 3;
  // What a kernel costs beside its work: vector multiply-adds of about a microsecond.
  static constexpr double kKernelWork = 4000;

  template <class T>
  static int64_t product(const std::vector<T>& list, int64_t T::*field) {
    int64_t out = 1;
    for (const T& item : list) out *= item.*field;
    return out;
  }
  template <class T>
  static Ints each(const std::vector<T>& list, int64_t T::*field) {
    Ints out;
    for (const T& item : list) out.push_back(item.*field);
    return out;
  }
  static Ints joined(std::initializer_list<Ints> lists) {
    Ints out;
    for (const Ints& list : lists) out.insert(out.end(), list.begin(), list.end());
    return out;
  }
  static Dims sizes(std::initializer_list<Dims> lists) {
    Dims out;
    for (const Dims& list : lists) out.insert(out.end(), list.begin(), list.end());
    return out;
  }
  static Dims sizes(const Ints& list) {
    Dims out;
    for (int64_t i : list) out.push_back(dim(i));
    return out;
  }

  // Vector multiply-adds for each pixel and tap: lanes over the channels of a group, or over groups of one.
  double vectors(int64_t places) const {
    if (groups_ > 1 && inputs_ == 1 && places * outputs_ == 1) {
      return static_cast<double>(batch_ * ((groups_ + lanes_ - 1) / lanes_));
    }
    return static_cast<double>(batch_ * groups_ * inputs_ *
                               ((places * outputs_ + lanes_ - 1) / lanes_));
  }

  bool is_open() const {
    return std::any_of(dims_.begin(), dims_.end(), [](const Dimension& d) { return d.is_open(); });
  }

  bool takes_fewer_products(const std::vector<Window>& windows) const {
    return ctx_.target.has_blocked_kernels && groups_ == 1 && !is_open() &&
           has_fewer_products({batch_, each(windows, &Window::pixels), each(windows, &Window::taps),
                               inputs_, places_ * outputs_},
                              ctx_);
  }

  Expr make(std::string_view op, const Expr& x,
            const std::vector<std::pair<std::string, AttrValue>>& attrs) const {
    return make_call(op, {x}, attrs, c_);
  }
  // To these sizes, of which any may be 0.
  Expr reshaped(const Expr& x, const AttrValue& sizes) const {
    return make("reshape", x, {{"newshape", sizes}, {"allowzero", AttrValue(true)}});
  }
  // Taps in the order in which a convolution meets them.
  Expr reversed(const Expr& x, size_t axis) const {
    return make("reverse", x, {{"axis", AttrValue(static_cast<int64_t>(axis))}});
  }
  // By a kernel [O, I, space]; channels last. Where neighbouring work items are lanes, and channels fill no vector, those of an
  // image's columns do.
  Expr convolve(const Expr& kernel, int64_t channels, const Ints& taps, const Ints& padding) const {
    const bool first = !ctx_.target.has_blocked_kernels && channels % lanes_ != 0;
    Ints to_first{0, static_cast<int64_t>(space_.size() + 1)}, to_last{0};
    for (size_t i = 0; i < space_.size(); ++i) {
      to_first.push_back(static_cast<int64_t>(i + 1));
      to_last.push_back(static_cast<int64_t>(i + 2));
    }
    to_last.push_back(1);
    const Expr out = make_call(
        "nn.conv" + std::to_string(space_.size()) + "d",
        {first ? make("transpose", c_.args[0], {{"axes", to_value(to_first)}}) : c_.args[0],
         kernel},
        {{"padding", to_value(padding)},
         {"groups", AttrValue(groups_)},
         {"channels", AttrValue(channels)},
         {"kernel_size", to_value(taps)},
         {"data_layout", AttrValue(first ? "NC" + space_ : "N" + space_ + "C")},
         {"kernel_layout", AttrValue("OI" + space_)},
         {"out_dtype", attr_value(c_.attrs, "out_dtype")}},
        c_);
    return first ? make("transpose", out, {{"axes", to_value(to_last)}}) : out;
  }

  // The number of groups as a dimension of its own, where there are any.
  Ints group_axis() const { return groups_ == 1 ? Ints{} : Ints{groups_}; }

  // All places by one convolution with a channel for each place and output of a group.
  Expr at_once(const std::vector<Window>& windows) const {
    size_t n = dims_.size();
    Expr taps = kernel_;
    ValueList widths{to_value(Ints{0, 0}), to_value(Ints{0, 0})};
    bool fills = false;
    for (size_t i = 0; i < n; ++i) {
      int64_t before = windows[i].before;
      int64_t after = windows[i].taps * dims_[i].stride - dims_[i].kernel - before;
      fills |= before + after > 0;
      widths.push_back(to_value({before, after}));
    }
    if (fills) {
      taps = make_call("nn.pad", {taps, constant(0, DType::Float(32), c_.span)},
                       {{"pad_width", AttrValue(std::move(widths))}}, c_);
    }
    // [(group,) I, O, (taps, stride)...] to [(group,) stride..., O, I, taps...]
    const Ints group = group_axis();
    const size_t g = group.size();
    Ints split = joined({group, {inputs_, outputs_}}), order(g, 0);
    Ints strides = each(dims_, &Dimension::stride);
    Ints counts = each(windows, &Window::taps);
    for (size_t i = 0; i < n; ++i) {
      split.insert(split.end(), {counts[i], strides[i]});
      order.push_back(static_cast<int64_t>(g + 3 + 2 * i));
    }
    order.insert(order.end(), {static_cast<int64_t>(g + 1), static_cast<int64_t>(g)});
    taps = reshaped(taps, to_value(split));
    for (size_t i = 0; i < n; ++i) {
      taps = reversed(taps, g + 2 + 2 * i);
      order.push_back(static_cast<int64_t>(g + 2 + 2 * i));
    }
    taps = make("transpose", taps, {{"axes", to_value(order)}});
    int64_t channels = groups_ * places_ * outputs_;
    taps = reshaped(taps, to_value(joined({{channels, inputs_}, counts})));
    Expr out =
        convolve(taps, channels, counts,
                 joined({each(windows, &Window::pad_before), each(windows, &Window::pad_after)}));
    Dims pixels;
    for (size_t i = 0; i < n; ++i) pixels.push_back(dims_[i].pixels(windows[i].pixels));
    // [N, pixels..., (group,) stride..., O] to [N, (pixels, stride)..., (group,) O]
    out = reshaped(
        out, to_value(sizes({{images_}, pixels, sizes(joined({group, strides, {outputs_}}))})));
    Ints mixed{0};
    Dims whole;
    for (size_t i = 0; i < n; ++i) {
      auto axis = static_cast<int64_t>(i + 1);
      mixed.insert(mixed.end(), {axis, axis + static_cast<int64_t>(n + g)});
      whole.push_back(pixels[i] * dim(strides[i]));
    }
    if (g > 0) mixed.push_back(static_cast<int64_t>(1 + n));
    mixed.push_back(static_cast<int64_t>(1 + 2 * n + g));
    out = make("transpose", out, {{"axes", to_value(mixed)}});
    out = reshaped(out, to_value(sizes({{images_}, whole, {dim(groups_ * outputs_)}})));
    return cut(out, each(windows, &Window::begin), each(windows, &Window::pixels));
  }

  // The places of the result among those of so many pixels, from `begin` on.
  Expr cut(const Expr& all, const Ints& begin, const Ints& pixels) const {
    Ints end, axes;
    bool cuts = false;
    for (size_t i = 0; i < dims_.size(); ++i) {
      const Dimension& d = dims_[i];
      const int64_t last = pixels[i] * d.stride;
      cuts |= begin[i] != 0 || d.out != last;
      end.push_back(begin[i] + d.out);
      // From the end.
      if (d.is_open()) end.back() = end.back() == last ? INT64_MAX : end.back() - last;
      axes.push_back(static_cast<int64_t>(i + 1));
    }
    if (!cuts) return all;
    return make("strided_slice", all,
                {{"begin", to_value(begin)}, {"end", to_value(end)}, {"axes", to_value(axes)}});
  }

  // All places, the last axis fastest.
  std::optional<std::vector<Place>> places_of() const {
    // More kernels than an image has work for.
    constexpr int64_t kMostPlaces = 16;
    if (places_ > kMostPlaces) return std::nullopt;
    std::vector<Place> out{{}};
    for (const Dimension& d : dims_) {
      std::vector<Place> longer;
      for (const Place& front : out) {
        for (int64_t p = 0; p < d.stride; ++p) {
          auto place = PlaceOf::make(d, p);
          if (!place) return std::nullopt;
          longer.push_back(front);
          longer.back().push_back(*place);
        }
      }
      out = std::move(longer);
    }
    return out;
  }

  // A convolution for each place, with no weight that is zero.
  Expr by_place(const std::vector<Place>& places) const {
    size_t n = dims_.size();
    const Ints group = group_axis();
    const auto g = static_cast<int64_t>(group.size());
    const int64_t outputs = groups_ * outputs_;
    Ints strides = each(dims_, &Dimension::stride), order(group.size(), 0), axes;
    Dims pixels, whole;
    order.insert(order.end(), {g + 1, g});
    // [stride..., N, pixels..., O] to [N, (pixels, stride)..., O]
    Ints mixed{static_cast<int64_t>(n)};
    for (size_t i = 0; i < n; ++i) {
      axes.push_back(static_cast<int64_t>(2 + i));
      order.push_back(g + 2 + static_cast<int64_t>(i));
      pixels.push_back(dims_[i].pixels(dims_[i].whole_pixels()));
      whole.push_back(pixels.back() * dim(strides[i]));
      mixed.insert(mixed.end(), {static_cast<int64_t>(n + 1 + i), static_cast<int64_t>(i)});
    }
    mixed.push_back(static_cast<int64_t>(2 * n + 1));
    std::vector<Expr> parts;
    for (const Place& place : places) {
      if (product(place, &PlaceOf::taps) == 0) {
        const std::string dtype = as<TensorTypeNode>(c_.type)->dtype.to_string();
        parts.push_back(make_call("zeros", {},
                                  {{"shape", to_value(sizes({{images_}, pixels, {dim(outputs)}}))},
                                   {"dtype", AttrValue(dtype)}},
                                  c_));
        continue;
      }
      Expr taps = make("strided_slice", kernel_,
                       {{"begin", to_value(each(place, &PlaceOf::first))},
                        {"end", to_value(each(dims_, &Dimension::kernel))},
                        {"strides", to_value(strides)},
                        {"axes", to_value(axes)}});
      for (size_t i = 0; i < n; ++i) taps = reversed(taps, 2 + i);
      const Ints counts = each(place, &PlaceOf::taps);
      if (g > 0) {
        taps = reshaped(taps, to_value(joined({group, {inputs_, outputs_}, counts})));
      }
      taps = make("transpose", taps, {{"axes", to_value(order)}});
      if (g > 0) {
        taps = reshaped(taps, to_value(joined({{outputs, inputs_}, counts})));
      }
      parts.push_back(
          convolve(taps, outputs, counts,
                   joined({each(place, &PlaceOf::pad_before), each(place, &PlaceOf::pad_after)})));
    }
    Expr out = make("stack", tuple(std::move(parts), c_.span), {{"axis", AttrValue(int64_t{0})}});
    out = reshaped(out, to_value(sizes({sizes(strides), {images_}, pixels, {dim(outputs)}})));
    out = make("transpose", out, {{"axes", to_value(mixed)}});
    out = reshaped(out, to_value(sizes({{images_}, whole, {dim(outputs)}})));
    Ints all;
    for (const Dimension& d : dims_) all.push_back(d.whole_pixels());
    return cut(out, Ints(n, 0), all);
  }

  const CallNode& c_;
  std::string space_;
  ConstantExpressions& constants_;
  int64_t lanes_;
  const PassContext& ctx_;
  Dim images_;
  int64_t batch_ = 0, groups_ = 1;    // the images, 1 for an open number
  int64_t inputs_ = 0, outputs_ = 0;  // of a group
  std::vector<Dimension> dims_;
  int64_t places_ = 1;  // between the pixels, for each of them
  Expr kernel_;         // [I of all groups, O, space]
};

Module run_sub_pixel_convolution(const Module& mod, PassContext& ctx) {
  const bool channels_last =
      ctx.target.has_blocked_kernels || ctx.option<bool>(kConvertLayout, "channels_last");
  if (!channels_last || !ctx.evaluate) return mod;
  return map_functions(mod, [&](const GlobalVar&, const Function& f) {
    ConstantExpressions constants(f);
    return rewrite_calls(f, [&](const CallNode& c) -> Expr {
      for (auto [op, space] : {std::pair{"nn.conv1d_transpose", "W"},
                               {"nn.conv2d_transpose", "HW"},
                               {"nn.conv3d_transpose", "DHW"}}) {
        if (is_call_to(Expr(&c), op)) return SpreadOut(c, space, constants, ctx).run();
      }
      return nullptr;
    });
  });
}

}  // namespace

const Pass kSubPixelConvolution{"SubPixelConvolution",
                                3,
                                Form::any,
                                Form::any,
                                "Computes a transposed convolution by convolutions.",
                                run_sub_pixel_convolution};

}  // namespace relay
