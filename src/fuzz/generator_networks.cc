// Expressions as networks have them: a heavy operator with known weights, and around it the scales,
// biases and activations that passes move into it.
#include <algorithm>

#include "fuzz/generator.h"
#include "fuzz/values.h"

namespace relay::fuzz {
namespace {

constexpr DType kFloat = DType::Float(32);

ValueList ints(std::initializer_list<int64_t> list) {
  ValueList out;
  for (int64_t v : list) out.emplace_back(v);
  return out;
}

// Sizes named by the letters of a layout, in the order of another.
std::vector<int64_t> in_layout(const char* layout, const char* letters,
                               const std::vector<int64_t>& sizes) {
  std::vector<int64_t> out;
  for (const char* c = layout; *c != 0; ++c) {
    out.push_back(sizes[std::string_view(letters).find(*c)]);
  }
  return out;
}

}  // namespace

// A convolution, transposed or not, in one of the layouts. Its weights are mostly constants.
Expr ExpressionSource::draw_convolution(int budget) {
  const bool transposed = random_.percent(25), channels_last = random_.percent(50);
  // Squares, where what takes one axis for another is not ill-typed.
  const int64_t side = random_.between(1, 4);
  const bool square = random_.percent(60);
  auto size = [&](int64_t least) { return square ? side : random_.between(least, 4); };
  int64_t inputs = size(1), outputs = size(1), groups = 1;
  const int64_t kernel_h = random_.between(1, 3);
  const int64_t kernel_w = random_.percent(60) ? kernel_h : random_.between(1, 3);
  if (!transposed && random_.percent(25)) groups = outputs = inputs;
  const int64_t pad_h = (kernel_h - 1) / 2, pad_w = (kernel_w - 1) / 2;
  const int64_t height = std::max(size(1), kernel_h - 2 * pad_h);
  const int64_t width = std::max(size(1), kernel_w - 2 * pad_w);
  const char* data_layout = channels_last ? "NHWC" : "NCHW";
  std::vector<const char*> layouts = transposed ? std::vector<const char*>{"IOHW", "HWIO"}
                                                : std::vector<const char*>{"OIHW", "HWIO", "OHWI"};
  const char* kernel_layout = random_.percent(60) ? layouts[0] : random_.pick(layouts);
  const int64_t stride = transposed ? random_.between(1, 3) : random_.between(1, 2);
  Type x = tensor_type(
      in_layout(data_layout, "NCHW", {random_.between(1, 2), inputs, height, width}), kFloat);
  Type w = tensor_type(
      in_layout(kernel_layout, "OIHW", {outputs, inputs / groups, kernel_h, kernel_w}), kFloat);
  const char* op = transposed ? "nn.conv2d_transpose" : "nn.conv2d";
  Attrs attrs = attrs_of(op, {{"strides", ints({stride, stride})},
                              {"padding", ints({pad_h, pad_w})},
                              {"groups", groups},
                              {"channels", outputs},
                              {"kernel_size", ints({kernel_h, kernel_w})},
                              {"data_layout", std::string(data_layout)},
                              {"kernel_layout", std::string(kernel_layout)}});
  Expr weight = random_.percent(80) ? leaf_tensor(*as<TensorTypeNode>(w)) : draw(w, budget / 4);
  return call(op, {draw(x, budget / 2), weight}, attrs);
}

// What follows a heavy operator whose channels are on an axis: each with some chance.
Expr ExpressionSource::draw_epilogue(Expr e, size_t axis, int budget) {
  auto sizes = [](const Expr& of) { return *as<TensorTypeNode>(of->type)->const_shape(); };
  // A constant that varies along the channels only.
  auto along_channels = [&](bool vector) {
    std::vector<int64_t> shape = sizes(e);
    for (size_t i = 0; i < shape.size(); ++i) shape[i] = i == axis ? shape[i] : 1;
    if (vector) shape = {shape[axis]};
    return leaf_constant(tensor_type(shape, kFloat));
  };
  if (random_.percent(30)) {
    e = call("nn.bias_add", {e, along_channels(true)},
             attrs_of("nn.bias_add", {{"axis", static_cast<int64_t>(axis)}}));
  } else if (random_.percent(30)) {
    e = call("add", {e, along_channels(false)});
  }
  if (random_.percent(40)) e = call("multiply", {e, along_channels(false)});
  if (random_.percent(15)) {
    Expr variance = call("abs", {along_channels(true)});
    std::vector<Expr> args{e, along_channels(true), along_channels(true), along_channels(true),
                           random_.percent(50) ? variance : along_channels(true)};
    // A variance is not negative.
    args[4] = in_range(args[4], 0.5, 2);
    e = tuple_get_item(call("nn.batch_norm", args,
                            attrs_of("nn.batch_norm", {{"axis", static_cast<int64_t>(axis)}})),
                       0);
  }
  if (random_.percent(40)) e = call("nn.relu", {e});
  if (random_.percent(20)) e = call("add", {e, draw(e->type, budget / 3)});
  return e;
}

// One or two heavy operators in a row, made to fit a type.
Expr ExpressionSource::draw_network(const Type& type, int budget) {
  auto* wanted = as<TensorTypeNode>(type);
  if (wanted == nullptr || !wanted->const_shape() || budget < 6) return nullptr;
  if (random_.percent(25)) {
    const int64_t rows = random_.between(1, 4), depth = random_.between(1, 4),
                  units = random_.between(1, 4);
    Expr e = call("nn.dense", {draw(tensor_type({rows, depth}, kFloat), budget / 2),
                               leaf_constant(tensor_type({units, depth}, kFloat))});
    return adapt(draw_epilogue(e, 1, budget / 2), *wanted);
  }
  Expr first = draw_convolution(budget / 2);
  auto* c = as<CallNode>(first);
  const bool channels_last =
      *attr_value(c->attrs, "data_layout").get_if<std::string>() == std::string("NHWC");
  Expr e = draw_epilogue(first, channels_last ? 3 : 1, budget / 3);
  if (random_.percent(30)) {
    // A pooling in the same layout.
    e = call("nn.max_pool2d", {e},
             attrs_of("nn.max_pool2d", {{"pool_size", ints({2, 2})},
                                        {"padding", ints({1, 1})},
                                        {"layout", std::string(channels_last ? "NHWC" : "NCHW")}}));
  }
  return adapt(e, *wanted);
}

}  // namespace relay::fuzz
