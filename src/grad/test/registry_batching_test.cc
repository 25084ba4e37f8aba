// Every operator in all lanes of a batch against a loop over the lanes, by the evaluator.
#include <gtest/gtest.h>

#include <cmath>
#include <iostream>
#include <random>
#include <set>

#include "eval/evaluator.h"
#include "grad/batch.h"
#include "grad/dataflow.h"
#include "ir/op.h"
#include "ops/test/programs.h"

namespace relay {
namespace {

using runtime::Value;

constexpr int64_t kLanes = 3;

Tensor random_tensor(const TensorTypeNode& t, const OpExample& example, size_t index,
                     std::mt19937& random) {
  Tensor out = Tensor::empty(t.dtype, *t.const_shape());
  bool given = index < example.inputs.size();
  for (int64_t i = 0; i < out.num_elements(); ++i) {
    double u = std::uniform_real_distribution<>(example.low, example.high)(random);
    double x = t.dtype.is_floating() ? u : t.dtype.is_bool() ? u > 0 : std::floor(u);
    out.set_from_double(i, given ? example.inputs[index][static_cast<size_t>(i)] : x);
  }
  return out;
}

// Tensors of one type below each other.
Tensor stacked(const std::vector<Tensor>& lanes) {
  std::vector<int64_t> shape(lanes[0].shape().begin(), lanes[0].shape().end());
  shape.insert(shape.begin(), static_cast<int64_t>(lanes.size()));
  Tensor out = Tensor::empty(lanes[0].dtype(), shape);
  int64_t at = 0;
  for (const Tensor& lane : lanes) {
    for (int64_t i = 0; i < lane.num_elements(); ++i)
      out.set_from_double(at++, lane.get_as_double(i));
  }
  return out;
}

Value value_of(const Type& type, const std::vector<Tensor>& tensors, size_t& next) {
  auto* t = as<TupleTypeNode>(type);
  if (t == nullptr) return tensors[next++];
  std::vector<Value> fields;
  for (const Type& f : t->fields) fields.push_back(value_of(f, tensors, next));
  return Value::tuple(fields);
}

void flatten(const Value& v, std::vector<Tensor>& out) {
  if (v.is_tensor()) return out.push_back(v.tensor());
  for (size_t i = 0; i < v.num_fields(); ++i) flatten(v.field(i), out);
}

std::vector<Tensor> run(const Module& mod, const std::string& name,
                        const std::vector<Tensor>& tensors) {
  std::vector<Value> args;
  size_t next = 0;
  for (const Var& p : mod->find(name)->params) args.push_back(value_of(p->type, tensors, next));
  std::vector<Tensor> out;
  flatten(Evaluator(mod).call(name, std::move(args)), out);
  return out;
}

void expect_equal(const Tensor& found, const Tensor& wanted) {
  ASSERT_EQ(std::vector<int64_t>(found.shape().begin(), found.shape().end()),
            std::vector<int64_t>(wanted.shape().begin(), wanted.shape().end()));
  EXPECT_EQ(found.dtype(), wanted.dtype());
  for (int64_t i = 0; i < found.num_elements(); ++i) {
    double a = found.get_as_double(i), b = wanted.get_as_double(i);
    if (std::isnan(a) && std::isnan(b)) continue;
    ASSERT_LE(std::abs(a - b), 2e-5 * (1 + std::abs(b))) << "element " << i;
  }
}

bool has_open_sizes(const Type& type) { return to_string(type).find('?') != std::string::npos; }

// The call in lanes of the arguments that are chosen; whether it ran in one piece.
bool check(const Module& mod, const OpExample& example, const std::vector<bool>& chosen,
           const Dim& lanes) {
  Function f = mod->find("main");
  BatchOptions options{.lanes = lanes};
  options.in_axes.emplace();
  for (bool c : chosen) options.in_axes->push_back({c ? std::optional<int64_t>(0) : std::nullopt});
  Batched made;
  try {
    made = batch(mod, "main", options);
  } catch (const UserError& e) {
    // Each lane has a size of its own.
    EXPECT_TRUE(has_open_sizes(f->body->type)) << e.what();
    EXPECT_NE(std::string(e.what()).find("E1105"), std::string::npos) << e.what();
    return true;
  }
  std::mt19937 random(5);
  std::vector<std::vector<Tensor>> inputs(kLanes);
  std::vector<Tensor> all;
  for (size_t i = 0; i < chosen.size(); ++i) {
    const auto tensors = flatten_tensor_types(f->params[i]->type);
    for (const TensorType& t : *tensors) {
      size_t at = inputs[0].size();
      std::vector<Tensor> each;
      for (int64_t lane = 0; lane < kLanes; ++lane) {
        bool again = lane > 0 && !chosen[i];
        each.push_back(again ? each[0] : random_tensor(*t.get(), example, at, random));
        inputs[static_cast<size_t>(lane)].push_back(each.back());
      }
      all.push_back(chosen[i] ? stacked(each) : each[0]);
    }
  }
  std::vector<std::vector<Tensor>> wanted;
  for (const std::vector<Tensor>& lane : inputs) wanted.push_back(run(mod, "main", lane));
  Module batched =
      with_function(made.module, global_var("batched", made.function->type), made.function);
  std::vector<Tensor> found = run(batched, "batched", all);
  EXPECT_EQ(found.size(), wanted[0].size());
  for (size_t k = 0; k < found.size() && k < wanted[0].size(); ++k) {
    std::vector<Tensor> each;
    for (const std::vector<Tensor>& lane : wanted) each.push_back(lane[k]);
    expect_equal(found[k], stacked(each));
  }
  return made.lane_by_lane.empty();
}

TEST(RegistryBatching, equals_a_loop_over_the_lanes) {
  register_ops();
  std::set<std::string> in_lanes, one_by_one, loops;
  size_t cases = 0;
  for (const Op& op : OpRegistry::global().all()) {
    const OpInfo& row = *op->row;
    // What is written in others is batched as these are; what draws from no key gives other numbers.
    if (!row.compute || row.effect.get() != Effect::Pure || row.args.empty()) continue;
    bool rule = row.batching || row.batching.unsaid() || row.batching.reason() == Absent::OnlySizes;
    for (const OpExample& example : row.examples) {
      SCOPED_TRACE(program_of(row.name, example.args, example.attrs));
      try {
        Module mod = infer(row.name, example.args, example.attrs);
        // Strings are not drawn, nor compared.
        if (to_string(Type(mod->find("main")->type)).find("string") != std::string::npos) continue;
        (rule ? in_lanes : one_by_one).insert(row.name);
        size_t count = example.args.size();
        std::vector<std::vector<bool>> choices{std::vector<bool>(count, true)};
        for (size_t i = 0; count > 1 && i < count; ++i) {
          choices.emplace_back(count, false);
          choices.back()[i] = true;
        }
        for (size_t c = 0; c < choices.size(); ++c) {
          std::string which;
          for (bool b : choices[c]) which += b ? '1' : '0';
          SCOPED_TRACE(which);
          bool whole = check(mod, example, choices[c], dim(kLanes));
          if (!whole && rule) loops.insert(row.name + " " + which);
          if (c == 0) check(mod, example, choices[c], dim(type_var("b", Kind::Dim)));
          ++cases;
        }
      } catch (const std::exception& e) {
        ADD_FAILURE() << e.what();
      }
    }
  }
  std::cout << in_lanes.size() << " operators, " << cases << " cases; " << one_by_one.size()
            << " one lane after the other:";
  for (const std::string& name : one_by_one) std::cout << ' ' << name;
  std::cout << "\nwith a rule, and yet in a loop for some arguments:\n";
  for (const std::string& name : loops) std::cout << "  " << name << '\n';
  EXPECT_GE(in_lanes.size(), 182u);
  EXPECT_LE(one_by_one.size(), 29u);
  EXPECT_LE(loops.size(), 37u);
}

}  // namespace
}  // namespace relay
