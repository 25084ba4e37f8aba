// What training graphs have: gradients of values of the graph, and the steps of optimisers with them.
#include <functional>
#include <unordered_map>

#include "base/codes/frontend.h"
#include "base/quantities.h"
#include "frontend/common/norm.h"
#include "frontend/common/open_args.h"
#include "frontend/onnx/graph_importer.h"
#include "grad/dataflow.h"
#include "node/walk.h"

namespace relay::frontend::onnx {
namespace {

constexpr std::string_view kTraining = "ai.onnx.preview.training";

// The value that an attribute names, which is not a constant: what is made of one while the model is imported
// cannot be told from it afterwards.
Expr named_value(NodeContext& ctx, const std::string& name) {
  ValuePtr v = ctx.importer().value_named(name);
  if (v == nullptr) {
    ctx.fail(codes::frontend_graph, "an attribute names a value that is not there",
             "a value computed before this node", shorten(name));
  }
  if ((v->data || v->known) && !v->is_parameter) {
    ctx.fail(codes::frontend_attribute, "a gradient depends on a weight, which is a constant here",
             "an input of the model", shorten(name),
             "import the model with freeze_params=False, or make the weight an input");
  }
  return ctx.expr_of(v);
}

// How the floats of y change with those of each x, at the values that are given for xs and zs.
Values convert_gradient(NodeContext& ctx) {
  std::vector<std::string> names = ctx.attr_strings("xs");
  const size_t count = names.size();
  for (const std::string& z : ctx.attr_strings("zs")) names.push_back(z);
  if (count == 0 || ctx.num_inputs() != names.size()) {
    ctx.fail(codes::frontend_graph, "the inputs are not those that 'xs' and 'zs' name",
             std::to_string(names.size()), std::to_string(ctx.num_inputs()));
  }
  std::vector<Expr> wrt;
  std::unordered_map<const Node*, NodeRef> given;
  for (size_t i = 0; i < names.size(); ++i) {
    Expr x = named_value(ctx, names[i]), value = ctx.in(i);
    if (value.get() != x.get()) given.emplace(x.get(), value);
    if (i < count) wrt.push_back(std::move(x));
  }
  Expr y = named_value(ctx, ctx.attr_string("y", ""));
  Values out;
  auto all = dataflow_gradient({{y, unit_adjoints(y)}}, wrt);
  for (size_t i = 0; i < count; ++i) {
    size_t next = 0;
    Expr gradient = gradient_value(wrt[i], all[i], next);
    if (!given.empty()) {
      gradient = cast<ExprNode>(substitute(gradient, given, family::program));
    }
    out.push_back(value_of(std::move(gradient)));
  }
  return out;
}

// Inputs are the rate, the number of the step, and then lists of equal length; outputs are lists of
// that length, too. `step` gets one tensor of each list and gives one for each list of results.
using OptimiserStep = std::function<std::vector<Expr>(const Expr& rate, const Expr& time,
                                                      const std::vector<Expr>& lists)>;
Values each_tensor(NodeContext& ctx, size_t num_lists, const OptimiserStep& step) {
  if (ctx.num_inputs() < 2 + num_lists || (ctx.num_inputs() - 2) % num_lists != 0) {
    ctx.fail(codes::frontend_graph, "the lists of tensors, gradients and states differ in length",
             "a rate, a number of steps and " + std::to_string(num_lists) + " lists",
             counted(ctx.num_inputs(), "input"));
  }
  const size_t n = (ctx.num_inputs() - 2) / num_lists;
  DType dtype = NodeContext::dtype_of(ctx.in(2));
  Expr rate = one_number(ctx, 0, dtype), time = one_number(ctx, 1, dtype);
  std::vector<std::vector<Expr>> results;
  for (size_t i = 0; i < n; ++i) {
    std::vector<Expr> lists;
    for (size_t k = 0; k < num_lists; ++k) lists.push_back(ctx.in(2 + k * n + i));
    results.push_back(step(rate, time, lists));
  }
  Values out;
  for (size_t k = 0; k < results[0].size(); ++k) {
    for (const std::vector<Expr>& of_one : results) out.push_back(value_of(of_one[k]));
  }
  return out;
}

// The gradient with that of the squares of the weights.
Expr regularised(NodeContext& ctx, const Expr& x, const Expr& gradient) {
  return ctx.add(ctx.mul(x, ctx.scalar_like(ctx.attr_float("norm_coefficient", 0), x)), gradient);
}

Values convert_adagrad(NodeContext& ctx) {
  return each_tensor(ctx, 3, [&](const Expr& rate, const Expr& time, const std::vector<Expr>& in) {
    const Expr &x = in[0], &h = in[2];
    auto c = [&](double v) { return ctx.scalar_like(v, x); };
    Expr r = ctx.div(rate, ctx.add(ctx.mul(time, c(ctx.attr_float("decay_factor", 0))), c(1)));
    Expr g = regularised(ctx, x, in[1]), squares = ctx.add(h, ctx.mul(g, g));
    Expr root = ctx.add(ctx.call("sqrt", {squares}), c(ctx.attr_float("epsilon", 1e-6)));
    return std::vector<Expr>{ctx.sub(x, ctx.div(ctx.mul(r, g), root)), squares};
  });
}

Values convert_adam(NodeContext& ctx) {
  return each_tensor(ctx, 4, [&](const Expr& rate, const Expr& time, const std::vector<Expr>& in) {
    const Expr& x = in[0];
    auto c = [&](double v) { return ctx.scalar_like(v, x); };
    const double alpha = ctx.attr_float("alpha", 0.9), beta = ctx.attr_float("beta", 0.999);
    Expr g = regularised(ctx, x, in[1]);
    Expr v = running_average(ctx, in[2], g, alpha);
    Expr h = running_average(ctx, in[3], ctx.mul(g, g), beta);
    Expr root = ctx.add(ctx.call("sqrt", {h}), c(ctx.attr_float("epsilon", 1e-6)));
    // Averages that begin with zero are too small at first.
    auto missing = [&](double keep) { return ctx.sub(c(1), ctx.call("power", {c(keep), time})); };
    Expr begun = ctx.call("greater", {time, c(0)});
    Expr below = ctx.call("where", {begun, missing(alpha), c(1)});
    Expr above = ctx.call("where", {begun, missing(beta), c(1)});
    Expr r = ctx.div(ctx.mul(rate, ctx.call("sqrt", {above})), below);
    Expr next = ctx.sub(x, ctx.div(ctx.mul(r, v), root));
    double shrink = 1 - ctx.attr_float("norm_coefficient_post", 0);
    return std::vector<Expr>{shrink == 1 ? next : ctx.mul(next, c(shrink)), v, h};
  });
}

Values convert_momentum(NodeContext& ctx) {
  std::string mode = ctx.attr_string("mode", "standard");
  if (mode != "standard" && mode != "nesterov") {
    ctx.fail(codes::frontend_attribute, "attribute 'mode' has an unknown value",
             "standard or nesterov", mode.substr(0, 100));
  }
  return each_tensor(ctx, 3, [&](const Expr& rate, const Expr& time, const std::vector<Expr>& in) {
    const Expr& x = in[0];
    auto c = [&](double v) { return ctx.scalar_like(v, x); };
    Expr g = regularised(ctx, x, in[1]), alpha = c(ctx.attr_float("alpha", 0));
    Expr begun = ctx.call("greater", {time, c(0)});
    Expr share = ctx.call("where", {begun, c(ctx.attr_float("beta", 0)), c(1)});
    Expr v = ctx.add(ctx.mul(alpha, in[2]), ctx.mul(share, g));
    Expr step = mode == "nesterov" ? ctx.add(g, ctx.mul(alpha, v)) : v;
    return std::vector<Expr>{ctx.sub(x, ctx.mul(rate, step)), v};
  });
}

}  // namespace

template <>
std::span<const ConverterRow> converter_rows<Converters::Train>() {
  static constexpr ConverterRow rows[] = {
      {kTraining, "Adagrad", 1, convert_adagrad},
      {kTraining, "Adam", 1, convert_adam},
      {kTraining, "Gradient", 1, convert_gradient},
      {kTraining, "Momentum", 1, convert_momentum},
  };
  return rows;
}

}  // namespace relay::frontend::onnx
