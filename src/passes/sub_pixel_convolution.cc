#include "passes/sub_pixel_convolution.h"

#include <algorithm>
#include <optional>

#include "ir/layout.h"
#include "ir/op.h"
#include "node/walk.h"
#include "passes/calls.h"
#include "passes/constant_expressions.h"
#include "passes/winograd_convolution.h"

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

  Dimension(int64_t in, int64_t out, int64_t kernel, int64_t stride, int64_t cut)
      : in(in), out(out), kernel(kernel), stride(in == 1 ? kernel : stride), cut(cut) {}
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

  bool cuts(const Dimension& d) const { return begin != 0 || d.out != pixels * d.stride; }
};

// One place alone: a convolution of its own. Empty without elements of the kernel, and when no
// padding gives it the pixels that it needs.
struct PlaceOf {
  int64_t first;  // element of the kernel
  int64_t taps;
  int64_t pad_before;
  int64_t pad_after;

  static std::optional<PlaceOf> make(const Dimension& d, int64_t place) {
    PlaceOf out{};
    out.first = (place + d.cut) % d.stride;
    if (out.first >= d.kernel || d.out % d.stride != 0) return std::nullopt;
    out.taps = (d.kernel - out.first + d.stride - 1) / d.stride;
    out.pad_before = out.taps - 1 - (place + d.cut) / d.stride;
    out.pad_after = d.out / d.stride - (d.in + out.pad_before - out.taps + 1);
    if (out.pad_before < 0 || out.pad_after < 0) return std::nullopt;
    return out;
  }
};

class SpreadOut {
 public:
  SpreadOut(const CallNode& c, ConstantExpressions& constants, const PassContext& ctx)
      : c_(c),
        constants_(constants),
        lanes_(ctx.target.vector_lanes_f32),
        minimal_(ctx.enabled(kWinogradConvolution)) {}

  // The transposed convolution by convolutions, or null.
  Expr run() {
    auto data = static_shape(c_.args[0]), weight = static_shape(c_.args[1]);
    auto out = static_shape(Expr(&c_));
    if (!data || !weight || !out || !constants_.contains(c_.args[1]) ||
        text_attr(c_, "data_layout") != "NHWC" || int_attr(c_, "groups") != 1 ||
        ints_attr(c_, "dilation") != Ints{1, 1} ||
        std::find(data->begin(), data->end(), 0) != data->end()) {
      return nullptr;
    }
    Ints strides = *ints_attr(c_, "strides"), padding = *ints_attr(c_, "padding");
    // [h, w] on both sides, or [top, left, bottom, right].
    int64_t top = padding[0], left = padding.size() > 1 ? padding[1] : padding[0];
    Layout layout = Layout::of(text_attr(c_, "kernel_layout"));
    auto axis = [&](char name) { return static_cast<int64_t>(layout.index_of(name)); };
    auto extent = [&](char name) { return (*weight)[static_cast<size_t>(axis(name))]; };
    batch_ = (*data)[0];
    inputs_ = extent('I');
    outputs_ = extent('O');
    Dimension h((*data)[1], (*out)[1], extent('H'), strides[0], top);
    Dimension w((*data)[2], (*out)[2], extent('W'), strides[1], left);
    Window in_h(h), in_w(w);
    if (h.stride == 1 && w.stride == 1 && in_h.taps == 1 && in_w.taps == 1) return nullptr;
    kernel_ = make("transpose", c_.args[1],
                   {{"axes", to_value({axis('I'), axis('O'), axis('H'), axis('W')})}});
    // The form with the least work.
    double least = vectors(h.stride * w.stride) *
                   static_cast<double>(in_h.pixels * in_w.pixels * in_h.taps * in_w.taps);
    Window even_h(h, 0), even_w(w, 0);
    if (filters_minimally(even_h, even_w, h, w) &&
        kMinimalProducts * vectors(h.stride * w.stride) *
                static_cast<double>(even_h.pixels * even_w.pixels) <
            least) {
      least = kMinimalProducts * vectors(h.stride * w.stride) *
              static_cast<double>(even_h.pixels * even_w.pixels);
      in_h = even_h;
      in_w = even_w;
    }
    if (auto places = places_of(h, w)) {
      double work = kKernelWork * static_cast<double>(places->size());
      for (const auto& [y, x] : *places) {
        work += vectors(1) *
                static_cast<double>(h.out / h.stride * (w.out / w.stride) * y.taps * x.taps);
      }
      if (work < least) return by_place(*places, h, w);
    }
    return at_once(in_h, in_w, h, w);
  }

 private:
  using Places = std::vector<std::pair<PlaceOf, PlaceOf>>;

  // Products of minimal filtering for each result, its transforms included.
  static constexpr double kMinimalProducts = 3;
  // What a kernel costs beside its work: vector multiply-adds of about a microsecond.
  static constexpr double kKernelWork = 4000;

  // Vector multiply-adds for each pixel and tap.
  double vectors(int64_t places) const {
    return static_cast<double>(batch_ * inputs_ * ((places * outputs_ + lanes_ - 1) / lanes_));
  }

  bool filters_minimally(const Window& y, const Window& x, const Dimension& h,
                         const Dimension& w) const {
    return minimal_ && y.taps == 3 && x.taps == 3 &&
           minimal_filtering_pays(batch_, y.pixels, x.pixels, inputs_,
                                  h.stride * w.stride * outputs_, lanes_);
  }

  Expr make(std::string_view op, const Expr& x,
            const std::vector<std::pair<std::string, Value>>& attrs) const {
    return make_call(op, {x}, attrs, c_);
  }
  // Taps in the order in which a convolution meets them.
  Expr reversed(const Expr& x, int64_t axis) const {
    return make("reverse", x, {{"axis", Value(axis)}});
  }
  // By a kernel [O, I, H, W].
  Expr convolve(const Expr& kernel, int64_t channels, const Ints& taps, const Ints& padding) const {
    return make_call("nn.conv2d", {c_.args[0], kernel},
                     {{"padding", to_value(padding)},
                      {"channels", Value(channels)},
                      {"kernel_size", to_value(taps)},
                      {"data_layout", Value(std::string("NHWC"))},
                      {"kernel_layout", Value(std::string("OIHW"))},
                      {"out_dtype", attr_value(c_.attrs, "out_dtype")}},
                     c_);
  }

  // All places by one convolution with a channel for each place and output.
  Expr at_once(const Window& y, const Window& x, const Dimension& h, const Dimension& w) const {
    Expr taps = kernel_;
    int64_t after_h = y.taps * h.stride - h.kernel - y.before;
    int64_t after_w = x.taps * w.stride - w.kernel - x.before;
    if (y.before + x.before + after_h + after_w > 0) {
      ValueList width{to_value({0, 0}), to_value({0, 0}), to_value({y.before, after_h}),
                      to_value({x.before, after_w})};
      taps = make_call("nn.pad", {taps, constant(0, DType::Float(32), c_.span)},
                       {{"pad_width", Value(std::move(width))}}, c_);
    }
    // [s, s, O, I, taps, taps]
    taps = make("reshape", taps,
                {{"newshape", to_value({inputs_, outputs_, y.taps, h.stride, x.taps, w.stride})}});
    taps = reversed(reversed(taps, 2), 4);
    taps = make("transpose", taps, {{"axes", to_value({3, 5, 1, 0, 2, 4})}});
    int64_t channels = h.stride * w.stride * outputs_;
    taps = make("reshape", taps, {{"newshape", to_value({channels, inputs_, y.taps, x.taps})}});
    Expr out = convolve(taps, channels, {y.taps, x.taps},
                        {y.pad_before, x.pad_before, y.pad_after, x.pad_after});
    out =
        make("reshape", out,
             {{"newshape", to_value({batch_, y.pixels, x.pixels, h.stride, w.stride, outputs_})}});
    out = make("transpose", out, {{"axes", to_value({0, 1, 3, 2, 4, 5})}});
    out = make(
        "reshape", out,
        {{"newshape", to_value({batch_, y.pixels * h.stride, x.pixels * w.stride, outputs_})}});
    if (!y.cuts(h) && !x.cuts(w)) return out;
    return make("strided_slice", out,
                {{"begin", to_value({y.begin, x.begin})},
                 {"end", to_value({y.begin + h.out, x.begin + w.out})},
                 {"axes", to_value({1, 2})}});
  }

  static std::optional<Places> places_of(const Dimension& h, const Dimension& w) {
    // More kernels than a picture has work for.
    constexpr int64_t kMostPlaces = 16;
    if (h.stride * w.stride > kMostPlaces) return std::nullopt;
    Places out;
    for (int64_t p = 0; p < h.stride; ++p) {
      for (int64_t q = 0; q < w.stride; ++q) {
        auto y = PlaceOf::make(h, p), x = PlaceOf::make(w, q);
        if (!y || !x) return std::nullopt;
        out.emplace_back(*y, *x);
      }
    }
    return out;
  }

  // A convolution for each place, with no weight that is zero.
  Expr by_place(const Places& places, const Dimension& h, const Dimension& w) const {
    std::vector<Expr> parts;
    for (const auto& [y, x] : places) {
      Expr taps = make("strided_slice", kernel_,
                       {{"begin", to_value({y.first, x.first})},
                        {"end", to_value({h.kernel, w.kernel})},
                        {"strides", to_value({h.stride, w.stride})},
                        {"axes", to_value({2, 3})}});
      taps = reversed(reversed(taps, 2), 3);
      taps = make("transpose", taps, {{"axes", to_value({1, 0, 2, 3})}});
      parts.push_back(convolve(taps, outputs_, {y.taps, x.taps},
                               {y.pad_before, x.pad_before, y.pad_after, x.pad_after}));
    }
    int64_t rows = h.out / h.stride, columns = w.out / w.stride;
    Expr out = make("stack", tuple(std::move(parts), c_.span), {{"axis", Value(int64_t{0})}});
    out = make("reshape", out,
               {{"newshape", to_value({h.stride, w.stride, batch_, rows, columns, outputs_})}});
    out = make("transpose", out, {{"axes", to_value({2, 3, 0, 4, 1, 5})}});
    return make("reshape", out, {{"newshape", to_value({batch_, h.out, w.out, outputs_})}});
  }

  const CallNode& c_;
  ConstantExpressions& constants_;
  int64_t lanes_;
  bool minimal_;  // 3x3 convolutions become cheaper
  int64_t batch_ = 0, inputs_ = 0, outputs_ = 0;
  Expr kernel_;  // [I, O, H, W]
};

Module run(const Module& mod, PassContext& ctx) {
  if (!ctx.target.layouts || !ctx.evaluate) return mod;
  return map_functions(mod, [&](const GlobalVar&, const Function& f) {
    ConstantExpressions constants;
    return cast<FunctionNode>(rewrite(
        f,
        [&](const NodeRef&, NodeRef rebuilt) -> NodeRef {
          auto* c = as<CallNode>(rebuilt);
          if (c == nullptr || !is_call_to(Expr(c), "nn.conv2d_transpose")) return rebuilt;
          Expr out = SpreadOut(*c, constants, ctx).run();
          return out ? NodeRef(out) : rebuilt;
        },
        family::expr | family::pattern));
  });
}

}  // namespace

const Pass kSubPixelConvolution{"SubPixelConvolution",
                                3,
                                Form::graph,
                                Form::graph,
                                "Computes a transposed convolution by convolutions.",
                                run};

}  // namespace relay
