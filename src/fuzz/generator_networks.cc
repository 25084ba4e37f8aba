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
  Expr data = draw(x, budget / 2);
  if (random_.percent(25)) {
    // A border of zeros that the convolution may take for its own.
    ValueList widths(4, ints({0, 0}));
    for (const char axis : {'H', 'W'}) {
      widths[std::string_view(data_layout).find(axis)] =
          ints({random_.between(0, 2), random_.between(0, 2)});
    }
    data = call("nn.pad", {data, constant(0, kFloat)},
                attrs_of("nn.pad", {{"pad_width", AttrValue(widths)}}));
  }
  return call(op, {data, weight}, attrs);
}

// Convolutions by minimal filtering begin where there are many channels; the image is as small as
// it may be, and the weights are constants.
Expr ExpressionSource::draw_wide_convolution(int budget) {
  constexpr int64_t kChannels = 32;
  const bool one_image = random_.percent(50);
  const int64_t side = one_image ? 13 : 2, count = one_image ? 1 : 16;
  Expr x = draw(tensor_type({count, side, side, kChannels}, kFloat), budget / 4);
  return call("nn.conv2d", {x, leaf_constant(tensor_type({kChannels, kChannels, 3, 3}, kFloat))},
              attrs_of("nn.conv2d", {{"padding", ints({1, 1})},
                                     {"channels", kChannels},
                                     {"kernel_size", ints({3, 3})},
                                     {"data_layout", std::string("NHWC")},
                                     {"kernel_layout", std::string("OIHW")}}));
}

// Convolutions of few pixels by a weight that need be no constant, and the gradient of such a weight: its window is an image.
Expr ExpressionSource::draw_few_pixels(int budget) {
  const bool of_weight = random_.percent(50);
  const int64_t inputs = random_.between(1, 2), side = 4, taps = of_weight ? side : 3;
  const int64_t images = of_weight ? random_.between(1, 4) : 1;
  const int64_t outputs = of_weight ? inputs * side * side : 64;
  Expr x = draw(tensor_type({images, inputs, side, side}, kFloat), budget / 4);
  Expr w = draw(tensor_type({outputs, inputs, taps, taps}, kFloat), budget / 4);
  const int64_t stride = of_weight ? random_.between(1, 2) : 1;
  Expr y = call("nn.conv2d", {x, w},
                attrs_of("nn.conv2d", {{"padding", ints({1, 1})},
                                       {"strides", ints({stride, stride})},
                                       {"channels", outputs},
                                       {"kernel_size", ints({taps, taps})},
                                       {"data_layout", std::string("NCHW")},
                                       {"kernel_layout", std::string("OIHW")}}));
  return of_weight ? call("transpose", {y}, attrs_of("transpose", {{"axes", ints({1, 0, 2, 3})}}))
                   : y;
}

// Attention as models write it, with at least as many queries as a vector has lanes.
Expr ExpressionSource::draw_attention(int budget) {
  const int64_t heads = random_.between(1, 2), queries = random_.between(16, 20),
                keys = random_.between(2, 9), depth = random_.between(1, 4);
  auto product = [&](const Expr& a, const Expr& b, bool transposed) {
    return call("nn.batch_matmul", {a, b},
                attrs_of("nn.batch_matmul", {{"transpose_b", transposed}}));
  };
  Expr query = draw(tensor_type({heads, queries, depth}, kFloat), budget / 3);
  Expr key = draw(tensor_type({heads, keys, depth}, kFloat), budget / 3);
  Expr value = draw(tensor_type({heads, keys, random_.between(1, 4)}, kFloat), budget / 3);
  Expr scores = product(query, key, true);
  if (random_.percent(60)) {
    scores = call(random_.percent(50) ? "multiply" : "divide",
                  {scores, constant(random_.percent(50) ? 0.5 : 3.0, kFloat)});
  }
  if (random_.percent(50)) {
    auto one = [&](int64_t size) { return random_.percent(30) ? 1 : size; };
    scores = call(
        "add", {scores, leaf_constant(tensor_type({one(heads), one(queries), one(keys)}, kFloat))});
  }
  scores = call("nn.softmax", {scores}, attrs_of("nn.softmax", {{"axis", int64_t{-1}}}));
  return product(scores, value, false);
}

// Two or three heavy operators of one input, with the same behind each, side by side.
Expr ExpressionSource::draw_branches(int budget) {
  const int64_t rows = random_.between(1, 3), depth = random_.between(1, 4);
  const size_t kind = random_.below(3);
  const Type input = kind == 0   ? tensor_type({rows, depth}, kFloat)
                     : kind == 1 ? tensor_type({2, rows, depth}, kFloat)
                                 : tensor_type({1, rows, rows, depth}, kFloat);
  Expr x = draw(input, budget / 2);
  const bool biases = random_.percent(50), rectified = random_.percent(50);
  std::vector<Expr> branches;
  for (int64_t i = random_.between(2, 3); i > 0; --i) {
    const int64_t channels = random_.between(1, 3);
    Expr e;
    if (kind == 0) {
      e = call("nn.dense", {x, leaf_constant(tensor_type({channels, depth}, kFloat))});
    } else if (kind == 1) {
      e = call("nn.batch_matmul", {x, leaf_constant(tensor_type({2, channels, depth}, kFloat))},
               attrs_of("nn.batch_matmul", {{"transpose_b", true}}));
    } else {
      e = call("nn.conv2d", {x, leaf_constant(tensor_type({1, 1, depth, channels}, kFloat))},
               attrs_of("nn.conv2d", {{"channels", channels},
                                      {"kernel_size", ints({1, 1})},
                                      {"data_layout", std::string("NHWC")},
                                      {"kernel_layout", std::string("HWIO")}}));
    }
    if (biases) {
      e = call("add", {e, leaf_constant(tensor_type(std::vector<int64_t>{channels}, kFloat))});
    }
    if (rectified) e = call("nn.relu", {e});
    branches.push_back(e);
  }
  return call("concatenate", {tuple(std::move(branches))},
              attrs_of("concatenate", {{"axis", int64_t{-1}}}));
}

// Steps of a recurrent network: each reads the same weight.
Expr ExpressionSource::draw_steps(int budget) {
  const int64_t units = random_.between(2, 4);
  const int64_t rows = random_.percent(50) ? units : random_.between(1, 4);
  Expr weight = leaf_constant(tensor_type({units, units}, kFloat));
  Expr e = draw(tensor_type({rows, units}, kFloat), budget / 2);
  for (int64_t i = random_.between(2, 4); i > 0; --i) {
    e = call("tanh", {call("nn.dense", {e, weight})});
  }
  return e;
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
    static const std::vector<double> divisors{0.25, 2, 4, 8, 3};
    e = call("divide", {e, constant(random_.pick(divisors), kFloat)});
  }
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

// Heavy operators side by side or in a row, made to fit a type.
Expr ExpressionSource::draw_network(const Type& type, int budget) {
  auto* wanted = as<TensorTypeNode>(type);
  if (wanted == nullptr || !wanted->const_shape() || budget < 6) return nullptr;
  if (random_.percent(15)) return adapt(draw_branches(budget), *wanted);
  if (random_.percent(types_.pitfalls() ? 16 : 8)) return adapt(draw_steps(budget), *wanted);
  if (random_.percent(12)) return adapt(draw_attention(budget), *wanted);
  // Dear to evaluate.
  if (random_.percent(types_.pitfalls() ? 8 : 2)) {
    return adapt(random_.percent(50) ? draw_wide_convolution(budget) : draw_few_pixels(budget),
                 *wanted);
  }
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
