#include "passes/sub_pixel_convolution.h"

#include "ir/layout.h"
#include "ir/op.h"
#include "node/walk.h"
#include "passes/calls.h"
#include "passes/constant_expressions.h"

namespace relay {
namespace {

using Ints = std::vector<int64_t>;

// One spatial dimension. Position y of the uncut result is stride * q + p: pixel q - a times
// element stride * a + p of the kernel, for each tap a.
struct Dimension {
  int64_t stride;      // places for each pixel
  int64_t kernel;      // of the transposed convolution
  int64_t taps;        // elements of the kernel at each place
  int64_t pad_before;  // of the convolution
  int64_t pad_after;
  int64_t pixels;  // results of the convolution
  int64_t begin;   // first place that is kept
  int64_t size;    // places that are kept

  Dimension(int64_t in, int64_t out, int64_t kernel, int64_t stride, int64_t cut)
      : stride(in == 1 ? kernel : stride), kernel(kernel), size(out) {
    taps = (kernel + this->stride - 1) / this->stride;
    int64_t skipped = std::min(cut / this->stride, taps - 1);  // pixels that are cut whole
    begin = cut - skipped * this->stride;
    pad_before = taps - 1 - skipped;
    pixels = (begin + size + this->stride - 1) / this->stride;
    pad_after = std::max<int64_t>(0, pixels - (in + pad_before - taps + 1));
    pixels = in + pad_before + pad_after - taps + 1;
  }
  bool cuts() const { return begin != 0 || size != pixels * stride; }
};

Expr spread_out(const CallNode& c, ConstantExpressions& constants) {
  auto data = static_shape(c.args[0]), weight = static_shape(c.args[1]);
  auto out = static_shape(Expr(&c));
  if (!data || !weight || !out || !constants.contains(c.args[1]) ||
      text_attr(c, "data_layout") != "NHWC" || int_attr(c, "groups") != 1 ||
      ints_attr(c, "dilation") != Ints{1, 1}) {
    return nullptr;
  }
  Ints strides = *ints_attr(c, "strides"), padding = *ints_attr(c, "padding");
  // [h, w] on both sides, or [top, left, bottom, right].
  int64_t top = padding[0], left = padding.size() > 1 ? padding[1] : padding[0];
  Layout kernel = Layout::of(text_attr(c, "kernel_layout"));
  auto place = [&](char name) { return static_cast<int64_t>(kernel.index_of(name)); };
  auto extent = [&](char name) { return (*weight)[static_cast<size_t>(place(name))]; };
  for (int64_t d : *data) {
    if (d == 0) return nullptr;
  }
  int64_t inputs = extent('I'), outputs = extent('O');
  Dimension h((*data)[1], (*out)[1], extent('H'), strides[0], top);
  Dimension w((*data)[2], (*out)[2], extent('W'), strides[1], left);
  if (h.stride == 1 && w.stride == 1 && h.taps == 1 && w.taps == 1) return nullptr;

  // The weights: [s, s, O, I, taps, taps], the taps in the order in which a convolution meets them.
  auto make = [&](std::string_view op, const Expr& x,
                  const std::vector<std::pair<std::string, Value>>& attrs) {
    return make_call(op, {x}, attrs, c);
  };
  Expr taps = make("transpose", c.args[1],
                   {{"axes", to_value({place('I'), place('O'), place('H'), place('W')})}});
  int64_t more_h = h.taps * h.stride - h.kernel, more_w = w.taps * w.stride - w.kernel;
  if (more_h > 0 || more_w > 0) {
    ValueList width{to_value({0, 0}), to_value({0, 0}), to_value({0, more_h}),
                    to_value({0, more_w})};
    taps = make_call("nn.pad", {taps, constant(0, DType::Float(32), c.span)},
                     {{"pad_width", Value(std::move(width))}}, c);
  }
  taps = make("reshape", taps,
              {{"newshape", to_value({inputs, outputs, h.taps, h.stride, w.taps, w.stride})}});
  taps = make("reverse", taps, {{"axis", Value(int64_t{2})}});
  taps = make("reverse", taps, {{"axis", Value(int64_t{4})}});
  taps = make("transpose", taps, {{"axes", to_value({3, 5, 1, 0, 2, 4})}});
  int64_t channels = h.stride * w.stride * outputs;
  taps = make("reshape", taps, {{"newshape", to_value({channels, inputs, h.taps, w.taps})}});

  Expr x = make_call("nn.conv2d", {c.args[0], taps},
                     {{"padding", to_value({h.pad_before, w.pad_before, h.pad_after, w.pad_after})},
                      {"channels", Value(channels)},
                      {"kernel_size", to_value({h.taps, w.taps})},
                      {"data_layout", Value(std::string("NHWC"))},
                      {"kernel_layout", Value(std::string("OIHW"))},
                      {"out_dtype", attr_value(c.attrs, "out_dtype")}},
                     c);
  int64_t n = (*data)[0];
  x = make("reshape", x,
           {{"newshape", to_value({n, h.pixels, w.pixels, h.stride, w.stride, outputs})}});
  x = make("transpose", x, {{"axes", to_value({0, 1, 3, 2, 4, 5})}});
  x = make("reshape", x,
           {{"newshape", to_value({n, h.pixels * h.stride, w.pixels * w.stride, outputs})}});
  if (!h.cuts() && !w.cuts()) return x;
  return make("strided_slice", x,
              {{"begin", to_value({h.begin, w.begin})},
               {"end", to_value({h.begin + h.size, w.begin + w.size})},
               {"axes", to_value({1, 2})}});
}

Module run(const Module& mod, PassContext& ctx) {
  if (!ctx.target.layouts || !ctx.evaluate) return mod;
  return map_functions(mod, [&](const GlobalVar&, const Function& f) {
    ConstantExpressions constants;
    return cast<FunctionNode>(rewrite(
        f,
        [&](const NodeRef&, NodeRef rebuilt) -> NodeRef {
          auto* c = as<CallNode>(rebuilt);
          if (c == nullptr || !is_call_to(Expr(c), "nn.conv2d_transpose")) return rebuilt;
          Expr out = spread_out(*c, constants);
          return out ? NodeRef(out) : rebuilt;
        },
        family::expr | family::pattern));
  });
}

}  // namespace

const Pass kSubPixelConvolution{
    "SubPixelConvolution",
    3,
    Form::graph,
    Form::graph,
    "Computes a transposed convolution as a convolution with more channels.",
    run};

}  // namespace relay
