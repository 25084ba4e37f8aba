// Regions of feature maps brought to one size: the pooling of object detectors.
#include "base/codes/operators.h"
#include "base/codes/types.h"
#include "ops/loops.h"
#include "ops/rows.h"
#include "ops/sampling.h"

namespace relay::ops {
namespace {

using namespace tir;  // NOLINT
using relay::CallNode;
using relay::Type;

Type region_type(RelationContext& ctx, const Ints& pooled, const std::string& layout,
                 double scale) {
  const TensorTypeNode *x = ctx.tensor(0), *rois = ctx.tensor(1);
  if (x == nullptr || rois == nullptr) return nullptr;
  if (!one_of(ctx, "layout", layout, {"NCHW"}) || !sampling_layout(ctx, layout, 2, *x) ||
      !check_target(ctx, "pooled_size", pooled, 2) ||
      !require(ctx, scale > 0 && scale < 1e9, codes::op_bad_attribute,
               "spatial_scale is out of range", "above 0", std::to_string(scale)) ||
      !require(ctx, x->dtype.is_floating() && rois->dtype == x->dtype, codes::type_dtype,
               "needs data and rois of one floating dtype", "float32",
               x->dtype.to_string() + " and " + rois->dtype.to_string()) ||
      !require(ctx, rois->rank() == 2 && ctx.equal(rois->shape[1], dim(5)), codes::type_shape,
               "rois must hold item, x1, y1, x2 and y2", "(n, 5)", shape_text(rois->shape)) ||
      !require(ctx, ctx.at_least(x->shape[0], min(dim(1), rois->shape[0])), codes::type_shape,
               "there is no item to take regions from", "1 or more", shape_text(x->shape)))
    return nullptr;
  return tensor_type({rois->shape[0], x->shape[1], dim(pooled[0]), dim(pooled[1])}, x->dtype);
}

// One axis of one bin of a region: its first place and its length, in elements of the data.
struct Bin {
  PrimExpr begin, length;
};

struct Region {
  const Buffer &x, &rois;
  DType acc;
  PrimExpr number(double v) const { return imm_float(acc, v); }
  PrimExpr corner(const PrimExpr& roi, int64_t k, double scale) const {
    PrimExpr v = tir::cast(acc, load(rois, {roi, index(k)})) * number(scale);
    // Places that are no numbers or far away stay within what an index can hold.
    return min(max(select(eq(v, v), v, number(0)), number(-0x1p30)), number(0x1p30));
  }
  PrimExpr item(const PrimExpr& roi) const {
    return clamp_index(tir::cast(kIndex, load(rois, {roi, index(0)})), x->shape[0]);
  }
  PrimExpr size(size_t d) const { return x->shape[d + 2]; }
};

// The value between elements; 0 more than one element outside.
PrimExpr interpolated(const Region& r, const PrimExpr& item, const PrimExpr& channel,
                      const PrimExpr (&place)[2]) {
  PrimExpr low[2], part[2], inside = boolean(true);
  for (size_t d = 0; d < 2; ++d) {
    PrimExpr n = tir::cast(r.acc, r.size(d));
    inside = logical_and(inside, logical_and(ge(place[d], r.number(-1)), le(place[d], n)));
    PrimExpr p = min(max(place[d], r.number(0)), n - r.number(1));
    PrimExpr floor = tir::call("floor", r.acc, {p});
    low[d] = tir::cast(kIndex, floor);
    part[d] = p - floor;
  }
  auto value = [&](int64_t dy, int64_t dx) {
    return tir::cast(r.acc, load(r.x, {item, channel, clamp_index(low[0] + dy, r.size(0)),
                                       clamp_index(low[1] + dx, r.size(1))}));
  };
  auto row = [&](int64_t dy) {
    PrimExpr first = value(dy, 0);
    return first + (value(dy, 1) - first) * part[1];
  };
  PrimExpr top = row(0);
  return select(inside, top + (row(1) - top) * part[0], r.number(0));
}

struct ROIAlignAttrs : AttrsOf<ROIAlignAttrs> {
  Ints pooled_size;
  double spatial_scale = 1;
  int64_t sample_ratio = -1;
  std::string layout = "NCHW", mode = "avg";
  static AttrsList describe() {
    return {"relay.attrs.ROIAlignAttrs",
            {attribute("pooled_size", &Self::pooled_size, "Height and width of a result."),
             attribute("spatial_scale", &Self::spatial_scale,
                       "From the regions' coordinates to those of the data."),
             attribute("sample_ratio", &Self::sample_ratio,
                       "Samples along each axis of a bin; below 1: as many as it has elements."),
             attribute("layout", &Self::layout, "NCHW."),
             attribute("mode", &Self::mode, "avg or max of the samples.")}};
  }
};

TirTensor roi_align(const ComputeContext& ctx) {
  auto& a = ctx.attrs<ROIAlignAttrs>();
  DType acc = sampling_dtype(ctx.outputs[0].dtype);
  auto build = [a, acc](const std::vector<Buffer>& in, const Buffer& out) {
    Region r{in[0], in[1], acc};
    return each_line(out->shape, 3, 64, [&](const LineIndex& at) {
      return each("pw", out->shape[3], [&](const PrimExpr& pw) {
        Indices i = at(pw);
        Bin bin[2];
        PrimExpr samples[2];
        for (size_t d = 0; d < 2; ++d) {
          PrimExpr begin = r.corner(i[0], static_cast<int64_t>(2 - d), a.spatial_scale),
                   end = r.corner(i[0], static_cast<int64_t>(4 - d), a.spatial_scale);
          PrimExpr length =
              max(end - begin, r.number(1)) * r.number(1.0 / static_cast<double>(a.pooled_size[d]));
          bin[d] = {begin + tir::cast(acc, i[d + 2]) * length, length};
          // As many samples as a bin has elements; never more than the data has.
          samples[d] = a.sample_ratio > 0 ? index(a.sample_ratio)
                                          : min(tir::cast(kIndex, tir::call("ceil", acc, {length})),
                                                max(r.size(d), index(1)) * 2);
        }
        Cell best("value", acc);
        bool average = a.mode == "avg";
        Stmt loops = each("iy", samples[0], [&](const PrimExpr& iy) {
          return each("ix", samples[1], [&](const PrimExpr& ix) {
            PrimExpr place[2];
            for (size_t d = 0; d < 2; ++d) {
              PrimExpr k = tir::cast(acc, d == 0 ? iy : ix) + r.number(0.5);
              place[d] = bin[d].begin + k * div(bin[d].length, tir::cast(acc, samples[d]));
            }
            PrimExpr v = interpolated(r, r.item(i[0]), i[1], place);
            return best.set(average ? best.get() + v : max(best.get(), v));
          });
        });
        PrimExpr result =
            average ? div(best.get(), tir::cast(acc, samples[0] * samples[1])) : best.get();
        return best.in(seq({best.set(average ? r.number(0) : min_value(acc)), loops,
                            store(out, i, tir::cast(out->dtype, result))}));
      });
    });
  };
  return imperative("T_roi_align", ctx.outputs[0].dtype, ctx.outputs[0].shape, ctx.inputs, build);
}

struct ROIPoolAttrs : AttrsOf<ROIPoolAttrs> {
  Ints pooled_size;
  double spatial_scale = 1;
  std::string layout = "NCHW";
  static AttrsList describe() {
    return {"relay.attrs.ROIPoolAttrs",
            {attribute("pooled_size", &Self::pooled_size, "Height and width of a result."),
             attribute("spatial_scale", &Self::spatial_scale,
                       "From the regions' coordinates to those of the data."),
             attribute("layout", &Self::layout, "NCHW.")}};
  }
};

TirTensor roi_pool(const ComputeContext& ctx) {
  auto& a = ctx.attrs<ROIPoolAttrs>();
  DType acc = sampling_dtype(ctx.outputs[0].dtype);
  auto build = [a, acc](const std::vector<Buffer>& in, const Buffer& out) {
    Region r{in[0], in[1], acc};
    auto whole = [&](const char* f, const PrimExpr& v) {
      return tir::cast(kIndex, tir::call(f, acc, {v}));
    };
    return each_line(out->shape, 3, 64, [&](const LineIndex& at) {
      return each("pw", out->shape[3], [&](const PrimExpr& pw) {
        Indices i = at(pw);
        PrimExpr begin[2], count[2];
        for (size_t d = 0; d < 2; ++d) {
          PrimExpr half = r.number(0.5);
          PrimExpr first =
              whole("floor", r.corner(i[0], static_cast<int64_t>(2 - d), a.spatial_scale) + half);
          PrimExpr last =
              whole("floor", r.corner(i[0], static_cast<int64_t>(4 - d), a.spatial_scale) + half);
          PrimExpr length = max(last - first + 1, index(1)), n = index(a.pooled_size[d]);
          PrimExpr from = first + floor_div(i[d + 2] * length, n),
                   to = first + floor_div((i[d + 2] + 1) * length + n - 1, n);
          begin[d] = min(max(from, index(0)), r.size(d));
          count[d] = max(min(max(to, index(0)), r.size(d)) - begin[d], index(0));
        }
        Cell best("value", acc);
        Stmt loops = each("iy", count[0], [&](const PrimExpr& iy) {
          return each("ix", count[1], [&](const PrimExpr& ix) {
            return best.set(
                max(best.get(),
                    tir::cast(acc, load(r.x, {r.item(i[0]), i[1], begin[0] + iy, begin[1] + ix}))));
          });
        });
        PrimExpr result = select(gt(count[0] * count[1], index(0)), best.get(), r.number(0));
        return best.in(
            seq({best.set(min_value(acc)), loops, store(out, i, tir::cast(out->dtype, result))}));
      });
    });
  };
  return imperative("T_roi_pool", ctx.outputs[0].dtype, ctx.outputs[0].shape, ctx.inputs, build);
}

Type roi_align_relation(RelationContext& ctx) {
  auto& a = ctx.attrs<ROIAlignAttrs>();
  if (!one_of(ctx, "mode", a.mode, {"avg", "max"}) ||
      !require(ctx, a.sample_ratio <= 1024, codes::op_bad_attribute, "sample_ratio is out of range",
               "at most 1024", std::to_string(a.sample_ratio)))
    return nullptr;
  return region_type(ctx, a.pooled_size, a.layout, a.spatial_scale);
}

Type roi_pool_relation(RelationContext& ctx) {
  auto& a = ctx.attrs<ROIPoolAttrs>();
  return region_type(ctx, a.pooled_size, a.layout, a.spatial_scale);
}

}  // namespace

template <>
std::span<const OpInfo> rows_of<Family::Region>() {
  static const OpInfo rows[] = {
      {
          .name = "vision.roi_align",
          .doc = "Regions sampled between elements (Mask R-CNN, He et al. 2017).",
          .args = {{"data", "The feature maps."}, {"rois", "(n, 5): item, x1, y1, x2, y2."}},
          .attrs = &ROIAlignAttrs::static_info(),
          .support_level = 5,
          .fusion = FusionClass::Opaque,
          .effect = Effect::Pure,
          .relation = roi_align_relation,
          .compute = compute_rule(roi_align),
          .layout = Absent::AxesAsWritten,
          .memory = Absent::OnePiece,
          .precision = Precision::Follow,
          .cost = Absent::DataDecides,
          .gradient = Absent::Pending,
          .examples = {{{"Tensor[(4, 3, 6, 5), float32]", "Tensor[(3, 5), float32]"},
                        "pooled_size=[2, 3], spatial_scale=1.5f",
                        0,
                        4},
                       {{"Tensor[(4, 3, 6, 5), float32]", "Tensor[(3, 5), float32]"},
                        "pooled_size=[2, 3], spatial_scale=1f, sample_ratio=2, mode=\"max\"",
                        0,
                        4}},
          .expected = Absent::ByNumPy,
      },
      {
          .name = "vision.roi_pool",
          .doc = "Greatest elements of the bins of regions (Fast R-CNN, Girshick 2015).",
          .args = {{"data", "The feature maps."}, {"rois", "(n, 5): item, x1, y1, x2, y2."}},
          .attrs = &ROIPoolAttrs::static_info(),
          .support_level = 5,
          .fusion = FusionClass::Opaque,
          .effect = Effect::Pure,
          .relation = roi_pool_relation,
          .compute = compute_rule(roi_pool),
          .layout = Absent::AxesAsWritten,
          .memory = Absent::OnePiece,
          .precision = Precision::Follow,
          .cost = Absent::DataDecides,
          .gradient = Absent::Pending,
          .examples = {{{"Tensor[(4, 3, 6, 5), float32]", "Tensor[(3, 5), float32]"},
                        "pooled_size=[2, 3], spatial_scale=1f",
                        0,
                        4}},
          .expected = Absent::ByNumPy,
      },
  };
  return rows;
}

}  // namespace relay::ops
