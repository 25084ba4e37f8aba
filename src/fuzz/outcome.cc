#include "fuzz/outcome.h"

#include <algorithm>
#include <cmath>

#include "eval/evaluator.h"
#include "fuzz/values.h"
#include "ir/op.h"
#include "node/walk.h"

namespace relay::fuzz {
namespace {

using runtime::Value;

// How many noisy runs are made.
constexpr int kRuns = 6;
// A difference of this many times the noise's effect is still rounding: errors add up.
constexpr double kSlack = 16;
// Where noise moves a number by this part of it, its condition is about the inverse of an epsilon: it may as well be infinite,
// as an element of the inverse of a singular matrix.
constexpr double kIllConditioned = 0.25;

double epsilon_of(DType t) {
  if (t.is_float(16)) return 0x1p-10;
  if (t.is_bfloat16()) return 0x1p-7;
  return t.is_float(32) ? 0x1p-23 : 0x1p-52;
}

// Of the coarsest float type that the program computes with.
double coarsest_epsilon(const Module& mod) {
  double out = 0x1p-52;
  post_order(mod, [&](const Node& n) {
    auto* t = as<TensorTypeNode>(&n);
    if (t == nullptr && n.info().family == family::expr) {
      t = as<TensorTypeNode>(static_cast<const ExprNode&>(n).type);
    }
    if (t != nullptr && t->dtype.is_floating()) out = std::max(out, epsilon_of(t->dtype));
  });
  return out;
}

// Multiplies the result of every operator that gives floats by numbers close to one.
class AddNoise : public Rewriter {
 public:
  AddNoise(double size, Random& random)
      : Rewriter(family::program | family::module), size_(size), random_(random) {}

 protected:
  NodeRef post(const NodeRef&, NodeRef rebuilt) override {
    auto* call_node = as<CallNode>(rebuilt);
    if (call_node == nullptr || !isa<OpNode>(call_node->op)) return rebuilt;
    auto* type = as<TensorTypeNode>(call_node->type);
    if (type == nullptr || !type->dtype.is_floating()) return rebuilt;
    Tensor noise = Tensor::empty(type->dtype, type->const_shape().value_or(std::vector<int64_t>{}));
    for (int64_t i = 0; i < noise.num_elements(); ++i) {
      noise.set_from_double(i, 1 + size_ * (2 * random_.unit() - 1));
    }
    return call("multiply", {Expr(call_node), constant(noise)});
  }

 private:
  double size_;
  Random& random_;
};

}  // namespace

Outcome outcome_of(const std::function<Value()>& work) {
  Outcome out;
  try {
    out.result = work();
    return out;
  } catch (const InternalError& e) {
    out.kind = Outcome::defect;
    out.text = e.what();
  } catch (const Error& e) {
    out.kind = Outcome::user_error;
    out.text = e.what();
    out.code = e.diagnostics().empty() ? std::string() : std::string(e.diagnostics()[0].code);
  } catch (const std::exception& e) {
    out.kind = Outcome::defect;
    out.text = e.what();
  }
  return out;
}

Outcome evaluate_main(const Module& mod, const std::vector<Value>& args, int64_t fuel) {
  return outcome_of([&] {
    EvalOptions options;
    options.fuel = fuel;
    return Evaluator(mod, options).call("main", args);
  });
}

bool explained_by_rounding(const Module& mod, const std::vector<Value>& args, const Value& got,
                           const Value& want, int64_t fuel) {
  std::vector<double> difference = distances(got, want);
  std::vector<double> spread(difference.size(), 0), change = spread;
  double size = 4 * coarsest_epsilon(mod);
  Random random(1);
  for (int run = 0; run < kRuns; ++run) {
    Module noisy = AddNoise(size, random).apply(mod);
    std::vector<Value> moved;
    for (const Value& v : args) moved.push_back(perturb(v, size, random));
    Outcome outcome = evaluate_main(noisy, moved, 4 * fuel);
    if (outcome.kind != Outcome::value) return true;
    std::vector<double> d = distances(outcome.result, want);
    // The noise has led along another path.
    if (d.size() != spread.size()) return true;
    std::vector<double> c = relative_changes(outcome.result, want);
    for (size_t i = 0; i < d.size(); ++i) {
      spread[i] = std::max(spread[i], d[i]);
      change[i] = std::max(change[i], c[i]);
    }
  }
  for (size_t i = 0; i < difference.size(); ++i) {
    if (difference[i] <= 1 || difference[i] <= kSlack * spread[i]) continue;
    if (!std::isinf(difference[i]) || change[i] < kIllConditioned) return false;
  }
  return true;
}

}  // namespace relay::fuzz
