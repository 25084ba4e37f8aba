// If, Loop, Scan, and sequences.
//
// A loop whose number of steps is known is unrolled; another becomes a recursive function.
// Sequences are lists of values while the model is imported.
#include <onnx/onnx-ml.pb.h>

#include <algorithm>
#include <limits>

#include "frontend/onnx/converters.h"
#include "frontend/onnx/graph_importer.h"

namespace relay::importer {
namespace {

ValuePtr list_of(Values items) {
  auto v = std::make_shared<ModelValue>();
  v->is_list = true;
  v->list = std::move(items);
  return v;
}

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

Expr one_or_tuple(NodeContext& ctx, const std::vector<Expr>& parts) {
  return parts.size() == 1 ? parts[0] : ctx.tuple_of(parts);
}

int64_t max_steps(NodeContext& ctx) { return ctx.importer().options().max_unrolled_steps; }

}  // namespace

Values convert_if(NodeContext& ctx) {
  const auto& then_graph = ctx.attr_graph("then_branch");
  const auto& else_graph = ctx.attr_graph("else_branch");
  if (auto known = constant_truth(ctx.value(0))) {
    return ctx.import_graph(*known ? then_graph : else_graph, {});
  }
  Values a = ctx.import_graph(then_graph, {});
  Values b = ctx.import_graph(else_graph, {});
  if (a.size() != b.size() || a.empty()) {
    ctx.fail(codes::frontend_graph, "the branches have different numbers of outputs",
             std::to_string(a.size()), std::to_string(b.size()));
  }
  std::vector<Expr> x, y;
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i]->is_list || b[i]->is_list) ctx.unsupported("a sequence as the result of a branch");
    x.push_back(ctx.expr_of(a[i]));
    y.push_back(ctx.expr_of(b[i]));
  }
  Expr chosen =
      if_(condition(ctx, ctx.value(0)), one_or_tuple(ctx, x), one_or_tuple(ctx, y), ctx.span());
  Values out;
  for (size_t i = 0; i < a.size(); ++i) {
    out.push_back(value_of(a.size() == 1 ? chosen : ctx.item(chosen, static_cast<int64_t>(i))));
  }
  return out;
}

namespace {

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

// fn loop(i, go, carried...) = if (go && i < limit) loop(i + 1, body...) else (carried...)
Values recursive_loop(NodeContext& ctx, const ::onnx::GraphProto& body, const Values& carried) {
  DType i64 = DType::Int(64);
  auto scalar_of = [&](Expr e) {
    return NodeContext::rank_of(e) > 0 ? ctx.reshape(e, std::vector<int64_t>{}) : e;
  };
  Var i = var("i", scalar_type(i64), ctx.span());
  Var go = var("go", scalar_type(DType::Bool()), ctx.span());
  std::vector<Var> params{i, go};
  std::vector<Expr> initial{
      ctx.scalar(0, i64), ctx.has(1) ? condition(ctx, ctx.value(1)) : ctx.scalar(1, DType::Bool())};
  Values inputs{value_of(Expr(i)), value_of(Expr(go))};
  std::vector<Type> result_types;
  for (const ValuePtr& c : carried) {
    if (c->is_list) ctx.unsupported("a sequence carried by a loop of unknown length");
    Expr e = ctx.expr_of(c);
    Var v = var("carried" + std::to_string(params.size() - 2), e->type, ctx.span());
    params.push_back(v);
    initial.push_back(e);
    inputs.push_back(value_of(Expr(v)));
    result_types.push_back(e->type);
  }
  Expr limit = ctx.has(0) ? scalar_of(ctx.in(0)) : nullptr;
  Values outputs = ctx.import_graph(body, inputs);
  if (outputs.size() != 1 + carried.size()) {
    ctx.fail(codes::frontend_graph, "the body has the wrong number of outputs",
             std::to_string(1 + carried.size()), std::to_string(outputs.size()));
  }
  std::vector<Type> param_types;
  for (const Var& p : params) param_types.push_back(p->type);
  Type result = result_types.size() == 1 ? result_types[0] : Type(tuple_type(result_types));
  Var self = var("loop", func_type(param_types, result), ctx.span());

  std::vector<Expr> next{ctx.add(i, ctx.scalar(1, i64)), condition(ctx, outputs[0])};
  std::vector<Expr> now;
  for (size_t v = 0; v < carried.size(); ++v) {
    next.push_back(ctx.expr_of(outputs[1 + v]));
    now.push_back(params[2 + v]);
  }
  Expr test = go;
  if (limit) test = ctx.call("logical_and", {go, ctx.call("less", {i, limit})});
  Expr step = call(self, next, nullptr, ctx.span());
  Function f = function(params, if_(test, step, one_or_tuple(ctx, now), ctx.span()), result, {}, {},
                        ctx.span());
  Expr run = let(self, f, call(self, initial, nullptr, ctx.span()), ctx.span());
  Values out;
  for (size_t v = 0; v < carried.size(); ++v) {
    out.push_back(value_of(carried.size() == 1 ? run : ctx.item(run, static_cast<int64_t>(v))));
  }
  return out;
}

}  // namespace

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
  // The body keeps a for-loop's condition; a while-loop computes its own.
  bool counts = first && steps && *steps <= max_steps(ctx);
  if (counts) {
    bool for_loop = true;
    if (body.output_size() > 0 && body.input_size() > 1) {
      const std::string& condition_out = body.output(0).name();
      for_loop = condition_out == body.input(1).name();
      for (const auto& n : body.node()) {
        if (n.output_size() == 0 || n.output(0) != condition_out) continue;
        bool passes =
            n.op_type() == "Identity" && n.input_size() == 1 && n.input(0) == body.input(1).name();
        for_loop = passes || n.op_type() == "Constant";
      }
    }
    if (for_loop || num_scans > 0) return unroll_loop(ctx, body, *steps, carried, num_scans);
  }
  if (num_scans > 0) {
    ctx.fail(codes::frontend_dynamic,
             "the number of steps of a loop with scanned outputs is unknown",
             "a number of at most " + std::to_string(max_steps(ctx)),
             steps ? std::to_string(*steps) : "a value computed by the model");
  }
  return recursive_loop(ctx, body, carried);
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

  std::optional<int64_t> steps;
  std::vector<Expr> xs;
  for (size_t i = 0; i < n; ++i) {
    Expr x = ctx.in(num_states + i);
    in_axes[i] = ctx.axis(in_axes[i], NodeContext::rank_of(x));
    int64_t size = ctx.const_dim(x, in_axes[i], "the number of steps of a scan");
    if (steps && *steps != size) {
      ctx.fail(codes::type_shape, "the scanned inputs differ in length", std::to_string(*steps),
               std::to_string(size));
    }
    steps = size;
    xs.push_back(x);
  }
  if (*steps < 1 || *steps > max_steps(ctx)) {
    ctx.fail(codes::frontend_limit, "the scan has an unsuitable number of steps",
             "1 to " + std::to_string(max_steps(ctx)), std::to_string(*steps));
  }
  Values states;
  for (size_t i = 0; i < num_states; ++i) states.push_back(ctx.value(i));
  std::vector<std::vector<Expr>> results(num_results);
  for (int64_t t = 0; t < *steps; ++t) {
    Values inputs = states;
    for (size_t i = 0; i < n; ++i) {
      inputs.push_back(
          value_of(ctx.select(xs[i], in_axes[i], in_reverse[i] != 0 ? *steps - 1 - t : t)));
    }
    Values outputs = ctx.import_graph(body, inputs);
    if (outputs.size() != num_states + num_results) {
      ctx.fail(codes::frontend_graph, "the body has the wrong number of outputs",
               std::to_string(num_states + num_results), std::to_string(outputs.size()));
    }
    for (size_t i = 0; i < num_states; ++i) states[i] = outputs[i];
    for (size_t i = 0; i < num_results; ++i) {
      results[i].push_back(ctx.expr_of(outputs[num_states + i]));
    }
  }
  Values out = states;
  for (size_t i = 0; i < num_results; ++i) {
    if (out_reverse[i] != 0) std::reverse(results[i].begin(), results[i].end());
    int64_t axis = ctx.axis(out_axes[i], NodeContext::rank_of(results[i][0]) + 1);
    out.push_back(value_of(stack(ctx, results[i], axis)));
  }
  return out;
}

// ---- Sequences ---------------------------------------------------------------------------------

namespace {

const Values& items_of(NodeContext& ctx, size_t input) {
  const ValuePtr& v = ctx.value(input);
  if (!v->is_list) {
    ctx.fail(codes::frontend_dynamic, "the length of a sequence is known only when the model runs",
             "a sequence made by this model's nodes outside of loops and branches");
  }
  return v->list;
}

// A position in a sequence of `size`, or at its end if `end` allows.
size_t position(NodeContext& ctx, size_t input, size_t size, bool end) {
  int64_t at = ctx.const_int(input, "the position");
  auto n = static_cast<int64_t>(size);
  if (at < -n || at >= n + (end ? 1 : 0)) {
    ctx.fail(codes::frontend_attribute, "the position is outside of the sequence",
             "below " + std::to_string(n), std::to_string(at));
  }
  return static_cast<size_t>(at < 0 ? at + n : at);
}

constexpr size_t kMaxSequence = 1 << 16;

}  // namespace

Values convert_sequence_construct(NodeContext& ctx) {
  Values items;
  for (size_t i = 0; i < ctx.num_inputs(); ++i) items.push_back(ctx.value(i));
  return {list_of(std::move(items))};
}

Values convert_sequence_empty(NodeContext&) { return {list_of({})}; }

Values convert_sequence_at(NodeContext& ctx) {
  const Values& items = items_of(ctx, 0);
  return {items[position(ctx, 1, items.size(), false)]};
}

Values convert_sequence_insert(NodeContext& ctx) {
  Values items = items_of(ctx, 0);
  if (items.size() >= kMaxSequence) ctx.fail(codes::frontend_limit, "the sequence is too long");
  size_t at = ctx.has(2) ? position(ctx, 2, items.size(), true) : items.size();
  items.insert(items.begin() + static_cast<std::ptrdiff_t>(at), ctx.value(1));
  return {list_of(std::move(items))};
}

Values convert_sequence_erase(NodeContext& ctx) {
  Values items = items_of(ctx, 0);
  if (items.empty()) ctx.fail(codes::frontend_attribute, "the sequence is empty");
  size_t at = ctx.has(1) ? position(ctx, 1, items.size(), false) : items.size() - 1;
  items.erase(items.begin() + static_cast<std::ptrdiff_t>(at));
  return {list_of(std::move(items))};
}

Values convert_sequence_length(NodeContext& ctx) {
  return {value_of(known_scalar(dim(static_cast<int64_t>(items_of(ctx, 0).size()))))};
}

Values convert_concat_from_sequence(NodeContext& ctx) {
  std::vector<Expr> parts;
  for (const ValuePtr& v : items_of(ctx, 0)) parts.push_back(ctx.expr_of(v));
  if (parts.empty()) ctx.fail(codes::frontend_attribute, "the sequence is empty");
  int64_t rank = NodeContext::rank_of(parts[0]);
  if (ctx.attr("new_axis", 0) != 0) {
    return {value_of(stack(ctx, parts, ctx.axis(ctx.attr("axis", 0), rank + 1)))};
  }
  return {value_of(ctx.concat(std::move(parts), ctx.axis(ctx.attr("axis", 0), rank)))};
}

Values convert_split_to_sequence(NodeContext& ctx) {
  Expr x = ctx.in(0);
  int64_t axis = ctx.axis(ctx.attr("axis", 0), NodeContext::rank_of(x));
  int64_t size = ctx.const_dim(x, axis, "the size of the axis");
  std::vector<int64_t> parts;
  bool squeeze = false;
  if (!ctx.has(1)) {
    if (size > static_cast<int64_t>(kMaxSequence)) {
      ctx.fail(codes::frontend_limit, "the sequence is too long");
    }
    parts.assign(static_cast<size_t>(size), 1);
    squeeze = ctx.attr("keepdims", 1) == 0;
  } else {
    parts = ctx.const_ints(1, "the list of sizes");
    KnownValue k = ctx.must_know(1, "the list of sizes");
    if (k.shape.empty()) {
      int64_t each = parts[0];
      if (each < 1 || size / each > static_cast<int64_t>(kMaxSequence)) {
        ctx.fail(codes::frontend_attribute, "the size of a part is out of range", "1 or more",
                 std::to_string(each));
      }
      parts.clear();
      for (int64_t at = 0; at < size; at += each) parts.push_back(std::min(each, size - at));
    }
  }
  Values items;
  int64_t at = 0;
  for (int64_t p : parts) {
    if (p < 0 || p > size - at) {
      ctx.fail(codes::type_shape, "the parts do not add up", std::to_string(size) + " together");
    }
    Expr part = ctx.slice(x, axis, at, at + p);
    items.push_back(value_of(squeeze ? ctx.squeeze(part, {axis}) : part));
    at += p;
  }
  if (at != size) {
    ctx.fail(codes::type_shape, "the parts do not add up", std::to_string(size) + " together",
             std::to_string(at));
  }
  return {list_of(std::move(items))};
}

Values convert_optional(NodeContext& ctx) {
  if (ctx.has(0)) return {ctx.value(0)};
  auto nothing = std::make_shared<ModelValue>();
  nothing->absent = true;
  return {nothing};
}

Values convert_optional_has_element(NodeContext& ctx) {
  return {value_of(KnownValue{DType::Bool(), {}, {dim(static_cast<int64_t>(ctx.has(0)))}, {}})};
}

}  // namespace relay::importer
