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
#include "ops/test/draw_calls.h"

namespace relay {
namespace {

using runtime::Value;

constexpr int64_t kLanes = 3;

Tensor random_tensor(const TensorTypeNode& t, const OpExample& example, size_t index,
                     std::mt19937& random) {
  Tensor out = Tensor::empty(t.dtype, *t.const_shape());
  bool given = index < example.inputs.size();
  auto value = [&](int64_t i) {
    const std::vector<double>& list = example.inputs[index];
    return list[static_cast<size_t>(i) % list.size()];
  };
  for (int64_t i = 0; i < out.num_elements(); ++i) {
    double u = std::uniform_real_distribution<>(example.low, example.high)(random);
    double x = t.dtype.is_floating() ? u : t.dtype.is_bool() ? u > 0 : std::floor(u);
    out.set_from_double(i, given ? value(i) : x);
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
    if (a == b || (std::isnan(a) && std::isnan(b))) continue;
    ASSERT_LE(std::abs(a - b), 2e-5 * (1 + std::abs(b))) << "element " << i;
  }
}

bool has_open_sizes(const Type& type) { return to_string(type).find('?') != std::string::npos; }

// Axes for the tensors that are chosen, of all parameters one after the other.
std::vector<BatchAxes> axes_of(const Function& f, const std::vector<bool>& chosen) {
  std::vector<BatchAxes> out;
  size_t next = 0;
  auto axis = [&] { return BatchAxes{chosen[next++] ? std::optional<int64_t>(0) : std::nullopt}; };
  for (const Var& p : f->params) {
    auto* t = as<TupleTypeNode>(p->type);
    if (t == nullptr) {
      out.push_back(axis());
      continue;
    }
    out.emplace_back();
    for (size_t i = 0; i < t->fields.size(); ++i) out.back().fields.push_back(axis());
  }
  return out;
}

std::vector<TensorType> parameter_tensors(const Function& f) {
  std::vector<TensorType> out;
  for (const Var& p : f->params) {
    const auto tensors = flatten_tensor_types(p->type);
    out.insert(out.end(), tensors->begin(), tensors->end());
  }
  return out;
}

enum class Outcome { in_one_piece, in_a_loop, ragged, fails };

// The call in lanes of the tensors that are chosen, against one lane after the other.
Outcome check(const Module& mod, const OpExample& example, const std::vector<bool>& chosen,
              const Dim& lanes) {
  Function f = mod->find("main");
  BatchOptions options{.lanes = lanes};
  options.in_axes = axes_of(f, chosen);
  Batched made;
  try {
    made = batch(mod, "main", options);
  } catch (const UserError& e) {
    // Each lane has a size of its own.
    EXPECT_TRUE(has_open_sizes(f->body->type)) << e.what();
    EXPECT_NE(std::string(e.what()).find("E1105"), std::string::npos) << e.what();
    return Outcome::ragged;
  }
  std::mt19937 random(5);
  std::vector<std::vector<Tensor>> inputs(kLanes);
  std::vector<Tensor> all;
  for (const TensorType& t : parameter_tensors(f)) {
    const size_t at = all.size();
    std::vector<Tensor> each;
    for (int64_t lane = 0; lane < kLanes; ++lane) {
      bool again = lane > 0 && !chosen[at];
      each.push_back(again ? each[0] : random_tensor(*t.get(), example, at, random));
      inputs[static_cast<size_t>(lane)].push_back(each.back());
    }
    all.push_back(chosen[at] ? stacked(each) : each[0]);
  }
  std::vector<std::vector<Tensor>> wanted;
  try {
    for (const std::vector<Tensor>& lane : inputs) wanted.push_back(run(mod, "main", lane));
  } catch (const RuntimeError&) {
    return Outcome::fails;
  }
  Module batched =
      with_function(made.module, global_var("batched", made.function->type), made.function);
  std::vector<Tensor> found = run(batched, "batched", all);
  EXPECT_EQ(found.size(), wanted[0].size());
  for (size_t k = 0; k < found.size() && k < wanted[0].size(); ++k) {
    std::vector<Tensor> each;
    for (const std::vector<Tensor>& lane : wanted) each.push_back(lane[k]);
    expect_equal(found[k], stacked(each));
  }
  return made.lane_by_lane.empty() ? Outcome::in_one_piece : Outcome::in_a_loop;
}

std::string text_of(const std::vector<bool>& chosen) {
  std::string out;
  for (bool b : chosen) out += b ? '1' : '0';
  return out;
}

bool has_strings(const Module& mod) {
  return to_string(Type(mod->find("main")->type)).find("string") != std::string::npos;
}

// What is written in others is batched as these are; what draws from no key gives other numbers.
bool is_computed(const OpInfo& row) {
  return row.compute && row.effect.get() == Effect::Pure && !row.args.empty();
}

bool has_rule(const OpInfo& row) {
  return row.batching || row.batching.unsaid() || row.batching.reason() == Absent::OnlySizes;
}

// Rows that have a rule for some arguments only: what others pack into words, trees of each lane's own,
// shapes of each lane's own, and weights in blocks of lines.
const std::set<std::string> kPartly{"layout_transform",      "ml.tree_ensemble",
                                    "ml.tree_ensemble_bits", "nn.contrib_dense_bits",
                                    "nn.contrib_dense_pack", "qnn.contrib_dense_bits",
                                    "unravel_index"};

TEST(RegistryBatching, equals_a_loop_over_the_lanes) {
  register_ops();
  std::set<std::string> in_lanes, one_by_one, loops, parted;
  size_t cases = 0;
  for (const Op& op : OpRegistry::global().all()) {
    const OpInfo& row = *op->row;
    if (!is_computed(row)) continue;
    for (const OpExample& example : row.examples) {
      SCOPED_TRACE(program_of(row.name, example.args, example.attrs));
      try {
        Module mod = infer(row.name, example.args, example.attrs);
        // Strings are not drawn, nor compared.
        if (has_strings(mod)) continue;
        (has_rule(row) ? in_lanes : one_by_one).insert(row.name);
        const size_t count = parameter_tensors(mod->find("main")).size();
        std::vector<std::vector<bool>> choices{std::vector<bool>(count, true)};
        for (size_t i = 0; count > 1 && i < count; ++i) {
          choices.emplace_back(count, false);
          choices.back()[i] = true;
          if (count == 2) continue;
          choices.emplace_back(count, true);
          choices.back()[i] = false;
        }
        for (const std::vector<bool>& chosen : choices) {
          SCOPED_TRACE(text_of(chosen));
          Outcome found = check(mod, example, chosen, dim(kLanes));
          EXPECT_NE(found, Outcome::fails);
          if (found == Outcome::in_a_loop && has_rule(row))
            loops.insert(row.name + " " + text_of(chosen)), parted.insert(row.name);
          if (&chosen == &choices[0]) check(mod, example, chosen, dim(type_var("b", Kind::Dim)));
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
  EXPECT_GE(in_lanes.size(), 196u);
  EXPECT_LE(one_by_one.size(), 18u);
  EXPECT_EQ(parted, kPartly);
}

// Of other ranks, sizes, dtypes and attributes than the examples', in lanes of lanes, too.
TEST(RegistryBatching, drawn_calls_equal_a_loop_over_the_lanes) {
  register_ops();
  const int calls = calls_of_a_row(60);
  size_t whole = 0, loops = 0, nested = 0;
  for (const Op& op : OpRegistry::global().all()) {
    const OpInfo& row = *op->row;
    if (!is_computed(row) || !has_rule(row)) continue;
    Draw draw(static_cast<uint32_t>(std::hash<std::string_view>()(row.name)));
    for (int i = 0; i < calls; ++i) {
      OpExample example = draw.one_of(row.examples);
      std::vector<std::string> args;
      for (const std::string& arg : example.args) args.push_back(draw.argument(arg));
      // Values that are given are those of other sizes.
      if (args != example.args) example.inputs.clear();
      std::string attrs = with_drawn(draw, row, example.attrs);
      const std::string program = program_of(row.name, args, attrs);
      SCOPED_TRACE(program);
      // So many steps are not waited for.
      if (program.find("1099511627776") != std::string::npos) continue;
      try {
        Module mod;
        try {
          mod = infer(row.name, args, attrs);
        } catch (const UserError&) {
          continue;
        }
        Function f = mod->find("main");
        const std::vector<TensorType> tensors = parameter_tensors(f);
        std::vector<TensorType> all = tensors;
        if (auto results = flatten_tensor_types(f->body->type))
          all.insert(all.end(), results->begin(), results->end());
        bool is_static = !tensors.empty();
        int64_t elements = 0;
        for (const TensorType& t : all) {
          auto shape = t->const_shape();
          is_static = is_static && shape;
          if (is_static) elements += runtime::checked_num_elements(t->dtype, *shape);
        }
        if (!is_static || has_strings(mod) || elements > 2000) continue;
        std::vector<bool> chosen;
        for (size_t k = 0; k < tensors.size(); ++k) chosen.push_back(!draw.once_in(3));
        chosen[draw.below(chosen.size())] = true;
        SCOPED_TRACE(text_of(chosen));
        Outcome found = check(mod, example, chosen, dim(kLanes));
        whole += found == Outcome::in_one_piece;
        loops += found == Outcome::in_a_loop;
        if (found != Outcome::in_one_piece || !draw.once_in(4)) continue;
        BatchOptions options{.lanes = dim(2)};
        options.in_axes = axes_of(f, chosen);
        Batched made = batch(mod, "main", options);
        Module twice =
            with_function(made.module, global_var("main", made.function->type), made.function);
        nested += check(twice, example, chosen, dim(kLanes)) == Outcome::in_one_piece;
      } catch (const std::exception& e) {
        ADD_FAILURE() << e.what();
      }
    }
  }
  std::cout << whole << " in one piece, " << loops << " in a loop, " << nested
            << " lanes of lanes\n";
  EXPECT_GT(whole, 1000u);
  EXPECT_LT(loops, whole / 10);
  EXPECT_GT(nested, 100u);
}

}  // namespace
}  // namespace relay
