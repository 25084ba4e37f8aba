// The custom operators of MediaPipe's models: layers with a bias or with the places of maxima, and images and landmarks
// under a transformation, a 4x4 matrix whose first two rows give x and y.
#include <algorithm>

#include "base/codes/frontend.h"
#include "base/codes/types.h"
#include "frontend/common/pool.h"
#include "frontend/common/power.h"
#include "frontend/tflite/custom_options.h"
#include "frontend/tflite/quantized.h"
#include "frontend/tflite/window.h"

namespace relay::frontend::tflite {
namespace {

// ---- Layers

// The words of the kernels' structs differ from those of the file format: 0 is no padding at all.
schema::Padding padding_word(NodeContext& ctx, int32_t word) {
  if (word == 1) return schema::Padding::same;
  if (word == 2) return schema::Padding::valid;
  ctx.unsupported("a padding other than SAME and VALID");
}

int64_t checked_step(NodeContext& ctx, int32_t value) {
  if (value < 1)
    ctx.fail(codes::frontend_attribute, "a stride or kernel size is out of range", "1 or more",
             std::to_string(value));
  return value;
}

// (x, weights (out, height, width, in), bias); options: padding, and the strides of width and height.
Values transposed_with_bias(NodeContext& ctx) {
  const std::vector<int32_t> o = option_fields(ctx, 3);
  Expr x = ctx.in(0), w = ctx.in(1);
  for (const Expr& e : {x, w}) {
    if (Builder::rank_of(e) != 4)
      ctx.fail(codes::type_rank, "the image and the weight must have 4 axes", "rank 4",
               to_string(e->type));
  }
  Window window = window_of(
      ctx, x, schema::Padding::valid,
      {ctx.const_dim(w, 1, "a size of the weight"), ctx.const_dim(w, 2, "a size of the weight")},
      {o[2], o[1]}, {1, 1});
  if (padding_word(ctx, o[0]) == schema::Padding::same) {
    for (size_t i = 0; i < 2; ++i) {
      const int64_t in = ctx.const_dim(x, static_cast<int64_t>(i) + 1, "a size of the image");
      const int64_t all = std::max<int64_t>(0, window.kernel[i] - (in - 1) % window.strides[i] - 1);
      window.begin[i] = all / 2;
      window.end[i] = all - all / 2;
    }
  }
  Expr y = transposed_convolution(ctx, x, ctx.transpose(w, {3, 0, 1, 2}), window, {0, 0}, 1);
  return one(ctx.add(y, ctx.in(2)));
}

// Options of a pool: padding, then width and height of the stride and of the window, and the activation.
struct PoolOptions {
  schema::Padding padding;
  std::vector<int64_t> strides, kernel;  // height, width
  schema::FusedActivation activation;
};
PoolOptions pool_options(NodeContext& ctx) {
  const std::vector<int32_t> o = option_fields(ctx, 6);
  auto size = [&](size_t i) { return checked_step(ctx, o[i]); };
  // Words above 3 are activations that `activated` refuses in any case.
  return {padding_word(ctx, o[0]),
          {size(2), size(1)},
          {size(4), size(3)},
          static_cast<schema::FusedActivation>(std::clamp(o[5], 0, 5))};
}

// 0, 1, ..., with this many axes of size 1 behind.
Expr counted(NodeContext& ctx, int64_t n, int64_t behind, DType dtype) {
  Expr line = ctx.call(
      "arange", {},
      {{"start", int64_t{0}}, {"stop", n}, {"step", int64_t{1}}, {"dtype", to_value(dtype)}});
  return behind == 0 ? line : ctx.expand_dims(line, 1, behind);
}

// (images, channels last), and the place of each maximum in its window, counted row by row, as a float.
Values max_pool_with_places(NodeContext& ctx) {
  const PoolOptions o = pool_options(ctx);
  Expr x = ctx.in(0);
  const Window window = window_of(ctx, x, o.padding, o.kernel, o.strides, {1, 1});
  const Pooled pooled = pool(ctx, PoolKind::Max, x, {.window = window});
  Expr place = places_of_maxima(ctx, pooled, PlacesIn::Channel);  // row by row in the image
  const int64_t width = ctx.const_dim(x, 2, "the width of the image");
  auto number = [&](int64_t v) { return ctx.scalar(static_cast<double>(v), kWide); };
  auto within = [&](const Expr& along, size_t axis) {
    const int64_t n =
        ctx.const_dim(pooled.y, static_cast<int64_t>(axis) + 1, "a size of the result");
    Expr begin = ctx.mul(counted(ctx, n, axis == 0 ? 2 : 1, kWide), number(o.strides[axis]));
    return ctx.sub(along, ctx.sub(begin, number(window.begin[axis])));
  };
  Expr row = within(ctx.call("floor_divide", {place, number(width)}), 0),
       column = within(ctx.call("floor_mod", {place, number(width)}), 1);
  Expr index = ctx.add(ctx.mul(row, number(o.kernel[1])), column);
  return {value_of(ctx.activated(pooled.y, o.activation)),
          // A tenth more, so that a cast to integers gives the place.
          value_of(ctx.add(ctx.cast(index, kFloat), ctx.scalar(0.1, kFloat)))};
}

// (maxima, their places in windows): images of windows with the maxima where they were, and zeros. Places outside of the
// image are left out.
Values max_unpool(NodeContext& ctx) {
  const PoolOptions o = pool_options(ctx);
  Expr x = ctx.in(0);
  if (Builder::rank_of(x) != 4)
    ctx.fail(codes::type_rank, "the input must be a batch of images with channels last", "rank 4",
             to_string(x->type));
  std::vector<int64_t> in, out;
  for (int64_t a = 0; a < 4; ++a) in.push_back(ctx.const_dim(x, a, "a size that is unpooled"));
  out = in;
  auto number = [&](int64_t v) { return ctx.scalar(static_cast<double>(v), kWide); };
  Expr place = ctx.cast(ctx.clip(ctx.in(1), -1e9, 1e9), kWide);
  Expr row = ctx.call("trunc_divide", {place, number(o.kernel[1])});
  Expr offsets[] = {row, ctx.sub(place, ctx.mul(row, number(o.kernel[1])))};
  Expr inside, at;
  for (size_t i = 0; i < 2; ++i) {
    int64_t& size = out[i + 1];
    if (__builtin_mul_overflow(size, o.kernel[i], &size) || size > INT32_MAX)
      ctx.fail(codes::frontend_limit, "a size of the result overflows");
    const int64_t pad =
        std::max<int64_t>(((in[i + 1] - 1) * o.strides[i] + o.kernel[i] - size) / 2, 0);
    Expr begin = ctx.mul(counted(ctx, in[i + 1], i == 0 ? 2 : 1, kWide), number(o.strides[i]));
    Expr along = ctx.add(offsets[i], ctx.sub(begin, number(pad)));
    Expr fits = ctx.call("logical_and", {ctx.call("greater_equal", {along, number(0)}),
                                         ctx.call("less", {along, number(size)})});
    inside = i == 0 ? fits : ctx.call("logical_and", {inside, fits});
    at = i == 0 ? along : ctx.add(ctx.mul(at, number(size)), along);
  }
  int64_t elements = 1;
  for (int64_t size : out) {
    if (__builtin_mul_overflow(elements, std::max<int64_t>(size, 1), &elements) ||
        elements > INT32_MAX)
      ctx.fail(codes::frontend_limit, "the size of the result overflows");
  }
  // Of the whole tensor, with one place behind it for what is left out.
  const int64_t total = out[0] * out[1] * out[2] * out[3];
  at = ctx.add(ctx.mul(counted(ctx, in[0], 3, kWide), number(out[1] * out[2])), at);
  at = ctx.add(ctx.mul(at, number(out[3])), counted(ctx, in[3], 0, kWide));
  at = ctx.where(inside, at, number(total));
  const std::vector<int64_t> flat{in[0] * in[1] * in[2] * in[3]};
  Expr y =
      ctx.call("scatter_elements",
               {ctx.full(0, {dim(total + 1)}, kFloat), ctx.reshape(at, flat), ctx.reshape(x, flat)},
               {{"axis", int64_t{0}}, {"reduction", std::string("update")}});
  return one(ctx.reshape(ctx.slice(y, 0, 0, total), out));
}

// ---- Transformations

// An operator has two versions, which differ in their options.
bool is_second(NodeContext& ctx) { return ctx.importer().model().kind(ctx.op()).version >= 2; }

Expr single(NodeContext& ctx, double v) { return ctx.scalar(v, kFloat); }

// The first two rows of the matrix, as numbers.
std::vector<Expr> two_rows(NodeContext& ctx, size_t input) {
  Expr m = ctx.in(input);
  int64_t elements = 1;
  for (int64_t a = 0; a < Builder::rank_of(m); ++a)
    elements *= ctx.const_dim(m, a, "a size of the matrix");
  if (elements != 16 || Builder::dtype_of(m) != kFloat)
    ctx.fail(codes::type_shape, "the transformation is no matrix", "4 x 4 elements of float32",
             to_string(m->type));
  Expr flat = ctx.reshape(m, std::vector<int64_t>{16});
  std::vector<Expr> out;
  for (int64_t i = 0; i < 8; ++i) out.push_back(ctx.select(flat, 0, i));
  return out;
}

// a * x + b * y + c
Expr linear(NodeContext& ctx, const Expr& a, const Expr& x, const Expr& b, const Expr& y,
            const Expr& c) {
  return ctx.add(ctx.add(ctx.mul(a, x), ctx.mul(b, y)), c);
}

// (image (1, height, width, channels), matrix): the image at the transformed place of each pixel of the result; 0 outside
// of it. The second version transforms the middles of pixels, the first one their corners.
Values transform_tensor(NodeContext& ctx) {
  Expr image = ctx.in(0);
  const auto* sizes = ctx.output_tensor().shape();
  if (Builder::rank_of(image) != 4 || sizes == nullptr || sizes->size() != 4) {
    ctx.fail(codes::type_rank, "the image and the result must have 4 axes", "rank 4",
             to_string(image->type));
  }
  const int64_t batch = ctx.const_dim(image, 0, "the batch"),
                height = ctx.const_dim(image, 1, "the height"),
                width = ctx.const_dim(image, 2, "the width"),
                channels = ctx.const_dim(image, 3, "the number of channels");
  const std::vector<int64_t> out(sizes->begin(), sizes->end());
  if (batch != 1 || height < 1 || width < 1 || out[0] != 1 || out[1] < 1 || out[2] < 1 ||
      out[3] != channels) {
    ctx.fail(codes::type_shape, "the image does not fit the result",
             "one image, with as many channels as the result", to_string(image->type));
  }
  std::vector<Expr> m = two_rows(ctx, 1);
  if (is_second(ctx)) {
    for (size_t r : {0, 4}) {
      Expr half = single(ctx, 0.5);
      m[r + 3] =
          ctx.sub(ctx.add(m[r + 3], ctx.add(ctx.mul(m[r], half), ctx.mul(m[r + 1], half))), half);
    }
  }
  Expr column = counted(ctx, out[2], 0, kFloat), row = counted(ctx, out[1], 1, kFloat);
  Expr at[] = {linear(ctx, m[4], column, m[5], row, m[7]),
               linear(ctx, m[0], column, m[1], row, m[3])};  // y, x
  const int64_t size[] = {height, width};
  Expr inside, low[2], high[2], share[2];
  for (size_t i = 0; i < 2; ++i) {
    const auto last = static_cast<double>(size[i] - 1);
    Expr fits = ctx.call("logical_and", {ctx.call("greater_equal", {at[i], single(ctx, 0)}),
                                         ctx.call("less_equal", {at[i], single(ctx, last)})});
    inside = i == 0 ? fits : ctx.call("logical_and", {inside, fits});
    // A coordinate that is not a number stands nowhere, so no index is made of it.
    Expr place = ctx.where(fits, at[i], single(ctx, 0)), floor = ctx.call("floor", {place});
    share[i] = ctx.expand_dims(ctx.sub(place, floor), 2);
    low[i] = ctx.cast(floor, kWide);
    high[i] = ctx.minimum(ctx.add(low[i], ctx.scalar(1, kWide)), ctx.scalar(last, kWide));
  }
  Expr pixels = ctx.reshape(image, std::vector<int64_t>{height * width, channels});
  auto corner = [&](const Expr& y, const Expr& x) {
    Expr place = ctx.add(ctx.mul(y, ctx.scalar(static_cast<double>(width), kWide)), x);
    return ctx.call("take", {pixels, place}, {{"axis", int64_t{0}}, {"mode", std::string("fast")}});
  };
  auto between = [&](const Expr& a, const Expr& b, const Expr& part) {
    return ctx.add(ctx.mul(ctx.sub(single(ctx, 1), part), a), ctx.mul(part, b));
  };
  Expr upper = between(corner(low[0], low[1]), corner(low[0], high[1]), share[1]),
       lower = between(corner(high[0], low[1]), corner(high[0], high[1]), share[1]);
  Expr y = ctx.where(ctx.expand_dims(inside, 2), between(upper, lower, share[0]), single(ctx, 0));
  return one(ctx.expand_dims(y, 0));
}

// (landmarks of 2 or 3 coordinates along the last axis, matrix): x and y transformed, z as it is.
Values transform_landmarks(NodeContext& ctx) {
  Expr x = ctx.in_of_rank(0, 1);
  const int64_t last = ctx.const_dim(x, Builder::rank_of(x) - 1, "the coordinates");
  int64_t coordinates = last;
  double scale = 1;
  if (!is_second(ctx)) {
    const OptionMap options(ctx);
    coordinates = options.integer("dimensions", 2, 3);
    scale = options.number("scale");
    if (scale == 0) ctx.fail(codes::frontend_attribute, "'scale' is 0");
  }
  if ((coordinates != 2 && coordinates != 3) || last % coordinates != 0) {
    ctx.fail(codes::type_shape, "the last axis does not hold landmarks",
             "landmarks of 2 or 3 coordinates", to_string(x->type));
  }
  const std::vector<Expr> m = two_rows(ctx, 1);
  std::vector<Dim> shape = Builder::shape_of(x), landmarks = shape;
  landmarks.back() = dim(last / coordinates);
  landmarks.push_back(dim(coordinates));
  Expr all = ctx.reshape(x, landmarks);
  const int64_t axis = Builder::rank_of(x);
  std::vector<Expr> fields;
  for (int64_t i = 0; i < coordinates; ++i) fields.push_back(ctx.select(all, axis, i));
  const std::vector<Expr> from = fields;
  for (size_t r : {0, 1})
    fields[r] = linear(ctx, m[4 * r], from[0], m[4 * r + 1], from[1],
                       ctx.mul(m[4 * r + 3], single(ctx, scale)));
  return one(ctx.reshape(ctx.call("stack", {ctx.tuple_of(fields)}, {{"axis", axis}}), shape));
}

struct Point {
  Expr x, y;
};

// Points turned by an angle.
Point turned(NodeContext& ctx, const Point& p, const Expr& angle) {
  Expr c = ctx.call("cos", {angle}), s = ctx.call("sin", {angle});
  return {ctx.sub(ctx.mul(c, p.x), ctx.mul(s, p.y)), ctx.add(ctx.mul(s, p.x), ctx.mul(c, p.y))};
}

// A map of the plane as the upper two rows of its matrix, (a, b, shift) each.
struct Plane {
  Expr a[2], b[2], shift[2];
};

// What maps by `inner` first and by `outer` then.
Plane after(NodeContext& ctx, const Plane& outer, const Plane& inner) {
  Plane out;
  for (size_t r : {0, 1}) {
    auto of = [&](const Expr* column) {
      return ctx.add(ctx.mul(outer.a[r], column[0]), ctx.mul(outer.b[r], column[1]));
    };
    out.a[r] = of(inner.a);
    out.b[r] = of(inner.b);
    out.shift[r] = ctx.add(of(inner.shift), outer.shift[r]);
  }
  return out;
}

Plane scaling(NodeContext& ctx, const Point& scale, const Point& shift) {
  Expr zero = single(ctx, 0);
  return {{scale.x, zero}, {zero, scale.y}, {shift.x, shift.y}};
}

Plane rotation(NodeContext& ctx, const Expr& angle, const Point& shift) {
  Expr c = ctx.call("cos", {angle}), s = ctx.call("sin", {angle});
  return {{c, s}, {ctx.call("negative", {s}), c}, {shift.x, shift.y}};
}

// What the box around landmarks is, in a frame that is turned so that two of them are level.
struct LandmarkBox {
  Point middle;  // not turned
  Point size;
};

// (1, 4, 4)
Expr matrix_of(NodeContext& ctx, const Plane& m) {
  Expr zero = single(ctx, 0), unit = single(ctx, 1);
  std::vector<Expr> rows;
  for (size_t r : {0, 1})
    for (const Expr& e : {m.a[r], m.b[r], zero, m.shift[r]}) rows.push_back(e);
  for (const Expr& e : {zero, zero, unit, zero, zero, zero, zero, unit}) rows.push_back(e);
  Expr flat = ctx.call("stack", {ctx.tuple_of(rows)}, {{"axis", int64_t{0}}});
  return ctx.reshape(flat, std::vector<int64_t>{1, 4, 4});
}

// (landmarks of three coordinates): the matrix from pixels of a crop around some of them, level by two of them, to those
// of the image.
Values landmarks_to_matrix(NodeContext& ctx) {
  const OptionMap o(ctx);
  const bool second = is_second(ctx);
  Expr x = ctx.in(0);
  int64_t elements = 1;
  for (int64_t a = 0; a < Builder::rank_of(x); ++a)
    elements *= ctx.const_dim(x, a, "a size of the landmarks");
  const int64_t count = elements / 3;
  if (count < 1) {
    ctx.fail(codes::type_shape, "the input holds no landmarks", "3 coordinates for each of them",
             to_string(x->type));
  }
  constexpr int64_t kMostPixels = 1 << 24;
  Expr all = ctx.reshape(ctx.slice(ctx.reshape(x, std::vector<int64_t>{elements}), 0, 0, 3 * count),
                         std::vector<int64_t>{count, 3});
  auto landmark = [&](const char* name) {
    Expr line = ctx.select(all, 0, o.integer(name, 0, count - 1));
    return Point{ctx.select(line, 0, 0), ctx.select(line, 0, 1)};
  };
  const std::vector<int64_t> subset = o.integers(second ? "subset_idxs" : "subset", 0, count - 1);
  if (subset.empty()) ctx.fail(codes::frontend_attribute, "the list of landmarks is empty");
  const Point left = landmark("left_rotation_idx"), right = landmark("right_rotation_idx");
  Expr rise = ctx.sub(right.y, left.y), run = ctx.sub(right.x, left.x);
  Expr angle;
  if (second) {
    angle = ctx.sub(single(ctx, o.number("target_rotation_radians")), atan2(ctx, rise, run));
  } else {
    angle = ctx.call("negative", {ctx.call("atan", {ctx.div(rise, run)})});
  }
  Expr back = ctx.call("negative", {angle});
  Expr some = ctx.call("take", {all, ctx.ints(subset)}, {{"axis", int64_t{0}}});
  const Point level = turned(ctx, {ctx.select(some, 1, 0), ctx.select(some, 1, 1)}, angle);
  Expr low[2], high[2];
  for (size_t i : {0, 1}) {
    const Expr& along = i == 0 ? level.x : level.y;
    low[i] = ctx.reduce("min", along, {0}, false);
    high[i] = ctx.reduce("max", along, {0}, false);
  }
  auto halved = [&](const Expr& e) { return ctx.mul(e, single(ctx, 0.5)); };
  const LandmarkBox box{
      turned(ctx, {halved(ctx.add(low[0], high[0])), halved(ctx.add(low[1], high[1]))}, back),
      {ctx.sub(high[0], low[0]), ctx.sub(high[1], low[1])}};
  const Point nowhere{single(ctx, 0), single(ctx, 0)};
  auto scaled_by = [&](const Point& p, double x_factor, double y_factor) {
    return Point{ctx.mul(p.x, single(ctx, x_factor)), ctx.mul(p.y, single(ctx, y_factor))};
  };
  auto number = [&](const char* name) {
    const double v = o.number(name);
    if (!(v > 0)) ctx.fail(codes::frontend_attribute, std::string("'") + name + "' is not above 0");
    return v;
  };
  if (second) {
    const auto width = static_cast<double>(o.integer("output_width", 1, kMostPixels)),
               height = static_cast<double>(o.integer("output_height", 1, kMostPixels));
    const Point scale = scaled_by(box.size, number("scale_x") / width, number("scale_y") / height);
    const Plane centred_crop{{single(ctx, 1), single(ctx, 0)},
                             {single(ctx, 0), single(ctx, 1)},
                             {single(ctx, -width / 2), single(ctx, -height / 2)}};
    const Plane m = after(ctx, rotation(ctx, back, box.middle),
                          after(ctx, scaling(ctx, scale, nowhere), centred_crop));
    return one(matrix_of(ctx, m));
  }
  // The first version goes through coordinates from -1 to 1.
  o.integer("dimensions", 3, 3);
  const std::vector<int64_t> from = o.integers("output_hw", 2, kMostPixels),
                             to = o.integers("input_hw", 1, kMostPixels);
  if (from.size() != 2 || to.size() != 2)
    ctx.fail(codes::frontend_attribute, "'input_hw' and 'output_hw' are no pairs of sizes");
  const auto range = static_cast<double>(o.integer("landmarks_range", 1, kMostPixels));
  const double reach = number("bbox_size_multiplier") / range;
  auto relative = [&](int64_t size) { return single(ctx, 2.0 / static_cast<double>(size - 1)); };
  auto absolute = [&](int64_t size) { return single(ctx, static_cast<double>(size - 1) / 2); };
  const Point middle = scaled_by(box.middle, 2 / range, 2 / range);
  Expr unit = single(ctx, 1);
  const Point minus_one{single(ctx, -1), single(ctx, -1)};
  const Point absolute_scale{absolute(to[1]), absolute(to[0])};
  const Plane m =
      after(ctx, scaling(ctx, absolute_scale, absolute_scale),
            after(ctx, rotation(ctx, back, {ctx.sub(middle.x, unit), ctx.sub(middle.y, unit)}),
                  after(ctx, scaling(ctx, scaled_by(box.size, reach, reach), nowhere),
                        scaling(ctx, {relative(from[1]), relative(from[0])}, minus_one))));
  return one(matrix_of(ctx, m));
}

}  // namespace

template <>
std::span<const Row> rows<Family::MediaPipe>() {
  static constexpr Row kRows[] = {
      {"Convolution2DTransposeBias", transposed_with_bias},
      {"Landmarks2TransformMatrix", landmarks_to_matrix},
      {"MaxPoolingWithArgmax2D", max_pool_with_places},
      {"MaxUnpooling2D", max_unpool},
      {"TransformLandmarks", transform_landmarks},
      {"TransformTensor", transform_tensor},
      {"TransformTensorBilinear", transform_tensor},
  };
  return kRows;
}

}  // namespace relay::frontend::tflite
