#include "passes/simplify/fold_scale_axis.h"

#include <unordered_map>

#include "analysis/calls.h"
#include "analysis/constant_expressions.h"
#include "analysis/output_channels.h"
#include "analysis/primitives.h"
#include "analysis/uses.h"
#include "node/walk.h"

namespace relay {
namespace {

// True when a tensor that broadcasts against a rank-`rank` one varies along `axis` only.
bool varies_along(const Expr& e, int64_t axis, int64_t rank, int64_t count) {
  auto shape = static_shape(e);
  if (!shape || static_cast<int64_t>(shape->size()) > rank) return false;
  int64_t first = rank - static_cast<int64_t>(shape->size());
  for (size_t i = 0; i < shape->size(); ++i) {
    bool here = first + static_cast<int64_t>(i) == axis;
    if ((*shape)[i] != 1 && !(here && (*shape)[i] == count)) return false;
  }
  return true;
}

class ScaleFolder : public RewriterOutsidePrimitives {
 public:
  explicit ScaleFolder(const Function& f) : uses_(f), constants_(f) {}

  NodeRef post(const NodeRef& original, NodeRef rebuilt) override {
    if (!is_call_to(Expr::unchecked(rebuilt), "multiply")) return rebuilt;
    auto* before = as<CallNode>(original);
    auto* now = as<CallNode>(rebuilt);
    for (size_t side = 0; side < 2; ++side) {
      // A value that others use too is needed unscaled.
      if (uses_.of(before->args[side]) != 1) continue;
      Expr folded = fold(*before, side, now->args[side], now->args[1 - side]);
      if (folded) return folded;
    }
    return rebuilt;
  }

 private:
  Expr fold(const CallNode& before, size_t side, const Expr& value, const Expr& scale) {
    if (!constants_.contains(scale)) return nullptr;
    if (Expr scaled = scale_weights(value, scale)) return scaled;
    bool add = is_call_to(value, "add");
    bool bias_add = is_call_to(value, "nn.bias_add");
    if (!add && !bias_add) return nullptr;
    auto* sum = as<CallNode>(value);
    auto* sum_before = as<CallNode>(before.args[side]);
    if (sum_before == nullptr || sum_before->args.size() != 2) return nullptr;
    for (size_t heavy = 0; heavy < (add ? 2u : 1u); ++heavy) {
      const Expr& bias = sum->args[1 - heavy];
      if (uses_.of(sum_before->args[heavy]) != 1 || !constants_.contains(bias)) continue;
      Expr wide = bias;
      if (bias_add) {
        // As a tensor that broadcasts by itself.
        int64_t rank = as<TensorTypeNode>(value->type)->rank();
        int64_t axis = int_attr(*sum, "axis");
        std::vector<int64_t> shape(static_cast<size_t>(rank), 1);
        auto length = static_shape(bias);
        if (!length) continue;
        shape[static_cast<size_t>(axis < 0 ? axis + rank : axis)] = (*length)[0];
        wide = make_call("reshape", {bias}, {{"newshape", to_value(shape)}}, *sum);
      }
      Expr scaled = scale_weights(sum->args[heavy], scale);
      if (!scaled) continue;
      return call("add", {scaled, call("multiply", {wide, scale}, nullptr, sum->span)}, nullptr,
                  sum->span);
    }
    return nullptr;
  }

  // The heavy operator with its weights multiplied, or null when it is none or the scale is not
  // along its channels.
  Expr scale_weights(const Expr& value, const Expr& scale) {
    auto* c = as<CallNode>(value);
    if (c == nullptr) return nullptr;
    auto channels = output_channels(*c);
    auto* type = as<TensorTypeNode>(value->type);
    auto* weight = as<TensorTypeNode>(channels ? c->args[1]->type : Type());
    auto* scale_type = as<TensorTypeNode>(scale->type);
    if (!channels || !constants_.contains(c->args[1]) || !weight->dtype.is_floating() ||
        !(weight->dtype == scale_type->dtype) || !(weight->dtype == type->dtype) ||
        !varies_along(scale, channels->result_axis, type->rank(), channels->count)) {
      return nullptr;
    }
    std::vector<int64_t> shape(static_cast<size_t>(weight->rank()), 1);
    auto scale_shape = static_shape(scale);
    int64_t total = 1;
    for (int64_t d : *scale_shape) total *= d;
    shape[static_cast<size_t>(channels->weight_axis)] = total;
    Expr wide = make_call("reshape", {scale}, {{"newshape", to_value(shape)}}, *c);
    Expr scaled = call("multiply", {c->args[1], wide}, nullptr, c->span);
    return call(c->op, {c->args[0], scaled}, c->attrs, c->span);
  }

  UseCounts uses_;
  ConstantExpressions constants_;
};

Module run_fold_scale_axis(const Module& mod, PassContext& ctx) {
  if (!ctx.evaluate) return mod;
  return map_functions(mod,
                       [](const GlobalVar&, const Function& f) { return ScaleFolder(f).apply(f); });
}

}  // namespace

const Pass kFoldScaleAxis{"FoldScaleAxis",
                          3,
                          Form::any,
                          Form::any,
                          "Moves per-channel scales into the weights before them.",
                          run_fold_scale_axis};

}  // namespace relay
