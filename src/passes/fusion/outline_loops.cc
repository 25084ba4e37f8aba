#include "passes/fusion/outline_loops.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "analysis/calls.h"
#include "analysis/loop_kernels.h"
#include "analysis/primitives.h"
#include "ir/op.h"
#include "ir/open_sizes.h"
#include "ir/scope.h"
#include "node/structural.h"
#include "node/walk.h"
#include "passes/fusion/define_where_called.h"
#include "passes/fusion/loop_nest.h"
#include "passes/structure/to_a_normal_form.h"

namespace relay {
namespace {

using outline::LoopNest;

// The call with vectors of known sizes and bounds as stacks of numbers.
Call with_numbers(const CallNode& c) {
  std::vector<Expr> args;
  for (const Expr& a : c.args) {
    auto* known = as<ConstantNode>(a);
    if (known == nullptr || known->data.rank() != 1) {
      args.push_back(a);
      continue;
    }
    const Tensor& data = known->data;
    std::vector<Expr> numbers;
    for (int64_t i = 0; i < data.num_elements(); ++i)
      numbers.push_back(constant(Tensor::scalar(data.get_as_int(i), data.dtype())));
    args.push_back(call("stack", {tuple(std::move(numbers))}));
  }
  return call(c.op, std::move(args), c.attrs, c.span);
}

// The function of a loop as its kernel has it. Lines that are written are slices: rules for these write elements, and
// nothing else. What makes a tensor from nothing is made anew: the program outside may use it, too. The bounds of a part of a
// row are numbers, and no tensors in memory.
Expr inside_kernel(const Expr& loop) {
  return cast<ExprNode>(rewrite(
      loop,
      [](const NodeRef&, NodeRef rebuilt) -> NodeRef {
        auto* c = as<CallNode>(rebuilt);
        auto* op = c == nullptr ? nullptr : as<OpNode>(c->op);
        if (op != nullptr && makes_open_row(ref(*c))) return with_numbers(*c);
        if (op != nullptr && c->args.empty()) return call(c->op, {}, c->attrs, c->span);
        if (op == nullptr || op->row->memory == nullptr || op->row->memory(*c) != Memory::Updated)
          return rebuilt;
        return call(c->op, {c->args[0], c->args[1], tuple({c->args[2]})}, c->attrs, c->span);
      },
      family::program));
}

// let %rest = fn ...; e   becomes   let %once = fn () { let %rest = fn ...; e }; %once()
Let as_once(const Let& l) {
  Function f = function({}, l, l->type, {}, {}, l->value->span);
  Var name = var("once", f->type, l->span);
  return let(name, f, call(name, {}, nullptr, l->span), l->span);
}

// What of the definition of a function and of what follows it depends on variables that are bound there.
std::unordered_set<const Node*> bound_behind(const LetNode& definition) {
  std::unordered_set<const Node*> out;
  for (const LetNode* l = &definition; l != nullptr; l = as<LetNode>(l->body)) {
    out.insert(l);
    out.insert(l->var.get());
  }
  post_order(
      definition.body,
      [&](const Node& n) {
        for_each_child(n, [&](const NodeRef& c) {
          if (out.contains(c.get())) out.insert(&n);
        });
      },
      family::program);
  return out;
}

// Whether all sizes of a kernel are known from its operands.
bool has_known_sizes(const Function& f) {
  Rewriter named(family::program);
  bool open = false;
  for (const Var& p : f->params) {
    Type type = with_sizes_named(p->type, [&](size_t, size_t) {
      open = true;
      return dim(type_var("s", Kind::Dim));
    });
    if (!structural_equal(type, p->type)) named.set(p, var(p->name_hint, type, p->span));
  }
  const Function sized = open ? with_state_sizes(named.apply(f)) : f;
  return sized != nullptr && !has_open_state(sized);
}

// The call of the kernel for a loop that is one; null where a size of its state differs from iteration to iteration.
Call outlined(const LetNode& l, const LoopNest& nest) {
  auto& entry = *as<CallNode>(l.body);
  std::vector<Var> params;
  std::vector<Expr> args;
  auto parameter = [&](const Expr& value) {
    Var p = var("p" + std::to_string(params.size()), value->type, value->span);
    params.push_back(p);
    args.push_back(value);
    return p;
  };
  std::unordered_map<const Node*, NodeRef> inside;
  for (const Expr& e : nest.parameters) {
    if (inside.contains(e.get())) continue;
    auto* t = as<TupleTypeNode>(e->type);
    if (t == nullptr) {
      inside.emplace(e.get(), parameter(e));
      continue;
    }
    std::vector<Expr> fields;
    for (size_t k = 0; k < t->fields.size(); ++k)
      fields.push_back(parameter(tuple_get_item(e, static_cast<int64_t>(k))));
    inside.emplace(e.get(), tuple(std::move(fields)));
  }
  std::vector<Expr> first;
  for (const Expr& a : entry.args) {
    auto* c = as<ConstantNode>(a);
    first.push_back(c != nullptr && c->data.rank() == 0 ? a : Expr(parameter(a)));
  }
  Expr joined = cast<ExprNode>(rewrite(
      l.value,
      [&](const NodeRef& original, NodeRef rebuilt) -> NodeRef {
        return nest.joined_inside.contains(original.get()) ? as_once(cast<LetNode>(rebuilt))
                                                           : rebuilt;
      },
      family::program));
  Expr loop = inside_kernel(cast<ExprNode>(substitute(joined, inside, family::program)));
  Expr whole = let(l.var, loop, call(l.var, std::move(first), nullptr, entry.span), l.span);
  Function f = to_a_normal_form(function(params, whole, l.body->type, {}, {}, l.value->span));
  if (!has_known_sizes(f)) return nullptr;
  Function kernel = function(f->params, f->body, f->ret_type, {},
                             Dict{{attr::kPrimitive, AttrValue(int64_t{1})}}, l.value->span);
  return call(kernel, std::move(args), nullptr, entry.span);
}

// A nest, and the definition that it begins with.
using Visit = std::function<bool(const LetNode& place, const LetNode& l, const LoopNest& nest)>;

// The loops of a function, each with what is computed outside of it, and, before these, the functions that ends of loops
// behind them call, with all that follows their definitions. Where `visit` gives true, what the nest is given is visited
// next instead of what is inside it.
void for_each_loop(const Function& f, const Visit& visit) {
  const ScopeTree scopes = analyze_scopes(*f.get());
  const std::unordered_map<const Node*, outline::Uses> functions =
      outline::uses_of_functions(scopes);
  std::unordered_set<const Node*> seen;
  std::vector<Expr> work{f->body};
  auto enter = [&](const Node& n) {
    if (as_primitive(&n) != nullptr || !seen.insert(&n).second) return false;
    auto* l = as<LetNode>(&n);
    auto uses = l == nullptr ? functions.end() : functions.find(l->var.get());
    if (uses == functions.end()) return true;
    auto next = [&](const LoopNest& nest, const Expr& entry) {
      std::ranges::copy(nest.parameters, std::back_inserter(work));
      std::ranges::copy(as<CallNode>(entry)->args, std::back_inserter(work));
    };
    if (!uses->second.inside) {
      const int* place = scopes.scope_of.find(l);
      if (!uses->second.in_functions || place == nullptr) return true;
      const Let once = as_once(ref(*l));
      const std::unordered_set<const Node*> behind = bound_behind(*l);
      const LoopNest nest = outline::loop_nest(*once.get(), true, [&](const Node& e) {
        const int* scope = scopes.scope_of.find(&e);
        return scope != nullptr && scopes.common(*scope, *place) == *scope && !behind.contains(&e);
      });
      if (!nest.repeats || !visit(*l, *once.get(), nest)) return true;
      next(nest, once->body);
      return false;
    }
    auto& loop = *as<FunctionNode>(l->value);
    const int body = scopes.opened(loop, loop.body.get());
    const LoopNest nest =
        outline::loop_nest(*l, uses->second.users.size() == 1, [&](const Node& e) {
          const int* scope = scopes.scope_of.find(&e);
          return scope != nullptr && scopes.common(*scope, body) != body;
        });
    if (!visit(*l, *l, nest)) return true;
    next(nest, l->body);
    return false;
  };
  while (!work.empty()) {
    const Expr e = work.back();
    work.pop_back();
    post_order_if(
        e, enter, [](const Node&) {}, family::program);
  }
}

// Why a loop stays one, and where that is.
std::string reason_of(const LoopNest& nest) {
  return nest.reason + (nest.span ? " (" + nest.span.describe() + ")" : "");
}

// A function that calls itself, and no other does so, as one whose body is a loop; null where it is none. It may be
// called at other sizes than its own by others, but not by itself.
Function with_local_loop(const GlobalVar& name, const Function& f) {
  auto is_itself = [&](const Node& n) {
    auto* g = as<GlobalVarNode>(&n);
    return g != nullptr && g->name_hint == name->name_hint;
  };
  bool calls = false, fits = f->type_params.empty();
  post_order(
      f->body,
      [&](const Node& n) {
        auto* c = as<CallNode>(&n);
        if (c == nullptr || !is_itself(*c->op.get())) return;
        calls = true;
        for (size_t i = 0; i < c->args.size() && fits; ++i)
          fits = i < f->params.size() && structural_equal(c->args[i]->type, f->params[i]->type);
      },
      family::program);
  if (!calls || !fits) return nullptr;
  std::vector<Var> params;
  std::vector<Expr> args;
  for (const Var& p : f->params) {
    params.push_back(var(p->name_hint, p->type, p->span));
    args.push_back(params.back());
  }
  Var loop = var(name->name_hint, f->type, f->span);
  Expr body = cast<ExprNode>(rewrite(
      f->body,
      [&](const NodeRef& n, NodeRef rebuilt) {
        return is_itself(*n.get()) ? NodeRef(loop) : rebuilt;
      },
      family::program));
  Function inner = function(f->params, body, f->ret_type, {}, {}, f->span);
  return function(params, let(loop, inner, call(loop, args, nullptr, f->span), f->span),
                  f->ret_type, {}, f->attrs, f->span);
}

Function with_reason(const FunctionNode& f, const std::string& reason) {
  Dict attrs = f.attrs;
  attrs[kInterpreted] = AttrValue(reason);
  return function(f.params, f.body, f.ret_type, f.type_params, std::move(attrs), f.span);
}

// Puts calls of kernels in the place of loops, and the reasons of the others into their functions. What a loop is given
// stands below it, and is rewritten before it.
class PlaceKernels : public Rewriter {
 public:
  PlaceKernels() : Rewriter(family::program) {}

  Function run_on(const Function& f) {
    std::unordered_map<const Node*, std::string> of_joins;
    for_each_loop(f, [&](const LetNode& place, const LetNode& l, const LoopNest& nest) {
      std::string reason = nest.reason.empty() ? "" : reason_of(nest);
      Call kernel = reason.empty() ? outlined(l, nest) : nullptr;
      if (kernel != nullptr) {
        kernels_.emplace(&place, kernel);
        return true;
      }
      if (reason.empty()) reason = "a size of its state is open (" + l.value->span.describe() + ")";
      if (&place != &l) {
        of_joins.emplace(place.var.get(), reason);
        return false;
      }
      // A loop whose end calls a function is part of no kernel for the reason why the function is none.
      if (auto join = of_joins.find(nest.missing); join != of_joins.end()) reason = join->second;
      if (!as<FunctionNode>(l.value)->has_attr(kInterpreted))
        reasons_.emplace(l.value.get(), reason);
      return false;
    });
    return kernels_.empty() && reasons_.empty() ? f : apply(f);
  }

  NodeRef post(const NodeRef& original, NodeRef rebuilt) override {
    if (auto reason = reasons_.find(original.get()); reason != reasons_.end())
      return with_reason(*as<FunctionNode>(rebuilt), reason->second);
    auto kernel = kernels_.find(original.get());
    if (kernel == kernels_.end()) return rebuilt;
    const CallNode& c = *kernel->second.get();
    std::vector<Expr> args;
    for (const Expr& a : c.args) {
      // The parts of a tuple are made for the kernel.
      auto* part = as<TupleGetItemNode>(a);
      NodeRef now = lookup(a.get());
      if (!now && part != nullptr) {
        now = lookup(part->tuple.get());
        if (now) now = tuple_get_item(cast<ExprNode>(now), part->index);
      }
      args.push_back(now ? cast<ExprNode>(now) : a);
    }
    return call(c.op, std::move(args), nullptr, c.span);
  }

 private:
  std::unordered_map<const Node*, Call> kernels_;
  std::unordered_map<const Node*, std::string> reasons_;
};

// Kernels of loops that a program begins with, and passes before this one have rewritten, in the form that their
// composition takes.
Function with_kernels_in_form(const Function& f) {
  return cast<FunctionNode>(rewrite(
      f,
      [](const NodeRef&, NodeRef rebuilt) -> NodeRef {
        auto* k = as_primitive(rebuilt.get());
        if (k == nullptr || !is_loop_kernel(*k)) return rebuilt;
        // What is marked as a kernel stays as it is.
        Function form = to_a_normal_form(
            function(k->params, k->body, k->ret_type, k->type_params, {}, k->span));
        form = function(form->params, form->body, form->ret_type, form->type_params, k->attrs,
                        k->span);
        return structural_equal(form, rebuilt) ? rebuilt : NodeRef(form);
      },
      family::program));
}

// The same for a function that is a loop itself.
Function outlined_function(const GlobalVar& name, const Function& given) {
  if (given->is_primitive()) return given;
  const Function f = with_kernels_in_form(given);
  auto placed_in = [](const Function& g) {
    return PlaceKernels().run_on(outline::define_where_called(g));
  };
  const Function local = with_local_loop(name, f);
  if (local == nullptr) return placed_in(f);
  const Function placed = placed_in(local);
  auto* left = as<LetNode>(placed->body);
  if (left == nullptr) return placed;
  const Function out = placed_in(f);
  if (out->has_attr(kInterpreted)) return out;
  const auto& attrs = as<FunctionNode>(left->value)->attrs;
  return with_reason(*out.get(), *attrs.find(kInterpreted)->second.get_if<std::string>());
}

Module run_outline_loops(const Module& mod, PassContext&) {
  return map_functions(mod, outlined_function);
}

}  // namespace

const Pass kOutlineLoops{"OutlineLoops",
                         2,
                         Form::any,
                         Form::any,
                         "Makes one kernel of a loop whose iterations compute single numbers.",
                         run_outline_loops};

}  // namespace relay
