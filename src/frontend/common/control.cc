#include "frontend/common/control.h"

#include <algorithm>

#include "base/codes/frontend.h"
#include "base/codes/types.h"
#include "frontend/common/branches.h"
#include "frontend/common/lists.h"
#include "frontend/common/step_loop.h"

namespace relay::frontend {

std::optional<bool> constant_truth(const ValuePtr& v) {
  if (v == nullptr || !v->known || v->known->size() != 1 || !v->known->is_constant()) {
    return std::nullopt;
  }
  return v->known->float_at(0) != 0;
}

Expr scalar_condition(const Builder& build, const ValuePtr& v) {
  Expr c = build.expr_of(v);
  if (Builder::rank_of(c) > 0) c = build.reshape(c, std::vector<int64_t>{});
  return build.cast(c, DType::Bool());
}

Values choose(const Builder& build, const ValuePtr& condition, const std::function<Values()>& yes,
              const std::function<Values()>& no) {
  if (auto known = constant_truth(condition)) return *known ? yes() : no();
  Values a = build.with_one_rank(yes), b = build.with_one_rank(no);
  if (a.size() != b.size() || a.empty()) {
    build.fail(codes::frontend_graph, "the branches have different numbers of outputs",
               std::to_string(a.size()), std::to_string(b.size()));
  }
  return join_branches(build, scalar_condition(build, condition), std::move(a), std::move(b));
}

namespace {

int64_t max_steps(const Builder& build) { return build.program().options().max_unrolled_steps; }

ValuePtr always() { return value_of(KnownValue{DType::Bool(), {}, {dim(1)}, {}}); }

// What a part of the model gives, which must be `count` values.
Values values_from(const Builder& build, const Subgraph& body, const Values& inputs, size_t count) {
  Values outputs = build.with_one_rank([&] { return body(inputs); });
  if (outputs.size() != count) {
    build.fail(codes::frontend_graph, "the body has the wrong number of outputs",
               std::to_string(count), std::to_string(outputs.size()));
  }
  return outputs;
}

// The scanned outputs of one step, stacked along a new axis.
Expr stack(const Builder& build, const std::vector<Expr>& steps, int64_t axis) {
  return build.call("stack", {build.tuple_of(steps)}, {{"axis", axis}});
}

Values unroll_loop(const Builder& build, const ModelLoop& loop, int64_t steps) {
  Values carried = loop.carried;
  const size_t num_scans = loop.num_stacked;
  std::vector<std::vector<Expr>> scans(num_scans);
  for (int64_t i = 0; i < steps; ++i) {
    Values inputs{value_of(known_scalar(dim(i))), always()};
    inputs.insert(inputs.end(), carried.begin(), carried.end());
    Values outputs = values_from(build, loop.body, inputs, 1 + carried.size() + num_scans);
    for (size_t v = 0; v < carried.size(); ++v) carried[v] = outputs[1 + v];
    for (size_t s = 0; s < num_scans; ++s) {
      scans[s].push_back(build.expr_of(outputs[1 + carried.size() + s]));
    }
    auto more = constant_truth(outputs[0]);
    if (!more) {
      build.fail(codes::frontend_dynamic, "a loop with scanned outputs ends by a condition on data",
                 "a condition that is known when the model is imported");
    }
    if (!*more) break;
    if (i + 1 == steps && steps == max_steps(build)) {
      build.fail(codes::frontend_limit, "the loop has too many steps to unroll",
                 "at most " + std::to_string(steps), {}, "raise max_unrolled_steps");
    }
  }
  Values out = carried;
  for (size_t s = 0; s < num_scans; ++s) {
    if (scans[s].empty()) build.unsupported("a scanned output of a loop without steps");
    out.push_back(value_of(stack(build, scans[s], 0)));
  }
  return out;
}

// The states and stacked results of a loop as values, in the order of the node's outputs.
Values values_of(const StepResults& results) {
  Values out;
  for (const std::vector<Expr>* part : {&results.states, &results.stacked}) {
    for (const Expr& e : *part) out.push_back(value_of(e));
  }
  return out;
}

// What a step inserts into a carried sequence that begins empty; null when it cannot be told.
Type inserted_type(const Builder& build, const ModelLoop& loop, size_t which) {
  Values inputs{value_of(Expr(var("t", scalar_type(DType::Int(64)), build.span()))),
                value_of(Expr(var("go", scalar_type(DType::Bool()), build.span())))};
  inputs.insert(inputs.end(), loop.carried.begin(), loop.carried.end());
  Values outputs = build.with_one_rank([&] { return loop.body(inputs); });
  if (outputs.size() <= 1 + which) return nullptr;
  const ValuePtr& after = outputs[1 + which];
  if (is_run_time_list(after)) return element_of(after->expr->type, "List");
  if (!after->is_list || after->list.empty()) return nullptr;
  return opened(build.expr_of(after->list[0])->type);
}

// fn loop(t, go, carried..., stacked...). Without `conditional` the body's condition must be known to
// stay true.
Values loop_of_steps(const Builder& build, const ModelLoop& model, bool conditional) {
  const Values& carried = model.carried;
  const size_t num_scans = model.num_stacked;
  constexpr int64_t kMaxLines = int64_t{1} << 40;
  const DType i64 = DType::Int(64);
  StepLoop loop;
  loop.backward.assign(num_scans, false);
  for (size_t i = 0; i < carried.size(); ++i) {
    const ValuePtr& c = carried[i];
    Type element;
    if (c->is_list && c->list.empty()) element = inserted_type(build, model, i);
    loop.initial.push_back(c->is_list ? as_run_time_list(build, c, element) : build.expr_of(c));
  }
  if (model.count) {
    loop.count = build.cast(build.expr_of(model.count), i64);
    if (Builder::rank_of(loop.count) > 0) {
      loop.count = build.reshape(loop.count, std::vector<int64_t>{});
    }
  }
  if (num_scans > 0) {
    auto m = model.count ? model.count->known : std::nullopt;
    auto fixed = m && m->size() == 1 ? as_const(m->ints[0]) : std::nullopt;
    if (!model.count || (fixed && *fixed > kMaxLines)) {
      build.fail(codes::frontend_dynamic,
                 "the number of steps of a loop with scanned outputs is unknown",
                 "a largest number of steps", fixed ? std::to_string(*fixed) : "none");
    }
    if (m && m->size() == 1 && (fixed || isa<DimVarNode>(m->ints[0]))) {
      loop.lines = build.full(0, {fixed ? dim(std::max<int64_t>(*fixed, 0)) : m->ints[0]}, i64);
    } else {
      Expr size = build.call("maximum", {loop.count, build.scalar(0, i64)});
      loop.lines = build.call("dyn.zeros", {build.reshape(size, std::vector<int64_t>{1})},
                              {{"dtype", to_value(i64)}});
    }
  }
  if (conditional) {
    loop.go = model.go ? scalar_condition(build, model.go) : build.scalar(1, DType::Bool());
  } else if (!loop.count) {
    build.unsupported("a loop without end");
  }
  StepResults results =
      run_steps(build, loop, [&](const Expr& t, const Expr& go, const std::vector<Expr>& states) {
        Values inputs{value_of(t), go ? value_of(go) : always()};
        for (const Expr& e : states) inputs.push_back(value_of(e));
        Values outputs = values_from(build, model.body, inputs, 1 + carried.size() + num_scans);
        Step step;
        if (conditional) {
          step.go = scalar_condition(build, outputs[0]);
        } else if (constant_truth(outputs[0]) != true) {
          throw Poisoned{};
        }
        for (size_t i = 1; i < outputs.size(); ++i) {
          const bool is_state = i <= carried.size();
          Type element = is_state ? element_of(states[i - 1]->type, "List") : nullptr;
          if (outputs[i]->is_list && !element) build.unsupported("a sequence as a scanned output");
          (is_state ? step.states : step.results)
              .push_back(element ? as_run_time_list(build, outputs[i], element)
                                 : build.expr_of(outputs[i]));
        }
        return step;
      });
  return values_of(results);
}

}  // namespace

Values loop(const Builder& build, const ModelLoop& loop) {
  const Values& carried = loop.carried;
  auto first = loop.go ? constant_truth(loop.go) : std::optional(true);
  if (first && !*first && loop.num_stacked == 0) return carried;

  std::optional<int64_t> steps;
  if (loop.count) {
    const auto& m = loop.count->known;
    if (m && m->size() == 1 && m->is_constant()) steps = std::max<int64_t>(m->int_at(0), 0);
  }
  bool may_unroll = first && steps && *steps <= max_steps(build);
  // What a short loop makes of known numbers may be sizes.
  constexpr int64_t kShort = 32;
  bool knows = std::ranges::any_of(
      carried, [](const ValuePtr& v) { return v->known && v->known->dtype.is_integer(); });
  // Sequences whose length is known stay so.
  bool lists = std::ranges::any_of(carried, [](const ValuePtr& v) { return v->is_list; });
  Values out;
  if (may_unroll && (lists || (knows && *steps <= kShort)) &&
      build.program().attempt([&] { out = unroll_loop(build, loop, *steps); })) {
    return out;
  }
  for (bool conditional : {false, true}) {
    if (!conditional && first != true) continue;
    bool good = build.program().attempt([&] { out = loop_of_steps(build, loop, conditional); });
    if (good) return out;
  }
  if (may_unroll && build.program().attempt([&] { out = unroll_loop(build, loop, *steps); })) {
    return out;
  }
  return loop_of_steps(build, loop, true);
}

namespace {

size_t num_outputs(const ModelScan& scan) { return scan.states.size() + scan.out_axes.size(); }

Values loop_of_scan(const Builder& build, const ModelScan& scan) {
  std::vector<Expr> lengths;
  const Dim first = Builder::shape_of(scan.xs[0])[static_cast<size_t>(scan.in_axes[0])];
  for (size_t i = 0; i < scan.xs.size(); ++i) {
    const Dim& n = Builder::shape_of(scan.xs[i])[static_cast<size_t>(scan.in_axes[i])];
    if (i == 0 || !dim_equal(n, first)) {
      lengths.push_back(zeros_along(build, scan.xs[i], scan.in_axes[i]));
    }
  }
  StepLoop loop;
  loop.lines = lengths[0];
  if (lengths.size() > 1) {
    // A run checks that all are of one length.
    Expr all = build.call("stack", {build.tuple_of(lengths)}, {{"axis", int64_t{0}}});
    loop.lines = build.select(all, 0, 0);
  }
  loop.count = length_of(build, loop.lines);
  for (const ValuePtr& s : scan.states) loop.initial.push_back(build.expr_of(s));
  for (int64_t r : scan.out_reverse) loop.backward.push_back(r != 0);
  StepResults results =
      run_steps(build, loop, [&](const Expr& t, const Expr&, const std::vector<Expr>& states) {
        Expr last = build.sub(loop.count, build.scalar(1, DType::Int(64)));
        Values inputs;
        for (const Expr& e : states) inputs.push_back(value_of(e));
        for (size_t i = 0; i < scan.xs.size(); ++i) {
          Expr at = scan.in_reverse[i] != 0 ? build.sub(last, t) : t;
          inputs.push_back(
              value_of(build.call("take", {scan.xs[i], at}, {{"axis", scan.in_axes[i]}})));
        }
        Values outputs = values_from(build, scan.body, inputs, num_outputs(scan));
        Step step;
        for (size_t i = 0; i < outputs.size(); ++i) {
          (i < states.size() ? step.states : step.results).push_back(build.expr_of(outputs[i]));
        }
        return step;
      });
  for (size_t i = 0; i < results.stacked.size(); ++i) {
    Expr& e = results.stacked[i];
    int64_t axis = build.axis(scan.out_axes[i], Builder::rank_of(e));
    std::vector<int64_t> order;
    for (int64_t a = 1; a < Builder::rank_of(e); ++a) order.push_back(a);
    order.insert(order.begin() + axis, 0);
    e = build.transpose(e, order);
  }
  return values_of(results);
}

Values unroll_scan(const Builder& build, const ModelScan& scan, int64_t steps) {
  Values states = scan.states;
  std::vector<std::vector<Expr>> results(scan.out_axes.size());
  for (int64_t t = 0; t < steps; ++t) {
    Values inputs = states;
    for (size_t i = 0; i < scan.xs.size(); ++i) {
      int64_t at = scan.in_reverse[i] != 0 ? steps - 1 - t : t;
      inputs.push_back(value_of(build.select(scan.xs[i], scan.in_axes[i], at)));
    }
    Values outputs = values_from(build, scan.body, inputs, num_outputs(scan));
    for (size_t i = 0; i < states.size(); ++i) states[i] = outputs[i];
    for (size_t i = 0; i < results.size(); ++i) {
      results[i].push_back(build.expr_of(outputs[states.size() + i]));
    }
  }
  Values out = states;
  for (size_t i = 0; i < results.size(); ++i) {
    if (scan.out_reverse[i] != 0) std::reverse(results[i].begin(), results[i].end());
    int64_t axis = build.axis(scan.out_axes[i], Builder::rank_of(results[i][0]) + 1);
    out.push_back(value_of(stack(build, results[i], axis)));
  }
  return out;
}

}  // namespace

Values scan(const Builder& build, const ModelScan& scan) {
  std::optional<int64_t> steps;
  bool known = true;
  for (size_t i = 0; i < scan.xs.size(); ++i) {
    auto size = as_const(Builder::shape_of(scan.xs[i])[static_cast<size_t>(scan.in_axes[i])]);
    known = known && size;
    if (size && steps && *steps != *size) {
      build.fail(codes::type_shape, "the scanned inputs differ in length", std::to_string(*steps),
                 std::to_string(*size));
    }
    if (size) steps = size;
  }
  Values out;
  if (build.program().attempt([&] { out = loop_of_scan(build, scan); })) return out;
  if (known && *steps >= 1 && *steps <= max_steps(build) &&
      build.program().attempt([&] { out = unroll_scan(build, scan, *steps); })) {
    return out;
  }
  return loop_of_scan(build, scan);
}

}  // namespace relay::frontend
