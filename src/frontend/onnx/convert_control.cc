// If, Loop and Scan.
//
// Loops and scans become functions that call themselves (step_loop.h). Where a step needs its number
// while the model is imported, or a value changes its shape from step to step, the steps are written
// one after the other, if their number is known.
#include <onnx/onnx-ml.pb.h>

#include <algorithm>
#include <limits>

#include "base/codes/frontend.h"
#include "base/codes/types.h"
#include "frontend/onnx/branches.h"
#include "frontend/onnx/graph_importer.h"
#include "frontend/onnx/importer.h"
#include "frontend/onnx/sequences.h"
#include "frontend/onnx/step_loop.h"

namespace relay::importer {
namespace {

// One known truth value.
std::optional<bool> constant_truth(const ValuePtr& v) {
  if (v == nullptr || !v->known || v->known->size() != 1 || !v->known->is_constant()) {
    return std::nullopt;
  }
  return v->known->float_at(0) != 0;
}

// A condition as the scalar that If takes.
Expr condition(NodeContext& ctx, const ValuePtr& v) {
  Expr c = ctx.expr_of(v);
  if (NodeContext::rank_of(c) > 0) c = ctx.reshape(c, std::vector<int64_t>{});
  return ctx.cast(c, DType::Bool());
}

int64_t max_steps(NodeContext& ctx) { return ctx.importer().options().max_unrolled_steps; }

Values convert_if(NodeContext& ctx) {
  const auto& then_graph = ctx.attr_graph("then_branch");
  const auto& else_graph = ctx.attr_graph("else_branch");
  if (auto known = constant_truth(ctx.value(0))) {
    // Its nodes are as good as nodes of the graph around it, also where their results have one rank or another.
    return ctx.importer().import_graph(*known ? then_graph : else_graph, {}, ctx.span());
  }
  Values a = ctx.import_graph(then_graph, {});
  Values b = ctx.import_graph(else_graph, {});
  if (a.size() != b.size() || a.empty()) {
    ctx.fail(codes::frontend_graph, "the branches have different numbers of outputs",
             std::to_string(a.size()), std::to_string(b.size()));
  }
  return join_branches(ctx, condition(ctx, ctx.value(0)), std::move(a), std::move(b));
}

// The scanned outputs of one step, stacked along a new axis.
Expr stack(NodeContext& ctx, const std::vector<Expr>& steps, int64_t axis) {
  return ctx.call("stack", {ctx.tuple_of(steps)}, {{"axis", axis}});
}

Values unroll_loop(NodeContext& ctx, const ::onnx::GraphProto& body, int64_t steps, Values carried,
                   size_t num_scans) {
  std::vector<std::vector<Expr>> scans(num_scans);
  ValuePtr keep_going = value_of(KnownValue{DType::Bool(), {}, {dim(1)}, {}});
  for (int64_t i = 0; i < steps; ++i) {
    Values inputs{value_of(known_scalar(dim(i))), keep_going};
    inputs.insert(inputs.end(), carried.begin(), carried.end());
    Values outputs = ctx.import_graph(body, inputs);
    if (outputs.size() != 1 + carried.size() + num_scans) {
      ctx.fail(codes::frontend_graph, "the body has the wrong number of outputs",
               std::to_string(1 + carried.size() + num_scans), std::to_string(outputs.size()));
    }
    for (size_t v = 0; v < carried.size(); ++v) carried[v] = outputs[1 + v];
    for (size_t s = 0; s < num_scans; ++s) {
      scans[s].push_back(ctx.expr_of(outputs[1 + carried.size() + s]));
    }
    auto more = constant_truth(outputs[0]);
    if (!more) {
      ctx.fail(codes::frontend_dynamic, "a loop with scanned outputs ends by a condition on data",
               "a condition that is known when the model is imported");
    }
    if (!*more) break;
    if (i + 1 == steps && steps == max_steps(ctx)) {
      ctx.fail(codes::frontend_limit, "the loop has too many steps to unroll",
               "at most " + std::to_string(steps), {}, "raise max_unrolled_steps");
    }
  }
  Values out = carried;
  for (size_t s = 0; s < num_scans; ++s) {
    if (scans[s].empty()) ctx.unsupported("a scanned output of a loop without steps");
    out.push_back(value_of(stack(ctx, scans[s], 0)));
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
Type inserted_type(NodeContext& ctx, const ::onnx::GraphProto& body, const Values& carried,
                   size_t which) {
  Values inputs{value_of(Expr(var("t", scalar_type(DType::Int(64)), ctx.span()))),
                value_of(Expr(var("go", scalar_type(DType::Bool()), ctx.span())))};
  inputs.insert(inputs.end(), carried.begin(), carried.end());
  Values outputs = ctx.import_graph(body, inputs);
  if (outputs.size() <= 1 + which) return nullptr;
  const ValuePtr& after = outputs[1 + which];
  if (is_run_time_list(after)) return element_of(after->expr->type, "List");
  if (!after->is_list || after->list.empty()) return nullptr;
  return opened(ctx.expr_of(after->list[0])->type);
}

// fn loop(t, go, carried..., stacked...). Without `conditional` the body's condition must be known to
// stay true.
Values loop_of_steps(NodeContext& ctx, const ::onnx::GraphProto& body, const Values& carried,
                     size_t num_scans, bool conditional) {
  constexpr int64_t kMaxLines = int64_t{1} << 40;
  const DType i64 = DType::Int(64);
  StepLoop loop;
  loop.backward.assign(num_scans, false);
  for (size_t i = 0; i < carried.size(); ++i) {
    const ValuePtr& c = carried[i];
    Type element;
    if (c->is_list && c->list.empty()) element = inserted_type(ctx, body, carried, i);
    loop.initial.push_back(c->is_list ? as_run_time_list(ctx, c, element) : ctx.expr_of(c));
  }
  if (ctx.has(0)) {
    loop.count = ctx.cast(ctx.in(0), i64);
    if (NodeContext::rank_of(loop.count) > 0) {
      loop.count = ctx.reshape(loop.count, std::vector<int64_t>{});
    }
  }
  if (num_scans > 0) {
    auto m = ctx.known(0);
    auto fixed = m && m->size() == 1 ? as_const(m->ints[0]) : std::nullopt;
    if (!ctx.has(0) || (fixed && *fixed > kMaxLines)) {
      ctx.fail(
          codes::frontend_dynamic, "the number of steps of a loop with scanned outputs is unknown",
          "a largest number of steps (the first input)", fixed ? std::to_string(*fixed) : "none");
    }
    if (m && m->size() == 1 && (fixed || isa<DimVarNode>(m->ints[0]))) {
      loop.lines = ctx.full(0, {fixed ? dim(std::max<int64_t>(*fixed, 0)) : m->ints[0]}, i64);
    } else {
      Expr size = ctx.call("maximum", {loop.count, ctx.scalar(0, i64)});
      loop.lines = ctx.call("dyn.zeros", {ctx.reshape(size, std::vector<int64_t>{1})},
                            {{"dtype", to_value(i64)}});
    }
  }
  if (conditional) {
    loop.go = ctx.has(1) ? condition(ctx, ctx.value(1)) : ctx.scalar(1, DType::Bool());
  } else if (!loop.count) {
    ctx.unsupported("a loop without end");
  }
  StepResults results =
      run_steps(ctx, loop, [&](const Expr& t, const Expr& go, const std::vector<Expr>& states) {
        Values inputs{value_of(t),
                      go ? value_of(go) : value_of(KnownValue{DType::Bool(), {}, {dim(1)}, {}})};
        for (const Expr& e : states) inputs.push_back(value_of(e));
        Values outputs = ctx.import_graph(body, inputs);
        if (outputs.size() != 1 + carried.size() + num_scans) {
          ctx.fail(codes::frontend_graph, "the body has the wrong number of outputs",
                   std::to_string(1 + carried.size() + num_scans), std::to_string(outputs.size()));
        }
        Step step;
        if (conditional) {
          step.go = condition(ctx, outputs[0]);
        } else if (constant_truth(outputs[0]) != true) {
          throw Poisoned{};
        }
        for (size_t i = 1; i < outputs.size(); ++i) {
          const bool is_state = i <= carried.size();
          Type element = is_state ? element_of(states[i - 1]->type, "List") : nullptr;
          if (outputs[i]->is_list && !element) ctx.unsupported("a sequence as a scanned output");
          (is_state ? step.states : step.results)
              .push_back(element ? as_run_time_list(ctx, outputs[i], element)
                                 : ctx.expr_of(outputs[i]));
        }
        return step;
      });
  return values_of(results);
}

Values convert_loop(NodeContext& ctx) {
  const auto& body = ctx.attr_graph("body");
  Values carried;
  for (size_t i = 2; i < ctx.num_inputs(); ++i) carried.push_back(ctx.value(i));
  if (ctx.num_outputs() < carried.size()) {
    ctx.fail(codes::frontend_graph, "the loop has fewer outputs than carried values");
  }
  size_t num_scans = ctx.num_outputs() - carried.size();
  auto first = ctx.has(1) ? constant_truth(ctx.value(1)) : std::optional(true);
  if (first && !*first && num_scans == 0) return carried;

  std::optional<int64_t> steps;
  if (ctx.has(0)) {
    auto m = ctx.known(0);
    if (m && m->size() == 1 && m->is_constant()) steps = std::max<int64_t>(m->int_at(0), 0);
  }
  bool may_unroll = first && steps && *steps <= max_steps(ctx);
  // What a short loop makes of known numbers may be sizes.
  constexpr int64_t kShort = 32;
  bool knows = std::ranges::any_of(
      carried, [](const ValuePtr& v) { return v->known && v->known->dtype.is_integer(); });
  // Sequences whose length is known stay so.
  bool lists = std::ranges::any_of(carried, [](const ValuePtr& v) { return v->is_list; });
  Values out;
  if (may_unroll && (lists || (knows && *steps <= kShort)) &&
      ctx.importer().attempt([&] { out = unroll_loop(ctx, body, *steps, carried, num_scans); })) {
    return out;
  }
  for (bool conditional : {false, true}) {
    if (!conditional && first != true) continue;
    bool good = ctx.importer().attempt(
        [&] { out = loop_of_steps(ctx, body, carried, num_scans, conditional); });
    if (good) return out;
  }
  if (may_unroll &&
      ctx.importer().attempt([&] { out = unroll_loop(ctx, body, *steps, carried, num_scans); })) {
    return out;
  }
  return loop_of_steps(ctx, body, carried, num_scans, true);
}

// A scan: its inputs as they are cut up, and how its results are put together.
struct Scan {
  const ::onnx::GraphProto& body;
  std::vector<Expr> xs;
  std::vector<int64_t> in_axes, in_reverse, out_axes, out_reverse;
  Values states;

  size_t num_outputs() const { return states.size() + out_axes.size(); }
};

Values scan_step(NodeContext& ctx, const Scan& scan, Values inputs) {
  Values outputs = ctx.import_graph(scan.body, inputs);
  if (outputs.size() != scan.num_outputs()) {
    ctx.fail(codes::frontend_graph, "the body has the wrong number of outputs",
             std::to_string(scan.num_outputs()), std::to_string(outputs.size()));
  }
  return outputs;
}

Values loop_of_scan(NodeContext& ctx, const Scan& scan) {
  std::vector<Expr> lengths;
  const Dim first = NodeContext::shape_of(scan.xs[0])[static_cast<size_t>(scan.in_axes[0])];
  for (size_t i = 0; i < scan.xs.size(); ++i) {
    const Dim& n = NodeContext::shape_of(scan.xs[i])[static_cast<size_t>(scan.in_axes[i])];
    if (i == 0 || !dim_equal(n, first)) {
      lengths.push_back(zeros_along(ctx, scan.xs[i], scan.in_axes[i]));
    }
  }
  StepLoop loop;
  loop.lines = lengths[0];
  if (lengths.size() > 1) {
    // A run checks that all are of one length.
    Expr all = ctx.call("stack", {ctx.tuple_of(lengths)}, {{"axis", int64_t{0}}});
    loop.lines = ctx.select(all, 0, 0);
  }
  loop.count = length_of(ctx, loop.lines);
  for (const ValuePtr& s : scan.states) loop.initial.push_back(ctx.expr_of(s));
  for (int64_t r : scan.out_reverse) loop.backward.push_back(r != 0);
  StepResults results =
      run_steps(ctx, loop, [&](const Expr& t, const Expr&, const std::vector<Expr>& states) {
        Expr last = ctx.sub(loop.count, ctx.scalar(1, DType::Int(64)));
        Values inputs;
        for (const Expr& e : states) inputs.push_back(value_of(e));
        for (size_t i = 0; i < scan.xs.size(); ++i) {
          Expr at = scan.in_reverse[i] != 0 ? ctx.sub(last, t) : t;
          inputs.push_back(
              value_of(ctx.call("take", {scan.xs[i], at}, {{"axis", scan.in_axes[i]}})));
        }
        Values outputs = scan_step(ctx, scan, inputs);
        Step step;
        for (size_t i = 0; i < outputs.size(); ++i) {
          (i < states.size() ? step.states : step.results).push_back(ctx.expr_of(outputs[i]));
        }
        return step;
      });
  for (size_t i = 0; i < results.stacked.size(); ++i) {
    Expr& e = results.stacked[i];
    int64_t axis = ctx.axis(scan.out_axes[i], NodeContext::rank_of(e));
    std::vector<int64_t> order;
    for (int64_t a = 1; a < NodeContext::rank_of(e); ++a) order.push_back(a);
    order.insert(order.begin() + axis, 0);
    e = ctx.transpose(e, order);
  }
  return values_of(results);
}

Values unroll_scan(NodeContext& ctx, const Scan& scan, int64_t steps) {
  Values states = scan.states;
  std::vector<std::vector<Expr>> results(scan.out_axes.size());
  for (int64_t t = 0; t < steps; ++t) {
    Values inputs = states;
    for (size_t i = 0; i < scan.xs.size(); ++i) {
      int64_t at = scan.in_reverse[i] != 0 ? steps - 1 - t : t;
      inputs.push_back(value_of(ctx.select(scan.xs[i], scan.in_axes[i], at)));
    }
    Values outputs = scan_step(ctx, scan, inputs);
    for (size_t i = 0; i < states.size(); ++i) states[i] = outputs[i];
    for (size_t i = 0; i < results.size(); ++i) {
      results[i].push_back(ctx.expr_of(outputs[states.size() + i]));
    }
  }
  Values out = states;
  for (size_t i = 0; i < results.size(); ++i) {
    if (scan.out_reverse[i] != 0) std::reverse(results[i].begin(), results[i].end());
    int64_t axis = ctx.axis(scan.out_axes[i], NodeContext::rank_of(results[i][0]) + 1);
    out.push_back(value_of(stack(ctx, results[i], axis)));
  }
  return out;
}

Values convert_scan(NodeContext& ctx) {
  const auto& body = ctx.attr_graph("body");
  int64_t num_scans = ctx.attr("num_scan_inputs", 0);
  auto total = static_cast<int64_t>(ctx.num_inputs());
  if (num_scans < 1 || num_scans > total) {
    ctx.fail(codes::frontend_attribute, "attribute 'num_scan_inputs' is out of range",
             "1 to " + std::to_string(total), std::to_string(num_scans));
  }
  auto num_states = static_cast<size_t>(total - num_scans);
  auto n = static_cast<size_t>(num_scans);
  if (ctx.num_outputs() < num_states) {
    ctx.fail(codes::frontend_graph, "the scan has fewer outputs than states");
  }
  size_t num_results = ctx.num_outputs() - num_states;
  auto lists = [&](const char* name, size_t size) {
    std::vector<int64_t> v = ctx.attr_ints(name);
    if (v.empty()) v.assign(size, 0);
    if (v.size() != size) {
      ctx.fail(codes::frontend_attribute,
               std::string("attribute '") + name + "' has the wrong length", std::to_string(size),
               std::to_string(v.size()));
    }
    return v;
  };
  std::vector<int64_t> in_axes = lists("scan_input_axes", n);
  std::vector<int64_t> in_reverse = lists("scan_input_directions", n);
  std::vector<int64_t> out_axes = lists("scan_output_axes", num_results);
  std::vector<int64_t> out_reverse = lists("scan_output_directions", num_results);

  Scan scan{body, {}, in_axes, in_reverse, out_axes, out_reverse, {}};
  std::optional<int64_t> steps;
  bool known = true;
  for (size_t i = 0; i < n; ++i) {
    Expr x = ctx.in(num_states + i);
    scan.in_axes[i] = ctx.axis(in_axes[i], NodeContext::rank_of(x));
    scan.xs.push_back(x);
    auto size = as_const(NodeContext::shape_of(x)[static_cast<size_t>(scan.in_axes[i])]);
    known = known && size;
    if (size && steps && *steps != *size) {
      ctx.fail(codes::type_shape, "the scanned inputs differ in length", std::to_string(*steps),
               std::to_string(*size));
    }
    if (size) steps = size;
  }
  if (steps == 0) {
    ctx.fail(codes::frontend_limit, "the scan has no steps", "1 step or more, or an open length",
             "0");
  }
  for (size_t i = 0; i < num_states; ++i) scan.states.push_back(ctx.value(i));
  Values out;
  if (ctx.importer().attempt([&] { out = loop_of_scan(ctx, scan); })) return out;
  if (known && *steps >= 1 && *steps <= max_steps(ctx) &&
      ctx.importer().attempt([&] { out = unroll_scan(ctx, scan, *steps); })) {
    return out;
  }
  return loop_of_scan(ctx, scan);
}

// Opset 8: states and sequences have a batch axis before all others, and each entry is scanned alone.
Values convert_scan_of_batch(NodeContext& ctx) {
  if (ctx.has(0)) ctx.unsupported("a scan with a length for each entry of the batch");
  const auto num_scans = ctx.attr("num_scan_inputs", 0);
  const auto total = static_cast<int64_t>(ctx.num_inputs()) - 1;
  if (num_scans < 1 || num_scans > total) {
    ctx.fail(codes::frontend_attribute, "attribute 'num_scan_inputs' is out of range",
             "1 to " + std::to_string(total), std::to_string(num_scans));
  }
  const auto n = static_cast<size_t>(num_scans), num_states = static_cast<size_t>(total) - n;
  if (ctx.num_outputs() < num_states) {
    ctx.fail(codes::frontend_graph, "the scan has fewer outputs than states");
  }
  std::vector<int64_t> reverse = ctx.attr_ints("directions");
  if (reverse.empty()) reverse.assign(n, 0);
  if (reverse.size() != n) {
    ctx.fail(codes::frontend_attribute, "attribute 'directions' has the wrong length",
             std::to_string(n), std::to_string(reverse.size()));
  }
  const int64_t batch = ctx.const_dim(ctx.in(1 + num_states), 0, "the size of the batch");
  if (batch < 1 || batch > max_steps(ctx)) {
    ctx.fail(codes::frontend_limit, "the batch is empty, or too large to be written out",
             "1 to " + std::to_string(max_steps(ctx)), std::to_string(batch));
  }
  std::vector<std::vector<Expr>> results(ctx.num_outputs());
  for (int64_t b = 0; b < batch; ++b) {
    const size_t num_results = ctx.num_outputs() - num_states;
    Scan scan{ctx.attr_graph("body"),
              {},
              std::vector<int64_t>(n, 0),
              reverse,
              std::vector<int64_t>(num_results, 0),
              std::vector<int64_t>(num_results, 0),
              {}};
    for (size_t i = 0; i < num_states + n; ++i) {
      Expr one = ctx.select(ctx.in(1 + i), 0, b);
      if (i < num_states) {
        scan.states.push_back(value_of(one));
      } else {
        scan.xs.push_back(one);
      }
    }
    Values of_one = loop_of_scan(ctx, scan);
    for (size_t r = 0; r < results.size(); ++r) results[r].push_back(ctx.expr_of(of_one[r]));
  }
  Values out;
  for (const std::vector<Expr>& parts : results) out.push_back(value_of(stack(ctx, parts, 0)));
  return out;
}

}  // namespace

template <>
std::span<const ConverterRow> converter_rows<Converters::Control>() {
  static constexpr ConverterRow rows[] = {
      {kOnnx, "If", 1, convert_if},
      {kOnnx, "Loop", 1, convert_loop},
      {kOnnx, "Scan", 8, convert_scan_of_batch},
      {kOnnx, "Scan", 9, convert_scan},
  };
  return rows;
}

}  // namespace relay::importer
