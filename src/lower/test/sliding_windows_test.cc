// Pools that reduce one axis after the other, as their rule schedules them.
#include <algorithm>
#include <cmath>

#include "lower/test/kernel_case.h"

namespace relay::lower_test {
namespace {

// Windows of `size` x `size` of 2 x 3 images whose border `pad` counts as 0; with `last`, the
// channels come last.
Case windows(bool average, int64_t height, int64_t width, int64_t size, int64_t stride, int64_t pad,
             bool last) {
  const int64_t n = 2, c = 3, rows = (height + 2 * pad - size) / stride + 1,
                columns = (width + 2 * pad - size) / stride + 1;
  int64_t all = (columns - 1) * stride + size;
  size_t h = last ? 1 : 2;
  auto shape = [&](int64_t a, int64_t b) {
    return last ? std::vector<PrimExpr>{index(n), index(a), index(b), index(c)}
                : std::vector<PrimExpr>{index(n), index(c), index(a), index(b)};
  };
  Combiner combiner = average ? Combiner::Sum : Combiner::Max;
  Tensor x = placeholder("x", f32, shape(height, width));
  Tensor part = compute("part", shape(rows, all),
                        [&](const Indices& i) {
                          return reduce(combiner, {index(size)}, [&](const Indices& k) {
                            Indices at = i;
                            at[h] = i[h] * stride + k[0] - pad;
                            at[h + 1] = i[h + 1] - pad;
                            PrimExpr inside = logical_and(
                                logical_and(ge(at[h], index(0)), lt(at[h], index(height))),
                                logical_and(ge(at[h + 1], index(0)), lt(at[h + 1], index(width))));
                            return select(inside, x(at), identity_of(combiner, f32));
                          });
                        },
                        {"windows", "", static_cast<int64_t>(h)});
  Tensor y = compute("y", shape(rows, columns), [&](const Indices& i) {
    return reduce(combiner, {index(size)}, [&](const Indices& k) {
      Indices at = i;
      at[h + 1] = i[h + 1] * stride + k[0];
      return part(at);
    });
  });
  Tensor scaled =
      compute("scaled", y->shape(), [&](const Indices& i) { return y(i) * imm_float(f32, 0.5); });
  Case out{create_prim_func("pool", {x}, {average ? scaled : y}),
           {random_floats(static_cast<size_t>(n * c * height * width), 3)},
           Floats(static_cast<size_t>(n * c * rows * columns))};
  auto place = [&](int64_t b, int64_t ch, int64_t r, int64_t q, int64_t hs, int64_t ws) {
    return static_cast<size_t>(last ? ((b * hs + r) * ws + q) * c + ch
                                    : ((b * c + ch) * hs + r) * ws + q);
  };
  for (int64_t b = 0; b < n; ++b)
    for (int64_t ch = 0; ch < c; ++ch)
      for (int64_t r = 0; r < rows; ++r)
        for (int64_t q = 0; q < columns; ++q) {
          float value = average ? 0 : -HUGE_VALF;
          for (int64_t k = 0; k < size * size; ++k) {
            int64_t at = r * stride + k / size - pad, to = q * stride + k % size - pad;
            if (at < 0 || at >= height || to < 0 || to >= width) continue;
            float v = out.inputs[0][place(b, ch, at, to, height, width)];
            value = average ? value + v : std::max(value, v);
          }
          out.expected[place(b, ch, r, q, rows, columns)] = average ? value / 2 : value;
        }
  return out;
}

TEST(SlidingWindows, are_right_for_all_sizes_and_layouts) {
  for (bool last : {false, true}) {
    expect_right(windows(false, 9, 40, 5, 1, 2, last), "windows: 2 axes");
    expect_right(windows(true, 37, 17, 4, 2, 1, last), "windows: 2 axes");
  }
  expect_right(windows(true, 5, 6, 3, 1, 0, false), "windows: 2 axes");
}

TEST(SlidingWindows, takes_no_other_kernels) {
  Tensor x = placeholder("x", f32, {index(8), index(20)});
  Tensor y = compute("y", {index(8), index(16)}, [&](const Indices& i) {
    return reduce(Combiner::Max, {index(5)},
                  [&](const Indices& k) { return x(i[0], i[1] + k[0]); });
  });
  EXPECT_FALSE(rule_of(create_prim_func("f", {x}, {y})).starts_with("windows"));
}

}  // namespace
}  // namespace relay::lower_test
