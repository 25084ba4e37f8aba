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

// A part that is called once, such as one under another setting of gradients.
Values called(NodeContext& ctx) {
  size_t part = 0;
  while (part < ctx.node().inputs.size() && ctx.at(part).kind != Argument::Kind::graph) ++part;
  const Graph& graph = ctx.part(part);
  Values operands;
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
      {"higher_order.wrap_with_set_grad_enabled", called},
  };
  return kRows;
}

}  // namespace relay::frontend::torch
