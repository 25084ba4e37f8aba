// Branches, loops, calls, and resources that keep values between operators.
#include "base/codes/frontend.h"
#include "base/codes/types.h"
#include "frontend/common/control.h"
#include "frontend/tflite/node_context.h"

namespace relay::frontend::tflite {
namespace {

Values inputs_from(NodeContext& ctx, size_t first) {
  Values out;
  for (size_t i = first; i < ctx.num_inputs(); ++i) out.push_back(ctx.value(i));
  return out;
}

Values if_of(NodeContext& ctx) {
  const auto& o = ctx.options<schema::IfGraphs>();
  const Values inputs = inputs_from(ctx, 1);
  auto branch = [&](int64_t graph) {
    return [&ctx, &inputs, graph] {
      return ctx.importer().in_branch(
          [&] { return ctx.importer().import_graph(graph, inputs, ctx.span()); });
    };
  };
  return choose(ctx, ctx.value(0), branch(o.then_subgraph()), branch(o.else_subgraph()));
}

Values while_of(NodeContext& ctx) {
  const auto& o = ctx.options<schema::WhileGraphs>();
  auto graph = [&ctx](int64_t index) {
    return [&ctx, index](const Values& inputs) {
      return ctx.importer().in_branch(
          [&] { return ctx.importer().import_graph(index, inputs, ctx.span()); });
    };
  };
  const auto condition = graph(o.cond_subgraph()), body = graph(o.body_subgraph());
  auto goes_on = [&](const Values& state) {
    Values out = condition(state);
    if (out.size() != 1)
      ctx.fail(codes::frontend_graph, "the condition of a loop has not one output", "1",
               std::to_string(out.size()));
    return out[0];
  };
  ModelLoop model;
  model.carried = inputs_from(ctx, 0);
  model.go = goes_on(model.carried);
  // The body is given the number of the step and whether to go on, which the format does not have.
  model.body = [&](const Values& inputs) {
    Values state = body({inputs.begin() + 2, inputs.end()});
    Values out{goes_on(state)};
    out.insert(out.end(), state.begin(), state.end());
    return out;
  };
  return loop(ctx, model);
}

Values call(NodeContext& ctx) {
  return ctx.importer().import_graph(ctx.options<schema::CallGraph>().subgraph(),
                                     inputs_from(ctx, 0), ctx.span());
}

Values call_once(NodeContext& ctx) {
  const int64_t graph = ctx.options<schema::CallOnce>().init_subgraph();
  if (!ctx.importer().first_call(graph)) return {};
  return ctx.importer().import_graph(graph, {}, ctx.span());
}

// ---- Variables: every run begins with what the initialisation stores

Values var_handle(NodeContext& ctx) {
  const auto& o = ctx.options<schema::VarHandle>();
  return {ctx.importer().handle("variable " + short_text(o.container()) + "/" +
                                short_text(o.shared_name()))};
}

Values read_variable(NodeContext& ctx) {
  Resource& r = ctx.importer().resource(ctx.value(0), ctx.span());
  if (r.value != nullptr) return {r.value};
  ctx.fail(codes::frontend_graph, "a variable is read before it has a value",
           "a call of its initialisation", shorten(r.name));
}

Values assign_variable(NodeContext& ctx) {
  ctx.importer().check_may_write(ctx.span());
  ctx.importer().resource(ctx.value(0), ctx.span()).value = ctx.value(1);
  return {};
}

// ---- Hash tables, whose contents are constants

Values hashtable(NodeContext& ctx) {
  return {ctx.importer().handle("table " +
                                std::to_string(ctx.options<schema::Hashtable>().table_id()))};
}

// (table, keys, values); what is stored first stays.
Values hashtable_import(NodeContext& ctx) {
  ctx.importer().check_may_write(ctx.span());
  Resource& r = ctx.importer().resource(ctx.value(0), ctx.span());
  if (r.keys != nullptr) return {};
  Expr keys = ctx.in(1), values = ctx.in(2);
  if (Builder::rank_of(keys) != 1 || Builder::rank_of(values) != 1 ||
      !dim_equal(Builder::shape_of(keys)[0], Builder::shape_of(values)[0])) {
    ctx.fail(codes::type_shape, "keys and values of a table are not two vectors of one length",
             to_string(keys->type), to_string(values->type));
  }
  r.keys = ctx.value(1);
  r.value = ctx.value(2);
  return {};
}

Resource& filled_table(NodeContext& ctx) {
  Resource& r = ctx.importer().resource(ctx.value(0), ctx.span());
  if (r.keys == nullptr)
    ctx.fail(codes::frontend_graph, "a hash table is read before it is filled");
  return r;
}

// (table, keys, default): each key is compared with all of the table.
Values hashtable_find(NodeContext& ctx) {
  Resource& r = filled_table(ctx);
  Expr keys = ctx.expr_of(r.keys), values = ctx.expr_of(r.value), query = ctx.in(1);
  const int64_t rank = Builder::rank_of(query);
  Expr otherwise = ctx.scalar_of(2, Builder::dtype_of(values));
  if (as_const(Builder::shape_of(keys)[0]) == 0)
    return one(ctx.broadcast_to(otherwise, Builder::shape_of(query)));
  Expr equal = ctx.call("equal", {ctx.expand_dims(query, rank), keys});
  Expr there = ctx.reduce("any", equal, {rank}, false);
  Expr place = ctx.call("argmax", {ctx.cast(equal, DType::Int(32))}, {{"axis", to_value({rank})}});
  Expr found =
      ctx.call("take", {values, place}, {{"axis", int64_t{0}}, {"mode", std::string("fast")}});
  return one(ctx.where(there, found, otherwise));
}

Values hashtable_size(NodeContext& ctx) {
  Expr keys = ctx.expr_of(filled_table(ctx).keys);
  return {value_of(known_ints({Builder::shape_of(keys)[0]}))};
}

}  // namespace

template <>
std::span<const Row> rows<Family::Control>() {
  using O = schema::Options;
  static constexpr Row kRows[] = {
      {"ASSIGN_VARIABLE", assign_variable, O::assign_variable},
      {"CALL", call, O::call},
      {"CALL_ONCE", call_once, O::call_once},
      {"HASHTABLE", hashtable, O::hashtable},
      {"HASHTABLE_FIND", hashtable_find, O::hashtable_find},
      {"HASHTABLE_IMPORT", hashtable_import, O::hashtable_import},
      {"HASHTABLE_SIZE", hashtable_size, O::hashtable_size},
      {"IF", if_of, O::if_graphs},
      {"READ_VARIABLE", read_variable, O::read_variable},
      {"VAR_HANDLE", var_handle, O::var_handle},
      {"WHILE", while_of, O::while_graphs},
  };
  return kRows;
}

}  // namespace relay::frontend::tflite
