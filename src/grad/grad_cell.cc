#include "grad/grad_cell.h"

#include "analysis/calls.h"
#include "grad/lift.h"
#include "ir/op.h"

namespace relay {

Expr GradCell::none(const Type& t) const { return call(zero(), {}, nullptr, {}, {t}); }
Expr GradCell::some(const Expr& e) const { return call(raw(), {e}, nullptr, {}, {e->type}); }

Expr GradCell::choose(const Expr& reference, const Expr& if_none,
                      const std::function<Expr(const Expr& adjoint)>& if_some) const {
  const Type& t = as<TypeCallNode>(as<RefTypeNode>(reference->type)->value)->args[0];
  Var g = var("g", t);
  return match(ref_read(reference), {clause(constructor_pattern(zero(), {}), if_none),
                                     clause(constructor_pattern(raw(), {g}), if_some(g))});
}

Expr GradCell::accumulate(const Expr& reference, const Expr& more) const {
  return choose(reference, ref_write(reference, some(more)), [&](const Expr& sum) -> Expr {
    if (!is_one_line(more)) return ref_write(reference, some(call("add", {sum, more})));
    const CallNode& c = *as<CallNode>(more);
    Bindings b;
    // From here on the sum has no other reference, so it is updated in place.
    b.bind("_", ref_write(reference, none(more->type)));
    Expr now = b.leaf(
        make_call("take", {sum, c.args[2]}, {{"axis", int64_t{0}}, {"mode", "clip"}}, c.span));
    Expr line = make_call("expand_dims", {now}, {{"axis", int64_t{0}}}, c.span);
    Expr both = b.leaf(call("add", {line, c.args[1]}));
    return b.in(ref_write(reference, some(call(c.op, {sum, both, c.args[2]}, c.attrs, c.span))));
  });
}

bool is_one_line(const Expr& adjoint) {
  auto* c = as<CallNode>(adjoint);
  auto* op = c == nullptr ? nullptr : as<OpNode>(c->op);
  return op != nullptr && !c->args.empty() && is_call_to(c->args[0], "zeros") && op->row->memory &&
         op->row->memory(*c) == Memory::Updated &&
         as_const(as<TensorTypeNode>(c->args[1]->type)->shape[0]) == 1;
}

GradCell new_cell(FreshNames& names) {
  GlobalTypeVar header = global_type_var(names.fresh("GradCell"));
  TypeVar a = type_var("A");
  Type result = type_call(header, {a});
  auto constructor = [&](const char* name, std::vector<Type> inputs, int64_t tag) {
    return make<ConstructorNode>([&](ConstructorNode& n) {
      n.name_hint = names.fresh(name);
      n.inputs = inputs;
      n.belong_to = header;
      n.tag = tag;
      n.type = func_type(inputs, result, {a});
    });
  };
  std::vector<Constructor> constructors{constructor("Zero", {}, 0), constructor("Raw", {a}, 1)};
  return {make<TypeDataNode>([&](TypeDataNode& n) {
    n.header = header;
    n.type_vars = {a};
    n.constructors = constructors;
  })};
}

GradCell known_cell(const Module& mod) {
  TypeData t = mod->find_type("GradCell");
  bool fits = t && t->type_vars.size() == 1 && t->constructors.size() == 2 &&
              t->constructors[0]->inputs.empty() && t->constructors[1]->inputs.size() == 1 &&
              t->constructors[1]->inputs[0] == Type(t->type_vars[0]);
  return {fits ? t : nullptr};
}

}  // namespace relay
