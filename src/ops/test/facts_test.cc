// The columns of rows that passes and analyses rewrite by, against the evaluator.
#include <gtest/gtest.h>

#include <iostream>

#include "analysis/known_rules.h"
#include "analysis/known_values.h"
#include "eval/evaluator.h"
#include "ir/op.h"
#include "node/structural.h"
#include "ops/test/programs.h"

namespace relay {
namespace {

using runtime::Tensor;

// Integers and halves in the range of the example; nullopt for an argument that is not one static tensor.
std::optional<Tensor> sample(const Type& type, const OpExample& example) {
  auto* t = as<TensorTypeNode>(type);
  auto shape = t == nullptr ? std::nullopt : t->const_shape();
  if (!shape || t->dtype.is_only_moved()) return std::nullopt;
  Tensor out = Tensor::empty(t->dtype, *shape);
  const auto span = std::max<int64_t>(1, static_cast<int64_t>(example.high - example.low));
  for (int64_t i = 0; i < out.num_elements(); ++i) {
    double v = std::ceil(example.low) + static_cast<double>((5 * i + 1) % span);
    if (t->dtype.is_floating()) v += 0.5 * static_cast<double>(i % 2);
    if (t->dtype.is_bool()) v = static_cast<double>(i % 2);
    out.set_from_double(i, v);
  }
  return out;
}

void flatten(const runtime::Value& v, std::vector<Tensor>& out) {
  if (v.is_tensor()) return out.push_back(v.tensor());
  for (size_t i = 0; i < v.num_fields(); ++i) flatten(v.field(i), out);
}

// Compares what is known of a call with what the evaluator gives; the number of elements that are known.
size_t compare_known(const OpInfo& row, const OpExample& example) {
  Module mod = infer(row.name, example.args, example.attrs);
  const Function main = mod->find("main");
  KnownValues known;
  known.bind(main);
  std::vector<runtime::Value> args;
  for (const Var& p : main->params) {
    auto value = sample(p->type, example);
    if (!value) return 0;
    args.emplace_back(*value);
    if (auto elements = known_from(*value)) known.assume(p, *elements);
  }
  std::vector<Tensor> results;
  flatten(Evaluator(mod).call("main", std::move(args)), results);
  size_t compared = 0;
  for (size_t r = 0; r < results.size(); ++r) {
    const bool one = isa<TensorTypeNode>(main->body->type);
    const KnownValue* k =
        known.of(one ? main->body : tuple_get_item(main->body, static_cast<int64_t>(r), {}));
    if (k == nullptr) continue;
    EXPECT_EQ(k->size(), results[r].num_elements());
    for (int64_t i = 0; i < k->size(); ++i) {
      if (k->is_int() && !as_const(k->ints[static_cast<size_t>(i)])) continue;
      EXPECT_EQ(k->float_at(i), results[r].get_as_double(i)) << "element " << i;
      ++compared;
    }
  }
  return compared;
}

TEST(Facts, known_elements_are_those_that_the_evaluator_computes) {
  size_t rows = 0;
  for (const Op& op : all_ops()) {
    const OpInfo& row = *op->row;
    const bool has_map = row.moves && row.moves->map != nullptr;
    if (!row.known && !has_map && !row.reshape_only) continue;
    SCOPED_TRACE(row.name);
    size_t compared = 0;
    for (const OpExample& e : row.examples)
      compared += e.inputs.empty() ? compare_known(row, e) : 0;
    rows += compared > 0;
  }
  std::cout << "known elements of " << rows << " operators\n";
  EXPECT_GE(rows, 45u);
}

TEST(Facts, static_forms_have_the_attributes_that_they_name) {
  size_t rows = 0;
  for (const Op& op : all_ops()) {
    const OpInfo& row = *op->row;
    if (!row.static_form) continue;
    SCOPED_TRACE(row.name);
    const StaticForm& form = *row.static_form;
    const OpInfo& target = *OpRegistry::global().get(form.op)->row;
    EXPECT_EQ(target.args.size(), form.first);
    EXPECT_EQ(row.args.size(), form.first + form.attrs.size());
    auto has = [](const OpInfo& of, const std::string& name) {
      return of.attrs.get() != nullptr &&
             std::ranges::any_of(of.attrs->fields, [&](const Field& f) { return f.name == name; });
    };
    for (const std::string& name : form.attrs) EXPECT_TRUE(has(target, name)) << name;
    for (const std::string& name : form.kept)
      EXPECT_TRUE(has(target, name) && has(row, name)) << name;
    EXPECT_TRUE(!form.names_dtype || has(target, "dtype"));
    ++rows;
  }
  EXPECT_GE(rows, 9u);
}

TEST(Facts, approximations_take_the_same_arguments) {
  size_t rows = 0;
  for (const Op& op : all_ops()) {
    const OpInfo& row = *op->row;
    if (row.approximation.empty()) continue;
    const OpInfo& fast = *OpRegistry::global().get(row.approximation)->row;
    EXPECT_EQ(fast.args.size(), row.args.size()) << row.name;
    EXPECT_EQ(fast.attrs.get(), row.attrs.get()) << row.name;
    ++rows;
  }
  EXPECT_GE(rows, 4u);
}

TEST(Facts, windows_name_a_layout_with_their_axes) {
  size_t rows = 0;
  for (const Op& op : all_ops()) {
    const OpInfo& row = *op->row;
    if (!row.window) continue;
    SCOPED_TRACE(row.name);
    Module mod = infer(row.name, row.examples[0].args, row.examples[0].attrs);
    const Function main = mod->find("main");
    auto& call = *as<CallNode>(main->body);
    const std::string layout = attr_as<std::string>(call.attrs, row.window->layout);
    for (char axis : row.window->axes) EXPECT_NE(layout.find(axis), std::string::npos) << layout;
    EXPECT_EQ(layout.size(), row.window->channels_last().size());
    ++rows;
  }
  EXPECT_GE(rows, 12u);
}

// The operator applied to one operand, which may be both of its arguments.
Tensor applied(const OpInfo& row, const Tensor& x, int times, DType dtype) {
  std::string e = "%x";
  for (int t = 0; t < times; ++t) e = row.name + "(" + e + (row.args.size() == 2 ? ", %x)" : ")");
  std::string type =
      "Tensor[(" + std::to_string(x.num_elements()) + ",), " + dtype.to_string() + "]";
  Module mod = infer_types(
      parse_module("a.relay", "#[version = \"0.0.5\"]\ndef @main(%x: " + type + ") { " + e + " }"));
  std::vector<Tensor> out;
  flatten(Evaluator(mod).call("main", {runtime::Value(x)}), out);
  return out[0];
}

TEST(Facts, algebra_holds_for_every_dtype_that_the_operator_takes) {
  size_t checked = 0;
  for (const Op& op : all_ops()) {
    const OpInfo& row = *op->row;
    const Algebra& a = row.algebra;
    if (!a.idempotent && !a.involution && !a.rounds && !a.of_itself) continue;
    SCOPED_TRACE(row.name);
    for (DType dtype : {DType::Float(32), DType::Int(32), DType::UInt(8), DType::Bool()}) {
      std::string type = "Tensor[(8,), " + dtype.to_string() + "]";
      if (error_of(row.name, std::vector<std::string>(row.args.size(), type), "") != "no error")
        continue;
      const bool is_signed = dtype.is_floating() || dtype.is_int();
      Tensor x = Tensor::empty(dtype, {8});
      for (int64_t i = 0; i < 8; ++i) {
        double v = dtype.is_bool() ? static_cast<double>(i % 2) : static_cast<double>(3 * i);
        if (is_signed) v -= 11;
        if (dtype.is_floating()) v += 0.25 * static_cast<double>(i);
        x.set_from_double(i, v);
      }
      Tensor once = applied(row, x, 1, dtype), twice;
      if (row.args.size() == 1) twice = applied(row, x, 2, dtype);
      for (int64_t i = 0; i < 8; ++i) {
        const double v = x.get_as_double(i), first = once.get_as_double(i);
        if (a.involution) {
          EXPECT_EQ(twice.get_as_double(i), v);
        }
        if (a.idempotent && row.args.size() == 1) {
          EXPECT_EQ(twice.get_as_double(i), first);
        }
        if (a.idempotent && row.args.size() == 2) {
          EXPECT_EQ(first, v);
        }
        if (a.rounds) {
          EXPECT_EQ(first, std::nearbyint(first));
        }
        if (a.rounds && dtype.is_integer()) {
          EXPECT_EQ(first, v);
        }
        if (a.of_itself) {
          EXPECT_EQ(first, static_cast<double>(*a.of_itself));
        }
      }
      ++checked;
    }
  }
  EXPECT_GE(checked, 40u);
}

}  // namespace
}  // namespace relay
