// Operators of object detection whose results are as many as data says.
#include <limits>

#include "base/codes/types.h"
#include "ops/dynamic.h"
#include "ops/rows.h"

namespace relay::ops {
namespace {

using namespace tir;  // NOLINT
using relay::CallNode;
using relay::Type;

struct SuppressionAttrs : AttrsOf<SuppressionAttrs> {
  bool center_point_box = false;
  static AttrsList describe() {
    return {"relay.attrs.AllClassNonMaxSuppressionAttrs",
            {attribute("center_point_box", &Self::center_point_box,
                       "Boxes are centre, width and height, not two corners.")}};
  }
};

Type suppression_type(RelationContext& ctx) {
  const TensorTypeNode *boxes = ctx.tensor(0), *scores = ctx.tensor(1);
  if (boxes == nullptr || scores == nullptr) return nullptr;
  bool fits = boxes->rank() == 3 && scores->rank() == 3 && boxes->dtype.is_floating() &&
              scores->dtype == boxes->dtype && ctx.equal(boxes->shape[0], scores->shape[0]) &&
              ctx.equal(boxes->shape[1], scores->shape[2]) && as_const(boxes->shape[2]) == 4;
  if (!require(ctx, fits, codes::type_shape,
               "boxes must be (batch, n, 4), scores (batch, classes, n), of one floating dtype", "",
               to_string(Type(boxes)) + " and " + to_string(Type(scores))))
    return nullptr;
  for (size_t arg = 2; arg < 5; ++arg) {
    const TensorTypeNode* t = ctx.tensor(arg);
    if (t == nullptr) return nullptr;
    bool good = t->rank() == 0 && (arg == 2 ? t->dtype.is_integer() : t->dtype.is_floating());
    if (!require(ctx, good, codes::type_dtype,
                 "argument '" + std::string(ctx.op().args[arg].name) + "' must be a scalar",
                 arg == 2 ? "an integer" : "a float", to_string(Type(t))))
      return nullptr;
  }
  return tensor_type(std::vector<Dim>{dim_any(), dim(3)}, DType::Int(64));
}

// The corners of a box, whichever two are given.
struct Box {
  PrimExpr low_y, low_x, high_y, high_x;
};

Box box_at(const Buffer& boxes, const PrimExpr& batch, const PrimExpr& i, bool centred) {
  auto part = [&](int64_t k) {
    return tir::cast(DType::Float(32), load(boxes, {batch, i, index(k)}));
  };
  PrimExpr a = part(0), b = part(1), c = part(2), d = part(3);
  if (!centred) return {min(a, c), min(b, d), max(a, c), max(b, d)};
  PrimExpr half = imm_float(DType::Float(32), 0.5);
  return {b - d * half, a - c * half, b + d * half, a + c * half};
}

// Whether two boxes share more than `threshold` of what they cover together.
PrimExpr overlap(const Box& a, const Box& b, const PrimExpr& threshold) {
  PrimExpr zero = imm_float(DType::Float(32), 0);
  auto area = [&](const Box& x) { return (x.high_y - x.low_y) * (x.high_x - x.low_x); };
  PrimExpr height = max(min(a.high_y, b.high_y) - max(a.low_y, b.low_y), zero);
  PrimExpr width = max(min(a.high_x, b.high_x) - max(a.low_x, b.low_x), zero);
  PrimExpr shared = height * width, together = area(a) + area(b) - shared;
  PrimExpr real = logical_and(gt(area(a), zero), gt(area(b), zero));
  return logical_and(real, gt(shared, together * threshold));
}

// Runs `select(batch, class, box)` for all that are selected: of each class the box with the highest
// score, then of those that do not overlap with it, and so on.
Stmt each_selected(const ComputeContext& ctx, const std::vector<Buffer>& in,
                   const std::function<Stmt(const Indices&)>& selected) {
  const Buffer &boxes = in[0], &scores = in[1];
  const bool centred = ctx.attrs<SuppressionAttrs>().center_point_box;
  PrimExpr n = boxes->shape[1], most = tir::cast(kIndex, load(in[2], Indices{}));
  PrimExpr limit = tir::cast(DType::Float(32), load(in[3], Indices{}));
  PrimExpr least = tir::cast(DType::Float(32), load(in[4], Indices{}));
  Buffer alive = buffer("alive", DType::UInt(8), {max(n, index(1))});
  Cell best("best", kIndex), score("score", DType::Float(32));
  auto set_alive = [&](const PrimExpr& i, const PrimExpr& yes) {
    return store(alive, {i}, tir::cast(DType::UInt(8), yes));
  };
  auto is_alive = [&](const PrimExpr& i) { return ne(load(alive, {i}), imm(DType::UInt(8), 0)); };
  Stmt all = each("batch", scores->shape[0], [&](const PrimExpr& b) {
    return each("class", scores->shape[1], [&](const PrimExpr& c) {
      auto score_of = [&](const PrimExpr& i) {
        return tir::cast(DType::Float(32), load(scores, {b, c, i}));
      };
      Stmt start =
          each("i", n, [&](const PrimExpr& i) { return set_alive(i, gt(score_of(i), least)); });
      Stmt steps = each("step", max(min(n, most), index(0)), [&](const PrimExpr&) {
        Stmt find = each("i", n, [&](const PrimExpr& i) {
          PrimExpr better = logical_or(lt(best.get(), index(0)), gt(score_of(i), score.get()));
          return if_(logical_and(is_alive(i), better), seq({best.set(i), score.set(score_of(i))}));
        });
        Stmt take = named("chosen", best.get(), [&](const PrimExpr& chosen) {
          Stmt strike = each("i", n, [&](const PrimExpr& i) {
            PrimExpr gone = logical_or(eq(i, chosen), overlap(box_at(boxes, b, chosen, centred),
                                                              box_at(boxes, b, i, centred), limit));
            return if_(logical_and(is_alive(i), gone), set_alive(i, boolean(false)));
          });
          return seq({selected({b, c, chosen}), strike});
        });
        Stmt none = seq({best.set(index(-1)), score.set(imm_float(DType::Float(32), 0))});
        return seq({none, find, if_(ge(best.get(), index(0)), take)});
      });
      return seq({start, steps});
    });
  });
  return allocate(alive, best.in(score.in(all)));
}

Stmt suppression_sizes(const ComputeContext& ctx, const std::vector<Buffer>& in,
                       const Buffer& sizes) {
  Cell count("count", kIndex);
  Stmt all = each_selected(ctx, in, [&](const Indices&) { return count.set(count.get() + 1); });
  return count.in(
      seq({count.set(index(0)), all, set(sizes, 0, count.get()), set(sizes, 1, index(3))}));
}

TirTensor suppression(const ComputeContext& ctx) {
  return imperative(
      "T_suppression", DType::Int(64), ctx.outputs[0].shape, ctx.inputs,
      [ctx](const std::vector<Buffer>& in, const Buffer& out) {
        Cell next("next", kIndex);
        Stmt all = each_selected(ctx, in, [&](const Indices& at) {
          std::vector<Stmt> put;
          for (size_t k = 0; k < at.size(); ++k) {
            put.push_back(store(out, {next.get(), index(static_cast<int64_t>(k))}, at[k]));
          }
          put.push_back(next.set(next.get() + 1));
          return seq(std::move(put));
        });
        return next.in(seq({next.set(index(0)), all}));
      });
}

}  // namespace

template <>
std::span<const OpInfo> rows_of<Family::Detection>() {
  static const OpInfo rows[] = {[] {
    OpInfo row = dynamic_row(
        "vision.all_class_non_max_suppression",
        "The boxes that stay, as (batch, class, box): of each class the one with the highest "
        "score, "
        "then the next that overlaps with none before.",
        {{"boxes", "(batch, n, 4): y and x of two corners."},
         {"scores", "(batch, classes, n)."},
         {"max_output_boxes_per_class", "A scalar."},
         {"iou_threshold", "What two boxes may share of what they cover together; a scalar."},
         {"score_threshold", "Scores that are no higher do not count; a scalar."}},
        &SuppressionAttrs::static_info(), suppression_type,
        compute_rule_with_shape(sizes_rule(suppression_sizes), suppression), Absent::DataDecides,
        Absent::NotDifferentiable,
        given({"Tensor[(1, 3, 4), float32]", "Tensor[(1, 1, 3), float32]", "int64", "float32",
               "float32"},
              {{0, 0, 1, 1, 0, 0.1, 1, 1.1, 0, 10, 1, 11}, {0.5, 0.75, 0.25}, {3}, {0.5}, {0}}));
    row.takes_narrow = false;
    row.may_end_run = nullptr;
    row.support_level = 5;
    return row;
  }()};
  return rows;
}

}  // namespace relay::ops
