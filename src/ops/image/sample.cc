// Reading images at places that are data: grids, and crops brought to one size.
#include <algorithm>

#include "base/codes/operators.h"
#include "base/codes/types.h"
#include "base/quantities.h"
#include "ops/batching.h"
#include "ops/gradient.h"
#include "ops/image/sample.h"
#include "ops/image/sampling.h"
#include "ops/image/window.h"
#include "ops/rows.h"

namespace relay::ops {
namespace {

using namespace tir;  // NOLINT
using relay::CallNode;
using relay::Type;

// ---- image.affine_grid -------------------------------------------------------------------------

struct AffineGridAttrs : AttrsOf<AffineGridAttrs> {
  Ints target_shape;
  static AttrsList describe() {
    return {"relay.attrs.AffineGridAttrs",
            {attribute("target_shape", &Self::target_shape, "Height and width of the grid.")}};
  }
};

Type affine_grid_relation(RelationContext& ctx) {
  const TensorTypeNode* x = ctx.tensor(0);
  if (x == nullptr) return nullptr;
  auto& a = ctx.attrs<AffineGridAttrs>();
  if (!require(ctx,
               x->rank() == 3 && ctx.equal(x->shape[1], dim(2)) && ctx.equal(x->shape[2], dim(3)),
               codes::type_shape, "data must hold matrices of 2 by 3", "(n, 2, 3)",
               shape_text(x->shape)) ||
      !require(ctx, x->dtype.is_floating(), codes::type_dtype, "needs a floating dtype", "float32",
               x->dtype.to_string()) ||
      !check_target(ctx, "target_shape", a.target_shape, 2))
    return nullptr;
  return tensor_type({x->shape[0], dim(2), dim(a.target_shape[0]), dim(a.target_shape[1])},
                     x->dtype);
}

TirTensor affine_grid(const ComputeContext& ctx) {
  TirTensor theta = ctx.inputs[0];
  const Ints& size = ctx.attrs<AffineGridAttrs>().target_shape;
  DType acc = sampling_dtype(theta->dtype);
  // From -1 at the first element to 1 at the last; a single one is in the middle.
  auto place = [&](const PrimExpr& i, int64_t n) {
    if (n == 1) return imm_float(acc, 0);
    return tir::cast(acc, i) * imm_float(acc, 2.0 / static_cast<double>(n - 1)) - imm_float(acc, 1);
  };
  return tir::compute("T_affine_grid", ctx.outputs[0].shape, [&](const Indices& i) {
    auto entry = [&](int64_t k) { return tir::cast(acc, theta(i[0], i[1], index(k))); };
    return tir::cast(theta->dtype,
                     entry(0) * place(i[3], size[1]) + entry(1) * place(i[2], size[0]) + entry(2));
  });
}

// ---- image.grid_sample -------------------------------------------------------------------------

Type grid_sample_relation(RelationContext& ctx) {
  const TensorTypeNode *x = ctx.tensor(0), *grid = ctx.tensor(1);
  if (x == nullptr || grid == nullptr) return nullptr;
  auto& a = ctx.attrs<GridSampleAttrs>();
  size_t dims = a.layout == "NCDHW" ? 3 : 2;
  if (!one_of(ctx, "layout", a.layout, {"NCHW", "NCDHW"}) ||
      !sampling_layout(ctx, a.layout, dims, *x) ||
      !one_of(ctx, "method", a.method, {"nearest", "bilinear", "bicubic"}) ||
      !one_of(ctx, "padding_mode", a.padding_mode, {"zeros", "border", "reflection"}) ||
      !require(ctx, a.method != "bicubic" || dims == 2, codes::op_bad_attribute,
               "bicubic is for images", "layout NCHW", a.layout) ||
      !require(ctx, grid->dtype.is_floating(), codes::type_dtype, "the grid must be floating",
               "float32", grid->dtype.to_string()) ||
      !require(ctx,
               grid->rank() == x->rank() && ctx.equal(grid->shape[0], x->shape[0]) &&
                   ctx.equal(grid->shape[1], dim(static_cast<int64_t>(dims))),
               codes::type_shape, "the grid does not fit the data",
               "(" + to_string(x->shape[0]) + ", " + std::to_string(dims) + ", ...) with " +
                   counted(x->rank(), "dimension"),
               shape_text(grid->shape)))
    return nullptr;
  std::vector<Dim> shape = grid->shape;
  shape[1] = x->shape[1];
  return tensor_type(std::move(shape), x->dtype);
}

// Coordinates outside are mirrored at the edges until they are inside: at the centres of the
// outermost elements, or at their outer edges.
PrimExpr reflected(const PrimExpr& p, const PrimExpr& size, bool align_corners) {
  DType f = p->dtype;
  PrimExpr low = imm_float(f, align_corners ? 0 : -0.5);
  PrimExpr span = tir::cast(f, align_corners ? size - 1 : size);
  // With one element and aligned corners there is nothing to walk over.
  PrimExpr safe = max(span, imm_float(f, 1));
  PrimExpr distance = tir::call("abs", f, {p - low});
  PrimExpr turns = tir::call("floor", f, {div(distance, safe)});
  PrimExpr rest = distance - turns * safe;
  PrimExpr halves = tir::call("floor", f, {turns * imm_float(f, 0.5)});
  PrimExpr odd = gt(turns - halves * imm_float(f, 2), imm_float(f, 0.5));
  return select(gt(span, imm_float(f, 0)), low + select(odd, safe - rest, rest), low);
}

TirTensor grid_sample(const ComputeContext& ctx) {
  auto& a = ctx.attrs<GridSampleAttrs>();
  TirTensor x = ctx.inputs[0], grid = ctx.inputs[1];
  size_t dims = static_cast<size_t>(x->rank()) - 2;
  DType acc = sampling_dtype(x->dtype);
  if (grid->dtype.bits == 64) acc = DType::Float(64);
  bool zeros = a.padding_mode == "zeros", cubic = a.method == "bicubic";
  bool nearest = a.method == "nearest";
  auto number = [&](double v) { return imm_float(acc, v); };
  auto size_of = [&](size_t d) { return x->shape()[d + 2]; };
  // A coordinate brought inside, as the padding mode says.
  auto brought_inside = [&](const PrimExpr& p, size_t d) {
    if (zeros) return p;
    PrimExpr q = a.padding_mode == "reflection" ? reflected(p, size_of(d), a.align_corners) : p;
    return min(max(q, number(0)), tir::cast(acc, size_of(d) - 1));
  };
  // Where axis `d` is read at a place of the grid, whose index leaves out the channels.
  auto coordinate = [&](size_t d, const Indices& place) {
    Indices where = place;
    where.insert(where.begin() + 1, index(static_cast<int64_t>(dims - 1 - d)));  // x comes first
    PrimExpr g = tir::cast(acc, grid(where)), n = tir::cast(acc, size_of(d));
    PrimExpr p = a.align_corners ? (g + number(1)) * number(0.5) * (n - number(1))
                                 : ((g + number(1)) * n - number(1)) * number(0.5);
    // No place is further away than this: the index stays in range, and NaN becomes a place.
    p = min(max(select(eq(p, p), p, number(-1)), number(-0x1p30)), number(0x1p30));
    if (!cubic) p = brought_inside(p, d);
    return p;
  };
  auto floor_of = [&](const PrimExpr& p) {
    return tir::call(nearest ? "round" : "floor", acc, {p});
  };
  // All channels read the same places: these are found once where there are some channels.
  constexpr int64_t kFewChannels = 4;
  bool tables = !cubic && as_int(x->shape()[1]).value_or(0) >= kFewChannels;
  std::vector<PrimExpr> places = grid->shape();
  places.erase(places.begin() + 1);
  std::vector<TirTensor> lows, parts;
  for (size_t d = 0; tables && d < dims; ++d) {
    const tir::BlockRole role = kept("table");
    lows.push_back(tir::compute(
        "T_low", places,
        [&](const Indices& i) { return tir::cast(DType::Int(32), floor_of(coordinate(d, i))); },
        role));
    if (nearest) continue;
    parts.push_back(tir::compute(
        "T_part", places,
        [&](const Indices& i) {
          PrimExpr p = coordinate(d, i);
          return p - floor_of(p);
        },
        role));
  }
  return tir::compute("T_grid_sample", ctx.outputs[0].shape, [&](const Indices& i) {
    Indices place = i;
    place.erase(place.begin() + 1);
    // What is read along each axis: indices with their weights.
    struct Tap {
      PrimExpr at, weight;
    };
    std::vector<std::vector<Tap>> taps(dims);
    for (size_t d = 0; d < dims; ++d) {
      PrimExpr p = tables ? nullptr : coordinate(d, place), floor = tables ? nullptr : floor_of(p);
      PrimExpr low = tables ? tir::cast(kIndex, lows[d](place)) : tir::cast(kIndex, floor);
      if (nearest) {
        taps[d].push_back({low, nullptr});
        continue;
      }
      PrimExpr part = tables ? parts[d](place) : p - floor;
      if (!cubic) {
        std::vector<PrimExpr> weights = linear_weights(part);
        taps[d] = {{low, weights[0]}, {low + 1, weights[1]}};
        continue;
      }
      std::vector<PrimExpr> weights = cubic_weights(part, number(1), -0.75);
      for (size_t k = 0; k < weights.size(); ++k) {
        PrimExpr at = brought_inside(floor + number(static_cast<double>(k) - 1), d);
        taps[d].push_back({tir::cast(kIndex, at), weights[k]});
      }
    }
    // All combinations, the last axis fastest.
    std::vector<size_t> k(dims, 0);
    PrimExpr sum;
    while (true) {
      Indices at = {i[0], i[1]};
      PrimExpr weight, inside = boolean(true);
      for (size_t d = 0; d < dims; ++d) {
        const Tap& tap = taps[d][k[d]];
        at.push_back(clamp_index(tap.at, size_of(d)));
        if (zeros) inside = logical_and(inside, is_inside(tap.at, size_of(d)));
        if (tap.weight) weight = weight ? weight * tap.weight : tap.weight;
      }
      if (!weight) {
        PrimExpr v = x(at);
        return zeros ? select(inside, v, imm(x->dtype, 0)) : v;
      }
      PrimExpr v = tir::cast(acc, x(at));
      if (zeros) v = select(inside, v, number(0));
      sum = sum ? sum + weight * v : weight * v;
      size_t d = dims;
      while (d > 0 && ++k[d - 1] == taps[d - 1].size()) k[--d] = 0;
      if (d == 0) break;
    }
    return from_sampling(x->dtype, sum);
  });
}

// ---- image.crop_and_resize ---------------------------------------------------------------------

Type crop_and_resize_relation(RelationContext& ctx) {
  const TensorTypeNode *x = ctx.tensor(0), *boxes = ctx.tensor(1), *which = ctx.tensor(2);
  if (x == nullptr || boxes == nullptr || which == nullptr) return nullptr;
  auto& a = ctx.attrs<CropAndResizeAttrs>();
  auto l = sampling_layout(ctx, a.layout, 2, *x);
  if (!l || !check_target(ctx, "crop_size", a.crop_size, 2) ||
      !one_of(ctx, "method", a.method, {"bilinear", "nearest_neighbor"}) ||
      !require(ctx,
               boxes->rank() == 2 && ctx.equal(boxes->shape[1], dim(4)) && which->rank() == 1 &&
                   ctx.equal(boxes->shape[0], which->shape[0]),
               codes::type_shape, "boxes and box_indices do not fit", "(n, 4) and (n,)",
               shape_text(boxes->shape) + " and " + shape_text(which->shape)) ||
      !require(ctx, boxes->dtype.is_floating() && which->dtype.is_integer(), codes::type_dtype,
               "boxes must be floating and box_indices integers", "float32 and int32",
               boxes->dtype.to_string() + " and " + which->dtype.to_string()) ||
      !require(ctx, ctx.at_least(x->shape[axis_of(*l, 'N')], min(dim(1), which->shape[0])),
               codes::type_shape, "there is no image to crop", "1 or more", shape_text(x->shape)))
    return nullptr;
  std::vector<Dim> shape = x->shape;
  shape[axis_of(*l, 'N')] = boxes->shape[0];
  shape[axis_of(*l, 'H')] = dim(a.crop_size[0]);
  shape[axis_of(*l, 'W')] = dim(a.crop_size[1]);
  return tensor_type(std::move(shape), is_set(a.out_dtype) ? a.out_dtype : x->dtype);
}

TirTensor crop_and_resize(const ComputeContext& ctx) {
  auto& a = ctx.attrs<CropAndResizeAttrs>();
  Layout l = Layout::of(a.layout);
  TirTensor x = ctx.inputs[0], boxes = ctx.inputs[1], which = ctx.inputs[2];
  DType out = ctx.outputs[0].dtype, acc = sampling_dtype(x->dtype);
  return tir::compute("T_crop_and_resize", ctx.outputs[0].shape, [&](const Indices& i) {
    PrimExpr n = i[axis_of(l, 'N')], inside = boolean(true);
    Indices at = i;
    at[axis_of(l, 'N')] = clamp_index(tir::cast(kIndex, which(n)), x->shape()[axis_of(l, 'N')]);
    PrimExpr p[2];
    for (size_t d = 0; d < 2; ++d) {
      size_t axis = axis_of(l, "HW"[d]);
      int64_t size = a.crop_size[d];
      PrimExpr begin = tir::cast(acc, boxes(n, index(static_cast<int64_t>(d)))),
               end = tir::cast(acc, boxes(n, index(static_cast<int64_t>(d + 2)))),
               last = tir::cast(acc, x->shape()[axis] - 1);
      p[d] = size > 1 ? begin * last + tir::cast(acc, i[axis]) *
                                           div((end - begin) * last,
                                               imm_float(acc, static_cast<double>(size - 1)))
                      : imm_float(acc, 0.5) * (begin + end) * last;
      inside = logical_and(inside, logical_and(ge(p[d], imm_float(acc, 0)), le(p[d], last)));
    }
    auto read = [&](const PrimExpr& y, const PrimExpr& z) {
      at[axis_of(l, 'H')] = clamp_index(y, x->shape()[axis_of(l, 'H')]);
      at[axis_of(l, 'W')] = clamp_index(z, x->shape()[axis_of(l, 'W')]);
      return x(at);
    };
    PrimExpr value;
    if (a.method == "nearest_neighbor") {
      auto nearest = [&](const PrimExpr& v) {
        return tir::cast(kIndex, tir::call("floor", acc, {v + imm_float(acc, 0.5)}));
      };
      value = tir::cast(out, read(nearest(p[0]), nearest(p[1])));
    } else {
      PrimExpr low[2], part[2];
      for (size_t d = 0; d < 2; ++d) {
        PrimExpr floor = tir::call("floor", acc, {p[d]});
        low[d] = tir::cast(kIndex, floor);
        part[d] = p[d] - floor;
      }
      auto row = [&](int64_t dy) {
        PrimExpr u = tir::cast(acc, read(low[0] + dy, low[1])),
                 v = tir::cast(acc, read(low[0] + dy, low[1] + 1));
        return u + (v - u) * part[1];
      };
      PrimExpr top = row(0);
      value = from_sampling(out, top + (row(1) - top) * part[0]);
    }
    return select(inside, value,
                  from_sampling(out, imm_float(DType::Float(64), a.extrapolation_value)));
  });
}

// Two products and two sums a coordinate.
double affine_grid_cost(const CallNode& c) { return 4 * num_elements(c.type); }

// A product and a sum for each element that is read, once for each axis that is interpolated.
double grid_sample_cost(const CallNode& c) {
  auto& a = static_cast<const GridSampleAttrs&>(*c.attrs.get());
  double reads = a.method == "nearest" ? 0 : a.method == "bicubic" ? 16 : 4;
  return 2 * reads * num_elements(c.type);
}
double crop_and_resize_cost(const CallNode& c) {
  auto& a = static_cast<const CropAndResizeAttrs&>(*c.attrs.get());
  return (a.method == "bilinear" ? 8 : 0) * num_elements(c.type);
}

// ---- Gradients

// The grid is a sum of the matrices' entries, each times the map that stands for it.
Adjoints affine_grid_gradient(const GradientContext& ctx) {
  const Expr &x = ctx.arg(0), &g = ctx.adjoint();
  auto& a = ctx.attrs<AffineGridAttrs>();
  // The maps of x and y are the grids of rows of the identity matrix; the third is 1.
  Expr rows = slice_axis(identity_matrix(dim(3), x), 0, dim(0), dim(2));
  Expr maps =
      call(ctx.call.op, {apply("expand_dims", {rows}, {{"axis", int64_t{0}}})}, ctx.call.attrs);
  Dim places = dim(a.target_shape[0] * a.target_shape[1]);
  Expr ones =
      apply("ones", {},
            {{"shape", to_value(Dims{dim(1), places})}, {"dtype", type_of(x).dtype.to_string()}});
  Expr basis = apply("concatenate", {tuple({reshape_to(maps, {dim(2), places}), ones})},
                     {{"axis", int64_t{0}}});
  return {apply("nn.dense", {reshape_to(g, {type_of(x).shape[0], dim(2), places}), basis})};
}

}  // namespace

template <>
std::span<const OpInfo> rows_of<Family::Sample>() {
  static const OpInfo rows[] = {
      {
          .name = "image.affine_grid",
          .doc = "The grid of places that an affine map gives the elements of an image.",
          .args = {{"data", "Matrices (n, 2, 3)."}},
          .attrs = &AffineGridAttrs::static_info(),
          .support_level = 5,
          .fusion = FusionClass::Injective,
          .effect = Effect::Pure,
          .relation = affine_grid_relation,
          .compute = compute_rule(affine_grid),
          .layout = Absent::AxesAsWritten,
          .memory = Absent::OnePiece,
          .precision = Precision::Never,
          .cost = affine_grid_cost,
          .gradient = affine_grid_gradient,
          .batching = batch_rows,
          .examples = {{{"Tensor[(2, 2, 3), float32]"}, "target_shape=[3, 4]"}},
          .expected = Absent::ByNumPy,
      },
      {
          .name = "image.grid_sample",
          .doc = "The data at the places of a grid, -1 to 1 along each axis (Spatial Transformer "
                 "Networks, Jaderberg et al. 2015).",
          .args = {{"data", "The images or volumes."},
                   {"grid", "(n, 2, h, w): x and y; or (n, 3, d, h, w): x, y and z."}},
          .attrs = &GridSampleAttrs::static_info(),
          .support_level = 5,
          .fusion = FusionClass::Injective,
          .effect = Effect::Pure,
          .relation = grid_sample_relation,
          .compute = compute_rule(grid_sample),
          .definition = defined_grid_sample,
          .layout = Absent::AxesAsWritten,
          .memory = Absent::OnePiece,
          .precision = Precision::Follow,
          .cost = grid_sample_cost,
          .gradient = Absent::Pending,
          .batching = batch_rows,
          .examples =
              {{{"Tensor[(1, 2, 4, 5), float32]", "Tensor[(1, 2, 3, 3), float32]"}, "", -1.5, 1.5},
               {{"Tensor[(1, 2, 4, 5), float32]", "Tensor[(1, 2, 3, 3), float32]"},
                "method=\"bicubic\", padding_mode=\"reflection\", align_corners=False",
                -1.5,
                1.5},
               {{"Tensor[(2, 1, 4, 5), float32]", "Tensor[(2, 2, 2, 3), float32]"},
                "padding_mode=\"reflection\"",
                -2,
                2},
               {{"Tensor[(1, 1, 3, 4, 5), float32]", "Tensor[(1, 3, 2, 3, 2), float32]"},
                "method=\"nearest\", padding_mode=\"border\", layout=\"NCDHW\"",
                -1.5,
                1.5}},
          .expected = Absent::ByNumPy,
      },
      {
          .name = "image.crop_and_resize",
          .doc = "Boxes cut out of images and brought to one size.",
          .args = {{"data", "The images, in `layout`."},
                   {"boxes", "(n, 4): y1, x1, y2, x2 as shares of height and width."},
                   {"box_indices", "The image of each box."}},
          .attrs = &CropAndResizeAttrs::static_info(),
          .support_level = 5,
          .fusion = FusionClass::Injective,
          .effect = Effect::Pure,
          .relation = crop_and_resize_relation,
          .compute = compute_rule(crop_and_resize),
          .definition = defined_crop_and_resize,
          .layout = Absent::AxesAsWritten,
          .memory = Absent::OnePiece,
          .precision = Precision::Follow,
          .cost = crop_and_resize_cost,
          .gradient = Absent::Pending,
          .batching = batch_crops,
          .examples =
              {{{"Tensor[(2, 3, 6, 5), float32]", "Tensor[(3, 4), float32]", "Tensor[(3,), int32]"},
                "crop_size=[4, 3], extrapolation_value=1f",
                0,
                1},
               {{"Tensor[(2, 6, 5, 3), float32]", "Tensor[(3, 4), float32]", "Tensor[(3,), int32]"},
                "crop_size=[3, 1], layout=\"NHWC\", method=\"nearest_neighbor\"",
                -0.2,
                1.2}},
          .expected = Absent::ByNumPy,
      },
  };
  return rows;
}

}  // namespace relay::ops
