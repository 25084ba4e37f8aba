#include "fuzz/gradients.h"

#include <algorithm>
#include <cmath>

#include "fuzz/outcome.h"
#include "fuzz/values.h"
#include "grad/derivatives.h"
#include "ir/op.h"
#include "node/walk.h"
#include "passes/gradient/derivative_pass.h"
#include "types/infer.h"

namespace relay::fuzz {
namespace {

using runtime::Value;

// Central differences in float64: the error of the formula and that of rounding are both below 1e-9
// for functions whose derivatives are of the size of one.
constexpr double kStep = 1e-5;
// Slopes to the left and to the right, and over half the distance, that differ by more are not those
// of a smooth function.
constexpr double kSmooth = 1e-3;
constexpr double kSettled = 1e-6;
// The error of a sum, of its largest part: a program that ends in large numbers hides small slopes.
constexpr double kRounding = 1e-14;

const DType kDouble = DType::Float(64);

// What a dtype named in an attribute becomes.
Attrs doubled(const CallNode& c) {
  if (!c.attrs || !isa<OpNode>(c.op)) return c.attrs;
  auto values = attr_values(c.attrs);
  bool changed = false;
  for (auto& [name, value] : values) {
    auto* text = value.get_if<std::string>();
    auto dtype = text == nullptr ? std::nullopt : DType::parse(*text);
    if (!dtype || !dtype->is_floating() || *dtype == kDouble) continue;
    value = kDouble.to_string();
    changed = true;
  }
  const OpInfo& row = *as<OpNode>(c.op)->row;
  return changed ? make_attrs(*row.attrs, values, row.name, {}) : c.attrs;
}

class InDoubles : public Rewriter {
 protected:
  // Attributes are changed together with the operands: both decide the type. Enters operands by
  // itself, which programs as small as drawn ones allow.
  NodeRef pre(const NodeRef& node) override {
    auto* c = as<CallNode>(node);
    if (c == nullptr || !isa<OpNode>(c->op)) return nullptr;
    std::vector<Expr> args;
    for (const Expr& a : c->args) args.push_back(apply(a));
    return call(c->op, std::move(args), doubled(*c), c->span, c->type_args);
  }
  NodeRef post(const NodeRef&, NodeRef rebuilt) override {
    if (auto* t = as<TensorTypeNode>(rebuilt)) {
      const bool other = t->dtype.is_floating() && !(t->dtype == kDouble);
      return other ? NodeRef(tensor_type(t->shape, kDouble)) : rebuilt;
    }
    auto* c = as<ConstantNode>(rebuilt);
    if (c == nullptr || !c->data.dtype().is_floating() || c->data.dtype() == kDouble)
      return rebuilt;
    Tensor data = Tensor::empty(kDouble, c->data.shape());
    for (int64_t i = 0; i < data.num_elements(); ++i)
      data.set_from_double(i, c->data.get_as_double(i));
    return constant(data, c->span);
  }
};

Module without_main(const Module& mod) {
  std::vector<GlobalVar> names;
  std::vector<Function> functions;
  for (size_t i = 0; i < mod->functions.size(); ++i) {
    if (mod->global_vars[i]->name_hint == "main") continue;
    names.push_back(mod->global_vars[i]);
    functions.push_back(mod->functions[i]);
  }
  return make_module(names, functions, mod->type_definitions, mod->attrs);
}

Module derived(const Module& mod, DerivativeKind kind, PassContext& ctx) {
  PassContext own = ctx;
  own.instruments.clear();
  return add_derivative(without_main(mod), mod->find("main"), kind, "main", own);
}

Value tangent(const Type& type, const Value& value, Random& random) {
  if (auto* t = as<TupleTypeNode>(type)) {
    std::vector<Value> fields;
    for (size_t i = 0; i < t->fields.size(); ++i)
      fields.push_back(tangent(t->fields[i], value.field(i), random));
    return Value::tuple(fields);
  }
  if (!value.tensor().dtype().is_floating()) return Value::tuple({});
  return map_floats(value, [&](double) { return 2 * random.unit() - 1; });
}

}  // namespace

const Pass kReverseMode{
    "ReverseMode",
    0,
    Form::any,
    Form::any,
    "@main becomes its gradient.",
    [](const Module& mod, PassContext& ctx) { return derived(mod, DerivativeKind::gradient, ctx); },
    {},
    false};
const Pass kForwardMode{
    "ForwardMode",
    0,
    Form::any,
    Form::any,
    "@main becomes its derivative along tangents.",
    [](const Module& mod, PassContext& ctx) { return derived(mod, DerivativeKind::jvp, ctx); },
    {},
    false};

Module in_doubles(const Module& mod) {
  try {
    return infer_types(InDoubles().apply(mod));
  } catch (const UserError&) {
    return nullptr;
  }
}

Module reverse_mode_as_made(const Module& mod) {
  Derivative made = derivative(without_main(mod), mod->find("main"), DerivativeKind::gradient);
  return with_function(made.module, global_var("main", made.function->type), made.function);
}

bool has_tangents(const Function& f) {
  for (const Var& p : f->params) {
    if (!flatten_tensor_types(p->type)) return false;
  }
  return flatten_tensor_types(f->body->type).has_value();
}

std::vector<Value> Direction::from(const std::vector<Value>& args, double step) const {
  Random random(seed_);
  std::vector<Value> out;
  for (const Value& v : args)
    out.push_back(map_floats(v, [&](double x) { return x + step * (2 * random.unit() - 1); }));
  return out;
}

std::vector<Value> Direction::tangents(const Function& f, const std::vector<Value>& args) const {
  Random random(seed_);
  std::vector<Value> out;
  for (size_t i = 0; i < args.size(); ++i)
    out.push_back(tangent(f->params[i]->type, args[i], random));
  return out;
}

double Direction::slope(const Value& gradients) const {
  Random random(seed_);
  double out = 0;
  map_floats(gradients, [&](double x) {
    out += x * (2 * random.unit() - 1);
    return x;
  });
  return out;
}

double sum_of_floats(const Value& value) {
  double out = 0;
  map_floats(value, [&](double x) {
    out += x;
    return x;
  });
  return out;
}

std::optional<double> measured_slope(const Module& mod, const std::vector<Value>& args,
                                     const Direction& direction, int64_t fuel) {
  // It says that a slope is not what it is.
  bool known = true;
  post_order(mod, [&](const Node& n) {
    auto* op = as<OpNode>(&n);
    known &= op == nullptr || op->name != "stop_gradient";
  });
  if (!known) return std::nullopt;
  double largest = 0;
  auto at = [&](double step) {
    Outcome out = evaluate_main(mod, direction.from(args, step), fuel);
    known &= out.kind == Outcome::value;
    if (!known) return 0.0;
    map_floats(out.result, [&](double x) { return largest = std::max(largest, std::abs(x)); });
    return sum_of_floats(out.result);
  };
  const double here = at(0), right = at(kStep), left = at(-kStep), near_right = at(kStep / 2),
               near_left = at(-kStep / 2);
  if (!known) return std::nullopt;
  const double wide = (right - left) / (2 * kStep), narrow = (near_right - near_left) / kStep;
  const double size = 1 + std::abs(narrow);
  if (!(largest * kRounding <= kSmooth * kStep * size)) return std::nullopt;
  const double jump = std::abs((right - here) - (here - left)) / kStep;
  if (!(jump <= kSmooth * size) || !(std::abs(wide - narrow) <= kSettled * size))
    return std::nullopt;
  return narrow;
}

bool slopes_agree(double a, double b, double tolerance) {
  if (!std::isfinite(a) || !std::isfinite(b)) return true;
  return std::abs(a - b) <= tolerance * (1 + std::max(std::abs(a), std::abs(b)));
}

}  // namespace relay::fuzz
