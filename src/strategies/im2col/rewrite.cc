#include "strategies/im2col/rewrite.h"

#include <optional>
#include <string>

#include "analysis/calls.h"
#include "analysis/constant_expressions.h"
#include "ir/op.h"
#include "passes/simplify/rewrite_calls.h"

namespace relay {
namespace {

using Ints = std::vector<int64_t>;

// Each place of a window is a copy of its own.
constexpr int64_t kMostPlaces = 32;
// The windows of a result take at most this part of its weights.
constexpr int64_t kPartOfWeights = 4;

int64_t product(const Ints& sizes) {
  int64_t out = 1;
  for (int64_t size : sizes) out *= size;
  return out;
}

Ints with(Ints front, const Ints& back) {
  front.insert(front.end(), back.begin(), back.end());
  return front;
}

// A convolution of one group, channels first, all of whose sizes are known.
struct Convolution {
  const CallNode& call;
  int64_t images, inputs, outputs;
  Ints taps, pixels;                      // sizes of the window and of the result
  Ints strides, dilation, before, after;  // along the axes of the image

  static std::optional<Convolution> of(const CallNode& c) {
    for (const auto& [op, space] :
         {std::pair{"nn.conv1d", "W"}, {"nn.conv2d", "HW"}, {"nn.conv3d", "DHW"}}) {
      if (is_call_to(Expr(&c), op)) return over(c, space);
    }
    return std::nullopt;
  }

  // Of two dimensions: the weights' matrix times the windows, the channels of a result as rows.
  int64_t sums() const { return inputs * product(taps); }
  int64_t results() const { return images * product(pixels); }

 private:
  static std::optional<Convolution> over(const CallNode& c, const std::string& space) {
    auto data = static_shape(c.args[0]), weight = static_shape(c.args[1]),
         result = static_shape(Expr(&c));
    const DType dtype = tensor_of(Expr(&c))->dtype;
    if (!data || !weight || !result || !dtype.is_floating() || dtype.bits < 32 ||
        tensor_of(c.args[0])->dtype != dtype || tensor_of(c.args[1])->dtype != dtype ||
        int_attr(c, "groups") != 1 || text_attr(c, "data_layout") != "NC" + space ||
        text_attr(c, "kernel_layout") != "OI" + space || !text_attr(c, "out_layout").empty() ||
        product(*result) == 0 || product(*weight) == 0) {
      return std::nullopt;
    }
    const size_t n = space.size();
    auto from = [&](const Ints& shape) { return Ints(shape.begin() + 2, shape.end()); };
    Convolution out{c,       (*data)[0], (*data)[1], (*weight)[0], from(*weight), from(*result),
                    Ints(n), Ints(n),    Ints(n),    Ints(n)};
    const Ints strides = *ints_attr(c, "strides"), dilation = *ints_attr(c, "dilation"),
               padding = *ints_attr(c, "padding");
    for (size_t i = 0; i < n; ++i) {
      // One number, or one for each axis and then perhaps the ends.
      auto of_axis = [&](const Ints& list, size_t at) {
        return list.size() > 1 ? list[at] : list[0];
      };
      out.strides[i] = of_axis(strides, i);
      out.dilation[i] = of_axis(dilation, i);
      out.before[i] = of_axis(padding, i);
      out.after[i] = of_axis(padding, padding.size() == 2 * n ? n + i : i);
    }
    return out;
  }
};

Expr make(const Convolution& c, std::string_view op, const Expr& x,
          const std::vector<std::pair<std::string, AttrValue>>& attrs) {
  return make_call(op, {x}, attrs, c.call);
}

Expr reshaped(const Convolution& c, const Expr& x, const Ints& shape) {
  return make(c, "reshape", x, {{"newshape", to_value(shape)}});
}

// Two axes in the other order, and those of the image behind them.
Ints swapped(const Convolution& c) {
  Ints out{1, 0};
  for (size_t i = 0; i < c.taps.size(); ++i) out.push_back(static_cast<int64_t>(i + 2));
  return out;
}

// What an image [a, b, space] holds `step * count` places apart, for all places: [a, places, b, sizes].
Expr windows(const Convolution& c, Expr x, const Ints& places, const Ints& place_steps,
             const Ints& sizes, const Ints& steps) {
  const size_t n = sizes.size();
  ValueList widths{to_value(Ints{0, 0}), to_value(Ints{0, 0})};
  Ints axes;
  for (size_t i = 0; i < n; ++i) {
    widths.push_back(to_value(Ints{c.before[i], c.after[i]}));
    axes.push_back(static_cast<int64_t>(i + 2));
  }
  if (with(c.before, c.after) != Ints(2 * n, 0)) {
    const Expr zero = constant(Tensor::zeros(tensor_of(x)->dtype, {}), c.call.span);
    x = make_call("nn.pad", {x, zero}, {{"pad_width", AttrValue(std::move(widths))}}, c.call);
  }
  std::vector<Expr> parts;
  for (int64_t at = 0; at < product(places); ++at) {
    Ints begin(n), end(n);
    for (size_t i = n, rest = static_cast<size_t>(at); i-- > 0;) {
      const auto count = static_cast<size_t>(places[i]);
      begin[i] = static_cast<int64_t>(rest % count) * place_steps[i];
      end[i] = begin[i] + (sizes[i] - 1) * steps[i] + 1;
      rest /= count;
    }
    parts.push_back(make(c, "strided_slice", x,
                         {{"begin", to_value(begin)},
                          {"end", to_value(end)},
                          {"strides", to_value(steps)},
                          {"axes", to_value(axes)}}));
  }
  return make_call("stack", {tuple(std::move(parts), c.call.span)},
                   {{"axis", AttrValue(int64_t{1})}}, c.call);
}

Expr weights(const Convolution& c) { return reshaped(c, c.call.args[1], {c.outputs, c.sums()}); }

AttrValue out_dtype(const Convolution& c) { return attr_value(c.call.attrs, "out_dtype"); }

// Whether elements are put in another order: the weight of a gradient by data is mirrored, and is packed as it is made.
bool is_moved(const Expr& e) {
  return is_call_to(e, "transpose") || is_call_to(e, "reverse") ||
         is_call_to(e, "layout_transform");
}

// The convolution by the rows of its weight; null where it is no better.
Expr by_rows_of_weight(const CallNode& call, const Target& target, int64_t least_bytes,
                       ConstantExpressions& constants) {
  auto c = Convolution::of(call);
  if (!c || constants.contains(call.args[1]) || is_moved(call.args[1])) return nullptr;
  const DType dtype = tensor_of(Expr(&call))->dtype;
  if (c->outputs * c->sums() < least_bytes / static_cast<int64_t>(dtype.bytes()) ||
      c->results() > c->outputs / kPartOfWeights || c->results() < target.lanes(dtype.bits) ||
      product(c->taps) > kMostPlaces) {
    return nullptr;
  }
  const Expr x = make(*c, "transpose", call.args[0], {{"axes", to_value(swapped(*c))}});
  const Expr columns = reshaped(*c, windows(*c, x, c->taps, c->dilation, c->pixels, c->strides),
                                {c->sums(), c->results()});
  Expr y = make_call("nn.matmul", {weights(*c), columns}, {{"out_dtype", out_dtype(*c)}}, call);
  y = reshaped(*c, y, with({c->outputs, c->images}, c->pixels));
  return make(*c, "transpose", y, {{"axes", to_value(swapped(*c))}});
}

// A convolution whose channels come before its images, by rows of windows; null where it is no better.
Expr by_rows_of_windows(const CallNode& turned, int64_t least_bytes,
                        ConstantExpressions& constants) {
  auto* call = as<CallNode>(turned.args[0]);
  auto c = call == nullptr ? std::nullopt : Convolution::of(*call);
  if (!c || ints_attr(turned, "axes") != swapped(*c) || constants.contains(call->args[0]) ||
      constants.contains(call->args[1])) {
    return nullptr;
  }
  const auto bytes = static_cast<int64_t>(tensor_of(Expr(call))->dtype.bytes());
  if (c->outputs * c->results() < least_bytes / bytes || c->sums() > c->outputs ||
      product(c->pixels) > kMostPlaces) {
    return nullptr;
  }
  const Expr rows =
      reshaped(*c, windows(*c, call->args[0], c->pixels, c->strides, c->taps, c->dilation),
               {c->results(), c->sums()});
  const Expr y = make_call("nn.dense", {weights(*c), rows}, {{"out_dtype", out_dtype(*c)}}, *call);
  return reshaped(*c, y, with({c->outputs, c->images}, c->pixels));
}

Module run_im2col(const Module& mod, PassContext& ctx) {
  if (!ctx.target.has_blocked_kernels) return mod;
  auto least_bytes = ctx.option<int64_t>(kIm2Col, "least_bytes");
  if (least_bytes == 0) least_bytes = ctx.target.l2_bytes;
  return map_functions(mod, [&](const GlobalVar&, const Function& f) {
    ConstantExpressions constants(f);
    return rewrite_calls(f, [&](const CallNode& c) -> Expr {
      if (is_call_to(Expr(&c), "transpose")) return by_rows_of_windows(c, least_bytes, constants);
      return by_rows_of_weight(c, ctx.target, least_bytes, constants);
    });
  });
}

}  // namespace

const Pass kIm2Col{"Im2Col",
                   3,
                   Form::any,
                   Form::any,
                   "Computes convolutions with more weights than pixels by products of matrices.",
                   run_im2col,
                   {{"least_bytes", PassOption::Type::integer, AttrValue(int64_t{0}),
                     "Of the weight or its gradient; 0: more than L2 holds."}}};

}  // namespace relay
