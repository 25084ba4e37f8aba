#include "frontend/common/step_loop.h"

#include <algorithm>
#include <set>
#include <utility>

#include "base/codes/frontend.h"
#include "frontend/common/builder.h"
#include "ir/op.h"
#include "node/node_map.h"
#include "node/structural.h"
#include "node/walk.h"

namespace relay::frontend {
namespace {

// Makes what a step reads but does not change further parameters of the loop.
class Invariants {
 public:
  Invariants(const ProgramBuilder& program, const Expr& body, const std::vector<Var>& params) {
    for (const Var& p : params) bound_[p.get()] = true;
    post_order(
        body, [&](const Node& n) { each_bound(n, [&](const Var& v) { bound_[v.get()] = true; }); },
        family::program);
    // Children come first. What is bound inside of an expression - by a whole loop before this one - does not make
    // it change.
    post_order(
        body,
        [&](const Node& n) {
          Kind& kind = kinds_[&n];
          Bound free;
          if (bound_.contains(&n)) free.insert(&n);
          for_each_child(n, [&](const NodeRef& child) {
            const Kind* of_child = kinds_.find(child.get());
            if (of_child == nullptr) return;
            kind.varies = std::max(kind.varies, of_child->varies);
            free.insert(of_child->free.begin(), of_child->free.end());
          });
          each_bound(n, [&](const Var& v) { free.erase(v.get()); });
          // Weights are bound to constants before passes see them.
          auto* v = as<VarNode>(&n);
          if (v != nullptr && !program.is_weight(*v)) kind.varies = invariant;
          auto* call = as<CallNode>(&n);
          auto* op = call == nullptr ? nullptr : as<OpNode>(call->op);
          // What is drawn at random is drawn in each step.
          if (op != nullptr && op->row->effect != Effect::Pure) kind.varies = changes;
          kind.free = std::move(free);
        },
        family::program);
    std::vector<NodeRef> pending{body};
    NodeMap<bool> met;
    while (!pending.empty()) {
      NodeRef node = std::move(pending.back());
      pending.pop_back();
      const Kind* kind = kinds_.find(node.get());
      if (kind == nullptr || std::exchange(met[node.get()], true)) continue;
      const bool steady = kind->varies != changes && kind->free.empty();
      if (steady && (kind->varies == constant || hoist(node))) continue;
      std::vector<NodeRef> children;
      for_each_child(*node.get(), [&](const NodeRef& child) { children.push_back(child); });
      pending.insert(pending.end(), children.rbegin(), children.rend());
    }
  }

  const std::vector<Var>& params() const { return params_; }
  const std::vector<Expr>& values() const { return values_; }
  Expr apply(const Expr& body) const {
    return replacements_.empty() ? body
                                 : cast<ExprNode>(substitute(body, replacements_, family::program));
  }

 private:
  enum Varies { constant, invariant, changes };
  using Bound = std::set<const Node*>;
  struct Kind {
    Varies varies = constant;
    Bound free;  // what is bound in the body, outside of this node
  };

  template <class Visit>
  static void each_bound(const Node& n, const Visit& visit) {
    if (auto* f = as<FunctionNode>(&n)) {
      for (const Var& p : f->params) visit(p);
    } else if (auto* l = as<LetNode>(&n)) {
      visit(l->var);
    } else if (auto* c = as<ClauseNode>(&n)) {
      post_order(
          c->lhs,
          [&](const Node& part) {
            if (auto* v = as<PatternVarNode>(&part)) visit(v->var);
          },
          family::program);
    }
  }

  bool hoist(const NodeRef& node) {
    auto* e = as<ExprNode>(node);
    if (e == nullptr || !flatten_tensor_types(e->type)) return false;
    params_.push_back(var("outer" + std::to_string(params_.size()), e->type, e->span));
    values_.push_back(Expr(e));
    replacements_.emplace(e, params_.back());
    return true;
  }

  NodeMap<bool> bound_;
  NodeMap<Kind> kinds_;
  std::vector<Var> params_;
  std::vector<Expr> values_;
  std::unordered_map<const Node*, NodeRef> replacements_;
};

// Zeros of the shape of all lines together.
Expr stacked_zeros(const Builder& build, const Expr& lines, const Expr& line) {
  const TensorTypeNode& type = Builder::type_of(line);
  std::vector<Dim> shape{Builder::shape_of(lines)[0]};
  shape.insert(shape.end(), type.shape.begin(), type.shape.end());
  bool fixed = as_const(shape[0]).has_value();
  if (fixed) return build.full(0, shape, type.dtype);
  Expr zeros = build.cast(build.call("zeros_like", {lines}), type.dtype);
  if (type.shape.empty()) return zeros;
  return build.add(build.expand_dims(zeros, 1, type.rank()), build.full(0, type.shape, type.dtype));
}

}  // namespace

Expr length_of(const Builder& build, const Expr& vector) {
  if (auto n = as_const(Builder::shape_of(vector)[0])) {
    return build.constant(Tensor::scalar(*n, DType::Int(64)));
  }
  return build.call("ndarray_size", {vector}, {{"dtype", to_value(DType::Int(64))}});
}

Expr zeros_along(const Builder& build, Expr e, int64_t axis) {
  const Dim size = Builder::shape_of(e)[static_cast<size_t>(axis)];
  if (as_const(size)) return build.full(0, {size}, DType::Int(32));
  for (int64_t other = Builder::rank_of(e); other-- > 0;) {
    if (other == axis) continue;
    e = build.call("take", {e, build.scalar(0, DType::Int(64))}, {{"axis", other}});
  }
  return build.cast(build.call("zeros_like", {e}), DType::Int(32));
}

namespace {

// Sizes that the code of a loop needs, and that its parameters have only inside of terms (`n // 2`): a vector for each
// whose length it is.
std::vector<Expr> carriers_of_sizes(const Builder& build, const std::vector<Var>& params,
                                    const Expr& body) {
  std::vector<TypeVar> met;
  NodeMap<bool> seen, plain;
  auto look = [&](const Type& type) {
    if (!type || std::exchange(seen[type.get()], true)) return;
    post_order(
        type,
        [&](const Node& n) {
          auto* v = as<DimVarNode>(&n);
          if (v != nullptr && !std::exchange(seen[v->var.get()], true)) met.push_back(v->var);
        },
        family::type | family::dim);
  };
  for (const Var& p : params) {
    look(p->type);
    for (const TensorType& t : flatten_tensor_types(p->type).value_or(std::vector<TensorType>{})) {
      for (const Dim& d : t->shape) {
        if (auto* v = as<DimVarNode>(d)) plain[v->var.get()] = true;
      }
    }
  }
  post_order(
      body,
      [&](const Node& n) {
        if (auto* e = as<ExprNode>(&n)) look(e->type);
      },
      family::program);
  std::vector<Expr> out;
  for (const TypeVar& v : met) {
    const auto* source = build.program().source_of(v);
    if (!plain.contains(v.get()) && source != nullptr) {
      out.push_back(zeros_along(build, source->first, source->second));
    }
  }
  return out;
}

// The type with `?` where sizes differ; null for types that differ otherwise.
Type widened(const Type& a, const Type& b) {
  if (structural_equal(a, b)) return a;
  auto *x = as<TensorTypeNode>(a), *y = as<TensorTypeNode>(b);
  if (x == nullptr || y == nullptr || x->rank() != y->rank() || x->dtype != y->dtype)
    return nullptr;
  std::vector<Dim> shape = x->shape;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (!dim_equal(shape[d], y->shape[d])) shape[d] = dim_any();
  }
  return tensor_type(std::move(shape), x->dtype);
}

bool has_any(const Expr& e) { return std::ranges::any_of(Builder::shape_of(e), is_any); }

// Lines of open sizes one behind the other. Before the first there is nothing to tell the sizes.
Expr appended(const Builder& build, const Expr& t, const Expr& lines, const Expr& line) {
  Expr first = build.call("equal", {t, build.scalar(0, DType::Int(64))});
  Expr one = build.expand_dims(line, 0);
  return if_(first, one, build.concat({lines, one}, 0), build.span());
}

}  // namespace

StepResults run_steps(const Builder& build, const StepLoop& loop,
                      const std::function<Step(const Expr& t, const Expr& go,
                                               const std::vector<Expr>& states)>& step) {
  const DType i64 = DType::Int(64);
  const Span& span = build.span();
  std::vector<Var> params{var("t", scalar_type(i64), span)};
  std::vector<Expr> arguments{build.scalar(0, i64)};
  Expr t = params[0], go;
  if (loop.go) {
    params.push_back(var("go", scalar_type(DType::Bool()), span));
    arguments.push_back(loop.go);
    go = params.back();
  }
  std::vector<Expr> states, kept;  // what the loop returns
  for (const Expr& e : loop.initial) {
    params.push_back(var("state" + std::to_string(states.size()), e->type, span));
    arguments.push_back(e);
    states.push_back(params.back());
  }
  // A size that changes from step to step is `?`. Each round makes one more of them so.
  Step next;
  for (bool changed = true; changed;) {
    next = step(t, go, states);
    RELAY_CHECK((loop.count || loop.go) && (loop.lines || next.results.empty()), "a loop");
    RELAY_CHECK(next.states.size() == states.size() && next.results.size() == loop.backward.size(),
                "a step of a loop");
    changed = false;
    for (size_t i = 0; i < states.size(); ++i) {
      Type both = widened(states[i]->type, next.states[i]->type);
      if (both == nullptr) {
        build.fail(codes::frontend_dynamic, "a value that a loop carries changes its type",
                   to_string(states[i]->type), to_string(next.states[i]->type),
                   "carry values of one rank and dtype");
      }
      if (structural_equal(both, states[i]->type)) continue;
      changed = true;
      Var wider = var("state" + std::to_string(i), both, span);
      params[params.size() - states.size() + i] = wider;
      states[i] = wider;
    }
  }
  kept = states;
  if (loop.lines && as_const(Builder::shape_of(loop.lines)[0]) == 0) {
    StepResults none{loop.initial, {}};
    for (const Expr& line : next.results)
      none.stacked.push_back(stacked_zeros(build, loop.lines, line));
    return none;
  }
  std::vector<Expr> again{build.add(t, build.scalar(1, i64))};
  if (loop.go) again.push_back(next.go);
  again.insert(again.end(), next.states.begin(), next.states.end());
  for (size_t i = 0; i < next.results.size(); ++i) {
    const Expr& line = next.results[i];
    if (has_any(line)) {
      if (loop.backward[i]) build.unsupported("lines of open sizes in reverse order");
      std::vector<Dim> none(Builder::shape_of(line).size() + 1, dim(1));
      none[0] = dim(0);
      Type open = tensor_type(std::vector<Dim>(none.size(), dim_any()), Builder::dtype_of(line));
      params.push_back(var("stacked" + std::to_string(i), open, span));
      arguments.push_back(build.full(0, none, Builder::dtype_of(line)));
      kept.push_back(params.back());
      again.push_back(appended(build, t, params.back(), line));
      continue;
    }
    Expr zeros = stacked_zeros(build, loop.lines, line);
    params.push_back(var("stacked" + std::to_string(i), zeros->type, span));
    arguments.push_back(zeros);
    kept.push_back(params.back());
    Expr at = loop.backward[i] ? build.sub(build.sub(loop.count, build.scalar(1, i64)), t) : t;
    again.push_back(build.call("update_slice", {params.back(), build.expand_dims(line, 0), at}));
  }
  Expr test = loop.count ? build.call("less", {t, loop.count}) : go;
  if (loop.count && go) test = build.call("logical_and", {go, test});
  // A loop that ends before its time has stacked fewer lines.
  const bool cuts = go && !next.results.empty();
  if (cuts) kept.push_back(t);
  const Expr result = kept.size() == 1 ? kept[0] : build.tuple_of(kept);
  // All that a step computes, in one expression, so that what it shares is seen.
  again.push_back(test);
  Invariants invariants(build.program(), build.tuple_of(again), params);
  for (size_t i = 0; i < invariants.params().size(); ++i) {
    params.push_back(invariants.params()[i]);
    arguments.push_back(invariants.values()[i]);
  }
  Expr moved = invariants.apply(build.tuple_of(again));
  again = as<TupleNode>(moved)->fields;
  test = again.back();
  again.pop_back();
  again.insert(again.end(), invariants.params().begin(), invariants.params().end());
  for (const Expr& sizes : carriers_of_sizes(build, params, moved)) {
    params.push_back(var("sizes" + std::to_string(params.size()), sizes->type, span));
    arguments.push_back(sizes);
    again.push_back(params.back());
  }

  std::vector<Type> types;
  for (const Var& p : params) types.push_back(p->type);
  Var self = var("loop", func_type(types, result->type), span);
  Expr body = if_(test, call(self, again, nullptr, span), result, span);
  Function f = function(params, body, result->type, {}, {}, span);
  Expr run = let(self, f, call(self, arguments, nullptr, span), span);
  StepResults out;
  auto part = [&](size_t i) {
    return kept.size() == 1 ? run : build.item(run, static_cast<int64_t>(i));
  };
  for (size_t i = 0; i < states.size(); ++i) out.states.push_back(part(i));
  for (size_t i = 0; i < next.results.size(); ++i) {
    Expr all = part(states.size() + i);
    if (cuts && !has_any(next.results[i])) {
      Expr done = build.reshape(part(kept.size() - 1), std::vector<int64_t>{1});
      all = build.call("dyn.strided_slice", {all, build.ints({0}), done, build.ints({1})});
    }
    out.stacked.push_back(all);
  }
  return out;
}

}  // namespace relay::frontend
