#include "grad/dataflow.h"

#include <algorithm>

#include "analysis/calls.h"
#include "base/codes/gradients.h"
#include "grad/call_gradient.h"
#include "grad/type_depth.h"
#include "grad/untaken.h"
#include "ir/op.h"
#include "node/node_map.h"
#include "node/walk.h"

namespace relay {
namespace {

size_t count_tensors(const Type& type) {
  auto tensors = flatten_tensor_types(type);
  return tensors ? tensors->size() : 0;
}

// Whether the walk looks for dataflow below a node: functions and operators are values.
bool is_entered(const Node& n) { return !isa<FunctionNode>(&n) && !isa<OpNode>(&n); }

class ReverseAccumulation {
 public:
  ReverseAccumulation(const std::vector<Seed>& results, const std::vector<Expr>& wrt) : wrt_(wrt) {
    for (const Expr& e : wrt) on_path_.insert(e.get());
    for (const Seed& s : results) {
      if (s.value) collect(s.value);
    }
    for (const Seed& s : results) {
      if (s.value && on_path_.contains(s.value.get())) add(s.value, 0, s.adjoints);
    }
  }

  std::vector<std::vector<Expr>> run() {
    for (size_t i = order_.size(); i-- > 0;) {
      const ExprNode& e = *order_[i];
      std::vector<Expr>* found = adjoints_.find(&e);
      if (found == nullptr || is_wrt(e)) continue;
      std::vector<Expr> adjoints = *found;
      bool any = false;
      for (const Expr& a : adjoints) any |= static_cast<bool>(a);
      if (any) pass_on(e, std::move(adjoints));
    }
    std::vector<std::vector<Expr>> out;
    for (const Expr& e : wrt_) {
      std::vector<Expr>* found = adjoints_.find(e.get());
      out.push_back(found != nullptr ? *found : std::vector<Expr>(count_tensors(e->type)));
    }
    return out;
  }

 private:
  bool is_wrt(const ExprNode& e) const {
    for (const Expr& w : wrt_) {
      if (w.get() == &e) return true;
    }
    return false;
  }

  // The expressions below `root` that depend on what the gradient is with respect to, operands first.
  void collect(const Expr& root) {
    post_order_if(
        root, [&](const Node& n) { return is_entered(n) && !seen_.contains(&n); },
        [&](const Node& n) {
          if (!seen_.insert(&n)) return;
          bool depends = on_path_.contains(&n);
          for_each_child(n, [&](const NodeRef& c) { depends |= on_path_.contains(c.get()); });
          if (!depends) return;
          on_path_.insert(&n);
          order_.push_back(static_cast<const ExprNode*>(&n));
        },
        family::expr);
  }

  // Adds to the adjoints of the tensors from `first` on.
  void add(const Expr& e, size_t first, const std::vector<Expr>& more) {
    if (!on_path_.contains(e.get())) return;
    std::vector<Expr>& sums = adjoints_[e.get()];
    if (sums.empty()) sums.resize(count_tensors(e->type));
    for (size_t i = 0; i < more.size(); ++i) {
      Expr& sum = sums[first + i];
      if (more[i]) sum = sum ? Expr(call("add", {sum, more[i]})) : more[i];
    }
  }

  static std::vector<Expr> part(const std::vector<Expr>& all, size_t first, size_t count) {
    auto begin = all.begin() + static_cast<std::ptrdiff_t>(first);
    return {begin, begin + static_cast<std::ptrdiff_t>(count)};
  }

  void pass_on(const ExprNode& e, std::vector<Expr> adjoints) {
    if (auto* t = as<TupleNode>(&e)) {
      spread(t->fields, adjoints);
    } else if (auto* g = as<TupleGetItemNode>(&e)) {
      auto* type = as<TupleTypeNode>(g->tuple->type);
      size_t first = 0;
      for (int64_t i = 0; i < g->index; ++i)
        first += count_tensors(type->fields[static_cast<size_t>(i)]);
      add(g->tuple, first, adjoints);
    } else if (auto* c = as<CallNode>(&e); c != nullptr && called_op(Expr(&e)) != nullptr) {
      spread(c->args, call_gradient(*c, Expr(&e), std::move(adjoints)));
    } else {
      throw UserError(
          Diagnostic(codes::grad_function, e.span, "this is not plain dataflow")
              .expected("calls of operators, tuples and their fields")
              .help(
                  "the mode higher_order differentiates functions, branches, data and references"));
    }
  }

  void spread(const std::vector<Expr>& operands, const std::vector<Expr>& adjoints) {
    size_t first = 0;
    for (const Expr& o : operands) {
      size_t count = count_tensors(o->type);
      add(o, 0, part(adjoints, first, count));
      first += count;
    }
  }

  const std::vector<Expr>& wrt_;
  NodeSet on_path_, seen_;
  std::vector<const ExprNode*> order_;
  NodeMap<std::vector<Expr>> adjoints_;
};

// The body of a function with every Let's value in the place of its variable.
class WithoutLets {
 public:
  Expr run(const Expr& body) {
    post_order_if(
        body, [](const Node& n) { return !isa<FunctionNode>(&n); },
        [&](const Node& n) {
          if (auto* l = as<LetNode>(&n)) values_[l->var.get()] = l->value;
        },
        family::expr);
    post_order_if(
        body, [](const Node& n) { return !isa<FunctionNode>(&n); },
        [&](const Node& n) {
          if (isa<VarNode>(&n)) return;
          if (auto* l = as<LetNode>(&n)) {
            made_[l] = now(l->body);
            return;
          }
          std::vector<NodeRef> children = children_of(n);
          for (NodeRef& c : children) {
            if (c && c.get()->info().family == family::expr) c = now(Expr::unchecked(c));
          }
          made_[&n] = Expr::unchecked(with_children(NodeRef(&n), children));
        },
        family::expr);
    return now(body);
  }

 private:
  Expr now(Expr e) {
    for (;;) {
      const Expr* value = values_.find(e.get());
      if (value == nullptr) break;
      e = *value;
    }
    const Expr* made = made_.find(e.get());
    return made == nullptr ? e : *made;
  }

  NodeMap<Expr> values_, made_;
};

// A function with copies of the nodes that it binds.
class FreshBinders : public Rewriter {
 public:
  explicit FreshBinders(const Function& f) : Rewriter(family::all) {
    post_order(
        f,
        [&](const Node& n) {
          for (const Field& field : n.info().fields) {
            if (field.role != Role::binder) continue;
            const void* at = field.in(n);
            for (size_t i = 0; i < field.ops->count(at); ++i) {
              const NodeRef& v = field.ops->get_child(at, i);
              if (auto* t = as<TypeVarNode>(v)) set(v, type_var(t->name_hint, t->kind));
            }
          }
        },
        family::program);
    post_order(
        f,
        [&](const Node& n) {
          auto* v = as<VarNode>(&n);
          if (v == nullptr) return;
          Type type = apply(v->type);
          set(NodeRef(v), var(v->name_hint, type, v->span));
        },
        family::program);
  }
};

Expr scalar_like(const char* op, const char* op_like, const Expr& e) {
  auto* t = tensor_of(e);
  for (const Dim& d : t->shape) {
    if (is_any(d)) return call(op_like, {e});
  }
  return make_call(op, {},
                   {{"shape", to_value(Dims(t->shape.begin(), t->shape.end()))},
                    {"dtype", t->dtype.to_string()}},
                   e->span);
}

}  // namespace

std::vector<std::vector<Expr>> dataflow_gradient(const std::vector<Seed>& results,
                                                 const std::vector<Expr>& wrt) {
  return ReverseAccumulation(results, wrt).run();
}

Expr ones_of(const Expr& e) { return scalar_like("ones", "ones_like", e); }
Expr zeros_of(const Expr& e) { return scalar_like("zeros", "zeros_like", e); }

std::vector<Expr> tensors_of(const Expr& value) {
  std::vector<Expr> out, todo{value};
  while (!todo.empty()) {
    Expr e = todo.back();
    todo.pop_back();
    auto* t = as<TupleTypeNode>(e->type);
    if (t == nullptr) {
      out.push_back(e);
      continue;
    }
    auto* literal = as<TupleNode>(e);
    for (size_t i = t->fields.size(); i-- > 0;) {
      todo.push_back(literal != nullptr ? literal->fields[i]
                                        : Expr(tuple_get_item(e, static_cast<int64_t>(i))));
    }
  }
  return out;
}

std::vector<Expr> unit_adjoints(const Expr& value) {
  std::vector<Expr> out = tensors_of(value);
  for (Expr& e : out) e = is_floating(e->type) ? ones_of(e) : nullptr;
  return out;
}

std::vector<Expr> call_tangent(const CallNode& call, const Expr& result,
                               const std::vector<Expr>& tangents) {
  // The adjoint of the result, as variables.
  std::vector<Expr> values = tensors_of(result), adjoints(values.size()), wrt;
  std::vector<size_t> place;
  for (size_t i = 0; i < values.size(); ++i) {
    if (!is_floating(values[i]->type)) continue;
    wrt.push_back(adjoints[i] = var("u", values[i]->type));
    place.push_back(i);
  }
  std::vector<Expr> out(values.size());
  bool any = false;
  for (const Expr& t : tangents) any |= static_cast<bool>(t);
  if (!any || wrt.empty()) return out;
  std::vector<Expr> gradient = call_gradient(call, result, adjoints);
  // The transpose of a linear function does not depend on the adjoint, but for its shape, which is
  // the result's, and for whether it is 0: what is infinite or NaN is not passed on for an adjoint of
  // 0, nor for a tangent of 0.
  auto transpose = [&](const std::vector<Seed>& seeds, const std::vector<Expr>& stands_for) {
    std::vector<std::vector<Expr>> found = dataflow_gradient(seeds, wrt);
    Rewriter rewriter(family::expr);
    for (size_t k = 0; k < wrt.size(); ++k) rewriter.set(wrt[k], stands_for[k]);
    for (size_t k = 0; k < wrt.size(); ++k) {
      if (!found[k][0]) continue;
      Expr& sum = out[place[k]];
      Expr more = rewriter.apply(found[k][0]);
      sum = sum ? Expr(relay::call("add", {sum, more})) : more;
    }
  };
  std::vector<Expr> results;
  for (size_t i : place) results.push_back(values[i]);
  // Without attributes there is no axis: arguments broadcast as in NumPy.
  const bool by_element = results.size() == 1 && call.attrs == nullptr &&
                          as<OpNode>(call.op)->row->fusion.get() <= FusionClass::Broadcast;
  std::vector<Seed> together;
  for (size_t i = 0; i < gradient.size(); ++i) {
    const Expr& t = tangents[i];
    if (!gradient[i] || !t) continue;
    Seed seed{gradient[i], {t}};
    if (by_element && tensor_of(t)->dtype == tensor_of(results[0])->dtype) {
      const bool same = same_shape(t->type, results[0]->type);
      transpose({seed}, {same ? t : Expr(relay::call("broadcast_to_like", {t, results[0]}))});
    } else {
      together.push_back(std::move(seed));
    }
  }
  if (!together.empty()) transpose(together, results);
  return out;
}

Function fresh_copy(const Function& f) { return FreshBinders(f).apply(f); }

Expr gradient_value(const Expr& value, const std::vector<Expr>& adjoints, size_t& next) {
  // Types are not deep (check_differentiable).
  if (auto* t = as<TupleTypeNode>(value->type)) {
    std::vector<Expr> fields;
    for (size_t i = 0; i < t->fields.size(); ++i) {
      fields.push_back(
          gradient_value(tuple_get_item(value, static_cast<int64_t>(i)), adjoints, next));
    }
    return tuple(std::move(fields));
  }
  const Expr& g = adjoints[next++];
  if (!is_floating(value->type)) return tuple({});
  return g ? g : zeros_of(value);
}

void check_differentiable(const Function& f) {
  check_type_depth(f, codes::grad_function);
  // Data may hold floats whatever its type says.
  bool floats = has_floats(f->body->type);
  post_order(
      f->body->type, [&](const Node& n) { floats |= isa<GlobalTypeVarNode>(&n); }, family::type);
  if (floats) return;
  throw UserError(Diagnostic(codes::grad_integers, f->span ? f->span : f->body->span,
                             "the result of the function holds no floats: it has no gradient")
                      .expected("a floating tensor in the result")
                      .found(to_string(f->body->type))
                      .help("cast the result to float32, if a gradient of 0 is what is wanted"));
}

Function first_order_gradient(const Function& f) {
  check_differentiable(f);
  Function own = fresh_copy(f);
  for (const Var& p : own->params) {
    if (flatten_tensor_types(p->type)) continue;
    throw UserError(Diagnostic(codes::grad_function, p->span,
                               "the parameter '" + p->name_hint + "' is not a tensor")
                        .expected("tensors and tuples of them")
                        .found(to_string(p->type))
                        .help("the mode higher_order differentiates functions of data and "
                              "references"));
  }
  Expr body = WithoutLets().run(own->body);
  Function masked = without_untaken(
      function(own->params, body, body->type, own->type_params, own->attrs, own->span));
  body = WithoutLets().run(masked->body);
  if (!flatten_tensor_types(body->type)) {
    throw UserError(Diagnostic(codes::grad_function, body->span, "the result is not a tensor")
                        .expected("tensors and tuples of them")
                        .found(to_string(body->type)));
  }
  std::vector<Expr> params(own->params.begin(), own->params.end());
  std::vector<std::vector<Expr>> adjoints =
      dataflow_gradient({{body, unit_adjoints(body)}}, params);
  std::vector<Expr> gradients;
  for (size_t i = 0; i < params.size(); ++i) {
    size_t next = 0;
    gradients.push_back(gradient_value(params[i], adjoints[i], next));
  }
  Expr result = tuple({body, tuple(std::move(gradients))});
  return function(own->params, result, result->type, own->type_params, own->attrs, own->span);
}

}  // namespace relay
