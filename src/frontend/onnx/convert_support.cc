// Support vectors: regressors and classifiers of ai.onnx.ml.
#include <algorithm>
#include <cmath>
#include <functional>

#include "base/codes/frontend.h"
#include "base/codes/types.h"
#include "base/quantities.h"
#include "frontend/common/step_loop.h"
#include "frontend/onnx/ml_values.h"

namespace relay::frontend::onnx {
namespace {

constexpr DType kF32 = DType::Float(32);

// The kernel of each sample with each support vector.
Expr kernel_of(NodeContext& ctx, const Expr& x, const Expr& vectors) {
  const std::string kind = ctx.attr_string("kernel_type", "LINEAR");
  std::vector<double> params = ctx.attr_floats("kernel_params");
  params.resize(3, 0);
  auto number = [&](double v) { return ctx.scalar_like(v, x); };
  Expr dot = ctx.call("nn.dense", {x, vectors});
  if (kind == "LINEAR") return dot;
  if (kind == "RBF") {
    // |x - v|^2 from the differences themselves: what is near would lose its digits otherwise.
    Expr d = ctx.sub(ctx.expand_dims(x, 1), vectors);
    return ctx.call("exp",
                    {ctx.mul(ctx.reduce("sum", ctx.mul(d, d), {2}, false), number(-params[0]))});
  }
  Expr s = ctx.add(ctx.mul(dot, number(params[0])), number(params[1]));
  if (kind == "POLY") return ctx.call("power", {s, number(std::trunc(params[2]))});
  if (kind == "SIGMOID") return ctx.call("tanh", {s});
  ctx.unsupported("kernel_type '" + kind + "'");
}

Expr support_vectors(NodeContext& ctx, const Expr& x, int64_t count) {
  const std::vector<double> v = ctx.attr_floats("support_vectors");
  const int64_t features = ctx.const_dim(x, 1, "the features");
  if (count <= 0 || static_cast<int64_t>(v.size()) / count != features ||
      static_cast<int64_t>(v.size()) % count != 0) {
    ctx.fail(codes::frontend_attribute, "the support vectors do not fit the features",
             std::to_string(features) + " numbers each", std::to_string(v.size()));
  }
  return ctx.constant(floats(v, NodeContext::dtype_of(x)).reshape({count, features}));
}

Values convert_svm_regressor(NodeContext& ctx) {
  Expr x = samples(ctx);
  const DType dtype = NodeContext::dtype_of(x);
  const int64_t supports = ctx.attr("n_supports", 0);
  const std::vector<double> coefficients = ctx.attr_floats("coefficients"),
                            rho = ctx.attr_floats("rho");
  Expr k = x;
  int64_t columns = ctx.const_dim(x, 1, "the features");
  if (supports > 0) {
    k = kernel_of(ctx, x, support_vectors(ctx, x, supports));
    columns = supports;
  }
  if (static_cast<int64_t>(coefficients.size()) != columns || rho.empty()) {
    ctx.fail(codes::frontend_attribute, "the coefficients do not fit", std::to_string(columns),
             std::to_string(coefficients.size()));
  }
  Expr y =
      ctx.call("nn.dense", {k, ctx.constant(floats(coefficients, dtype).reshape({1, columns}))});
  y = ctx.add(y, ctx.scalar_like(rho[0], y));
  if (ctx.attr("one_class", 0) != 0) {
    Expr inside = ctx.call("greater", {y, ctx.scalar_like(0, y)});
    y = ctx.call("where", {inside, ctx.scalar_like(1, y), ctx.scalar_like(-1, y)});
  }
  return {value_of(transformed(ctx, y))};
}

// A matrix with as many lines as `line` is called for.
Expr matrix(NodeContext& ctx, int64_t lines, int64_t columns, DType dtype,
            const std::function<void(int64_t line, std::span<double> out)>& line) {
  ctx.charge_bytes(lines * columns, dtype);
  std::vector<double> values(static_cast<size_t>(lines * columns), 0);
  for (int64_t i = 0; i < lines; ++i) {
    line(i,
         std::span(values).subspan(static_cast<size_t>(i * columns), static_cast<size_t>(columns)));
  }
  return ctx.constant(floats(values, dtype).reshape({lines, columns}));
}

// Each pair of classes decides between the two by the support vectors of both; the class with the most
// decisions wins.
struct Duels {
  Expr scores, votes;
};
Duels duels(NodeContext& ctx, const Expr& x, const std::vector<int64_t>& per_class,
            const std::vector<double>& coefficients, const std::vector<double>& rho) {
  const DType dtype = NodeContext::dtype_of(x);
  const auto classes = static_cast<int64_t>(per_class.size());
  std::vector<int64_t> begin{0};
  for (int64_t n : per_class) begin.push_back(begin.back() + std::max<int64_t>(n, 0));
  const int64_t vectors = begin.back();
  std::vector<std::pair<int64_t, int64_t>> pairs;
  for (int64_t i = 0; i < classes; ++i) {
    for (int64_t j = i + 1; j < classes; ++j) pairs.emplace_back(i, j);
  }
  const auto count = static_cast<int64_t>(pairs.size());
  if (std::ranges::min(per_class) < 0 || rho.size() != pairs.size() ||
      static_cast<int64_t>(coefficients.size()) != (classes - 1) * vectors) {
    ctx.fail(codes::frontend_attribute, "coefficients, vectors and classes do not fit together",
             counted(count, "value") + " of rho", std::to_string(rho.size()));
  }
  Expr k = kernel_of(ctx, x, support_vectors(ctx, x, vectors));
  Expr weights = matrix(ctx, count, vectors, dtype, [&](int64_t p, std::span<double> out) {
    const auto [i, j] = pairs[static_cast<size_t>(p)];
    for (auto [own, other] : {std::pair(i, j - 1), std::pair(j, i)}) {
      for (int64_t v = begin[static_cast<size_t>(own)]; v < begin[static_cast<size_t>(own) + 1];
           ++v) {
        out[static_cast<size_t>(v)] = coefficients[static_cast<size_t>(other * vectors + v)];
      }
    }
  });
  auto won_by = [&](bool second) {
    return matrix(ctx, classes, count, dtype, [&](int64_t c, std::span<double> out) {
      for (int64_t p = 0; p < count; ++p) {
        const auto [i, j] = pairs[static_cast<size_t>(p)];
        if ((second ? j : i) == c) out[static_cast<size_t>(p)] = 1;
      }
    });
  };
  Expr scores = ctx.add(ctx.call("nn.dense", {k, weights}), ctx.constant(floats(rho, dtype)));
  Expr first = ctx.call("greater", {scores, ctx.scalar_like(0, scores)});
  Expr second = ctx.call("logical_not", {first});
  Expr votes = ctx.add(ctx.call("nn.dense", {ctx.cast(first, dtype), won_by(false)}),
                       ctx.call("nn.dense", {ctx.cast(second, dtype), won_by(true)}));
  return {scores, votes};
}

// The probability of each class by those of all pairs, as Wu, Lin and Weng couple them ("Probability Estimates for
// Multi-class Classification by Pairwise Coupling", JMLR 2004, second method): by iterating until the error is below
// 0.005 / classes, for each sample on its own and at most 100 times, as LIBSVM and ONNX Runtime do.
Expr coupled(NodeContext& ctx, const Expr& pairwise, int64_t classes) {
  const DType dtype = NodeContext::dtype_of(pairwise);
  const Dim samples = NodeContext::shape_of(pairwise)[0];
  auto number = [&](double v) { return ctx.scalar(v, dtype); };
  // r[i, j]: of i against j. What stands on the diagonal does not matter.
  std::vector<int64_t> places(static_cast<size_t>(classes * classes), 0);
  const int64_t pairs = classes * (classes - 1) / 2;
  int64_t pair = 0;
  for (int64_t i = 0; i < classes; ++i) {
    for (int64_t j = i + 1; j < classes; ++j, ++pair) {
      places[static_cast<size_t>(i * classes + j)] = pair;
      places[static_cast<size_t>(j * classes + i)] = pairs + pair;
    }
  }
  Expr both = ctx.concat({pairwise, ctx.sub(number(1), pairwise)}, 1);
  Expr r = ctx.call("take", {both, ctx.ints(places)}, {{"axis", int64_t{1}}});
  r = ctx.reshape(r, {samples, dim(classes), dim(classes)});
  auto diagonal = [&](double on, double off) {
    return matrix(ctx, classes, classes, dtype, [&](int64_t i, std::span<double> out) {
      std::ranges::fill(out, off);
      out[static_cast<size_t>(i)] = on;
    });
  };
  Expr others = ctx.mul(r, diagonal(0, 1));
  Expr own = ctx.reduce("sum", ctx.mul(others, others), {1}, false);
  Expr q = ctx.sub(ctx.mul(ctx.expand_dims(own, 1), diagonal(1, 0)),
                   ctx.mul(others, ctx.transpose(r, {0, 2, 1})));

  const DType flag = DType::Bool();
  StepLoop loop;
  loop.count = ctx.scalar(100, DType::Int(64));
  loop.initial = {ctx.full(1.0 / static_cast<double>(classes), {samples, dim(classes)}, dtype),
                  ctx.full(0, {samples, dim(1)}, flag)};
  loop.go = ctx.scalar(1, flag);
  StepResults results =
      run_steps(ctx, loop, [&](const Expr&, const Expr&, const std::vector<Expr>& states) {
        const Expr& p = states[0];
        Expr qp = ctx.reduce("sum", ctx.mul(q, ctx.expand_dims(p, 1)), {2}, false);
        Expr pqp = ctx.reduce("sum", ctx.mul(p, qp), {1}, true);
        Expr error = ctx.reduce("max", ctx.call("abs", {ctx.sub(qp, pqp)}), {1}, true);
        Expr done = ctx.call(
            "logical_or",
            {states[1], ctx.call("less", {error, number(0.005 / static_cast<double>(classes))})});
        Expr next = p;
        for (int64_t i = 0; i < classes; ++i) {
          Expr line = ctx.select(q, 1, i), weight = ctx.slice(own, 1, i, i + 1);
          Expr at = ctx.slice(qp, 1, i, i + 1);
          Expr diff = ctx.div(ctx.sub(pqp, at), weight), grown = ctx.add(number(1), diff);
          std::vector<double> unit(static_cast<size_t>(classes), 0);
          unit[static_cast<size_t>(i)] = 1;
          next = ctx.div(ctx.add(next, ctx.mul(diff, ctx.constant(floats(unit, dtype)))), grown);
          Expr more = ctx.mul(diff, ctx.add(ctx.mul(diff, weight), ctx.mul(number(2), at)));
          pqp = ctx.div(ctx.div(ctx.add(pqp, more), grown), grown);
          qp = ctx.div(ctx.add(qp, ctx.mul(diff, line)), grown);
        }
        Expr all = ctx.reshape(ctx.reduce("all", done, {0, 1}, false), std::vector<int64_t>{});
        return Step{{ctx.call("where", {done, p, next}), done}, {}, ctx.call("logical_not", {all})};
      });
  return results.states[0];
}

// Scores of pairs as probabilities of the classes, by the sigmoid that was fitted to each pair.
Expr probabilities(NodeContext& ctx, const Expr& scores, int64_t classes) {
  const std::vector<double> a = ctx.attr_floats("prob_a"), b = ctx.attr_floats("prob_b");
  const auto pairs = static_cast<size_t>(classes * (classes - 1) / 2);
  if (a.size() != pairs || b.size() != pairs) {
    ctx.fail(codes::frontend_attribute, "'prob_a' and 'prob_b' do not fit the classes",
             std::to_string(pairs) + " numbers each",
             std::to_string(a.size()) + " and " + std::to_string(b.size()));
  }
  const DType dtype = NodeContext::dtype_of(scores);
  auto number = [&](double v) { return ctx.scalar(v, dtype); };
  Expr fitted =
      ctx.add(ctx.mul(scores, ctx.constant(floats(a, dtype))), ctx.constant(floats(b, dtype)));
  Expr p = ctx.sub(number(1), ctx.call("sigmoid", {fitted}));
  p = ctx.call("minimum", {ctx.call("maximum", {p, number(1e-7)}), number(1 - 1e-7)});
  return coupled(ctx, p, classes);
}

// Classes without support vectors: each has a line of coefficients.
Values linear_svm(NodeContext& ctx, const Expr& x, const Tensor& labels) {
  const std::vector<double> coefficients = ctx.attr_floats("coefficients"),
                            rho = ctx.attr_floats("rho");
  const int64_t classes = labels.num_elements(), features = ctx.const_dim(x, 1, "the features");
  const DType dtype = NodeContext::dtype_of(x);
  if (classes < 2 || static_cast<int64_t>(coefficients.size()) != classes * features ||
      rho.empty()) {
    ctx.fail(codes::frontend_attribute, "the coefficients do not fit the classes and features",
             std::to_string(classes * features), std::to_string(coefficients.size()));
  }
  Expr scores = ctx.call(
      "nn.dense", {x, ctx.constant(floats(coefficients, dtype).reshape({classes, features}))});
  scores = ctx.add(scores, ctx.scalar_like(rho[0], scores));
  Expr label = best_label(ctx, scores, labels);
  if (classes == 2 && rho.size() == 1) {
    // The second class wins by either score, as in ONNX Runtime.
    const bool positive = std::ranges::min(coefficients) >= 0;
    Expr most = ctx.reduce("max", scores, {1}, false);
    Expr second = positive ? ctx.call("greater_equal", {most, ctx.scalar_like(0.5, most)})
                           : ctx.call("greater", {most, ctx.scalar_like(0, most)});
    Expr best = ctx.call("argmax", {scores}, {{"axis", to_value(std::vector<int64_t>{1})}});
    Expr which = ctx.call("where", {second, ctx.call("ones_like", {best}), best});
    label = ctx.call("take", {ctx.constant(labels), which}, {{"axis", int64_t{0}}});
  }
  return {value_of(label), value_of(ctx.cast(transformed(ctx, scores), kF32))};
}

Values convert_svm_classifier(NodeContext& ctx) {
  Expr x = samples(ctx);
  Tensor labels = class_labels(ctx, "classlabels_ints");
  const std::vector<int64_t> per_class = ctx.attr_ints("vectors_per_class");
  const std::vector<double> coefficients = ctx.attr_floats("coefficients"),
                            rho = ctx.attr_floats("rho");
  const int64_t classes = labels.num_elements();
  if (std::ranges::all_of(per_class, [](int64_t n) { return n == 0; }))
    return linear_svm(ctx, x, labels);
  if (classes < 2 || static_cast<int64_t>(per_class.size()) != classes) {
    ctx.fail(codes::frontend_attribute, "'vectors_per_class' does not fit the labels",
             std::to_string(classes), std::to_string(per_class.size()));
  }
  auto [scores, votes] = duels(ctx, x, per_class, coefficients, rho);
  Expr label = best_label(ctx, votes, labels);
  if (!ctx.attr_floats("prob_a").empty()) {
    scores = probabilities(ctx, scores, classes);
  } else if (classes == 2) {
    // Without negative weights a decision is always for the second class.
    if (std::ranges::min(coefficients) >= 0) {
      Expr ones = ctx.full(1, {NodeContext::shape_of(x)[0]}, DType::Int(32));
      label = ctx.call("take", {ctx.constant(labels), ones}, {{"axis", int64_t{0}}});
    }
    scores = two_columns(ctx, scores, false);
  }
  return {value_of(label), value_of(ctx.cast(transformed(ctx, scores), kF32))};
}

}  // namespace

template <>
std::span<const ConverterRow> converter_rows<Converters::Support>() {
  static constexpr ConverterRow rows[] = {
      {kMl, "SVMClassifier", 1, convert_svm_classifier},
      {kMl, "SVMRegressor", 1, convert_svm_regressor},
  };
  return rows;
}

}  // namespace relay::frontend::onnx
