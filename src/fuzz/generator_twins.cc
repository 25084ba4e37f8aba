// Expressions that invite mistakes: calls that are almost the same as another, and calls that are
// made for what they do to a reference.
#include <cmath>

#include "fuzz/generator.h"
#include "node/structural.h"

namespace relay::fuzz {

namespace {

// Attributes that differ in one value, a float or a flag; null when there is none.
Attrs other_attrs(const CallNode& c, const OpNode& op) {
  if (!c.attrs) return nullptr;
  auto values = attr_values(c.attrs, /*only_changed=*/false);
  for (auto& [name, value] : values) {
    auto* number = value.get_if<double>();
    if (number != nullptr && std::isfinite(*number)) {
      value = *number + 0.5;
    } else if (auto* flag = value.get_if<bool>()) {
      value = !*flag;
    } else {
      continue;
    }
    return make_attrs(*op.row->attrs, values, op.name, {});
  }
  return nullptr;
}

}  // namespace

// An operator call like one in scope: with operands swapped or replaced, with another attribute, or
// applied to the other's result. It is what a pass that compares calls carelessly takes for the
// same. Both are there.
Expr ExpressionSource::draw_twin(const Type& type, int budget) {
  std::vector<const CallNode*> calls;
  for (const Expr& e : scope_) {
    const OpNode* op = called_op(e);
    if (op != nullptr && op->row->effect == Effect::Pure && structural_equal(e->type, type)) {
      calls.push_back(as<CallNode>(e));
    }
  }
  const Expr drawn = calls.empty() ? draw_operator(type, budget) : ref(*random_.pick(calls));
  auto* c = as<CallNode>(drawn);
  const OpNode* op = called_op(drawn);
  if (c == nullptr || op == nullptr) return drawn;
  auto like = [&](std::vector<Expr> args, Attrs attrs) -> Expr {
    try {
      return call(c->op, std::move(args), std::move(attrs));
    } catch (const UserError&) {
      return drawn;  // the operator does not take it
    }
  };
  Expr first = drawn, second;
  std::vector<Expr> args = c->args;
  Attrs other = other_attrs(*c, *op);
  auto* last = args.empty() ? nullptr : as<TensorTypeNode>(args.back()->type);
  if (args.size() == 1 && structural_equal(args[0]->type, type) && random_.percent(50)) {
    return like({drawn}, c->attrs);
  }
  if (other && random_.percent(60)) {
    second = like(args, other);
  } else if (args.size() > 1 && last != nullptr && last->dtype.is_floating() &&
             random_.percent(50)) {
    args.back() = leaf_tensor(*last);
    first = like(args, c->attrs);
    args.back() = leaf_tensor(*last);
    second = like(args, c->attrs);
  } else {
    for (size_t i = 0; i + 1 < args.size(); ++i) {
      if (args[i] == args[i + 1] || !structural_equal(args[i]->type, args[i + 1]->type)) continue;
      std::swap(args[i], args[i + 1]);
      break;
    }
    second = like(args, c->attrs);
  }
  if (!structural_equal(first->type, type) || !structural_equal(second->type, type)) return drawn;
  return tuple_get_item(tuple({first, second}), random_.percent(25) ? 0 : 1);
}

// A function that keeps something in a reference, called several times; of one call the result is
// not used. What it gives depends on how often it was called before.
Expr ExpressionSource::draw_counter(const Type& type, int budget) {
  Var kept = var(fresh("kept"), ref_type(type));
  Expr first = leaf(type);
  Scope scope(*this);
  bind(kept);
  Type argument = some_type(1);
  Var p = var(fresh("p"), argument), old = var(fresh("old"), type);
  Expr next;
  {
    Scope inside(*this);
    bind(p);
    bind(old);
    next = draw(type, budget / 3);
  }
  Expr body =
      let(old, ref_read(kept), let(var(fresh("u"), tuple_type({})), ref_write(kept, next), old));
  Var f = var(fresh("counter"), func_type({argument}, type));
  bind(f);
  Var unused = var(fresh("unused"), type), result = var(fresh("v"), type);
  Expr once = call(f, {leaf(argument)}), again = call(f, {leaf(argument)});
  bind(result);
  Expr rest = random_.percent(50) ? Expr(ref_read(kept)) : draw(type, budget / 3);
  return let(kept, ref_create(first),
             let(f, function({p}, body, type), let(unused, once, let(result, again, rest))));
}

}  // namespace relay::fuzz
