#include "frontend/common/loss.h"

namespace relay::frontend {

Expr negative_log_likelihood(const Builder& build, const Expr& log_prob, const Expr& targets,
                             const Loss& spec) {
  const DType dtype = Builder::dtype_of(log_prob), index = Builder::dtype_of(targets);
  Expr target = targets, ignored;
  if (spec.ignored) {
    ignored =
        build.call("equal", {target, build.scalar(static_cast<double>(*spec.ignored), index)});
    target = build.where(ignored, build.scalar(0, index), target);
  }
  Expr picked =
      build.call("gather", {log_prob, build.expand_dims(target, 1)}, {{"axis", int64_t{1}}});
  Expr loss = build.call("negative", {build.squeeze(picked, {1})});
  Expr weight;
  if (spec.weights) {
    weight = build.call("take", {spec.weights, target}, {{"axis", int64_t{0}}});
  }
  if (ignored) {
    Expr one = weight ? weight : build.scalar(1, dtype);
    weight = build.where(ignored, build.scalar(0, dtype), one);
  }
  if (weight) loss = build.mul(loss, weight);
  const std::vector<int64_t> axes = Builder::all_axes(Builder::rank_of(loss));
  if (spec.reduction == LossReduction::None) return loss;
  if (spec.reduction == LossReduction::Mean && !weight) {
    return build.reduce("mean", loss, axes, false);
  }
  Expr sum = build.reduce("sum", loss, axes, false);
  if (spec.reduction == LossReduction::Sum) return sum;
  return build.div(sum, build.reduce("sum", weight, axes, false));
}

}  // namespace relay::frontend
