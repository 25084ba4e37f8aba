#include "ops/contraction/fourier.h"

#include <bit>
#include <cmath>
#include <complex>
#include <functional>
#include <numbers>
#include <vector>

#include "ops/composed.h"

namespace relay::ops {
namespace {

using Complex = std::complex<double>;

// Lengths up to this are a product with the matrix: 64 points take 64 multiply-adds for an element, which vectors do
// faster than two steps of 8 points do with the rotation and the transposition between them.
constexpr int64_t kMostDense = 64;

// The steps around a convolution: rotations, padding and cutting, in multiply-adds for an element.
constexpr int64_t kChirpSteps = 8;

int64_t convolution_length(int64_t n) {
  return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(2 * n - 1)));
}

// Whether a prime is transformed faster by its matrix than by two transforms of a power of two.
bool is_cheap_prime(int64_t n) {
  const int64_t size = convolution_length(n);
  const int64_t sums = 2 * static_cast<int64_t>(std::sqrt(static_cast<double>(size)));
  return n * n <= 2 * size * (sums + kChirpSteps);
}

// exp(i pi turns / n); `turns` is reduced first, so that no digit of the angle is lost.
Complex rotation(int64_t turns, int64_t n) {
  const double angle =
      std::numbers::pi * static_cast<double>(turns % (2 * n)) / static_cast<double>(n);
  return {std::cos(angle), std::sin(angle)};
}

ComplexExpr constants(int64_t rows, int64_t columns, DType dtype,
                      const std::function<Complex(int64_t row, int64_t column)>& value) {
  Tensor re = Tensor::empty(DType::Float(64), {rows, columns}),
         im = Tensor::empty(DType::Float(64), {rows, columns});
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j) {
      const Complex z = value(i, j);
      re.data<double>()[i * columns + j] = z.real();
      im.data<double>()[i * columns + j] = z.imag();
    }
  }
  return {cast_to(constant(std::move(re)), dtype), cast_to(constant(std::move(im)), dtype)};
}

ComplexExpr each(const ComplexExpr& x, const std::function<Expr(const Expr&)>& f) {
  return {f(x.re), x.im ? f(x.im) : Expr()};
}

// The product, `times` being that of real numbers: element by element or of matrices.
ComplexExpr product(const ComplexExpr& x, const ComplexExpr& y,
                    const std::function<Expr(const Expr&, const Expr&)>& times) {
  if (!x.im) return {times(x.re, y.re), times(x.re, y.im)};
  return {times(x.re, y.re) - times(x.im, y.im), times(x.re, y.im) + times(x.im, y.re)};
}

ComplexExpr rotated(const ComplexExpr& x, const ComplexExpr& by) {
  return product(x, by, [](const Expr& a, const Expr& b) { return a * b; });
}

// The transform of a power of two of numbers that are known, in place.
void transform(std::vector<Complex>& x) {
  const size_t n = x.size();
  for (size_t i = 1, j = 0; i < n; ++i) {
    size_t bit = n >> 1;
    for (; (j & bit) != 0; bit >>= 1) j ^= bit;
    j ^= bit;
    if (i < j) std::swap(x[i], x[j]);
  }
  for (size_t half = 1; half < n; half *= 2) {
    for (size_t k = 0; k < half; ++k) {
      const Complex w = rotation(-static_cast<int64_t>(k), static_cast<int64_t>(half));
      for (size_t i = k; i < n; i += 2 * half) {
        const Complex odd = w * x[i + half];
        x[i + half] = x[i] - odd;
        x[i] += odd;
      }
    }
  }
}

// Transforms of one dtype. The sign is that of the exponent: -1, or 1 for the inverse.
class Fourier {
 public:
  explicit Fourier(DType dtype) : dtype_(dtype) {}

  // Unscaled, along the rows of (rows, n).
  ComplexExpr along_rows(const ComplexExpr& x, int64_t n, int sign) const {
    if (n == 1) return x;
    if (n <= kMostDense) return dense(x, n, sign);
    int64_t first = 1;
    for (int64_t d = 2; d * d <= n; ++d) {
      if (n % d == 0) first = d;
    }
    if (first > 1) return by_factors(x, first, n / first, sign);
    return is_cheap_prime(n) ? dense(x, n, sign) : prime(x, n, sign);
  }

 private:
  ComplexExpr dense(const ComplexExpr& x, int64_t n, int sign) const {
    ComplexExpr waves = constants(
        n, n, dtype_, [&](int64_t t, int64_t k) { return rotation(sign * 2 * (t * k % n), n); });
    return product(x, waves, [](const Expr& a, const Expr& b) {
      return apply("nn.matmul", {a, b});
    });
  }

  // Element t is n2 a + b, and frequency k is k1 + n1 k2.
  ComplexExpr by_factors(const ComplexExpr& x, int64_t n1, int64_t n2, int sign) const {
    auto turned = [](int64_t rows, int64_t columns) {
      return [=](const Expr& e) { return transposed(reshaped(e, {-1, rows, columns}), {0, 2, 1}); };
    };
    auto rows_of = [](int64_t size) {
      return [=](const Expr& e) { return reshaped(e, {-1, size}); };
    };
    // (rows, a, b) to (rows, b, a), and a to k1.
    ComplexExpr y = along_rows(each(each(x, turned(n1, n2)), rows_of(n1)), n1, sign);
    ComplexExpr turns = constants(n2, n1, dtype_, [&](int64_t b, int64_t k1) {
      return rotation(sign * 2 * (b * k1), n1 * n2);
    });
    y = rotated(each(y, [&](const Expr& e) { return reshaped(e, {-1, n2, n1}); }), turns);
    // (rows, b, k1) to (rows, k1, b), and b to k2; then k2 outside.
    y = along_rows(each(each(y, turned(n2, n1)), rows_of(n2)), n2, sign);
    return each(each(y, turned(n1, n2)), rows_of(n1 * n2));
  }

  // k t is (k^2 + t^2 - (k - t)^2) / 2: a convolution with a chirp between two products with one.
  ComplexExpr prime(const ComplexExpr& x, int64_t n, int sign) const {
    const int64_t size = convolution_length(n);
    auto chirp = [&](int64_t t) { return rotation(sign * (t * t % (2 * n)), n); };
    std::vector<Complex> filter(static_cast<size_t>(size));
    for (int64_t t = 0; t < n; ++t) {
      const Complex value = std::conj(chirp(t)) / static_cast<double>(size);
      filter[static_cast<size_t>(t)] = value;
      if (t > 0) filter[static_cast<size_t>(size - t)] = value;
    }
    transform(filter);
    ComplexExpr chirps = constants(1, n, dtype_, [&](int64_t, int64_t t) { return chirp(t); });
    ComplexExpr response = constants(
        1, size, dtype_, [&](int64_t, int64_t k) { return filter[static_cast<size_t>(k)]; });
    ComplexExpr y = each(rotated(x, chirps),
                         [&](const Expr& e) { return pad_axis(e, 1, dim(0), dim(size - n)); });
    y = along_rows(rotated(along_rows(y, size, -1), response), size, 1);
    y = each(y, [&](const Expr& e) { return slice_axis(e, 1, dim(0), dim(n)); });
    return rotated(y, chirps);
  }

  DType dtype_;
};

}  // namespace

ComplexExpr fourier(const ComplexExpr& rows, int64_t n, bool inverse) {
  const DType dtype = type_of(rows.re).dtype, wide = dtype.bits == 16 ? DType::Float(32) : dtype;
  ComplexExpr x = each(rows, [&](const Expr& e) { return cast_to(e, wide); });
  ComplexExpr y = Fourier(wide).along_rows(x, n, inverse ? 1 : -1);
  if (!y.im) y.im = zeros_like(y.re);
  return each(y, [&](const Expr& e) {
    return cast_to(inverse ? 1.0 / static_cast<double>(n) * e : e, dtype);
  });
}

}  // namespace relay::ops
