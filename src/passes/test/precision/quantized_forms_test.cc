// Every row with a quantised form: its examples on dequantised arguments, before and after FakeQuantizationToInteger.
#include <cmath>
#include <iostream>
#include <optional>

#include "analysis/calls.h"
#include "ir/op.h"
#include "ops/test/programs.h"
#include "passes/precision/fake_quantization_to_integer.h"
#include "passes/test/evaluate.h"
#include "passes/test/pass_test.h"

namespace relay {
namespace {

// real = kScale * (data - kZero)
constexpr double kScale = 0.125, kWantedScale = 0.25;
constexpr int64_t kZero = 7, kWantedZero = 3;

Expr scale(double value) { return constant(value, DType::Float(32), {}); }
Expr zero(int64_t value) { return constant(static_cast<double>(value), DType::Int(32), {}); }

// A call of a row's example whose floats are dequantised bytes.
class Program {
 public:
  Program(const OpInfo& row, const OpExample& example) : example_(example) {
    const Function main = infer(row.name, example.args, example.attrs)->find("main");
    auto& given = *as<CallNode>(main->body);
    std::vector<Expr> args;
    for (const Expr& a : given.args) args.push_back(argument(a->type));
    call_ = call(given.op, std::move(args), given.attrs, given.span);
  }

  bool has_floats() const { return has_floats_; }
  bool gives_one_float() const {
    auto* t = as<TensorTypeNode>(call_->type);
    return t != nullptr && t->dtype == DType::Float(32);
  }

  Module module() const { return of(call_); }
  Module quantized() const {
    return of(make_call("qnn.quantize", {call_, scale(kWantedScale), zero(kWantedZero)},
                        {{"out_dtype", std::string("uint8")}}, Span()));
  }

  std::vector<Tensor> run(const Module& mod) const {
    std::vector<runtime::Value> args;
    for (const Var& p : params_) args.push_back(sample(*as<TensorTypeNode>(p->type)));
    std::vector<Tensor> out;
    pass_test::flatten(Evaluator(mod).call("main", std::move(args)), out);
    return out;
  }

 private:
  Expr argument(const Type& type) {
    if (auto* t = as<TupleTypeNode>(type)) {
      std::vector<Expr> fields;
      for (const Type& f : t->fields) fields.push_back(argument(f));
      return tuple(std::move(fields));
    }
    auto* t = as<TensorTypeNode>(type);
    const bool real = t->dtype == DType::Float(32);
    has_floats_ |= real;
    params_.push_back(var("x" + std::to_string(params_.size()),
                          real ? Type(tensor_type(t->shape, DType::UInt(8))) : type));
    return real ? make_call("qnn.dequantize", {params_.back(), scale(kScale), zero(kZero)}, {},
                            Span())
                : Expr(params_.back());
  }

  Module of(const Expr& body) const {
    return infer_types(module_from_expr(function(params_, body)));
  }

  // Bytes that stand for positive numbers, and indices in the range of the example.
  Tensor sample(const TensorTypeNode& type) const {
    const bool byte = type.dtype == DType::UInt(8);
    const auto span = std::max<int64_t>(1, static_cast<int64_t>(example_.high - example_.low));
    return pass_test::sample(Type(&type), [&](int64_t i) {
      if (type.dtype.is_bool()) return static_cast<double>(i % 2);
      return byte ? static_cast<double>(20 + (37 * i + 11) % 200)
                  : std::ceil(example_.low) + static_cast<double>((5 * i + 1) % span);
    });
  }

  const OpExample& example_;
  std::vector<Var> params_;
  bool has_floats_ = false;
  Expr call_;
};

bool has_form(const OpInfo& row) {
  return row.quantized != nullptr || row.moves || row.reshape_only;
}

// Compares the programs; whether the pass changed something.
bool compare(const Program& p, const Module& before, double tolerance) {
  Module after = pass_test::apply(kFakeQuantizationToInteger, before);
  if (after == before) return false;
  std::vector<Tensor> want = p.run(before), got = p.run(after);
  EXPECT_EQ(want.size(), got.size());
  for (size_t r = 0; r < want.size(); ++r) {
    EXPECT_EQ(want[r].dtype(), got[r].dtype());
    const bool real = want[r].dtype().is_floating();
    for (int64_t i = 0; i < want[r].num_elements(); ++i) {
      const double w = want[r].get_as_double(i), g = got[r].get_as_double(i);
      const double most = real ? 1e-5 * std::max(1.0, std::fabs(w)) : tolerance;
      if (!(std::fabs(w - g) <= most)) {
        ADD_FAILURE() << "element " << i << ": " << g << ", not " << w << "\n"
                      << print_module(after);
        return true;
      }
    }
  }
  return true;
}

TEST(QuantizedForms, compute_what_floats_compute) {
  register_ops();
  size_t rows = 0;
  for (const Op& op : OpRegistry::global().all()) {
    const OpInfo& row = *op->row;
    if (!has_form(row)) continue;
    SCOPED_TRACE(row.name);
    bool floats = false, changed = false;
    for (const OpExample& e : row.examples) {
      if (!e.inputs.empty()) continue;
      SCOPED_TRACE(e.attrs);
      Program p(row, e);
      if (!p.has_floats()) continue;
      floats = true;
      changed |= compare(p, p.module(), 0);
      // Whatever the form rounds, it is at most one quantum off.
      if (p.gives_one_float()) changed |= compare(p, p.quantized(), 1);
    }
    // Forms of some calls only are tested by name.
    const bool some_calls = row.moves && row.moves->when != nullptr;
    if (floats && !some_calls) {
      EXPECT_TRUE(changed) << "no example has a form of integers";
    }
    rows += changed;
  }
  std::cout << rows << " operators have a form of integers\n";
  EXPECT_GE(rows, 60u);
}

}  // namespace
}  // namespace relay
