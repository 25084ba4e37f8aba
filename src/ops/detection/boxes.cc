// Operators of object detectors on boxes: priors, predictions, and which of those that overlap stay.
#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/composed.h"
#include "ops/gradient.h"
#include "ops/rows.h"

namespace relay::ops {
namespace {

using relay::CallNode;

const DType kInt64 = DType::Int(64), kInt32 = DType::Int(32);

Expr both(const Expr& a, const Expr& b) { return apply("logical_and", {a, b}); }
Expr either(const Expr& a, const Expr& b) { return apply("logical_or", {a, b}); }
Expr inverse(const Expr& a) { return apply("logical_not", {a}); }
Expr compared(const char* name, const Expr& a, const Expr& b) { return apply(name, {a, b}); }

// A number of the last of three axes, as a matrix.
Expr column(const Expr& e, int64_t i) {
  return apply("squeeze", {slice_axis(e, 2, dim(i), dim(1))}, {{"axis", to_value(Ints{2})}});
}
// Of each batch the rows of those numbers: (batch, n, ..) by (batch, m).
Expr rows_at(const Expr& e, const Expr& places) {
  if (rank_of(e) == 2) return apply("gather", {e, places}, {{"axis", int64_t{1}}});
  return apply("gather_nd", {e, expanded(places, 0)}, {{"batch_dims", int64_t{1}}});
}
// The places of a matrix's lines from the greatest element on, stable.
Expr from_greatest(const Expr& e) {
  return apply("argsort", {e}, {{"axis", int64_t{1}}, {"is_ascend", false}, {"dtype", "int64"}});
}
// The places of a matrix's lines, those first for which the condition holds, stable.
Expr held_first(const Expr& condition) { return order_of(cast_to(inverse(condition), kInt32), 1); }
// How often it holds in each line; (batch, 1).
Expr count_of(const Expr& condition) { return sum_over(as_index(condition), {1}, true); }
// 0, 1, .. as one line.
Expr places(const Dim& n) { return expanded(iota(n), 0); }
Expr numbers(const std::vector<double>& values, DType dtype) {
  Tensor t = Tensor::empty(dtype, {static_cast<int64_t>(values.size())});
  for (size_t i = 0; i < values.size(); ++i) t.set_from_double(static_cast<int64_t>(i), values[i]);
  return constant(std::move(t));
}
Expr lowest(const Expr& like) { return scalar(-std::numeric_limits<double>::infinity(), like); }

// An argument that is one number, as one for each batch.
Expr for_each_batch(const CallNode& call, size_t arg, const Dim& batch, DType dtype) {
  const std::vector<Dim>& shape = type_of(call.args[arg]).shape;
  demand(call, shape.empty() || (shape.size() == 1 && as_const(shape[0]) == 1),
         "argument '" + std::string(as<OpNode>(call.op)->row->args[arg].name) + "' is one number",
         "()", shape_text(shape));
  return apply("broadcast_to", {reshape_to(cast_to(call.args[arg], dtype), {})},
               {{"shape", shape_value({batch})}});
}

Expr kept_boxes(const Expr& boxes, const Expr& classes, const Expr& candidates, const Expr& most,
                const Expr& limit, bool by_class, bool inclusive, bool whole_pixels) {
  return apply("vision.kept_boxes", {boxes, classes, candidates, most, limit},
               {{"by_class", by_class}, {"inclusive", inclusive}, {"whole_pixels", whole_pixels}});
}

// The sizes of what a call takes are numbers or names.
void demand_names(const CallNode& call) {
  for (const Expr& e : call.args) {
    demand(call, !std::ranges::any_of(type_of(e).shape, is_any), "a size is known to the data only",
           "a number or a name", to_string(e->type));
  }
}

// Rows with a class, a score and corners; how long they are.
int64_t check_rows(const CallNode& call) {
  demand_names(call);
  const TensorTypeNode& data = type_of(call.args[0]);
  demand(call, data.rank() == 3 && data.dtype.is_floating(), "the boxes are not rows of floats",
         "(batch, n, 5 or more), float32", to_string(call.args[0]->type));
  return number_of(call, data.shape[2], "the length of a row");
}
void check_place(const CallNode& call, const char* name, int64_t at, int64_t least, int64_t size,
                 int64_t length = 1) {
  demand(call, at >= least && at + length <= size, std::string(name) + " is outside of a row",
         std::to_string(least) + " to " + std::to_string(size - length), std::to_string(at));
}

// ---- vision.get_valid_counts

struct ValidCountsAttrs : AttrsOf<ValidCountsAttrs> {
  int64_t id_index = 0, score_index = 1;
  static AttrsList describe() {
    return {"relay.attrs.GetValidCountsAttrs",
            {attribute("id_index", &Self::id_index, "Where a row has its class; -1: nowhere."),
             attribute("score_index", &Self::score_index, "Where a row has its score.")}};
  }
};

Expr get_valid_counts(const CallNode& call) {
  auto& a = attrs_of<ValidCountsAttrs>(call);
  const Expr& data = call.args[0];
  const int64_t size = check_rows(call);
  check_place(call, "score_index", a.score_index, 0, size);
  check_place(call, "id_index", a.id_index, -1, size);
  Expr least = for_each_batch(call, 1, type_of(data).shape[0], type_of(data).dtype);
  Expr valid = compared("greater", column(data, a.score_index), expanded(least, 1));
  if (a.id_index >= 0)
    valid = both(valid, compared("greater_equal", column(data, a.id_index), scalar(0, data)));
  Expr order = held_first(valid), stays = rows_at(valid, order);
  Expr count = sum_over(as_index(valid), {1});
  return tuple({cast_to(count, kInt32),
                choose(expanded(stays, 2), rows_at(data, order), scalar(-1, data)),
                cast_to(choose(stays, order, scalar(-1, order)), kInt32)});
}

// ---- vision.non_max_suppression

struct SuppressionAttrs : AttrsOf<SuppressionAttrs> {
  bool force_suppress = false;
  int64_t top_k = -1, coord_start = 2, score_index = 1, id_index = 0;
  bool return_indices = true, invalid_to_bottom = false;
  static AttrsList describe() {
    return {
        "relay.attrs.NonMaximumSuppressionAttrs",
        {attribute("force_suppress", &Self::force_suppress,
                   "Boxes of different classes drop each other, too."),
         attribute("top_k", &Self::top_k, "How many scores are looked at; below 1: all."),
         attribute("coord_start", &Self::coord_start, "Where a row has its two corners."),
         attribute("score_index", &Self::score_index, "Where a row has its score."),
         attribute("id_index", &Self::id_index, "Where a row has its class; -1: nowhere."),
         attribute("return_indices", &Self::return_indices,
                   "The numbers of the boxes that stay and how many they are, a tuple; else the "
                   "boxes themselves."),
         attribute("invalid_to_bottom", &Self::invalid_to_bottom,
                   "Boxes that stay come before the rows of -1.")}};
  }
};

Expr non_max_suppression(const CallNode& call) {
  auto& a = attrs_of<SuppressionAttrs>(call);
  const Expr& data = call.args[0];
  const int64_t size = check_rows(call);
  check_place(call, "coord_start", a.coord_start, 0, size, 4);
  check_place(call, "score_index", a.score_index, 0, size);
  check_place(call, "id_index", a.id_index, -1, size);
  const Dim batch = type_of(data).shape[0], n = type_of(data).shape[1];
  demand(call, rank_of(call.args[1]) == 1 && rank_of(call.args[2]) == 2,
         "valid_count is a vector and indices a matrix", "(batch,) and (batch, n)",
         to_string(call.args[1]->type) + " and " + to_string(call.args[2]->type));
  Expr most = for_each_batch(call, 3, batch, kInt64),
       limit = for_each_batch(call, 4, batch, type_of(data).dtype);
  // A threshold of 0 or less: all boxes stay, as they lie.
  Expr works = expanded(is_greater(limit, 0), 1);
  Expr place = places(n), valid = compared("less", place, expanded(as_index(call.args[1]), 1));
  Expr sorted = from_greatest(choose(valid, column(data, a.score_index), lowest(data)));
  Expr order = choose(works, sorted, place);
  Expr rows = rows_at(data, order), real = rows_at(valid, order);
  if (a.top_k > 0)
    real = both(real, either(inverse(works),
                             compared("less", place, scalar(static_cast<double>(a.top_k), place))));
  Expr score = column(rows, a.score_index), positive = is_greater(score, 0);
  Expr first = slice_axis(rows, 2, dim(a.coord_start), dim(2)),
       second = slice_axis(rows, 2, dim(a.coord_start + 2), dim(2));
  Expr corners = joined({apply("minimum", {first, second}), apply("maximum", {first, second})}, 2);
  Expr kept = kept_boxes(corners, a.id_index >= 0 ? column(rows, a.id_index) : zeros_like(score),
                         both(real, positive), most, limit, a.id_index >= 0 && !a.force_suppress,
                         true, false);
  // Boxes without a score go along while there is room.
  Expr room = compared("not_equal", count_of(kept), expanded(most, 1));
  kept = either(kept, both(both(real, inverse(positive)), room));
  kept = choose(works, kept, real);
  if (!a.return_indices) {
    Expr out = choose(expanded(kept, 2), rows, scalar(-1, rows));
    return a.invalid_to_bottom ? rows_at(out, held_first(kept)) : out;
  }
  Expr number = rows_at(as_index(call.args[2]), order);
  Expr found = both(kept, compared("greater_equal", number, scalar(0, number)));
  number = rows_at(choose(found, number, scalar(-1, number)), held_first(found));
  return tuple({cast_to(number, kInt32), cast_to(count_of(found), kInt32)});
}

// ---- vision.regular_non_max_suppression

struct RegularSuppressionAttrs : AttrsOf<RegularSuppressionAttrs> {
  int64_t max_detections_per_class = 1, max_detections = 1, num_classes = 1;
  double iou_threshold = 0.5, score_threshold = 0;
  static AttrsList describe() {
    return {"relay.attrs.RegularNonMaximumSuppressionAttrs",
            {attribute("max_detections_per_class", &Self::max_detections_per_class,
                       "How many boxes of a class stay at the most."),
             attribute("max_detections", &Self::max_detections, "How many boxes there are in all."),
             attribute("num_classes", &Self::num_classes, "The number of classes, the last ones."),
             attribute("iou_threshold", &Self::iou_threshold,
                       "What two boxes may share of what they cover together."),
             attribute("score_threshold", &Self::score_threshold, "Lower scores do not count.")}};
  }
};

Expr regular_non_max_suppression(const CallNode& call) {
  demand_names(call);
  auto& a = attrs_of<RegularSuppressionAttrs>(call);
  const TensorTypeNode &boxes = type_of(call.args[0]), &scores = type_of(call.args[1]);
  demand(call,
         boxes.rank() == 3 && scores.rank() == 3 && as_const(boxes.shape[2]) == 4 &&
             boxes.dtype.is_floating() && scores.dtype == boxes.dtype,
         "boxes and scores do not fit",
         "(batch, n, 4) and (batch, n, classes) of one floating dtype",
         to_string(call.args[0]->type) + " and " + to_string(call.args[1]->type));
  const int64_t all = number_of(call, scores.shape[2], "the number of scores");
  demand(call, a.num_classes >= 1 && a.num_classes <= all, "there are no such classes",
         "1 to " + std::to_string(all), std::to_string(a.num_classes));
  demand(call, a.max_detections >= 1 && a.max_detections_per_class >= 1, "nothing may stay",
         "1 or more", std::to_string(std::min(a.max_detections, a.max_detections_per_class)));
  const Dim batch = boxes.shape[0], n = boxes.shape[1], classes = dim(a.num_classes);
  // A line for each class of each batch.
  Expr score =
      transposed(slice_axis(call.args[1], 2, dim(all - a.num_classes), classes), {0, 2, 1});
  score = reshape_to(score, {batch * classes, n});
  Expr box = apply("broadcast_to", {expanded(call.args[0], 1)},
                   {{"shape", shape_value({batch, classes, n, dim(4)})}});
  box = reshape_to(box, {batch * classes, n, dim(4)});
  Expr candidate = compared("greater_equal", score, scalar(a.score_threshold, score));
  Expr order = from_greatest(choose(candidate, score, lowest(score)));
  box = rows_at(box, order);
  score = rows_at(score, order);
  auto lines = [&](double v, DType dtype) { return filled(v, {batch * classes}, dtype); };
  Expr kept = kept_boxes(box, zeros_like(score), rows_at(candidate, order),
                         lines(static_cast<double>(a.max_detections_per_class), kInt64),
                         lines(a.iou_threshold, boxes.dtype), false, false, false);
  // Of all classes together, those of the lower class first where scores are equal.
  const Dim total = classes * n, some = dim(a.max_detections);
  kept = reshape_to(kept, {batch, total});
  score = reshape_to(score, {batch, total});
  box = reshape_to(box, {batch, total, dim(4)});
  Expr number = choose(kept, score, lowest(score));
  // There may be fewer than are asked for.
  number = from_greatest(
      joined({number, apply("full", {lowest(score)}, {{"shape", shape_value({batch, some})}})}, 1));
  number = slice_axis(number, 1, dim(0), some);
  Expr place = apply("minimum", {number, size_as(total, number) - scalar(1, number)});
  Expr found = both(compared("less", number, size_as(total, number)), rows_at(kept, place));
  Expr zero = scalar(0, score);
  Expr which = cast_to(apply("floor_divide", {place, size_as(n, place)}), DType::Float(32));
  Expr count = apply("minimum", {sum_over(as_index(kept), {1}),
                                 scalar(static_cast<double>(a.max_detections), number)});
  return tuple({choose(expanded(found, 2), rows_at(box, place), zero),
                choose(found, which, scalar(0, which)), choose(found, rows_at(score, place), zero),
                cast_to(count, kInt32)});
}

// ---- vision.multibox_prior

using Floats = std::vector<double>;

struct PriorAttrs : AttrsOf<PriorAttrs> {
  Floats sizes{1}, ratios{1}, steps{-1, -1}, offsets{0.5, 0.5};
  bool clip = false;
  static AttrsList describe() {
    return {"relay.attrs.MultiBoxPriorAttrs",
            {attribute("sizes", &Self::sizes, "Sizes of the boxes, as shares of the image."),
             attribute("ratios", &Self::ratios, "Width by height; the first size has all of them."),
             attribute("steps", &Self::steps,
                       "Distances of the centres along y and x; below 0: one element."),
             attribute("offsets", &Self::offsets, "The first centre, in distances."),
             attribute("clip", &Self::clip, "Boxes end at the image's edges.")}};
  }
};

Expr clipped(const Expr& e, bool clip) {
  return clip ? apply("clip", {e}, {{"a_min", 0.0}, {"a_max", 1.0}}) : e;
}

Expr multibox_prior(const CallNode& call) {
  demand_names(call);
  auto& a = attrs_of<PriorAttrs>(call);
  const TensorTypeNode& data = type_of(call.args[0]);
  demand(call, data.rank() == 4 && data.dtype.is_floating(), "the data is not an image of floats",
         "(batch, channels, height, width)", to_string(call.args[0]->type));
  demand(call, !a.sizes.empty() && !a.ratios.empty(), "there are no boxes",
         "a size and a ratio or more");
  demand(call, a.steps.size() == 2 && a.offsets.size() == 2, "steps and offsets are pairs", "2");
  demand(call, std::ranges::all_of(a.ratios, [](double r) { return r > 0; }),
         "a ratio is not above 0");
  const Dim height = data.shape[2], width = data.shape[3];
  Expr like = scalar(0, call.args[0]);
  Floats half_widths, half_heights;  // where an image is as wide as high
  for (double size : a.sizes) {
    half_widths.push_back(size / 2);
    half_heights.push_back(size / 2);
  }
  for (size_t k = 1; k < a.ratios.size(); ++k) {
    half_widths.push_back(a.sizes[0] * std::sqrt(a.ratios[k]) / 2);
    half_heights.push_back(a.sizes[0] / std::sqrt(a.ratios[k]) / 2);
  }
  const Dim each = dim(static_cast<int64_t>(half_widths.size()));
  auto centre = [&](size_t d, const Dim& size) {
    Expr i = cast_to(iota(size), data.dtype) + scalar(a.offsets[d], like);
    return a.steps[d] > 0 ? i * scalar(a.steps[d], like) : i / size_as(size, like);
  };
  const std::vector<Dim> grid{height, width, each};
  auto everywhere = [&](const Expr& e) {
    return apply("broadcast_to", {e}, {{"shape", shape_value(grid)}});
  };
  Expr y = everywhere(expanded(centre(0, height), 1, 2)),
       x = everywhere(expanded(centre(1, width), 1));
  Expr down = numbers(half_heights, data.dtype),
       aside = numbers(half_widths, data.dtype) * (size_as(height, like) / size_as(width, like));
  Expr out = stacked({x - aside, y - down, x + aside, y + down}, 3);
  return clipped(reshape_to(out, {dim(1), height * width * each, dim(4)}), a.clip);
}

// ---- vision.multibox_transform_loc

struct TransformLocAttrs : AttrsOf<TransformLocAttrs> {
  bool clip = true;
  double threshold = 0.01;
  Floats variances{0.1, 0.1, 0.2, 0.2};
  bool keep_background = false;
  static AttrsList describe() {
    return {"relay.attrs.MultiBoxTransformLocAttrs",
            {attribute("clip", &Self::clip, "Boxes end at the image's edges."),
             attribute("threshold", &Self::threshold, "A lower probability is background."),
             attribute("variances", &Self::variances,
                       "What predictions are multiplied by: centre x and y, width, height."),
             attribute("keep_background", &Self::keep_background,
                       "Class 0 is one as the others, and all boxes stay.")}};
  }
};

Expr multibox_transform_loc(const CallNode& call) {
  demand_names(call);
  auto& a = attrs_of<TransformLocAttrs>(call);
  const TensorTypeNode &probability = type_of(call.args[0]), &loc = type_of(call.args[1]),
                       &anchor = type_of(call.args[2]);
  demand(call,
         probability.rank() == 3 && loc.rank() == 2 && anchor.rank() == 3 &&
             as_const(anchor.shape[0]) == 1 && as_const(anchor.shape[2]) == 4 &&
             probability.dtype.is_floating() && loc.dtype == probability.dtype &&
             anchor.dtype == probability.dtype,
         "the arguments do not fit together",
         "(batch, classes, n), (batch, n * 4) and (1, n, 4) of one floating dtype",
         to_string(call.args[0]->type) + ", " + to_string(call.args[1]->type) + " and " +
             to_string(call.args[2]->type));
  demand(call, a.variances.size() == 4, "variances are four numbers", "4",
         std::to_string(a.variances.size()));
  const int64_t classes = number_of(call, probability.shape[1], "the number of classes"),
                first = a.keep_background ? 0 : 1;
  demand(call, classes > first, "there is nothing but background", std::to_string(first + 1),
         std::to_string(classes));
  const Dim batch = probability.shape[0], n = probability.shape[2];
  Expr likely = slice_axis(call.args[0], 1, dim(first), dim(classes - first));
  Expr best = apply("max", {likely}, {{"axis", to_value(Ints{1})}});
  Expr number = as_index(apply("argmax", {likely}, {{"axis", to_value(Ints{1})}}));
  number = number + scalar(static_cast<double>(first), number);
  // No probability is as low as -1.
  number = choose(is_greater(best, -1), number, scalar(0, number));
  Expr score = apply("maximum", {best, scalar(-1, best)});
  number = choose(apply("less", {score, scalar(a.threshold, score)}), scalar(0, number), number);
  Expr stays = a.keep_background ? compared("greater_equal", number, scalar(0, number))
                                 : compared("greater", number, scalar(0, number));
  Expr name = cast_to(number - scalar(static_cast<double>(first), number), probability.dtype);
  // (batch, n, 2) each: x and y.
  Expr moves = reshape_to(call.args[1], {batch, n, dim(4)});
  auto half = [](const Expr& e, int64_t at) { return slice_axis(e, 2, dim(at), dim(2)); };
  auto by = [&](size_t at) {
    return numbers({a.variances[at], a.variances[at + 1]}, probability.dtype);
  };
  Expr low = half(call.args[2], 0), high = half(call.args[2], 2), size = high - low;
  Expr centre = half(moves, 0) * by(0) * size + 0.5 * (low + high);
  Expr reach = 0.5 * (apply("exp", {half(moves, 2) * by(2)}) * size);
  Expr box = clipped(joined({centre - reach, centre + reach}, 2), a.clip);
  Expr rows = joined({expanded(name, 2), expanded(score, 2), box}, 2);
  Expr order = held_first(stays), there = rows_at(stays, order);
  return tuple({choose(expanded(there, 2), rows_at(rows, order), scalar(-1, rows)),
                cast_to(sum_over(as_index(stays), {1}), kInt32)});
}

// ---- vision.proposal

struct ProposalAttrs : AttrsOf<ProposalAttrs> {
  Floats scales, ratios;
  int64_t feature_stride = 16;
  double threshold = 0.7;
  int64_t rpn_pre_nms_top_n = 6000, rpn_post_nms_top_n = 300, rpn_min_size = 16;
  bool iou_loss = false;
  static AttrsList describe() {
    return {
        "relay.attrs.ProposalAttrs",
        {attribute("scales", &Self::scales, "Sizes of the anchors, in strides."),
         attribute("ratios", &Self::ratios, "Heights by widths of the anchors."),
         attribute("feature_stride", &Self::feature_stride, "Pixels of the image for an element."),
         attribute("threshold", &Self::threshold,
                   "What two boxes may share of what they cover together."),
         attribute("rpn_pre_nms_top_n", &Self::rpn_pre_nms_top_n,
                   "How many scores are looked at; below 1: all."),
         attribute("rpn_post_nms_top_n", &Self::rpn_post_nms_top_n,
                   "Boxes for each image; those that stay are repeated to as many."),
         attribute("rpn_min_size", &Self::rpn_min_size,
                   "A box that is smaller, in pixels of the image as it was, has no score."),
         attribute("iou_loss", &Self::iou_loss,
                   "Predictions are distances of the corners, not of centre and size.")}};
  }
};

// Low x and y, high x and y of the anchors (Ren et al., Faster R-CNN, 2015).
std::array<Floats, 4> anchors(const ProposalAttrs& a) {
  std::array<Floats, 4> out;
  const auto base = static_cast<double>(a.feature_stride);
  const double centre = 0.5 * (base - 1);
  for (double ratio : a.ratios) {
    const double width = std::floor(std::sqrt(std::floor(base * base / ratio)) + 0.5),
                 height = std::floor(width * ratio + 0.5);
    for (double scale : a.scales) {
      const double aside = 0.5 * (width * scale - 1), down = 0.5 * (height * scale - 1);
      out[0].push_back(centre - aside);
      out[1].push_back(centre - down);
      out[2].push_back(centre + aside);
      out[3].push_back(centre + down);
    }
  }
  return out;
}

void check_proposal(const CallNode& call, const ProposalAttrs& a) {
  demand_names(call);
  const TensorTypeNode &score = type_of(call.args[0]), &move = type_of(call.args[1]),
                       &info = type_of(call.args[2]);
  const auto count = static_cast<int64_t>(a.scales.size() * a.ratios.size());
  demand(call,
         score.rank() == 4 && move.rank() == 4 && info.rank() == 2 &&
             as_const(score.shape[1]) == 2 * count && as_const(move.shape[1]) == 4 * count &&
             as_const(info.shape[1]) == 3 && score.dtype.is_floating() &&
             move.dtype == score.dtype && info.dtype == score.dtype,
         "the arguments do not fit " + std::to_string(count) + " anchors",
         "(batch, " + std::to_string(2 * count) + ", h, w), (batch, " + std::to_string(4 * count) +
             ", h, w) and (batch, 3) of one floating dtype",
         to_string(call.args[0]->type) + ", " + to_string(call.args[1]->type) + " and " +
             to_string(call.args[2]->type));
  demand(call, count >= 1 && a.feature_stride >= 1 && a.rpn_post_nms_top_n >= 1,
         "there are no boxes", "scales, ratios, a stride and rpn_post_nms_top_n above 0");
  demand(call,
         std::ranges::all_of(a.scales, [](double s) { return s > 0; }) &&
             std::ranges::all_of(a.ratios, [](double r) { return r > 0; }),
         "a scale or ratio is not above 0");
}

// All boxes (batch, n, 4) and their scores (batch, n).
std::pair<Expr, Expr> predicted_boxes(const CallNode& call, const ProposalAttrs& a) {
  const std::vector<Dim>& shape = type_of(call.args[0]).shape;
  const DType dtype = type_of(call.args[0]).dtype;
  const Dim batch = shape[0], height = shape[2], width = shape[3];
  const auto count = static_cast<int64_t>(a.scales.size() * a.ratios.size());
  // (batch, h, w, anchors), of what has the anchors in front of the places.
  auto by_place = [](const Expr& e) { return transposed(e, {0, 2, 3, 1}); };
  Expr moves = reshape_to(call.args[1], {batch, dim(count), dim(4), height, width});
  auto move = [&](int64_t i) {
    Expr e = slice_axis(moves, 2, dim(i), dim(1));
    return by_place(apply("squeeze", {e}, {{"axis", to_value(Ints{2})}}));
  };
  auto info = [&](int64_t i) {
    return expanded(slice_axis(call.args[2], 1, dim(i), dim(1)), 2, 2);
  };
  Expr like = scalar(0, call.args[0]);
  const auto stride = static_cast<double>(a.feature_stride);
  const std::array<Floats, 4> anchor = anchors(a);
  Expr column = expanded(cast_to(iota(width), dtype), 1),
       row = expanded(cast_to(iota(height), dtype), 1, 2);
  auto edge = [&](size_t k) {
    return numbers(anchor[k], dtype) + stride * (k % 2 == 0 ? column : row);
  };
  std::array<Expr, 4> box;
  for (size_t d = 0; d < 2; ++d) {
    const auto k = static_cast<int64_t>(d);
    Expr low = edge(d), high = edge(d + 2);
    if (a.iou_loss) {
      box[d] = low + move(k);
      box[d + 2] = high + move(k + 2);
    } else {
      Expr size = 1 + (high - low), centre = low + 0.5 * (size - scalar(1, like));
      centre = move(k) * size + centre;
      Expr reach = 0.5 * (apply("exp", {move(k + 2)}) * size - scalar(1, like));
      box[d] = centre - reach;
      box[d + 2] = centre + reach;
    }
    Expr last = info(1 - k) - scalar(1, like);
    for (size_t end : {d, d + 2}) {
      box[end] = apply("maximum", {apply("minimum", {box[end], last}), scalar(0, like)});
    }
  }
  Expr least = static_cast<double>(a.rpn_min_size) * info(2);
  auto is_short = [&](size_t d) { return apply("less", {1 + (box[d + 2] - box[d]), least}); };
  Expr small = either(is_short(0), is_short(1));
  for (size_t k = 0; k < 4; ++k)
    box[k] = choose(small, box[k] + (k < 2 ? -0.5 : 0.5) * least, box[k]);
  // Places beyond the image's own size, in whole elements, have no score, nor have small boxes.
  auto beyond = [&](const Expr& at, int64_t i) {
    return compared("greater_equal", at, apply("trunc", {info(i) / scalar(stride, like)}));
  };
  Expr score = by_place(slice_axis(call.args[0], 1, dim(count), dim(count)));
  score = choose(either(small, either(beyond(row, 0), beyond(column, 1))), scalar(-1, like), score);
  const Dim n = height * width * dim(count);
  return {reshape_to(stacked({box[0], box[1], box[2], box[3]}, 4), {batch, n, dim(4)}),
          reshape_to(score, {batch, n})};
}

Expr proposal(const CallNode& call) {
  auto& a = attrs_of<ProposalAttrs>(call);
  check_proposal(call, a);
  auto [boxes, score] = predicted_boxes(call, a);
  const Dim batch = type_of(boxes).shape[0];
  const DType dtype = type_of(boxes).dtype;
  Expr order = from_greatest(score);
  if (a.rpn_pre_nms_top_n > 0) {
    const int64_t n = number_of(call, type_of(boxes).shape[1], "the number of boxes");
    order = slice_axis(order, 1, dim(0), dim(std::min(n, a.rpn_pre_nms_top_n)));
  }
  boxes = rows_at(boxes, order);
  const auto wanted = static_cast<double>(a.rpn_post_nms_top_n);
  Expr any = compared("greater_equal", order, scalar(0, order));
  Expr kept =
      kept_boxes(boxes, cast_to(zeros_like(order), dtype), any, filled(wanted, {batch}, kInt64),
                 filled(a.threshold, {batch}, dtype), false, false, true);
  // Those that stay, over and over until there are as many as wanted.
  const Dim many = dim(a.rpn_post_nms_top_n);
  Expr turn = apply("floor_mod", {places(many), count_of(kept)});
  boxes = rows_at(boxes, rows_at(held_first(kept), turn));
  Expr item = apply("broadcast_to", {expanded(cast_to(iota(batch), dtype), 1, 2)},
                    {{"shape", shape_value({batch, many, dim(1)})}});
  return reshape_to(joined({item, boxes}, 2), {batch * many, dim(5)});
}

const ArgInfo kRows{"data", "(batch, n, 5 or more): rows with a score and corners."};

}  // namespace

template <>
std::span<const OpInfo> rows_of<Family::Boxes>() {
  static const OpInfo rows[] = {
      composed_row(
          "vision.get_valid_counts",
          "How many rows have a score above the threshold and a class of 0 or more, these "
          "rows first, and where they were; rows and numbers behind them are -1.",
          {kRows, {"score_threshold", "A number."}}, &ValidCountsAttrs::static_info(),
          get_valid_counts,
          {{.args = {"Tensor[(2, 7, 6), float32]", "float32"}, .attrs = "", .low = -0.5, .high = 1},
           {.args = {"Tensor[(2, 5, 5), float32]", "Tensor[(1,), float32]"},
            .attrs = "id_index=-1, score_index=0"}}),
      composed_row(
          "vision.non_max_suppression",
          "The boxes from the highest score on, but for those that share the threshold or more "
          "with "
          "one of their class that stays before them.",
          {kRows,
           {"valid_count", "(batch,): how many rows there are."},
           {"indices", "(batch, n): the numbers of the rows."},
           {"max_output_size", "How many boxes stay at the most; below 0: all."},
           {"iou_threshold", "What two boxes may share of what they cover together; 0: all stay."}},
          &SuppressionAttrs::static_info(), non_max_suppression,
          {{.args = {"Tensor[(1, 5, 6), float32]", "Tensor[(1,), int32]", "Tensor[(1, 5), int32]",
                     "int32", "float32"},
            .attrs = "force_suppress=True, top_k=2",
            .inputs = {{0,  0.8, 1,  20, 25,  45, 1,  0.7, 30, 60, 50,  80,  0,  0.4, 4,
                        21, 19,  40, 2,  0.9, 35, 61, 52,  79, 1,  0.5, 100, 60, 70,  110},
                       {4},
                       {0, 1, 3, 4, -1},
                       {-1},
                       {0.7}}},
           {.args = {"Tensor[(2, 8, 6), float32]", "Tensor[(2,), int32]", "Tensor[(2, 8), int32]",
                     "int32", "float32"},
            .attrs = "return_indices=False, invalid_to_bottom=True",
            .low = 0,
            .high = 3}}),
      composed_row(
          "vision.regular_non_max_suppression",
          "The boxes of all classes that stay, each class for itself, from the highest score on: "
          "corners, classes, scores, and how many they are; zeros behind them.",
          {{"boxes", "(batch, n, 4): y and x of two corners."},
           {"scores", "(batch, n, classes), with others in front of them."}},
          &RegularSuppressionAttrs::static_info(), regular_non_max_suppression,
          {{{"Tensor[(2, 6, 4), float32]", "Tensor[(2, 6, 3), float32]"},
            "max_detections_per_class=3, max_detections=5, num_classes=2, iou_threshold=0.2f, "
            "score_threshold=0.25f",
            0,
            1},
           {{"Tensor[(1, 2, 4), float32]", "Tensor[(1, 2, 2), float32]"},
            "max_detections_per_class=2, max_detections=6, num_classes=2",
            0,
            1}}),
      composed_row(
          "vision.multibox_prior",
          "Boxes around each element of a feature map (SSD, Liu et al. 2016).",
          {{"data", "A feature map, (batch, channels, height, width)."}},
          &PriorAttrs::static_info(), multibox_prior,
          {{{"Tensor[(1, 2, 3, 4), float32]"}, "sizes=[0.5f, 0.25f], ratios=[1f, 2f, 0.5f]"},
           {{"Tensor[(1, 2, 2, 3), float32]"},
            "steps=[0.5f, 0.25f], offsets=[0.25f, 0.5f], clip=True"}}),
      composed_row(
          "vision.multibox_transform_loc",
          "What predictions make of prior boxes: rows of class, probability and corners of the "
          "boxes "
          "that are no background, rows of -1 behind them, and how many they are.",
          {{"cls_prob", "(batch, classes, n): probabilities, those of the background first."},
           {"loc_pred", "(batch, n * 4): how centres and sizes move."},
           {"anchor", "(1, n, 4): the prior boxes."}},
          &TransformLocAttrs::static_info(), multibox_transform_loc,
          {{.args = {"Tensor[(2, 3, 5), float32]", "Tensor[(2, 20), float32]",
                     "Tensor[(1, 5, 4), float32]"},
            .attrs = "threshold=0.3f",
            .low = 0,
            .high = 1},
           {.args = {"Tensor[(2, 3, 5), float32]", "Tensor[(2, 20), float32]",
                     "Tensor[(1, 5, 4), float32]"},
            .attrs = "clip=False, keep_background=True, variances=[1f, 1f, 0.5f, 0.5f]",
            .low = -1.5,
            .high = 1}}),
      composed_row(
          "vision.proposal",
          "Boxes that a region proposal network predicts: (batch * rpn_post_nms_top_n, 5), "
          "item and corners (Faster R-CNN, Ren et al. 2015).",
          {{"cls_prob", "(batch, 2 * anchors, height, width): the second half are scores."},
           {"bbox_pred", "(batch, 4 * anchors, height, width): how anchors move."},
           {"im_info", "(batch, 3): height, width and scale of the images."}},
          &ProposalAttrs::static_info(), proposal,
          {{.args = {"Tensor[(2, 4, 3, 4), float32]", "Tensor[(2, 8, 3, 4), float32]",
                     "Tensor[(2, 3), float32]"},
            .attrs = "scales=[2f], ratios=[0.5f, 1f], feature_stride=4, threshold=0.3f, "
                     "rpn_pre_nms_top_n=12, rpn_post_nms_top_n=9, rpn_min_size=5",
            .low = 0.5,
            .high = 16},
           {.args = {"Tensor[(1, 2, 2, 2), float32]", "Tensor[(1, 4, 2, 2), float32]",
                     "Tensor[(1, 3), float32]"},
            .attrs = "scales=[1f], ratios=[1f], feature_stride=4, rpn_pre_nms_top_n=-1, "
                     "rpn_post_nms_top_n=3, rpn_min_size=1, iou_loss=True",
            .low = 1,
            .high = 8}}),
  };
  return rows;
}

}  // namespace relay::ops
