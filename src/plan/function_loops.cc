#include <algorithm>

#include "ir/bindings.h"
#include "node/walk.h"
#include "plan/function_planner.h"

namespace relay::plan {

bool FunctionPlanner::calls_itself(const CallNode& c) const {
  if (auto* g = as<GlobalVarNode>(c.op))
    return !w_.function().internal && program_.global(*g) == index_;
  return self_ && c.op == self_;
}

bool FunctionPlanner::is_loop() const {
  if (writes_outputs_) return false;
  std::vector<Expr> stack{f_->body};
  while (!stack.empty()) {
    Expr at = stack.back();
    stack.pop_back();
    while (auto* l = as<LetNode>(at)) {
      if (l->body == l->var) {
        if (auto* i = as<IfNode>(l->value)) {
          stack.push_back(i->true_branch);
          stack.push_back(i->false_branch);
        } else if (auto* m = as<MatchNode>(l->value)) {
          for (const Clause& c : m->clauses) stack.push_back(c->rhs);
        } else if (auto* c = as<CallNode>(l->value); c != nullptr && calls_itself(*c)) {
          return true;
        }
      }
      at = l->body;
    }
  }
  return false;
}

void FunctionPlanner::find_whole() {
  auto whole = [&](const NodeRef& child) {
    if (isa<VarNode>(child)) whole_.insert(child.get());
  };
  post_order_if(
      f_->body,
      [&](const Node& n) {
        auto* inner = as<FunctionNode>(&n);
        if (inner == nullptr) return true;
        if (!inner->is_primitive()) {
          for (const Var& v : free_vars(ref(*inner))) whole_.insert(v.get());
        }
        return false;
      },
      [&](const Node& n) {
        if (auto* l = as<LetNode>(&n)) return whole(l->value);
        if (isa<TupleGetItemNode>(&n) || isa<IfNode>(&n) || isa<ClauseNode>(&n)) return;
        auto* c = as<CallNode>(&n);
        const bool next = c != nullptr && calls_itself(*c);
        if (!next) return for_each_child(n, whole);
        for (size_t i = 0; i < c->args.size(); ++i) {
          if (!isa<TupleTypeNode>(f_->params[i]->type)) whole(c->args[i]);
        }
      },
      family::program);
}

bool FunctionPlanner::taken_apart(const Var& param) const {
  constexpr size_t kMaxFields = 16;
  auto* t = as<TupleTypeNode>(param->type);
  if (t == nullptr || t->fields.size() > kMaxFields || whole_.contains(param.get())) return false;
  // Sizes are read off tuples, and where they are known.
  return std::ranges::all_of(t->fields, [](const Type& field) {
    auto* tensor = as<TensorTypeNode>(field);
    return tensor != nullptr ? tensor->shape.empty() : !isa<TupleTypeNode>(field);
  });
}

void FunctionPlanner::begin_loop() {
  for (const Var& v : f_->params) {
    const Bound given = bound_.at(v.get());
    if (auto dtype = register_dtype(v->type, w_.device_of(given.value))) {
      bind(v, {w_.load(given.value, *dtype, v->type)});
    } else if (taken_apart(v)) {
      auto* t = as<TupleTypeNode>(v->type);
      Bound fields;
      for (size_t i = 0; i < t->fields.size(); ++i) {
        Bound part = field(given, v->type, i);
        const Device device = program_.placement().device_of(v, {i});
        if (register_dtype(t->fields[i], device)) part = {scalar(part, t->fields[i])};
        fields.fields.push_back(part);
      }
      bind(v, fields);
    }
  }
  in_loop_ = true;
  w_.add(StepKind::loop);
}

void FunctionPlanner::next_iteration(const CallNode& c) {
  struct Move {
    ValueId to;
    ValueId from;
  };
  std::vector<Move> scalars, objects;
  std::unordered_set<ValueId> scalar_targets, object_targets;
  auto move = [&](ValueId to, auto&& as_scalar, auto&& as_object) {
    if (w_.place_of(to) == Place::scalar) {
      scalars.push_back({to, as_scalar()});
      scalar_targets.insert(to);
    } else {
      objects.push_back({to, as_object()});
      object_targets.insert(to);
    }
  };
  for (size_t i = 0; i < c.args.size(); ++i) {
    const Var& param = f_->params[i];
    const Expr& arg = c.args[i];
    if (arg == param) continue;
    const Bound to = bound_.at(param.get());
    if (!to.is_tuple()) {
      move(
          to.value, [&] { return scalar(arg); }, [&] { return object_operand(c, i, arg); });
      continue;
    }
    const Bound from = operand(c, i, arg);
    for (size_t k = 0; k < to.fields.size(); ++k) {
      const Type& type = as<TupleTypeNode>(param->type)->fields[k];
      const Bound part = field(from, param->type, k, program_.placement().domain(arg));
      move(
          to.fields[k].value, [&] { return scalar(part, type); },
          [&] { return object(part, type); });
    }
  }
  // All moves happen at once: what would be overwritten before it is read is put aside.
  for (Move& m : scalars) {
    if (m.from == m.to || !scalar_targets.contains(m.from)) continue;
    ValueId aside = w_.scalar(w_.value(m.from).type);
    w_.add(StepKind::set_scalar, {aside}, {m.from});
    m.from = aside;
  }
  for (Move& m : objects) {
    if (m.from == m.to || !object_targets.contains(m.from)) continue;
    ValueId aside = w_.object(w_.value(m.from).type);
    w_.set_device(aside, w_.device_of(m.from));
    w_.add(StepKind::set, {aside}, {m.from});
    m.from = aside;
  }
  for (const Move& m : scalars) {
    if (m.from != m.to) w_.add(StepKind::set_scalar, {m.to}, {m.from});
  }
  // A tensor made in this iteration changes places with the one that it replaces, whose memory the
  // next iteration then uses. A tensor that goes to two parameters is moved to the first ones.
  std::unordered_map<ValueId, size_t> uses;
  for (const Move& m : objects) ++uses[m.from];
  std::vector<Move> swaps;
  for (const Move& m : objects) {
    if (m.from == m.to) continue;
    if (loop_tensors_.contains(m.from) && --uses[m.from] == 0) {
      swaps.push_back(m);
    } else {
      w_.add(StepKind::set, {m.to}, {m.from});
    }
  }
  for (const Move& m : swaps) w_.add(StepKind::swap, {}, {m.to, m.from});
  w_.add(StepKind::next);
}

}  // namespace relay::plan
