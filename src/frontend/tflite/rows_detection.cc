// Boxes of detections: TFLite_Detection_PostProcess, a custom operator, which decodes them from their anchors, and the
// builtin ones that choose among boxes.
#include <algorithm>
#include <limits>

#include "base/codes/frontend.h"
#include "base/codes/types.h"
#include "frontend/common/order.h"
#include "frontend/common/slices.h"
#include "frontend/tflite/custom_options.h"
#include "frontend/tflite/node_context.h"
#include "frontend/tflite/quantized.h"

namespace relay::frontend::tflite {
namespace {

struct DetectionOptions {
  int64_t detections = 0, classes_of_detection = 0, detections_of_class = 100, classes = 0;
  bool by_class = false;  // boxes of other classes may overlap
  double score = 0, overlap = 0;
  double scale[4] = {};  // of y, x, height and width
};

// E0504 for options that are damaged, or whose numbers are out of range.
DetectionOptions read_options(NodeContext& ctx) {
  const OptionMap map(ctx);
  constexpr int64_t kMost = 1 << 20;
  auto count = [&](const char* name) { return map.integer(name, 1, kMost); };
  DetectionOptions o;
  o.detections = count("max_detections");
  o.classes_of_detection = count("max_classes_per_detection");
  if (map.has("detections_per_class")) o.detections_of_class = count("detections_per_class");
  o.classes = count("num_classes");
  o.by_class = map.flag("use_regular_nms");
  o.score = map.number("nms_score_threshold");
  o.overlap = map.number("nms_iou_threshold");
  if (!(o.overlap > 0 && o.overlap <= 1)) {
    ctx.fail(codes::frontend_attribute, "'nms_iou_threshold' is out of range", "above 0, up to 1",
             std::to_string(o.overlap));
  }
  const char* scales[] = {"y_scale", "x_scale", "h_scale", "w_scale"};
  for (size_t i = 0; i < 4; ++i) {
    o.scale[i] = map.number(scales[i]);
    if (o.scale[i] == 0) ctx.fail(codes::frontend_attribute, std::string(scales[i]) + " is 0");
  }
  return o;
}

// The lines of `e` at places that it has.
Expr lines_at(NodeContext& ctx, const Expr& e, const Expr& places) {
  return ctx.call("take", {e, places}, {{"axis", int64_t{0}}, {"mode", std::string("fast")}});
}

Expr floats_of(NodeContext& ctx, size_t i) {
  return ctx.is_quantized(i) ? to_floats(ctx, ctx.in(i), ctx.in_quantization(i))
                             : ctx.cast(ctx.in(i), kFloat);
}

// (n, 4): the corners (y, x, y, x) of boxes, whose centres and sizes are relative to their anchors.
Expr decoded_boxes(NodeContext& ctx, const Expr& encodings, const Expr& anchors,
                   const DetectionOptions& o) {
  auto column = [&](const Expr& e, int64_t i) { return ctx.cast(ctx.select(e, 1, i), kDouble); };
  Expr centre[2], reach[2];
  for (int64_t i : {0, 1}) {
    auto relative = [&](int64_t of) {
      return ctx.div(column(encodings, of), ctx.scalar(o.scale[of], kDouble));
    };
    Expr size = column(anchors, i + 2);
    centre[i] = ctx.cast(ctx.add(ctx.mul(relative(i), size), column(anchors, i)), kFloat);
    Expr half = ctx.mul(ctx.scalar(0.5, kDouble), ctx.call("exp", {relative(i + 2)}));
    reach[i] = ctx.cast(ctx.mul(half, size), kFloat);
  }
  std::vector<Expr> corners{ctx.sub(centre[0], reach[0]), ctx.sub(centre[1], reach[1]),
                            ctx.add(centre[0], reach[0]), ctx.add(centre[1], reach[1])};
  return ctx.call("stack", {ctx.tuple_of(std::move(corners))}, {{"axis", int64_t{1}}});
}

// Candidates of each line, from the highest score on.
struct Suppressed {
  Expr order;  // (lines, n): the box of each candidate
  Expr score;  // (lines, n)
  Expr kept;   // (lines, n): whether it is a detection
};

// Of each line of scores, (lines, n), at most `most` boxes that overlap no better one too much.
Suppressed suppressed(NodeContext& ctx, const Expr& boxes, const Expr& scores, int64_t most,
                      const DetectionOptions& o) {
  Expr order =
      ctx.call("argsort", {scores},
               {{"axis", int64_t{1}}, {"is_ascend", false}, {"dtype", std::string("int64")}});
  Expr sorted = ctx.call("gather", {scores, order}, {{"axis", int64_t{1}}});
  Expr candidates = lines_at(ctx, boxes, order);
  const std::vector<Dim> lines{Builder::shape_of(scores)[0]};
  Expr kept = ctx.call(
      "vision.kept_boxes",
      {candidates, ctx.call("zeros_like", {sorted}),
       ctx.call("greater_equal", {sorted, ctx.scalar(o.score, kFloat)}),
       ctx.full(static_cast<double>(most), lines, kWide), ctx.full(o.overlap, lines, kFloat)},
      {{"by_class", false}});
  return {order, sorted, kept};
}

// `e` with zeros behind it along an axis, up to a size.
Expr filled_up(NodeContext& ctx, const Expr& e, int64_t axis, int64_t size) {
  const int64_t rank = Builder::rank_of(e);
  std::vector<int64_t> pads(static_cast<size_t>(2 * rank), 0);
  pads[static_cast<size_t>(rank + axis)] = size - ctx.const_dim(e, axis, "the number of boxes");
  return pad(ctx, e, pads, "constant", ctx.scalar_like(0, e));
}

// The outputs, of lines of classes and scores (m, classes of a box), of which the first are detections; `columns` is how
// many classes the outputs have of a box.
Values detections(NodeContext& ctx, const Expr& boxes, const Expr& box, const Expr& classes,
                  const Expr& scores, const Expr& valid, int64_t columns,
                  const DetectionOptions& o) {
  const int64_t all = o.detections * o.classes_of_detection;
  auto in_place = [&](const Expr& e) {
    Expr shown = ctx.where(ctx.expand_dims(valid, 1), ctx.cast(e, kFloat), ctx.scalar(0, kFloat));
    shown = filled_up(ctx, filled_up(ctx, shown, 1, columns), 0, all / columns);
    return ctx.reshape(shown, std::vector<int64_t>{1, all});
  };
  const std::vector<Dim> shape = Builder::shape_of(classes);
  std::vector<Expr> corners;
  for (int64_t i = 0; i < 4; ++i) {
    Expr corner = lines_at(ctx, ctx.select(boxes, 1, i), box);
    corners.push_back(in_place(ctx.broadcast_to(ctx.expand_dims(corner, 1), shape)));
  }
  Expr count = ctx.reduce("sum", ctx.cast(valid, kFloat), {0}, true);
  return {value_of(ctx.call("stack", {ctx.tuple_of(corners)}, {{"axis", int64_t{2}}})),
          value_of(in_place(classes)), value_of(in_place(scores)), value_of(count)};
}

// Each box has the score of its best class, and is a detection of its best classes.
Values of_best_classes(NodeContext& ctx, const Expr& boxes, const Expr& scores,
                       const DetectionOptions& o) {
  const int64_t n = ctx.const_dim(boxes, 0, "the number of boxes");
  const Ordered best =
      top_k(ctx, scores, std::min(o.classes_of_detection, o.classes), TopSpec{.axis = 1});
  const Suppressed s =
      suppressed(ctx, boxes, ctx.expand_dims(ctx.select(best.values, 1, 0), 0), o.detections, o);
  // The detections, in order, before the others.
  Expr kept = ctx.squeeze(s.kept, {0});
  Expr order = ctx.call("argsort", {ctx.cast(ctx.call("logical_not", {kept}), DType::Int(32))},
                        {{"axis", int64_t{0}}, {"dtype", std::string("int64")}});
  Expr front = ctx.slice(order, 0, 0, std::min(n, o.detections));
  Expr box = lines_at(ctx, ctx.squeeze(s.order, {0}), front);
  return detections(ctx, boxes, box, lines_at(ctx, best.places, box),
                    lines_at(ctx, best.values, box), lines_at(ctx, kept, front),
                    o.classes_of_detection, o);
}

// Each class has detections of its own; the best of all of them stay.
Values of_each_class(NodeContext& ctx, const Expr& boxes, const Expr& scores,
                     const DetectionOptions& o) {
  const int64_t n = ctx.const_dim(boxes, 0, "the number of boxes");
  const Suppressed s =
      suppressed(ctx, boxes, ctx.transpose(scores, {1, 0}), o.detections_of_class, o);
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const std::vector<int64_t> flat{o.classes * n};
  Expr all = ctx.where(s.kept, s.score, ctx.scalar(-kInfinity, kFloat));
  const Ordered best =
      top_k(ctx, ctx.reshape(all, flat), std::min(flat[0], o.detections), TopSpec{.axis = 0});
  Expr places = ctx.cast(best.places, kWide);
  Expr box = lines_at(ctx, ctx.reshape(s.order, flat), places);
  Expr valid = ctx.call("greater", {best.values, ctx.scalar(-kInfinity, kFloat)});
  Expr classes = ctx.call("floor_divide", {places, ctx.scalar(static_cast<double>(n), kWide)});
  return detections(ctx, boxes, box, ctx.expand_dims(classes, 1), ctx.expand_dims(best.values, 1),
                    valid, 1, o);
}

// (encodings (1, n, 4 or more), scores (1, n, classes), anchors (n, 4)); a class of background may come first.
Values detection_postprocess(NodeContext& ctx) {
  const DetectionOptions o = read_options(ctx);
  Expr encodings = floats_of(ctx, 0), scores = floats_of(ctx, 1), anchors = floats_of(ctx, 2);
  auto size = [&](const Expr& e, int64_t axis) {
    return ctx.const_dim(e, axis, "a size of the boxes");
  };
  if (Builder::rank_of(encodings) != 3 || Builder::rank_of(scores) != 3 ||
      Builder::rank_of(anchors) != 2 || size(encodings, 0) != 1 || size(scores, 0) != 1 ||
      size(encodings, 1) < 1 || size(encodings, 2) < 4 || size(anchors, 1) != 4 ||
      size(scores, 1) != size(encodings, 1) || size(anchors, 0) != size(encodings, 1)) {
    ctx.fail(codes::type_shape, "the inputs do not fit each other",
             "(1, n, 4), (1, n, classes) and (n, 4)",
             to_string(encodings->type) + ", " + to_string(scores->type) + " and " +
                 to_string(anchors->type));
  }
  const int64_t background = size(scores, 2) - o.classes;
  if (background != 0 && background != 1) {
    ctx.fail(codes::frontend_attribute, "the number of classes does not fit the scores",
             std::to_string(o.classes) + ", or a class of background more",
             std::to_string(size(scores, 2)));
  }
  ctx.charge_bytes(4 * o.detections * o.classes_of_detection, kFloat);
  scores = ctx.slice(ctx.squeeze(scores, {0}), 1, background, background + o.classes);
  Expr boxes = decoded_boxes(ctx, ctx.squeeze(encodings, {0}), anchors, o);
  return o.by_class ? of_each_class(ctx, boxes, scores, o) : of_best_classes(ctx, boxes, scores, o);
}

// ---- Non-maximum suppression: (boxes (n, 4), scores (n), most, overlap, score) to (chosen boxes, how many)

// A threshold, as a float32 vector of one element.
Expr threshold(NodeContext& ctx, size_t i) {
  return ctx.reshape(ctx.cast(ctx.in(i), kFloat), std::vector<int64_t>{1});
}

// With the scores of the chosen boxes where `scores_too`; what is behind them is 0.
Values non_max_suppression(NodeContext& ctx, bool scores_too) {
  Expr boxes = ctx.cast(ctx.in(0), kFloat), scores = ctx.cast(ctx.in(1), kFloat);
  if (Builder::rank_of(boxes) != 2 || Builder::rank_of(scores) != 1 ||
      ctx.const_dim(boxes, 1, "the coordinates of a box") != 4) {
    ctx.fail(codes::type_shape, "the inputs are no boxes and their scores", "(n, 4) and (n)",
             to_string(boxes->type) + " and " + to_string(scores->type));
  }
  const int64_t n = ctx.const_dim(boxes, 0, "the number of boxes"),
                most = ctx.const_int(2, "the number of detections");
  constexpr int64_t kMost = 1 << 20;
  if (n < 1 || most < 0 || most > kMost)
    ctx.fail(codes::frontend_attribute, "the number of detections is out of range", "0 to 2^20",
             std::to_string(most));
  // The corners may be any two opposite ones.
  Expr a = ctx.slice(boxes, 1, 0, 2), b = ctx.slice(boxes, 1, 2, 4);
  boxes = ctx.concat({ctx.minimum(a, b), ctx.maximum(a, b)}, 1);
  Expr order =
      ctx.call("argsort", {scores},
               {{"axis", int64_t{0}}, {"is_ascend", false}, {"dtype", std::string("int64")}});
  Expr sorted = lines_at(ctx, scores, order);
  Expr kept = ctx.call("vision.kept_boxes",
                       {ctx.expand_dims(lines_at(ctx, boxes, order), 0),
                        ctx.expand_dims(ctx.call("zeros_like", {sorted}), 0),
                        ctx.expand_dims(ctx.call("greater", {sorted, threshold(ctx, 4)}), 0),
                        ctx.full(static_cast<double>(most), {dim(1)}, kWide), threshold(ctx, 3)},
                       {{"by_class", false}, {"inclusive", true}});
  kept = ctx.squeeze(kept, {0});
  Expr front = ctx.call("argsort", {ctx.cast(ctx.call("logical_not", {kept}), kInt)},
                        {{"axis", int64_t{0}}, {"dtype", std::string("int64")}});
  front = ctx.slice(front, 0, 0, std::min(n, most));
  Expr valid = lines_at(ctx, kept, front);
  auto chosen = [&](const Expr& e, DType dtype) {
    Expr own = ctx.cast(lines_at(ctx, e, front), dtype);
    return value_of(filled_up(ctx, ctx.where(valid, own, ctx.scalar(0, dtype)), 0, most));
  };
  ctx.charge_bytes(2 * most, kFloat);
  Values out{chosen(order, kInt)};
  if (scores_too) out.push_back(chosen(sorted, kFloat));
  out.push_back(value_of(ctx.reduce("sum", ctx.cast(valid, kInt), {0}, false)));
  return out;
}

Values nms_v4(NodeContext& ctx) { return non_max_suppression(ctx, false); }

Values nms_v5(NodeContext& ctx) {
  const auto sigma = ctx.const_scalar(5);
  if (!sigma || *sigma != 0) ctx.unsupported("scores that overlapping boxes make smaller");
  return non_max_suppression(ctx, true);
}

}  // namespace

template <>
std::span<const Row> rows<Family::Detection>() {
  using O = schema::Options;
  static constexpr Row kRows[] = {
      {"NON_MAX_SUPPRESSION_V4", nms_v4, O::nms_v4},
      {"NON_MAX_SUPPRESSION_V5", nms_v5, O::nms_v5},
      {"TFLite_Detection_PostProcess", detection_postprocess},
  };
  return kRows;
}

}  // namespace relay::frontend::tflite
