// Every gradient of the registry against finite differences, in float64, by the evaluator.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <map>
#include <random>
#include <set>
#include <sstream>

#include "analysis/definitions.h"
#include "base/test/source_dir.h"
#include "eval/evaluator.h"
#include "grad/call_gradient.h"
#include "grad/dataflow.h"
#include "ir/op.h"
#include "node/walk.h"
#include "ops/test/programs.h"

namespace relay {
namespace {

using runtime::Value;

std::string in_float64(std::string text) {
  for (size_t at = 0; (at = text.find("float32", at)) != std::string::npos;)
    text.replace(at, 7, "float64");
  return text;
}

// The sizes above 1 of the leading tensor types as named dimensions, equal ones alike.
bool with_names(const OpExample& example, OpExample& out, std::string& dims) {
  out = example;
  std::vector<std::string> known;
  for (std::string& arg : out.args) {
    if (arg.find("Tensor[(") != 0) continue;
    size_t begin = 8, end = arg.find(')');
    std::string shape = arg.substr(begin, end - begin), now, size;
    for (char c : shape + ",") {
      if (c != ',' && c != ' ') {
        size += c;
      } else if (c == ',' && !size.empty()) {
        if (std::stoi(size) > 1) {
          std::string name = "n" + size;
          if (std::ranges::find(known, name) == known.end()) known.push_back(name);
          size = name;
        }
        now += (now.empty() ? "" : ", ") + size;
        size.clear();
      }
    }
    if (known.empty()) return false;
    arg.replace(begin, end - begin, now + (now.find(',') == std::string::npos ? "," : ""));
  }
  for (const std::string& name : known) dims += (dims.empty() ? "" : ", ") + name + ": Dim";
  return !known.empty();
}

Tensor random_tensor(const TensorTypeNode& t, const std::vector<int64_t>& shape, double low,
                     double high, std::mt19937& random) {
  Tensor out = Tensor::empty(t.dtype, shape);
  for (int64_t i = 0; i < out.num_elements(); ++i) {
    double u = std::uniform_real_distribution<>(low, high)(random);
    out.set_from_double(i, t.dtype.is_floating() ? u : t.dtype.is_bool() ? u > 0 : std::floor(u));
  }
  return out;
}

void flatten_tensors(const Value& v, std::vector<Tensor>& out) {
  if (v.is_tensor()) return out.push_back(v.tensor());
  for (size_t i = 0; i < v.num_fields(); ++i) flatten_tensors(v.field(i), out);
}

Value of_type(const Type& type, const std::vector<Tensor>& tensors, size_t& next) {
  auto* t = as<TupleTypeNode>(type);
  if (t == nullptr) return tensors[next++];
  std::vector<Value> fields;
  for (const Type& f : t->fields) fields.push_back(of_type(f, tensors, next));
  return Value::tuple(fields);
}

// A function of flat lists of tensors.
class Program {
 public:
  explicit Program(Function f) : f_(std::move(f)), eval_(module_from_expr(f_)) {}

  std::vector<Tensor> run(const std::vector<Tensor>& inputs) {
    std::vector<Value> args;
    size_t next = 0;
    for (const Var& p : f_->params) args.push_back(of_type(p->type, inputs, next));
    std::vector<Tensor> out;
    flatten_tensors(eval_.call("main", std::move(args)), out);
    return out;
  }

 private:
  Function f_;
  Evaluator eval_;
};

double dot(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    if (!a[i] || !b[i]) continue;
    EXPECT_EQ(a[i].num_elements(), b[i].num_elements());
    for (int64_t k = 0; k < a[i].num_elements(); ++k)
      sum += a[i].get_as_double(k) * b[i].get_as_double(k);
  }
  return sum;
}

// The inputs, moved along a direction; null where there is none.
std::vector<Tensor> moved(const std::vector<Tensor>& x, const std::vector<Tensor>& d, double by) {
  std::vector<Tensor> out = x;
  for (size_t i = 0; i < x.size(); ++i) {
    if (!d[i]) continue;
    out[i] = Tensor::empty(x[i].dtype(), x[i].shape());
    for (int64_t k = 0; k < x[i].num_elements(); ++k)
      out[i].set_from_double(k, x[i].get_as_double(k) + by * d[i].get_as_double(k));
  }
  return out;
}

// A call with its arguments and weights of its result as parameters; the derivatives of their product
// by the arguments, and along a direction.
struct Derivatives {
  Function value, gradient, tangent, second;
  std::vector<TensorType> inputs, outputs;
};

std::vector<Expr> floating_only(std::vector<Expr> list) {
  std::erase_if(list, [](const Expr& e) { return !e || !is_floating(e->type); });
  return list;
}

// The adjoints of the arguments' tensors, and the tangents of the result's: of a row with a gradient what
// that says, of one with a definition what follows from it.
struct Modes {
  std::vector<Expr> gradient, tangent;
};

Modes modes_of(const Function& f, const std::vector<Expr>& args, const std::vector<Expr>& weights,
               const std::vector<Expr>& directions) {
  const auto* call = as<CallNode>(f->body);
  if (as<OpNode>(call->op)->row->gradient) {
    return {call_gradient(*call, f->body, weights), call_tangent(*call, f->body, directions)};
  }
  Expr body = expand_for_gradients(f)->body;
  auto flat = [](const std::vector<std::vector<Expr>>& lists) {
    std::vector<Expr> all;
    for (const std::vector<Expr>& list : lists) all.insert(all.end(), list.begin(), list.end());
    return all;
  };
  Modes out;
  out.gradient = flat(
      dataflow_gradient({{body, weights}}, std::vector<Expr>(f->params.begin(), f->params.end())));
  // The gradient is linear in the weights: the tangent is its transpose.
  std::vector<Seed> seeds;
  for (size_t i = 0; i < args.size(); ++i) {
    if (out.gradient[i]) seeds.push_back({out.gradient[i], {directions[i]}});
  }
  std::vector<Expr> wrt = weights, values = tensors_of(body);
  std::erase_if(wrt, [](const Expr& e) { return !e; });
  std::vector<Expr> found = flat(dataflow_gradient(seeds, wrt));
  // It depends on the weights' shapes alone, which the results have, too.
  Rewriter rewriter(family::expr);
  for (size_t k = 0; k < weights.size(); ++k) {
    if (weights[k]) rewriter.set(weights[k], values[k]);
  }
  size_t next = 0;
  for (const Expr& w : weights) {
    Expr tangent = w ? found[next++] : Expr(nullptr);
    out.tangent.push_back(tangent ? rewriter.apply(tangent) : tangent);
  }
  return out;
}

Derivatives derivatives_of(const Function& f, bool with_second) {
  Derivatives out;
  std::vector<Expr> args, weights, directions;
  std::vector<Var> params = f->params, extra;
  for (const Var& p : f->params) {
    for (const Expr& e : tensors_of(p)) {
      args.push_back(e);
      out.inputs.push_back(cast<TensorTypeNode>(e->type));
      directions.emplace_back();
      if (!is_floating(e->type)) continue;
      extra.push_back(var("d", e->type));
      directions.back() = extra.back();
    }
  }
  std::vector<Var> weight_params;
  for (const Expr& e : tensors_of(f->body)) {
    out.outputs.push_back(cast<TensorTypeNode>(e->type));
    weights.emplace_back();
    if (!is_floating(e->type)) continue;
    weight_params.push_back(var("w", e->type));
    weights.back() = weight_params.back();
  }
  auto whole = [&](const std::vector<Expr>& results, const std::vector<Var>& more) {
    std::vector<Var> all = params;
    all.insert(all.end(), more.begin(), more.end());
    return function(all, tuple(results), nullptr, f->type_params);
  };
  auto [gradient, tangent] = modes_of(f, args, weights, directions);
  std::vector<Expr> gradients, tangents;
  for (size_t i = 0; i < args.size(); ++i) {
    if (is_floating(args[i]->type))
      gradients.push_back(gradient[i] ? gradient[i] : zeros_of(args[i]));
  }
  std::vector<Expr> values = tensors_of(f->body);
  for (size_t i = 0; i < values.size(); ++i) {
    if (is_floating(values[i]->type))
      tangents.push_back(tangent[i] ? tangent[i] : zeros_of(values[i]));
  }
  out.value = whole(floating_only(values), {});
  out.gradient = whole(gradients, weight_params);
  out.tangent = whole(tangents, extra);
  if (!with_second) return out;
  // The gradient of the gradient, weighted by the direction.
  std::vector<Seed> seeds;
  for (size_t i = 0; i < args.size(); ++i) {
    if (gradient[i]) seeds.push_back({gradient[i], {directions[i]}});
  }
  std::vector<Expr> wrt(params.begin(), params.end()), seconds;
  size_t next = 0;
  for (const std::vector<Expr>& found : dataflow_gradient(seeds, wrt)) {
    for (const Expr& e : found) {
      const Expr& arg = args[next++];
      if (is_floating(arg->type)) seconds.push_back(e ? e : zeros_of(arg));
    }
  }
  std::vector<Var> more = weight_params;
  more.insert(more.end(), extra.begin(), extra.end());
  out.second = whole(seconds, more);
  return out;
}

void expect_close(double found, double wanted, double scale, const std::string& what) {
  EXPECT_LE(std::abs(found - wanted), 2e-6 * (scale + std::abs(wanted))) << what;
}

void check(const Derivatives& d, const std::vector<Tensor>& inputs, std::mt19937& random) {
  constexpr double kStep = 1e-5;
  std::vector<Tensor> direction(inputs.size()), along, weights;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!d.inputs[i]->dtype.is_floating()) continue;
    std::vector<int64_t> shape(inputs[i].shape().begin(), inputs[i].shape().end());
    direction[i] = random_tensor(*d.inputs[i].get(), shape, -1, 1, random);
    along.push_back(direction[i]);
  }
  Program value(d.value), gradient(d.gradient), tangent(d.tangent);
  std::vector<Tensor> y = value.run(inputs);
  double scale = 0;
  std::vector<TensorType> floating;
  for (const TensorType& t : d.outputs) {
    if (t->dtype.is_floating()) floating.push_back(t);
  }
  for (size_t i = 0; i < y.size(); ++i) {
    std::vector<int64_t> shape(y[i].shape().begin(), y[i].shape().end());
    weights.push_back(random_tensor(*floating[i].get(), shape, -1, 1, random));
    for (int64_t k = 0; k < y[i].num_elements(); ++k) scale += std::abs(y[i].get_as_double(k));
  }
  auto with = [](std::vector<Tensor> a, const std::vector<Tensor>& b) {
    a.insert(a.end(), b.begin(), b.end());
    return a;
  };
  double numeric = (dot(value.run(moved(inputs, direction, kStep)), weights) -
                    dot(value.run(moved(inputs, direction, -kStep)), weights)) /
                   (2 * kStep);
  std::vector<Tensor> g = gradient.run(with(inputs, weights));
  double reverse = dot(g, along);
  expect_close(reverse, numeric, 1 + scale, "reverse mode against finite differences");
  double forward = dot(tangent.run(with(inputs, along)), weights);
  expect_close(forward, reverse, 1e-3, "forward mode against reverse mode");
  if (!d.second) return;
  auto first = [&](double by) {
    return dot(gradient.run(with(moved(inputs, direction, by), weights)), along);
  };
  double second_numeric = (first(kStep) - first(-kStep)) / (2 * kStep);
  double second = dot(Program(d.second).run(with(with(inputs, weights), along)), along);
  double size = 0;
  for (const Tensor& t : g) {
    for (int64_t k = 0; k < t.num_elements(); ++k) size += std::abs(t.get_as_double(k));
  }
  expect_close(second, second_numeric, 1 + size, "second derivative against finite differences");
}

// Numbers that an operator chooses by are integers, drawn as its example says.
std::vector<Tensor> draw(const Function& f, const OpExample& example, std::mt19937& random) {
  std::vector<Tensor> out;
  for (const Var& p : f->params) {
    auto types = *flatten_tensor_types(p->type);
    for (const TensorType& t : types) {
      Tensor x = random_tensor(*t.get(), *t->const_shape(), example.low, example.high, random);
      if (out.size() < example.inputs.size()) {
        const std::vector<double>& given = example.inputs[out.size()];
        for (size_t k = 0; k < given.size(); ++k)
          x.set_from_double(static_cast<int64_t>(k), given[k]);
      }
      out.push_back(x);
    }
  }
  return out;
}

bool differentiable(const Function& f) {
  bool in = false;
  for (const Var& p : f->params) in |= has_floats(p->type);
  return in && has_floats(f->body->type);
}

Function main_function(const Module& mod) { return cast<FunctionNode>(mod->find("main")); }

TEST(RegistryGradient, equals_finite_differences) {
  register_ops();
  size_t rows = 0, cases = 0, symbolic = 0;
  std::set<std::string> only_float32;
  for (const Op& op : OpRegistry::global().all()) {
    const OpInfo& row = *op->row;
    // Two are there to give another derivative than their own. Two jump when an element and the greatest of its
    // window are moved apart; they are tested as the first and second derivatives of pools.
    const std::set<std::string_view> others{"stop_gradient", "annotation.derivative_of",
                                            "nn.max_pool_gather", "nn.max_pool_spread"};
    bool defined = row.definition && row.gradient.reason() == Absent::Pending;
    if ((!row.gradient && !defined) || others.contains(row.name)) continue;
    bool first = true;
    for (const OpExample& given : row.examples) {
      OpExample example = given;
      for (std::string& a : example.args) a = in_float64(a);
      example.attrs = in_float64(example.attrs);
      SCOPED_TRACE(program_of(row.name, example.args, example.attrs));
      std::mt19937 random(17);
      try {
        Function f;
        try {
          f = main_function(infer(row.name, example.args, example.attrs));
        } catch (const UserError&) {
          only_float32.insert(row.name);
          continue;
        }
        if (!differentiable(f)) continue;
        rows += first;
        std::vector<Tensor> inputs = draw(f, example, random);
        // What has no elements has nothing to differentiate, but must go through.
        check(derivatives_of(f, first), inputs, random);
        ++cases;
        OpExample named;
        std::string dims;
        if (!first || !with_names(example, named, dims)) {
          first = false;
          continue;
        }
        first = false;
        Function open;
        try {
          open = main_function(infer(row.name, named.args, named.attrs, dims));
        } catch (const UserError&) {
          continue;  // the operator wants known sizes
        }
        SCOPED_TRACE("with named sizes");
        check(derivatives_of(open, false), inputs, random);
        ++symbolic;
      } catch (const std::exception& e) {
        ADD_FAILURE() << e.what();
      }
    }
  }
  std::cout << rows << " operators, " << cases << " cases, " << symbolic
            << " of them with named sizes, too\n";
  // Differences are no test in float32; its definition's operators are tested each by itself.
  EXPECT_EQ(only_float32, std::set<std::string>{"nn.contrib_dense_bits"});
  EXPECT_GE(rows, 110u);
  EXPECT_GE(symbolic, 60u);
}

// A line for each way to have a gradient, and for each reason to have none.
std::string gradient_reference() {
  std::map<std::string, std::string> lines;
  for (const Op& op : OpRegistry::global().all()) {
    const OpInfo& row = *op->row;
    const Absent reason = row.gradient.reason();
    const bool defined =
        row.definition != nullptr && (reason == Absent::Pending || reason == Absent::Defined);
    std::string has = row.gradient ? "1 | a rule of its own"
                      : defined    ? "2 | that of what it is written in"
                                   : "3 | none: " + std::string(to_string(reason));
    lines[has] += " `" + row.name + "`";
  }
  std::string out;
  for (const auto& [has, names] : lines) out += has.substr(2) + " |" + names + " |\n";
  return out;
}

TEST(RegistryGradient, docs_name_every_row) {
  register_ops();
  const std::string path = std::string(test::source_dir()) + "/docs/gradients.md";
  std::stringstream read;
  read << std::ifstream(path).rdbuf();
  std::string docs = read.str();
  const std::string table = gradient_reference();
  const size_t begin = docs.find("| a rule of its own"), end = docs.rfind("|\n");
  if (std::getenv("RELAY_UPDATE") != nullptr && begin != docs.npos) {
    docs.replace(begin, end + 2 - begin, table);
    std::ofstream(path) << docs;
  }
  EXPECT_NE(docs.find(table), docs.npos) << "run this test with RELAY_UPDATE=1";
}

// What is said to have none is constant between the places where its data make it jump. What else it
// takes are the numbers of a trained model: the leaves of trees.
TEST(RegistryGradient, rows_without_one_do_not_move) {
  register_ops();
  size_t rows = 0;
  for (const Op& op : OpRegistry::global().all()) {
    const OpInfo& row = *op->row;
    if (row.gradient || row.gradient.reason() != Absent::NotDifferentiable) continue;
    if (!row.compute || row.effect.get() != Effect::Pure) continue;
    // It looks for elements that equal the greatest of their window, which a step moves apart.
    if (row.name == "nn.max_pool_places") continue;
    for (OpExample example : row.examples) {
      for (std::string& a : example.args) a = in_float64(a);
      example.attrs = in_float64(example.attrs);
      SCOPED_TRACE(program_of(row.name, example.args, example.attrs));
      Function f;
      try {
        f = main_function(infer(row.name, example.args, example.attrs));
      } catch (const UserError&) {
        continue;  // only for float32
      }
      if (!differentiable(f)) continue;
      std::mt19937 random(17);
      std::vector<Tensor> inputs = draw(f, example, random), direction(inputs.size());
      const auto data = *flatten_tensor_types(f->params[0]->type);
      for (size_t i = 0; i < data.size(); ++i) {
        if (data[i]->dtype.is_floating())
          direction[i] = random_tensor(*data[i].get(), *data[i]->const_shape(), -1, 1, random);
      }
      Program program(f);
      std::vector<Tensor> before = program.run(inputs),
                          after = program.run(moved(inputs, direction, 1e-9));
      ASSERT_EQ(before.size(), after.size());
      for (size_t k = 0; k < before.size(); ++k) {
        ASSERT_EQ(before[k].num_elements(), after[k].num_elements());
        for (int64_t i = 0; i < before[k].num_elements(); ++i)
          EXPECT_EQ(before[k].get_as_double(i), after[k].get_as_double(i)) << "element " << i;
      }
      ++rows;
    }
  }
  EXPECT_GE(rows, 2u);
}

}  // namespace
}  // namespace relay
