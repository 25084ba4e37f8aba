#include "frontend/common/image.h"

#include "base/codes/frontend.h"
#include "base/codes/types.h"
#include "frontend/common/arithmetic.h"

namespace relay::frontend {

Expr grid_sample(const Builder& build, const Expr& image, const Expr& grid,
                 const SampleSpec& spec) {
  const int64_t rank = Builder::rank_of(image);
  if (rank != 4 && rank != 5) {
    build.fail(codes::type_rank, "the input must be an image or a volume", "rank 4 or 5",
               to_string(image->type));
  }
  // Relay's grid has its coordinates in the second dimension.
  std::vector<int64_t> axes{0, rank - 1};
  for (int64_t a = 1; a + 1 < rank; ++a) axes.push_back(a);
  return build.call("image.grid_sample", {image, build.transpose(grid, axes)},
                    {{"method", spec.method},
                     {"layout", std::string(rank == 4 ? "NCHW" : "NCDHW")},
                     {"padding_mode", spec.padding},
                     {"align_corners", spec.align_corners}});
}

// The product of theta with the homogeneous coordinates of every place.
Expr affine_grid(const Builder& build, const Expr& theta, const std::vector<int64_t>& sizes,
                 bool align_corners) {
  const auto nd = static_cast<int64_t>(sizes.size());
  const DType dtype = Builder::dtype_of(theta);
  int64_t places = 1;
  for (int64_t n : sizes) {
    if (n < 1 || n > (1 << 24)) build.fail(codes::frontend_attribute, "a size is out of range");
    places *= n;
    build.charge_bytes(places, dtype);
  }
  build.charge_bytes(places * (nd + 1), dtype);
  // Columns x, y, (z,) 1; x runs along the last dimension.
  Tensor base = Tensor::empty(dtype, {nd + 1, places});
  for (int64_t p = 0; p < places; ++p) {
    int64_t rest = p;
    for (int64_t c = 0; c < nd; ++c) {
      int64_t n = sizes[sizes.size() - 1 - static_cast<size_t>(c)];
      auto at = static_cast<double>(rest % n), m = static_cast<double>(n);
      rest /= n;
      double v = align_corners ? (n > 1 ? 2 * at / (m - 1) - 1 : 0) : (2 * at + 1) / m - 1;
      base.set_from_double(c * places + p, v);
    }
    base.set_from_double(nd * places + p, 1);
  }
  Expr grid = build.transpose(build.matmul(theta, build.constant(std::move(base))), {0, 2, 1});
  std::vector<Dim> shape{Builder::shape_of(theta)[0]};
  for (int64_t n : sizes) shape.push_back(dim(n));
  shape.push_back(dim(nd));
  return build.reshape(grid, shape);
}

// The sum of theta's columns, each times the coordinate of its axis; x runs along the last axis.
Expr affine_grid_at_run_time(const Builder& build, const Expr& theta, const Expr& size, int64_t nd,
                             bool align_corners) {
  Arithmetic m{build};
  const DType dtype = Builder::dtype_of(theta);
  // (batch, 1, ..., parts, columns), one axis of the image after the other between the two.
  Expr wide = build.expand_dims(theta, 1, nd);
  Expr grid = build.select(wide, nd + 2, nd);
  for (int64_t c = 0; c < nd; ++c) {
    const int64_t axis = nd - 1 - c;  // of the image
    Expr n = build.select(size, 0, 2 + axis), at = m.below(n), one = m.number(1), two = m.number(2);
    Expr place;
    if (align_corners) {
      Expr single = m.equal(n, 1), steps = m.where(single, one, build.sub(n, one));
      place = m.where(single, m.number(0), build.sub(build.div(build.mul(two, at), steps), one));
    } else {
      place = build.sub(build.div(build.add(build.mul(two, at), one), n), one);
    }
    // Behind it: the axes of the image that follow, and the parts.
    place = build.expand_dims(build.cast(place, dtype), 1, nd - axis);
    grid = build.add(grid, build.mul(build.select(wide, nd + 2, c), place));
  }
  return grid;
}

}  // namespace relay::frontend
