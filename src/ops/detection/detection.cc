// Operators of object detection whose results are as many as data says.
#include <array>

#include "base/codes/types.h"
#include "ops/create/dynamic.h"
#include "ops/detection/box_parts.h"
#include "ops/index/order.h"
#include "ops/rows.h"

namespace relay::ops {
namespace {

using namespace tir;  // NOLINT
using relay::CallNode;
using relay::Type;

struct AllClassSuppressionAttrs : AttrsOf<AllClassSuppressionAttrs> {
  bool center_point_box = false;
  static AttrsList describe() {
    return {"relay.attrs.AllClassNonMaxSuppressionAttrs",
            {attribute("center_point_box", &Self::center_point_box,
                       "Boxes are centre, width and height, not two corners.")}};
  }
};

Type all_class_suppression_type(RelationContext& ctx) {
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

constexpr DType kBoxDType = DType::Float(32);

std::array<PrimExpr, kBoxParts> box_at(const Buffer& boxes, const PrimExpr& batch,
                                       const PrimExpr& i, bool centred) {
  auto part = [&](int64_t k) { return tir::cast(kBoxDType, load(boxes, {batch, i, index(k)})); };
  PrimExpr a = part(0), b = part(1), c = part(2), d = part(3);
  std::array<PrimExpr, kBoxParts> out{min(a, c), min(b, d), max(a, c), max(b, d), PrimExpr()};
  if (centred) {
    PrimExpr half = imm_float(kBoxDType, 0.5);
    out = {b - d * half, a - c * half, b + d * half, a + c * half, PrimExpr()};
  }
  out[kArea] = (out[kHighY] - out[kLowY]) * (out[kHighX] - out[kLowX]);
  return out;
}

// The boxes that are selected of one class: as many as data says, each part in a row of its own, so that a candidate is
// compared with a vector of them at a time.
class Selected {
 public:
  explicit Selected(const PrimExpr& room) {
    for (int p = 0; p < kBoxParts; ++p) {
      rows_.push_back(buffer("selected", kBoxDType, {max(room, index(1))}));
      box_.emplace_back("box", kBoxDType);
    }
  }
  Stmt in(Stmt body) const {
    body = count_.in(hits_.in(std::move(body)));
    for (int p = 0; p < kBoxParts; ++p) body = allocate(rows_[p], box_[p].in(std::move(body)));
    return body;
  }
  PrimExpr count() const { return count_.get(); }
  Stmt clear() const { return count_.set(index(0)); }

  // Runs `taken` and adds the box unless it shares more than `limit` of what it covers together with one of those here.
  // They are looked at in blocks: most boxes that go overlap with one of the first.
  Stmt add_unless_hit(const std::array<PrimExpr, kBoxParts>& box, const PrimExpr& limit,
                      Stmt taken) const {
    constexpr int64_t kBlock = 64;
    std::vector<Stmt> steps;
    for (int p = 0; p < kBoxParts; ++p) steps.push_back(box_[p].set(box[p]));
    steps.push_back(hits_.set(imm(kFlag, 0)));
    PrimExpr blocks = floor_div(count() + (kBlock - 1), index(kBlock));
    steps.push_back(each("block", blocks, [&](const PrimExpr& block) {
      PrimExpr begin = block * kBlock;
      Stmt look = each_in_lanes("k", min(count() - begin, index(kBlock)), [&](const PrimExpr& k) {
        return hits_.set(hits_.get() +
                         select(overlaps(begin + k, limit), imm(kFlag, 1), imm(kFlag, 0)));
      });
      return if_(eq(hits_.get(), imm(kFlag, 0)), look);
    }));
    std::vector<Stmt> add;
    for (int p = 0; p < kBoxParts; ++p) add.push_back(store(rows_[p], {count()}, box_[p].get()));
    add.push_back(count_.set(count() + 1));
    add.push_back(std::move(taken));
    steps.push_back(if_(eq(hits_.get(), imm(kFlag, 0)), seq(std::move(add))));
    return seq(std::move(steps));
  }

 private:
  static constexpr DType kFlag = DType::Int(32);

  PrimExpr overlaps(const PrimExpr& k, const PrimExpr& limit) const {
    PrimExpr zero = imm_float(kBoxDType, 0);
    auto of = [&](BoxPart p) { return load(rows_[p], {k}); };
    auto shared_along = [&](BoxPart low, BoxPart high) {
      return max(min(of(high), box_[high].get()) - max(of(low), box_[low].get()), zero);
    };
    PrimExpr shared = shared_along(kLowY, kHighY) * shared_along(kLowX, kHighX);
    PrimExpr together = of(kArea) + box_[kArea].get() - shared;
    PrimExpr real = logical_and(gt(of(kArea), zero), gt(box_[kArea].get(), zero));
    return logical_and(real, gt(shared, together * limit));
  }

  std::vector<Buffer> rows_;
  std::vector<Cell> box_;
  Cell count_{"count", kIndex}, hits_{"hits", kFlag};
};

// The part of the candidates, one in so many, that are found one by one before all are sorted.
constexpr int64_t kQueuedPart = 8;

// Runs `selected(batch, class, box)` for all that are selected: of each class the box with the highest score, then the
// next of those that do not overlap with one before it, and so on. Scores are sorted once for each class.
Stmt each_selected(const ComputeContext& ctx, const std::vector<Buffer>& in,
                   const std::function<Stmt(const Indices&)>& selected) {
  const Buffer &boxes = in[0], &scores = in[1];
  const bool centred = ctx.attrs<AllClassSuppressionAttrs>().center_point_box;
  const DType key = order_key_dtype(kBoxDType);
  PrimExpr n = boxes->shape[1], most = tir::cast(kIndex, load(in[2], Indices{}));
  PrimExpr limit = tir::cast(kBoxDType, load(in[3], Indices{}));
  PrimExpr least = tir::cast(kBoxDType, load(in[4], Indices{}));
  Selected kept(n);
  Cell found("found", kIndex);
  const PrimExpr room = max(n, index(1));
  Entries entries("entries", key, room, room), other("other", key, room, room);
  EntryQueue queue(entries, found.get(), room);
  Cell queued("queued", kIndex);
  Stmt all = each("batch", scores->shape[0], [&](const PrimExpr& b) {
    return each("class", scores->shape[1], [&](const PrimExpr& c) {
      auto score_of = [&](const PrimExpr& i) {
        return tir::cast(kBoxDType, load(scores, {b, c, i}));
      };
      auto look_at = [&](const PrimExpr& p) {
        return kept.add_unless_hit(box_at(boxes, b, p, centred), limit, selected({b, c, p}));
      };
      // Equal scores keep the order of their places. What is no candidate is written over by the next.
      Stmt candidates = each("i", n, [&](const PrimExpr& i) {
        return seq({entries.put(found.get(), order_key(score_of(i), false), i),
                    found.set(found.get() + tir::cast(kIndex, gt(score_of(i), least)))});
      });
      // Some of them one by one, in case that `most` are soon found, and then the others sorted.
      Stmt first = each("i", queued.get(), [&](const PrimExpr&) {
        return if_(lt(kept.count(), most), queue.take(look_at));
      });
      Stmt others = each("i", found.get() - queued.get(), [&](const PrimExpr& i) {
        return if_(lt(kept.count(), most),
                   named("place", entries.place(queued.get() + i), look_at));
      });
      return seq({found.set(index(0)), kept.clear(), candidates,
                  queued.set(floor_div(found.get(), index(kQueuedPart))), queue.fill(), first,
                  if_(lt(kept.count(), most),
                      seq({sort_entries(entries, other, found.get(), 1), others}))});
    });
  });
  return entries.in(other.in(found.in(queued.in(queue.in(kept.in(all))))));
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
        &AllClassSuppressionAttrs::static_info(), all_class_suppression_type,
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
