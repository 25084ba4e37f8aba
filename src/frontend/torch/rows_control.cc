// Branches and loops whose parts are graphs.
#include "base/codes/frontend.h"
#include "frontend/common/control.h"
#include "frontend/torch/node_context.h"

namespace relay::frontend::torch {
namespace {

// The values that an argument lists.
Values listed(NodeContext& ctx, size_t index) {
  Values out;
  for (const Element& e : ctx.at(index).elements) out.push_back(ctx.value_of_element(e));
  return out;
}

// (condition, part, part, operands)
Values cond(NodeContext& ctx) {
  const Argument& condition = ctx.at(0);
  if (condition.is_list || condition.elements.size() != 1)
    ctx.fail(codes::frontend_graph, "a condition is one truth value");
  const Graph &yes = ctx.part(1), &no = ctx.part(2);
  const Values operands = listed(ctx, 3);
  auto part = [&](const Graph& graph) {
    return [&ctx, &graph, &operands] {
      return ctx.importer().import_part(graph, operands, ctx.span());
    };
  };
  return choose(ctx, ctx.value_of_element(condition.elements[0]), part(yes), part(no));
}

// (condition, body, carried, further operands): both parts take what is carried, then the further operands.
Values while_loop(NodeContext& ctx) {
  const Graph &test = ctx.part(0), &body = ctx.part(1);
  ModelLoop of;
  of.carried = listed(ctx, 2);
  const Values further = listed(ctx, 3);
  auto with_further = [&](Values values) {
    values.insert(values.end(), further.begin(), further.end());
    return values;
  };
  auto goes_on = [&](const Values& carried) {
    Values out = ctx.importer().import_part(test, with_further(carried), ctx.span());
    if (out.size() != 1)
      ctx.fail(codes::frontend_graph, "the condition of a loop is one truth value");
    return out[0];
  };
  of.go = goes_on(of.carried);
  of.body = [&](const Values& inputs) {
    Values next = ctx.importer().import_part(body, with_further({inputs.begin() + 2, inputs.end()}),
                                             ctx.span());
    if (next.size() != of.carried.size())
      ctx.fail(codes::frontend_graph, "the body of a loop gives other values than it takes");
    ValuePtr go = goes_on(next);
    next.insert(next.begin(), std::move(go));
    return next;
  };
  return loop(ctx, of);
}

// A loop over lines of tensors: the part takes states, a line of each tensor and further operands, and gives the next
// states and a line of each result.
Values over_lines(NodeContext& ctx, const Graph& body, const Values& states, const Values& xs,
                  const Values& further, size_t results) {
  ModelScan of;
  of.states = states;
  for (const ValuePtr& x : xs) of.xs.push_back(ctx.tensor_of(x));
  of.in_axes.assign(xs.size(), 0);
  of.in_reverse.assign(xs.size(), 0);
  of.out_axes.assign(results, 0);
  of.out_reverse.assign(results, 0);
  of.body = [&](const Values& inputs) {
    Values all = inputs;
    all.insert(all.end(), further.begin(), further.end());
    Values out = ctx.importer().import_part(body, all, ctx.span());
    if (out.size() != states.size() + results)
      ctx.fail(codes::frontend_graph, "the body of a scan gives another number of values",
               std::to_string(states.size() + results), std::to_string(out.size()));
    return out;
  };
  return scan(ctx, of);
}

size_t results_behind(NodeContext& ctx, const Values& states) {
  if (ctx.outputs().size() < states.size())
    ctx.fail(codes::frontend_graph, "a scan has fewer results than states");
  return ctx.outputs().size() - states.size();
}

// (body, tensors, further operands)
Values map_row(NodeContext& ctx) {
  return over_lines(ctx, ctx.part(0), {}, listed(ctx, 1), listed(ctx, 2), ctx.outputs().size());
}

// (body, states, tensors, further operands)
Values scan_row(NodeContext& ctx) {
  const Values states = listed(ctx, 1);
  return over_lines(ctx, ctx.part(0), states, listed(ctx, 2), listed(ctx, 3),
                    results_behind(ctx, states));
}

// (body, tensors, further operands): the body combines two lines of each tensor into one, and every result line is what
// the lines up to it combine to.
Values associative_scan(NodeContext& ctx) {
  const Graph& body = ctx.part(0);
  const Values xs = listed(ctx, 1), further = listed(ctx, 2);
  Values first, rest;
  for (const ValuePtr& v : xs) {
    Expr x = ctx.tensor_of(v);
    const int64_t n = ctx.const_dim(x, 0, "the length of a scan");
    if (n < 1) ctx.unsupported("a scan of no lines");
    first.push_back(value_of(ctx.select(x, 0, 0)));
    rest.push_back(value_of(ctx.slice(x, 0, 1, n)));
  }
  ModelScan of;
  of.states = first;
  for (const ValuePtr& v : rest) of.xs.push_back(ctx.expr_of(v));
  of.in_axes.assign(xs.size(), 0);
  of.in_reverse.assign(xs.size(), 0);
  of.out_axes.assign(xs.size(), 0);
  of.out_reverse.assign(xs.size(), 0);
  of.body = [&](const Values& inputs) {
    Values all = inputs;
    all.insert(all.end(), further.begin(), further.end());
    Values out = ctx.importer().import_part(body, all, ctx.span());
    if (out.size() != xs.size())
      ctx.fail(codes::frontend_graph, "the body of a scan gives another number of values");
    // The states are the lines of the results, too.
    Values both = out;
    both.insert(both.end(), out.begin(), out.end());
    return both;
  };
  const Values all = scan(ctx, of);
  Values out;
  for (size_t i = 0; i < xs.size(); ++i) {
    Expr head = ctx.expand_dims(ctx.expr_of(first[i]), 0);
    out.push_back(value_of(ctx.concat({head, ctx.expr_of(all[xs.size() + i])}, 0)));
  }
  return out;
}

// A part that is called once, such as one under another setting of gradients.
Values called(NodeContext& ctx) {
  size_t part = 0;
  while (part < ctx.node().inputs.size() && ctx.at(part).kind != Argument::Kind::graph) ++part;
  const Graph& graph = ctx.part(part);
  Values operands;
  // The name under which regions are shared comes before their operands.
  if (part + 1 < ctx.node().inputs.size() && ctx.at(part + 1).elements.size() == 1 &&
      std::holds_alternative<std::string>(ctx.at(part + 1).elements[0]))
    ++part;
  for (size_t i = part + 1; i < ctx.node().inputs.size(); ++i) {
    const Argument& a = ctx.at(i);
    for (const Element& e : a.elements) operands.push_back(ctx.value_of_element(e));
  }
  return ctx.importer().import_part(graph, operands, ctx.span());
}

}  // namespace

template <>
std::span<const Row> rows<Family::Control>() {
  static constexpr Row kRows[] = {
      {"higher_order.cond", cond},
      {"higher_order.while_loop", while_loop},
      {"higher_order.map_impl", map_row},
      {"higher_order.scan", scan_row},
      {"higher_order.associative_scan", associative_scan},
      {"higher_order.invoke_subgraph", called},
      {"higher_order.wrap_with_set_grad_enabled", called},
  };
  return kRows;
}

}  // namespace relay::frontend::torch
