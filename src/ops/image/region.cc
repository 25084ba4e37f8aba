// Regions of feature maps brought to one size: the pooling of object detectors.
#include "base/codes/operators.h"
#include "base/codes/types.h"
#include "ops/image/sample.h"
#include "ops/image/sampling.h"
#include "ops/loops.h"
#include "ops/rows.h"

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

// Where the samples of a region lie along one axis: between the elements `low` and `high`, `part`
// behind the first; nothing is there more than one element outside. All channels share them.
class SampleTable {
 public:
  SampleTable(const Region& r, size_t d, const PrimExpr& size)
      : r_(r),
        d_(d),
        low_(buffer("low", kIndex, {size})),
        high_(buffer("high", kIndex, {size})),
        part_(buffer("part", r.acc, {size})),
        inside_(buffer("inside", DType::Bool(), {size})) {}

  // `exists`: whether the sample counts wherever it lies.
  Stmt put(const PrimExpr& at, const PrimExpr& place, const PrimExpr& exists) const {
    PrimExpr n = tir::cast(r_.acc, r_.size(d_));
    PrimExpr inside = logical_and(exists, logical_and(ge(place, r_.number(-1)), le(place, n)));
    return named("p", min(max(place, r_.number(0)), n - r_.number(1)), [&](const PrimExpr& p) {
      return named("floor", tir::call("floor", r_.acc, {p}), [&](const PrimExpr& floor) {
        PrimExpr low = tir::cast(kIndex, floor);
        return seq({store(low_, {at}, clamp_index(low, r_.size(d_))),
                    store(high_, {at}, clamp_index(low + 1, r_.size(d_))),
                    store(part_, {at}, p - floor), store(inside_, {at}, inside)});
      });
    });
  }
  PrimExpr low(const PrimExpr& at) const { return load(low_, {at}); }
  PrimExpr high(const PrimExpr& at) const { return load(high_, {at}); }
  PrimExpr part(const PrimExpr& at) const { return load(part_, {at}); }
  PrimExpr inside(const PrimExpr& at) const { return load(inside_, {at}); }
  Stmt in(Stmt body) const {
    for (const Buffer& b : {low_, high_, part_, inside_}) body = allocate(b, std::move(body));
    return body;
  }

 private:
  const Region& r_;
  size_t d_;
  Buffer low_, high_, part_, inside_;
};

// One channel of a region. For each row of samples, the two rows of the data that it lies between
// become one line, from which all samples of the row are taken.
Stmt align_channel(const ROIAlignAttrs& a, const Region& r, const Buffer& out, Indices at,
                   const PrimExpr& item, const SampleTable& rows, const SampleTable& columns,
                   const PrimExpr& row_samples, const PrimExpr& column_samples) {
  const bool average = a.mode == "avg", corners = a.mode == "max_corner";
  PrimExpr channel = at[1], width = index(a.pooled_size[1]);
  Buffer line = buffer("line", r.acc, {r.size(1)}), best = buffer("best", r.acc, {width});
  // From the first sample to the last, which comes before it in a region whose corners are swapped.
  PrimExpr last = width * column_samples - 1;
  PrimExpr begin = columns.low(index(0)), end = columns.high(last) + 1;
  if (a.aligned) {
    begin = min(begin, columns.low(last));
    end = max(end, columns.high(index(0)) + 1);
  }
  Stmt bins = each("ph", index(a.pooled_size[0]), [&](const PrimExpr& ph) {
    Stmt clear = each("pw", width, [&](const PrimExpr& pw) {
      return store(best, {pw}, average ? r.number(0) : min_value(r.acc));
    });
    Stmt add = each("iy", row_samples, [&](const PrimExpr& iy) {
      return named("y", ph * row_samples + iy, [&](const PrimExpr& y) {
        auto element = [&](const PrimExpr& row, const PrimExpr& column) {
          return tir::cast(r.acc, load(r.x, {item, channel, row, column}));
        };
        Stmt between = each_in_lanes("x", end - begin, [&](const PrimExpr& x) {
          PrimExpr top = element(rows.low(y), begin + x), bottom = element(rows.high(y), begin + x);
          return store(line, {begin + x}, top + (bottom - top) * rows.part(y));
        });
        Stmt samples = each("pw", width, [&](const PrimExpr& pw) {
          Cell value("value", r.acc);
          Stmt all = each("ix", column_samples, [&](const PrimExpr& ix) {
            return named("x", pw * column_samples + ix, [&](const PrimExpr& x) {
              PrimExpr sample;
              if (corners) {
                PrimExpr down = rows.part(y), aside = columns.part(x), one = r.number(1);
                auto corner = [&](const PrimExpr& row, const PrimExpr& column, const PrimExpr& w) {
                  return element(row, column) * w;
                };
                sample = max(max(corner(rows.low(y), columns.low(x), (one - down) * (one - aside)),
                                 corner(rows.low(y), columns.high(x), (one - down) * aside)),
                             max(corner(rows.high(y), columns.low(x), down * (one - aside)),
                                 corner(rows.high(y), columns.high(x), down * aside)));
              } else {
                PrimExpr left = load(line, {columns.low(x)}), right = load(line, {columns.high(x)});
                sample = left + (right - left) * columns.part(x);
              }
              PrimExpr v =
                  select(logical_and(rows.inside(y), columns.inside(x)), sample, r.number(0));
              return value.set(average ? value.get() + v : max(value.get(), v));
            });
          });
          return value.in(seq({value.set(load(best, {pw})), all, store(best, {pw}, value.get())}));
        });
        return corners ? samples : seq({between, samples});
      });
    });
    Stmt put = each("pw", width, [&](const PrimExpr& pw) {
      PrimExpr v = load(best, {pw});
      if (average) v = div(v, tir::cast(r.acc, row_samples * column_samples));
      Indices place = at;
      place.insert(place.end(), {ph, pw});
      return store(out, place, tir::cast(out->dtype, v));
    });
    return seq({clear, add, put});
  });
  return allocate(line, allocate(best, bins));
}

// Channels that share a region's tables.
constexpr int64_t kChannels = 32;

TirTensor roi_align(const ComputeContext& ctx) {
  auto& a = ctx.attrs<ROIAlignAttrs>();
  DType acc = sampling_dtype(ctx.outputs[0].dtype);
  auto build = [a, acc](const std::vector<Buffer>& in, const Buffer& out) {
    Region r{in[0], in[1], acc};
    PrimExpr groups = floor_div(out->shape[1] + (kChannels - 1), index(kChannels));
    int64_t work = 64 * kChannels * a.pooled_size[0] * a.pooled_size[1];
    return each_line({out->shape[0], groups, index(1)}, 2, work, [&](const LineIndex& at) {
      PrimExpr roi = at(index(0))[0], first = at(index(0))[1] * kChannels;
      auto most = [&](size_t d) { return max(r.size(d), index(1)) * 2; };
      auto room = [&](size_t d) {
        return (a.sample_ratio > 0 ? index(a.sample_ratio) : most(d)) * a.pooled_size[d];
      };
      SampleTable rows(r, 0, room(0)), columns(r, 1, room(1));
      Cell row_samples("row_samples", kIndex), column_samples("column_samples", kIndex);
      auto fill = [&](size_t d, const SampleTable& table, const Cell& samples) {
        PrimExpr begin = r.corner(roi, static_cast<int64_t>(2 - d), a.spatial_scale),
                 end = r.corner(roi, static_cast<int64_t>(4 - d), a.spatial_scale);
        PrimExpr length = (a.aligned ? end - begin : max(end - begin, r.number(1))) *
                          r.number(1.0 / static_cast<double>(a.pooled_size[d]));
        return named("begin", begin, [&](const PrimExpr& start) {
          return named("length", length, [&](const PrimExpr& bin) {
            // As many samples as a bin has elements; never more than the data has.
            // A region of no length has none, for which one stands that is nowhere.
            PrimExpr count = index(a.sample_ratio), exists = boolean(true);
            if (a.sample_ratio <= 0) {
              count = min(tir::cast(kIndex, tir::call("ceil", acc, {bin})), most(d));
              if (a.aligned) {
                count = max(count, index(1));
                exists = gt(bin, r.number(0));
              }
            }
            Stmt places = each("bin", index(a.pooled_size[d]), [&](const PrimExpr& number) {
              return each("k", samples.get(), [&](const PrimExpr& k) {
                PrimExpr from = start + tir::cast(acc, number) * bin;
                PrimExpr step =
                    (tir::cast(acc, k) + r.number(0.5)) * div(bin, tir::cast(acc, samples.get()));
                return table.put(number * samples.get() + k, from + step, exists);
              });
            });
            return seq({samples.set(count), places});
          });
        });
      };
      PrimExpr item = r.item(roi);
      PrimExpr count = min(index(kChannels), out->shape[1] - first);
      auto known = [&](const Cell& samples) {
        return a.sample_ratio > 0 ? index(a.sample_ratio) : samples.get();
      };
      Stmt channels = each("c", count, [&](const PrimExpr& c) {
        return align_channel(a, r, out, {roi, first + c}, item, rows, columns, known(row_samples),
                             known(column_samples));
      });
      Stmt body = seq({fill(0, rows, row_samples), fill(1, columns, column_samples), channels});
      return rows.in(columns.in(row_samples.in(column_samples.in(body))));
    });
  };
  return imperative("T_roi_align", ctx.outputs[0].dtype, ctx.outputs[0].shape, ctx.inputs, build);
}

// The bins of a region along one axis: the first element of each that the data has, and how many follow. All channels share them.
class BinTable {
 public:
  BinTable(const Region& r, size_t d, int64_t bins)
      : r_(r),
        d_(d),
        bins_(bins),
        begin_(buffer("begin", kIndex, {index(bins)})),
        count_(buffer("count", kIndex, {index(bins)})) {}

  Stmt fill(const PrimExpr& roi, double scale) const {
    auto rounded = [&](size_t k) {
      PrimExpr corner = r_.corner(roi, static_cast<int64_t>(k), scale);
      return tir::cast(kIndex, tir::call("floor", r_.acc, {corner + r_.number(0.5)}));
    };
    auto within = [&](const PrimExpr& at) { return min(max(at, index(0)), r_.size(d_)); };
    return named("first", rounded(2 - d_), [&](const PrimExpr& first) {
      return named(
          "length", max(rounded(4 - d_) - first + 1, index(1)), [&](const PrimExpr& length) {
            return each("bin", index(bins_), [&](const PrimExpr& bin) {
              PrimExpr from = within(first + floor_div(bin * length, index(bins_)));
              PrimExpr to =
                  within(first + floor_div((bin + 1) * length + (bins_ - 1), index(bins_)));
              return named("from", from, [&](const PrimExpr& begin) {
                return seq(
                    {store(begin_, {bin}, begin), store(count_, {bin}, max(to - begin, index(0)))});
              });
            });
          });
    });
  }
  PrimExpr begin(const PrimExpr& bin) const { return load(begin_, {bin}); }
  PrimExpr count(const PrimExpr& bin) const { return load(count_, {bin}); }
  // What is behind the last bin.
  PrimExpr end() const { return begin(index(bins_ - 1)) + count(index(bins_ - 1)); }
  Stmt in(Stmt body) const { return allocate(begin_, allocate(count_, std::move(body))); }

 private:
  const Region& r_;
  size_t d_;
  int64_t bins_;
  Buffer begin_, count_;
};

// The greatest elements of a channel of a region: those of each column of a row of bins first, which are neighbours.
Stmt pool_channel(const Region& r, const Buffer& out, const Indices& at, const PrimExpr& item,
                  const BinTable& rows, const BinTable& columns) {
  Buffer line = buffer("line", r.acc, {r.size(1)});
  PrimExpr begin = columns.begin(index(0)), width = max(columns.end() - begin, index(0));
  return allocate(
      line, each("ph", out->shape[2], [&](const PrimExpr& ph) {
        Stmt clear = each_in_lanes("x", width, [&](const PrimExpr& x) {
          return store(line, {begin + x}, min_value(r.acc));
        });
        Stmt greatest = each("iy", rows.count(ph), [&](const PrimExpr& iy) {
          return named("row", rows.begin(ph) + iy, [&](const PrimExpr& row) {
            return each_in_lanes("x", width, [&](const PrimExpr& x) {
              PrimExpr v = tir::cast(r.acc, load(r.x, {item, at[1], row, begin + x}));
              return store(line, {begin + x}, max(load(line, {begin + x}), v));
            });
          });
        });
        Stmt bins = each("pw", out->shape[3], [&](const PrimExpr& pw) {
          Cell best("value", r.acc);
          Stmt all = each("ix", columns.count(pw), [&](const PrimExpr& ix) {
            return best.set(max(best.get(), load(line, {columns.begin(pw) + ix})));
          });
          PrimExpr some = gt(rows.count(ph) * columns.count(pw), index(0));
          PrimExpr result = select(some, best.get(), r.number(0));
          return best.in(seq({best.set(min_value(r.acc)), all,
                              store(out, {at[0], at[1], ph, pw}, tir::cast(out->dtype, result))}));
        });
        return seq({clear, greatest, bins});
      }));
}

// The numbers in the data of the greatest elements of a channel of a region, or -1.
Stmt places_of_channel(const Region& r, const Buffer& out, const Indices& at, const PrimExpr& item,
                       const BinTable& rows, const BinTable& columns) {
  return each("ph", out->shape[2], [&](const PrimExpr& ph) {
    return each("pw", out->shape[3], [&](const PrimExpr& pw) {
      Cell best("value", r.acc), place("place", kIndex);
      Stmt loops = each("iy", rows.count(ph), [&](const PrimExpr& iy) {
        return each("ix", columns.count(pw), [&](const PrimExpr& ix) {
          PrimExpr row = rows.begin(ph) + iy, column = columns.begin(pw) + ix;
          PrimExpr v = tir::cast(r.acc, load(r.x, {item, at[1], row, column}));
          PrimExpr number = ((item * r.x->shape[1] + at[1]) * r.size(0) + row) * r.size(1) + column;
          PrimExpr better = logical_or(lt(place.get(), index(0)), gt(v, best.get()));
          return seq({if_(better, place.set(number)), best.set(max(best.get(), v))});
        });
      });
      return best.in(place.in(seq({best.set(min_value(r.acc)), place.set(index(-1)), loops,
                                   store(out, {at[0], at[1], ph, pw}, place.get())})));
    });
  });
}

// The greatest element of each bin, or (`kPlaces`) its number in the data; of an empty bin 0, or -1.
template <bool kPlaces>
TirTensor roi_pool(const ComputeContext& ctx) {
  auto& a = ctx.attrs<ROIPoolAttrs>();
  DType acc = sampling_dtype(ctx.inputs[0]->dtype);
  auto build = [a, acc](const std::vector<Buffer>& in, const Buffer& out) {
    Region r{in[0], in[1], acc};
    PrimExpr groups = floor_div(out->shape[1] + (kChannels - 1), index(kChannels));
    int64_t work = 64 * kChannels * a.pooled_size[0] * a.pooled_size[1];
    return each_line({out->shape[0], groups, index(1)}, 2, work, [&](const LineIndex& at) {
      PrimExpr roi = at(index(0))[0], first = at(index(0))[1] * kChannels, item = r.item(roi);
      BinTable rows(r, 0, a.pooled_size[0]), columns(r, 1, a.pooled_size[1]);
      PrimExpr count = min(index(kChannels), out->shape[1] - first);
      Stmt channels = each("c", count, [&](const PrimExpr& c) {
        auto one = kPlaces ? places_of_channel : pool_channel;
        return one(r, out, {roi, first + c}, item, rows, columns);
      });
      return rows.in(columns.in(
          seq({rows.fill(roi, a.spatial_scale), columns.fill(roi, a.spatial_scale), channels})));
    });
  };
  return imperative(kPlaces ? "T_roi_pool_places" : "T_roi_pool", ctx.outputs[0].dtype,
                    ctx.outputs[0].shape, ctx.inputs, build);
}

Type roi_align_relation(RelationContext& ctx) {
  auto& a = ctx.attrs<ROIAlignAttrs>();
  if (!one_of(ctx, "mode", a.mode, {"avg", "max", "max_corner"}) ||
      !require(ctx, a.sample_ratio <= 1024, codes::op_bad_attribute, "sample_ratio is out of range",
               "at most 1024", std::to_string(a.sample_ratio)))
    return nullptr;
  return region_type(ctx, a.pooled_size, a.layout, a.spatial_scale);
}

Type roi_pool_relation(RelationContext& ctx) {
  auto& a = ctx.attrs<ROIPoolAttrs>();
  return region_type(ctx, a.pooled_size, a.layout, a.spatial_scale);
}

Type roi_pool_places_relation(RelationContext& ctx) {
  const Type pooled = roi_pool_relation(ctx);
  return pooled ? tensor_type(as<TensorTypeNode>(pooled)->shape, DType::Int(64)) : Type(nullptr);
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
          .definition = defined_roi_align,
          .layout = Absent::AxesAsWritten,
          .memory = Absent::OnePiece,
          .precision = Precision::Follow,
          .cost = Absent::DataDecides,
          .gradient = Absent::Pending,
          .batching = batch_regions,
          .examples = {{{"Tensor[(4, 3, 6, 5), float32]", "Tensor[(3, 5), float32]"},
                        "pooled_size=[2, 3], spatial_scale=1.5f",
                        0,
                        4},
                       {{"Tensor[(4, 3, 6, 5), float32]", "Tensor[(3, 5), float32]"},
                        "pooled_size=[2, 3], spatial_scale=1f, sample_ratio=2, mode=\"max\"",
                        0,
                        4},
                       {{"Tensor[(4, 3, 6, 5), float32]", "Tensor[(3, 5), float32]"},
                        "pooled_size=[2, 3], spatial_scale=0.5f, aligned=True",
                        0,
                        4},
                       {{"Tensor[(4, 3, 6, 5), float32]", "Tensor[(3, 5), float32]"},
                        "pooled_size=[2, 3], spatial_scale=1f, sample_ratio=2, mode=\"max_corner\"",
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
          .compute = compute_rule(roi_pool<false>),
          .definition = defined_roi_pool,
          .layout = Absent::AxesAsWritten,
          .memory = Absent::OnePiece,
          .precision = Precision::Follow,
          .cost = Absent::DataDecides,
          .gradient = Absent::Pending,
          .batching = batch_regions,
          .examples = {{{"Tensor[(4, 3, 6, 5), float32]", "Tensor[(3, 5), float32]"},
                        "pooled_size=[2, 3], spatial_scale=1f",
                        0,
                        4}},
          .expected = Absent::ByNumPy,
      },
      {
          .name = "vision.roi_pool_places",
          .doc =
              "The numbers in the data, row after row, of what vision.roi_pool chooses, the first "
              "of several; -1 where a bin is empty.",
          .args = {{"data", "The feature maps."}, {"rois", "(n, 5): item, x1, y1, x2, y2."}},
          .attrs = &ROIPoolAttrs::static_info(),
          .support_level = 5,
          .fusion = FusionClass::Opaque,
          .effect = Effect::Pure,
          .relation = roi_pool_places_relation,
          .compute = compute_rule(roi_pool<true>),
          .layout = Absent::AxesAsWritten,
          .memory = Absent::OnePiece,
          .precision = Precision::Never,
          .cost = Absent::DataDecides,
          .gradient = Absent::NotDifferentiable,
          .batching = batch_regions,
          .examples = {{{"Tensor[(4, 3, 6, 5), float32]", "Tensor[(3, 5), float32]"},
                        "pooled_size=[2, 3], spatial_scale=2f",
                        0,
                        4}},
          .expected = Absent::ByNumPy,
      },
  };
  return rows;
}

}  // namespace relay::ops
