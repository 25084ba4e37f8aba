// Losses of classifiers.
#include "base/codes/operators.h"
#include "base/codes/types.h"
#include "ops/batching.h"
#include "ops/gradient.h"
#include "ops/loops.h"
#include "ops/printed_text.h"
#include "ops/rows.h"

namespace relay::ops {
namespace {

using namespace tir;  // NOLINT
using relay::CallNode;
using relay::Type;

Type cross_entropy_relation(RelationContext& ctx) {
  const TensorTypeNode *x = ctx.tensor(0), *y = ctx.tensor(1);
  if (x == nullptr || y == nullptr) return nullptr;
  if (!require(ctx, x->dtype == y->dtype && x->dtype.is_floating(), codes::type_dtype,
               "needs predictions and targets of one floating dtype", "float32",
               x->dtype.to_string() + " and " + y->dtype.to_string()) ||
      !require(ctx,
               x->rank() == 2 && y->rank() == 2 && ctx.equal(x->shape[0], y->shape[0]) &&
                   ctx.equal(x->shape[1], y->shape[1]),
               codes::type_shape, "predictions and targets must be matrices of one shape",
               "(items, classes)", shape_text(x->shape) + " and " + shape_text(y->shape)))
    return nullptr;
  return scalar_type(x->dtype);
}

// -sum(f(x) * y) / items, where f is the logarithm unless the predictions are logarithms already.
std::shared_ptr<const ComputeRule> cross_entropy_rule(bool logits) {
  return compute_rule([logits](const ComputeContext& ctx) {
    TirTensor x = ctx.inputs[0], y = ctx.inputs[1];
    DType acc = accumulator(x->dtype);
    TirTensor total = tir::compute("T_sum", {}, [&](const Indices&) {
      return tir::sum(x->shape(), [&](const Indices& k) {
        PrimExpr p = tir::cast(acc, x(k));
        return (logits ? p : tir::call("log", acc, {p})) * tir::cast(acc, y(k));
      });
    });
    return tir::compute("T_cross_entropy", {}, [&](const Indices&) {
      PrimExpr mean = div(total(Indices{}), tir::cast(acc, x->shape()[0]));
      return tir::cast(x->dtype, mean * imm_float(acc, -1));
    });
  });
}

struct NLLLossAttrs : AttrsOf<NLLLossAttrs> {
  std::string reduction = "mean";
  int64_t ignore_index = -100;
  static AttrsList describe() {
    return {"relay.attrs.NLLLossAttrs",
            {attribute("reduction", &Self::reduction, "none, sum or mean."),
             attribute("ignore_index", &Self::ignore_index, "A target that counts nothing.")}};
  }
};

Type nll_loss_relation(RelationContext& ctx) {
  const TensorTypeNode *x = ctx.tensor(0), *t = ctx.tensor(1), *w = ctx.tensor(2);
  if (x == nullptr || t == nullptr || w == nullptr) return nullptr;
  auto& a = ctx.attrs<NLLLossAttrs>();
  std::vector<Dim> items;
  for (size_t d = 0; d < x->shape.size(); ++d) {
    if (d != 1) items.push_back(x->shape[d]);
  }
  bool fits = x->rank() >= 2 && t->shape.size() == items.size() && w->rank() == 1 &&
              ctx.equal(w->shape[0], x->shape[1]);
  for (size_t d = 0; fits && d < items.size(); ++d) fits = ctx.equal(t->shape[d], items[d]);
  if (!require(
          ctx, fits, codes::type_shape, "predictions, targets and weights do not fit",
          "(n, classes, ...), (n, ...) and (classes,)",
          shape_text(x->shape) + ", " + shape_text(t->shape) + " and " + shape_text(w->shape)) ||
      !require(
          ctx, x->dtype.is_floating() && w->dtype == x->dtype && t->dtype.is_integer(),
          codes::type_dtype, "needs floating predictions and weights, and integer targets",
          "float32, int32 and float32",
          x->dtype.to_string() + ", " + t->dtype.to_string() + " and " + w->dtype.to_string()) ||
      !require(ctx, ctx.at_least(x->shape[1], dim(1)), codes::type_shape, "there is no class",
               "1 or more", shape_text(x->shape)) ||
      !require(ctx, a.reduction == "none" || a.reduction == "sum" || a.reduction == "mean",
               codes::op_bad_attribute, "reduction is not known", "none, sum or mean", a.reduction))
    return nullptr;
  return a.reduction == "none" ? tensor_type(std::move(items), x->dtype) : scalar_type(x->dtype);
}

// Says which label is no class, in the words of relay.train.losses.
Stmt say(const PrimExpr& label, const PrimExpr& count) {
  Text text;
  auto number = [&](const PrimExpr& n) { return text.element(n, kIndex, false); };
  return text.in(seq({text.mark("label "), number(label), text.mark(" is none of "), number(count),
                      text.mark(" classes, 0 to "), number(count - 1),
                      text.end(runtime::PrintEnd::IndexFailure)}));
}

// The class of each target, 0 for those that are ignored; a run fails where there is no such class.
TirTensor named_classes(const TirTensor& target, const PrimExpr& count, int64_t ignored) {
  return tir::imperative("T_class", kIndex, target->shape(), {target},
                         [=](const std::vector<Buffer>& in, const Buffer& out) {
                           return each_element(in[0]->shape, [&](const Indices& at) {
                             PrimExpr given = tir::cast(kIndex, load(in[0], at));
                             return named("class",
                                          select(eq(given, index(ignored)), index(0), given),
                                          [&](const PrimExpr& i) {
                                            Stmt inside = check_index(i, count, say(i, count));
                                            return seq({inside, store(out, at, i)});
                                          });
                           });
                         });
}

TirTensor nll_loss(const ComputeContext& ctx) {
  auto& a = ctx.attrs<NLLLossAttrs>();
  TirTensor x = ctx.inputs[0], target = ctx.inputs[1], weight = ctx.inputs[2];
  DType acc = accumulator(x->dtype);
  TirTensor classes = named_classes(target, x->shape()[1], a.ignore_index);
  auto class_of = [&](const Indices& i) { return classes(i); };
  auto weight_of = [&](const Indices& i) {
    return select(eq(tir::cast(kIndex, target(i)), index(a.ignore_index)), imm_float(acc, 0),
                  tir::cast(acc, weight(class_of(i))));
  };
  auto loss_of = [&](const Indices& i) {
    Indices at = i;
    at.insert(at.begin() + 1, class_of(i));
    return tir::cast(acc, x(at)) * weight_of(i) * imm_float(acc, -1);
  };
  if (a.reduction == "none")
    return tir::compute("T_nll_loss", ctx.outputs[0].shape,
                        [&](const Indices& i) { return tir::cast(x->dtype, loss_of(i)); });
  TirTensor total = tir::compute(
      "T_loss", {}, [&](const Indices&) { return tir::sum(target->shape(), loss_of); });
  TirTensor weights = tir::compute(
      "T_weight", {}, [&](const Indices&) { return tir::sum(target->shape(), weight_of); });
  return tir::compute("T_nll_loss", {}, [&](const Indices& i) {
    return tir::cast(x->dtype, a.reduction == "sum" ? total(i) : div(total(i), weights(i)));
  });
}

double loss_cost(const CallNode& c) { return 3 * num_elements(c.args[0]->type); }

// ---- Gradients

Adjoints cross_entropy_gradient(const GradientContext& ctx) {
  const Expr &x = ctx.arg(0), &y = ctx.arg(1);
  bool logits = is_call_to(Expr(&ctx.call), "nn.cross_entropy_with_logits");
  const Dim& items = type_of(x).shape[0];
  if (is_any(items)) no_gradient(ctx, "only the data tells the number of items");
  Expr share = negative(ctx.adjoint() / size_as(items, x));
  if (logits) return {share * y, share * x};
  return {finite_quotient(share * y, x), share * apply("log", {x})};
}

Adjoints nll_loss_gradient(const GradientContext& ctx) {
  auto& a = ctx.attrs<NLLLossAttrs>();
  const Expr &x = ctx.arg(0), &targets = ctx.arg(1), &weights = ctx.arg(2);
  const Dim& classes = type_of(x).shape[1];
  if (is_any(classes)) no_gradient(ctx, "only the data tells the number of classes");
  // The class that each item reads, in each place of the predictions whether it is the one.
  Expr named = apply("take", {iota(classes), targets}, {{"axis", int64_t{0}}, {"mode", "clip"}});
  Expr one_hot = indicator(is_equal(apply("expand_dims", {named}, {{"axis", int64_t{1}}}),
                                    along(iota(classes), 1, rank_of(x))),
                           x);
  Expr ignored = is_equal(targets, static_cast<double>(a.ignore_index));
  Expr counts = indicator(apply("logical_not", {ignored}), x);
  Expr weight = counts * apply("take", {weights, named}, {{"axis", int64_t{0}}});
  Expr prediction = sum_over(x * one_hot, {1});
  Expr g = ctx.adjoint();
  // Of the mean, losses and weights both are in the quotient.
  Expr loss = negative(prediction);
  if (a.reduction == "mean") {
    g = g / apply("sum", {weight});
    loss = loss - ctx.result;
  }
  auto each = [&](const Expr& of_items) {
    return one_hot * apply("expand_dims", {of_items}, {{"axis", int64_t{1}}});
  };
  return {negative(each(g * weight)), nullptr, sum_over_all_but(each(g * counts * loss), 1)};
}

// ---- Batching

// The mean over the items of each lane.
template <bool kLogits>
Expr batch_cross_entropy(const BatchingContext& ctx) {
  Expr x = in_lanes(ctx, 0), y = in_lanes(ctx, 1);
  if (!kLogits) x = apply("log", {x});
  return negative(sum_over(x * y, {1, 2})) / size_as(type_of(ctx.call.args[0]).shape[0], x);
}

// The loss of each item, of all lanes at once and for weights of one, times its weight in its lane.
Expr batch_nll_loss(const BatchingContext& ctx) {
  auto& a = ctx.attrs<NLLLossAttrs>();
  Expr x = in_lanes(ctx, 0), targets = in_lanes(ctx, 1), weights = ctx.arg(2);
  const DType dtype = type_of(x).dtype;
  const Dim& classes = type_of(ctx.call.args[0]).shape[1];
  if (is_any(classes) || !has_named_sizes(x) || !has_named_sizes(targets)) return nullptr;
  x = cast_to(x, accumulator(dtype));
  weights = cast_to(weights, accumulator(dtype));
  Expr ones = apply("ones", {},
                    {{"shape", shape_value({classes})}, {"dtype", accumulator(dtype).to_string()}});
  Expr items = with_attrs(ctx.call, {fold_lanes(x, 0), fold_lanes(targets, 0), ones},
                          {{"reduction", "none"}});
  items = unfold_lanes(items, 0, ctx.lanes,
                       tensor_type(type_of(ctx.call.args[1]).shape, accumulator(dtype)));
  Expr ignored = is_equal(targets, static_cast<double>(a.ignore_index));
  Expr known = apply("take", {iota(classes), targets}, {{"axis", int64_t{0}}, {"mode", "clip"}});
  Expr weight;
  if (ctx.batched[2]) {
    Expr lane = lanes_of_rank(iota(ctx.lanes), rank_of(targets) - 1);
    weight = apply("adv_index", {tuple({weights, lane, known})});
  } else {
    weight = apply("take", {weights, known}, {{"axis", int64_t{0}}});
  }
  weight = kept(apply("logical_not", {ignored}), weight);
  Expr losses = items * weight;
  if (a.reduction == "none") return cast_to(losses, dtype);
  Ints axes;
  for (int64_t d = 1; d < rank_of(targets); ++d) axes.push_back(d);
  Expr total = sum_over(losses, axes);
  return cast_to(a.reduction == "sum" ? total : total / sum_over(weight, axes), dtype);
}

}  // namespace

template <>
std::span<const OpInfo> rows_of<Family::Loss>() {
  static const OpInfo rows[] = {
      {
          .name = "nn.cross_entropy",
          .doc = "Cross entropy of probabilities, -sum(log(x) * y) over the items.",
          .args = {{"predictions", "(items, classes): probabilities."},
                   {"targets", "(items, classes): what they should be."}},
          .support_level = 10,
          .fusion = FusionClass::Opaque,
          .effect = Effect::Pure,
          .relation = cross_entropy_relation,
          .compute = cross_entropy_rule(false),
          .layout = Absent::AxesAsWritten,
          .memory = Absent::OnePiece,
          .precision = Precision::Never,
          .cost = loss_cost,
          .gradient = cross_entropy_gradient,
          .batching = batch_cross_entropy<false>,
          .examples = {{{"Tensor[(4, 3), float32]", "Tensor[(4, 3), float32]"}, "", 0.1, 1}},
          .expected = Absent::ByNumPy,
      },
      {
          .name = "nn.cross_entropy_with_logits",
          .doc = "Cross entropy of logarithms of probabilities, -sum(x * y) over the items.",
          .args = {{"predictions", "(items, classes): probabilities."},
                   {"targets", "(items, classes): what they should be."}},
          .support_level = 10,
          .fusion = FusionClass::Opaque,
          .effect = Effect::Pure,
          .relation = cross_entropy_relation,
          .compute = cross_entropy_rule(true),
          .layout = Absent::AxesAsWritten,
          .memory = Absent::OnePiece,
          .precision = Precision::Never,
          .cost = loss_cost,
          .gradient = cross_entropy_gradient,
          .batching = batch_cross_entropy<true>,
          .examples = {{{"Tensor[(4, 3), float32]", "Tensor[(4, 3), float32]"}, "", 0.1, 1}},
          .expected = Absent::ByNumPy,
      },
      {
          .name = "nn.nll_loss",
          .doc = "Negative log likelihood: minus the prediction for the target class, weighted.",
          .args = {{"predictions", "(n, classes, ...): logarithms of probabilities."},
                   {"targets", "(n, ...): class numbers."},
                   {"weights", "(classes,): weight of each class."}},
          .attrs = &NLLLossAttrs::static_info(),
          .support_level = 10,
          .fusion = FusionClass::Opaque,
          .effect = Effect::Pure,
          .may_end_run = on_every_call,
          .relation = nll_loss_relation,
          .compute = compute_rule(nll_loss),
          .layout = Absent::AxesAsWritten,
          .memory = Absent::OnePiece,
          .precision = Precision::Never,
          .cost = loss_cost,
          .gradient = nll_loss_gradient,
          .batching = batch_nll_loss,
          .examples = {{{"Tensor[(4, 3), float32]", "Tensor[(4,), int32]", "Tensor[(3,), float32]"},
                        "",
                        0.1,
                        2},
                       {{"Tensor[(2, 3, 5), float32]", "Tensor[(2, 5), int64]",
                         "Tensor[(3,), float32]"},
                        "reduction=\"none\", ignore_index=1",
                        0.1,
                        2}},
          .expected = Absent::ByNumPy,
      },
  };
  return rows;
}

}  // namespace relay::ops
