// If, Loop and Scan.
#include <onnx/onnx-ml.pb.h>

#include "base/codes/frontend.h"
#include "frontend/common/control.h"
#include "frontend/onnx/graph_importer.h"

namespace relay::frontend::onnx {
namespace {

int64_t max_steps(NodeContext& ctx) { return ctx.importer().options().max_unrolled_steps; }

// The subgraph of the attribute 'body' as a function.
Subgraph body_of(NodeContext& ctx) {
  return [&ctx, graph = &ctx.attr_graph("body")](const Values& inputs) {
    return ctx.import_graph(*graph, inputs);
  };
}

Values convert_if(NodeContext& ctx) {
  auto branch = [&](const char* name) {
    // Of a known condition the nodes are as good as nodes of the graph around it.
    return [&ctx, graph = &ctx.attr_graph(name)] {
      return ctx.importer().import_graph(*graph, {}, ctx.span());
    };
  };
  return choose(ctx, ctx.value(0), branch("then_branch"), branch("else_branch"));
}

Values convert_loop(NodeContext& ctx) {
  ModelLoop model;
  model.body = body_of(ctx);
  if (ctx.has(0)) model.count = ctx.value(0);
  if (ctx.has(1)) model.go = ctx.value(1);
  for (size_t i = 2; i < ctx.num_inputs(); ++i) model.carried.push_back(ctx.value(i));
  if (ctx.num_outputs() < model.carried.size()) {
    ctx.fail(codes::frontend_graph, "the loop has fewer outputs than carried values");
  }
  model.num_stacked = ctx.num_outputs() - model.carried.size();
  return loop(ctx, model);
}

Values convert_scan(NodeContext& ctx) {
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
  std::vector<int64_t> in_axes = ctx.attr_list("scan_input_axes", n, 0);
  std::vector<int64_t> in_reverse = ctx.attr_list("scan_input_directions", n, 0);
  std::vector<int64_t> out_axes = ctx.attr_list("scan_output_axes", num_results, 0);
  std::vector<int64_t> out_reverse = ctx.attr_list("scan_output_directions", num_results, 0);

  ModelScan model{body_of(ctx), {}, in_axes, in_reverse, out_axes, out_reverse, {}};
  for (size_t i = 0; i < n; ++i) {
    Expr x = ctx.in(num_states + i);
    model.in_axes[i] = ctx.axis(in_axes[i], NodeContext::rank_of(x));
    model.xs.push_back(x);
    if (as_const(NodeContext::shape_of(x)[static_cast<size_t>(model.in_axes[i])]) == 0) {
      ctx.fail(codes::frontend_limit, "the scan has no steps", "1 step or more, or an open length",
               "0");
    }
  }
  for (size_t i = 0; i < num_states; ++i) model.states.push_back(ctx.value(i));
  return scan(ctx, model);
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
    const std::vector<int64_t> first(n, 0), none(num_results, 0);
    ModelScan model{body_of(ctx), {}, first, reverse, none, none, {}};
    for (size_t i = 0; i < num_states + n; ++i) {
      Expr one = ctx.select(ctx.in(1 + i), 0, b);
      if (i < num_states) {
        model.states.push_back(value_of(one));
      } else {
        model.xs.push_back(one);
      }
    }
    Values of_one = scan(ctx, model);
    for (size_t r = 0; r < results.size(); ++r) results[r].push_back(ctx.expr_of(of_one[r]));
  }
  Values out;
  for (const std::vector<Expr>& parts : results)
    out.push_back(value_of(ctx.call("stack", {ctx.tuple_of(parts)}, {{"axis", int64_t{0}}})));
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

}  // namespace relay::frontend::onnx
