// Convolutions of each channel by itself, and of all to a few, with columns last, as their rule schedules them.
#include "lower/test/kernel_case.h"

namespace relay::lower_test {
namespace {

struct ImagePlanes {
  int64_t height, width, kernel, stride = 1, pad = 0, dilation = 1;
  int64_t times = 1;      // results of each channel
  bool epilogue = false;  // and what follows the sum
  int64_t few = 0;        // results, each a sum over all channels, instead of those of each channel
};

// A [2, 3, h, w] image with a border of zeros; each channel by weights of its own, or each result by weights for every channel.
Case planes(const ImagePlanes& p) {
  using Role = ContractionRole;
  const int64_t n = 2, c = 3, reach = (p.kernel - 1) * p.dilation + 1;
  const int64_t rows = (p.height + 2 * p.pad - reach) / p.stride + 1,
                columns = (p.width + 2 * p.pad - reach) / p.stride + 1,
                results = p.few > 0 ? p.few : c * p.times, summed = p.few > 0 ? c : 1;
  Tensor x = placeholder("x", f32, {index(n), index(c), index(p.height), index(p.width)});
  Tensor w =
      placeholder("w", f32, {index(results), index(summed), index(p.kernel), index(p.kernel)});
  Tensor padded = x;
  if (p.pad > 0) {
    padded = compute(
        "pad", {index(n), index(c), index(p.height + 2 * p.pad), index(p.width + 2 * p.pad)},
        [&](const Indices& i) {
          PrimExpr h = i[2] - p.pad, v = i[3] - p.pad;
          PrimExpr inside = logical_and(logical_and(ge(h, index(0)), lt(h, index(p.height))),
                                        logical_and(ge(v, index(0)), lt(v, index(p.width))));
          return select(inside, x({i[0], i[1], h, v}), imm_float(f32, 0));
        });
  }
  Tensor sums = contract("sums", {index(n), index(results), index(rows), index(columns)},
                         {index(p.kernel), index(p.kernel), index(summed)},
                         {Role::Row, p.times == 1 && p.few == 0 ? Role::Group : Role::Column,
                          Role::Row, Role::Row, Role::Window, Role::Window, Role::Reduced},
                         [&](const Indices& i, const Indices& k) {
                           PrimExpr channel = p.few > 0      ? index(0)
                                              : p.times == 1 ? i[1]
                                                             : floor_div(i[1], index(p.times));
                           return padded({i[0], channel + k[2], i[2] * p.stride + k[0] * p.dilation,
                                          i[3] * p.stride + k[1] * p.dilation}) *
                                  w({i[1], k[2], k[0], k[1]});
                         });
  Tensor y = compute("y", sums->shape(), [&](const Indices& i) {
    return max(sums(i), imm_float(f32, 0)) * imm_float(f32, 0.5);
  });
  Case out{create_prim_func("planes", {x, w}, {p.epilogue ? y : sums}),
           {random_floats(static_cast<size_t>(n * c * p.height * p.width), 3),
            random_floats(static_cast<size_t>(results * summed * p.kernel * p.kernel), 4)},
           Floats(static_cast<size_t>(n * results * rows * columns))};
  size_t to = 0;
  for (int64_t b = 0; b < n; ++b)
    for (int64_t o = 0; o < results; ++o)
      for (int64_t r = 0; r < rows; ++r)
        for (int64_t q = 0; q < columns; ++q) {
          float value = 0;
          for (int64_t m = 0; m < summed * p.kernel * p.kernel; ++m) {
            const int64_t taps = p.kernel * p.kernel, k = m % taps,
                          channel = p.few > 0 ? m / taps : o / p.times;
            int64_t h = r * p.stride + k / p.kernel * p.dilation - p.pad,
                    v = q * p.stride + k % p.kernel * p.dilation - p.pad;
            if (h < 0 || h >= p.height || v < 0 || v >= p.width) continue;
            value +=
                out.inputs[0]
                          [static_cast<size_t>(((b * c + channel) * p.height + h) * p.width + v)] *
                out.inputs[1][static_cast<size_t>(o * summed * taps + m)];
          }
          out.expected[to++] = p.epilogue ? std::max(value, 0.0f) / 2 : value;
        }
  return out;
}

TEST(ImagePlanes, are_right_at_every_border_and_end) {
  // Whole vectors, parts of one, less than one; rows that fill no tile; steps, also beyond the window; far taps.
  for (const ImagePlanes& p :
       {ImagePlanes{9, 40, 5, 1, 2}, ImagePlanes{13, 28, 3, 1, 1, 1, 1, true},
        ImagePlanes{8, 16, 3}, ImagePlanes{23, 57, 5, 2, 2}, ImagePlanes{20, 41, 3, 3, 1},
        ImagePlanes{12, 35, 2, 3}, ImagePlanes{30, 33, 3, 1, 4, 4}, ImagePlanes{11, 60, 3, 2, 0, 3},
        ImagePlanes{7, 12, 7, 1, 3}, ImagePlanes{9, 20, 3, 1, 1, 1, 2, true},
        // Sums over the channels.
        ImagePlanes{9, 40, 3, 1, 1, 1, 1, true, 1}, ImagePlanes{13, 31, 4, 1, 0, 1, 1, false, 2},
        ImagePlanes{23, 57, 5, 2, 2, 1, 1, false, 3},
        ImagePlanes{12, 35, 2, 3, 0, 1, 1, false, 4}}) {
    expect_right(planes(p), "planes: ");
  }
}

TEST(ImagePlanes, lines_without_rows_are_right) {
  using Role = ContractionRole;
  const int64_t c = 4, width = 50, kernel = 4, columns = (width - kernel) / 2 + 1;
  Tensor x = placeholder("x", f32, {index(c), index(width)});
  Tensor w = placeholder("w", f32, {index(c), index(kernel)});
  Tensor y =
      contract("y", {index(c), index(columns)}, {index(kernel)},
               {Role::Group, Role::Row, Role::Window}, [&](const Indices& i, const Indices& k) {
                 return x({i[0], i[1] * 2 + k[0]}) * w({i[0], k[0]});
               });
  Case out{create_prim_func("lines", {x, w}, {y}),
           {random_floats(static_cast<size_t>(c * width), 5),
            random_floats(static_cast<size_t>(c * kernel), 6)},
           Floats(static_cast<size_t>(c * columns))};
  for (int64_t o = 0; o < c; ++o)
    for (int64_t q = 0; q < columns; ++q)
      for (int64_t k = 0; k < kernel; ++k)
        out.expected[static_cast<size_t>(o * columns + q)] +=
            out.inputs[0][static_cast<size_t>(o * width + q * 2 + k)] *
            out.inputs[1][static_cast<size_t>(o * kernel + k)];
  expect_right(out, "planes: 1x");
}

TEST(ImagePlanes, takes_no_other_kernels) {
  // Images of less than half a vector; sums over channels to more than half a vector of results.
  EXPECT_FALSE(rule_of(planes({9, 5, 3, 1, 1}).func).starts_with("planes"));
  using Role = ContractionRole;
  Tensor x = placeholder("x", f32, {index(4), index(9), index(40)});
  Tensor w = placeholder("w", f32, {index(9), index(4), index(3), index(3)});
  Tensor y =
      contract("y", {index(9), index(7), index(38)}, {index(3), index(3), index(4)},
               {Role::Column, Role::Row, Role::Row, Role::Window, Role::Window, Role::Reduced},
               [&](const Indices& i, const Indices& k) {
                 return x({k[2], i[1] + k[0], i[2] + k[1]}) * w({i[0], k[2], k[0], k[1]});
               });
  EXPECT_FALSE(rule_of(create_prim_func("sum", {x, w}, {y})).starts_with("planes"));
}

}  // namespace
}  // namespace relay::lower_test
