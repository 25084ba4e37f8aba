// Which boxes stay, in an order that is given: the step that no sum or selection can say, and that all
// operators of non-maximum suppression share.
#include "base/codes/types.h"
#include "ops/batching.h"
#include "ops/detection/box_parts.h"
#include "ops/loops.h"
#include "ops/rows.h"

namespace relay::ops {
namespace {

using namespace tir;  // NOLINT
using relay::Type;

struct KeptBoxesAttrs : AttrsOf<KeptBoxesAttrs> {
  bool by_class = true, inclusive = false, whole_pixels = false;
  static AttrsList describe() {
    return {
        "relay.attrs.KeptBoxesAttrs",
        {attribute("by_class", &Self::by_class, "Only boxes of one class drop each other."),
         attribute("inclusive", &Self::inclusive, "Boxes that share the threshold are dropped."),
         attribute("whole_pixels", &Self::whole_pixels,
                   "The second corner is the last pixel, not the edge behind it.")}};
  }
};

Type kept_boxes_type(RelationContext& ctx) {
  const TensorTypeNode *boxes = ctx.tensor(0), *classes = ctx.tensor(1),
                       *candidates = ctx.tensor(2), *most = ctx.tensor(3), *limit = ctx.tensor(4);
  for (const TensorTypeNode* t : {boxes, classes, candidates, most, limit}) {
    if (t == nullptr) return nullptr;
  }
  auto fits = [&](const TensorTypeNode& t, const std::vector<Dim>& shape) {
    if (t.shape.size() != shape.size()) return false;
    for (size_t d = 0; d < shape.size(); ++d) {
      if (!ctx.equal(t.shape[d], shape[d])) return false;
    }
    return true;
  };
  if (!require(ctx, boxes->rank() == 3 && ctx.equal(boxes->shape[2], dim(4)), codes::type_shape,
               "boxes have four coordinates", "(batch, n, 4)", shape_text(boxes->shape)))
    return nullptr;
  const std::vector<Dim> each{boxes->shape[0], boxes->shape[1]}, batch{boxes->shape[0]};
  if (!require(ctx,
               fits(*classes, each) && fits(*candidates, each) && fits(*most, batch) &&
                   fits(*limit, batch),
               codes::type_shape, "the arguments do not fit the boxes",
               shape_text(each) + " twice, " + shape_text(batch) + " twice",
               shape_text(classes->shape) + ", " + shape_text(candidates->shape) + ", " +
                   shape_text(most->shape) + " and " + shape_text(limit->shape)) ||
      !require(ctx,
               boxes->dtype.is_floating() && classes->dtype == boxes->dtype &&
                   limit->dtype == boxes->dtype && candidates->dtype.is_bool() &&
                   most->dtype.is_integer(),
               codes::type_dtype,
               "needs boxes, classes and thresholds of one floating dtype, bool and an integer",
               "float32, float32, bool, int64, float32",
               boxes->dtype.to_string() + ", " + classes->dtype.to_string() + ", " +
                   candidates->dtype.to_string() + ", " + most->dtype.to_string() + ", " +
                   limit->dtype.to_string()))
    return nullptr;
  return tensor_type(each, DType::Bool());
}

TirTensor kept_boxes(const ComputeContext& ctx) {
  auto& a = ctx.attrs<KeptBoxesAttrs>();
  auto build = [a](const std::vector<Buffer>& in, const Buffer& out) {
    const DType acc = working_dtype(in[0]->dtype), flag = DType::Int(acc.bits);
    const PrimExpr zero = imm_float(acc, 0), pixel = imm_float(acc, a.whole_pixels ? 1 : 0);
    const PrimExpr n = out->shape[1];
    return each_line(out->shape, 1, 64, [&](const LineIndex& at) {
      const PrimExpr batch = at(index(0))[0];
      // The boxes that stay so far, each part in a row of its own.
      std::vector<Buffer> kept;
      std::vector<Cell> box;
      for (int p = 0; p < kClassedParts; ++p) {
        kept.push_back(buffer("kept", acc, {max(n, index(1))}));
        box.emplace_back("box", acc);
      }
      Cell count("count", kIndex), hits("hits", flag);
      const PrimExpr most = tir::cast(kIndex, load(in[3], {batch}));
      const PrimExpr limit = tir::cast(acc, load(in[4], {batch}));
      auto hit = [&](const PrimExpr& k) {
        auto of = [&](BoxPart p) { return load(kept[p], {k}); };
        auto shared_along = [&](BoxPart low, BoxPart high) {
          return max(min(of(high), box[high].get()) - max(of(low), box[low].get()) + pixel, zero);
        };
        PrimExpr shared = shared_along(kLowY, kHighY) * shared_along(kLowX, kHighX);
        PrimExpr together = of(kArea) + box[kArea].get() - shared;
        PrimExpr share = div(shared, together);
        PrimExpr found = logical_and(logical_and(gt(of(kArea), zero), gt(box[kArea].get(), zero)),
                                     a.inclusive ? ge(share, limit) : gt(share, limit));
        found = logical_and(found, ge(of(kClass), zero));
        return a.by_class ? logical_and(found, eq(of(kClass), box[kClass].get())) : found;
      };
      Stmt boxes = each("i", n, [&](const PrimExpr& i) {
        std::vector<Stmt> look;
        for (int p = kLowY; p <= kHighX; ++p)
          look.push_back(box[p].set(tir::cast(acc, load(in[0], {batch, i, index(p)}))));
        look.push_back(box[kArea].set((box[kHighY].get() - box[kLowY].get() + pixel) *
                                      (box[kHighX].get() - box[kLowX].get() + pixel)));
        look.push_back(box[kClass].set(tir::cast(acc, load(in[1], {batch, i}))));
        look.push_back(hits.set(imm(flag, 0)));
        look.push_back(each_in_lanes("k", count.get(), [&](const PrimExpr& k) {
          return hits.set(hits.get() + select(hit(k), imm(flag, 1), imm(flag, 0)));
        }));
        std::vector<Stmt> keep{store(out, at(i), boolean(true))};
        for (int p = 0; p < kClassedParts; ++p)
          keep.push_back(store(kept[p], {count.get()}, box[p].get()));
        keep.push_back(count.set(count.get() + 1));
        look.push_back(if_(eq(hits.get(), imm(flag, 0)), seq(std::move(keep))));
        PrimExpr room = logical_or(lt(most, index(0)), lt(count.get(), most));
        return seq({store(out, at(i), boolean(false)),
                    if_(logical_and(load(in[2], {batch, i}), room), seq(std::move(look)))});
      });
      Stmt body = count.in(hits.in(seq({count.set(index(0)), boxes})));
      for (int p = 0; p < kClassedParts; ++p) body = allocate(kept[p], box[p].in(std::move(body)));
      return body;
    });
  };
  return imperative("T_kept_boxes", DType::Bool(), ctx.outputs[0].shape, ctx.inputs, build);
}

}  // namespace

template <>
std::span<const OpInfo> rows_of<Family::Suppression>() {
  static const OpInfo rows[] = {{
      .name = "vision.kept_boxes",
      .doc =
          "Which boxes stay: in their order, each candidate that shares no more than a threshold "
          "with those that stay before it. A box of a negative class drops no other.",
      .args = {{"boxes", "(batch, n, 4): two corners, the lower coordinates first."},
               {"classes", "(batch, n): the class of each box."},
               {"candidates", "(batch, n): which boxes can stay."},
               {"max_output_size", "(batch,): how many stay at the most; below 0: all."},
               {"iou_threshold", "(batch,): what two may share of what they cover together."}},
      .attrs = &KeptBoxesAttrs::static_info(),
      .support_level = 5,
      .fusion = FusionClass::Opaque,
      .effect = Effect::Pure,
      .relation = kept_boxes_type,
      .compute = compute_rule(kept_boxes),
      .layout = Absent::AxesAsWritten,
      .memory = Absent::OnePiece,
      .precision = Precision::Never,
      .cost = Absent::DataDecides,
      .gradient = Absent::NotDifferentiable,
      .batching = batch_rows,
      .examples =
          {{.args = {"Tensor[(2, 9, 4), float32]", "Tensor[(2, 9), float32]",
                     "Tensor[(2, 9), bool]", "Tensor[(2,), int32]", "Tensor[(2,), float32]"},
            .attrs = "",
            .low = -1,
            .high = 2},
           {.args = {"Tensor[(1, 6, 4), float32]", "Tensor[(1, 6), float32]",
                     "Tensor[(1, 6), bool]", "Tensor[(1,), int64]", "Tensor[(1,), float32]"},
            .attrs = "by_class=False, inclusive=True, whole_pixels=True",
            .inputs = {{0, 0, 9, 9, 0, 1, 9, 9, 0, 5, 9, 14, 20, 0, 29, 9, 5, 5, 9, 9, 5, 5, 9, 9},
                       {0, 1, 0, -1, 2, 3},
                       {1, 1, 1, 1, 1, 1},
                       {4},
                       {0.5}}}},
      .expected = Absent::ByNumPy,
  }};
  return rows;
}

}  // namespace relay::ops
