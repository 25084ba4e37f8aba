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

void FunctionPlanner::begin_loop() {
  for (const Var& v : f_->params) {
    auto dtype = scalar_dtype(v->type);
    if (dtype) bind(v, {w_.load(bound_.at(v.get()).value, *dtype, v->type)});
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
  for (size_t i = 0; i < c.args.size(); ++i) {
    const Var& param = f_->params[i];
    if (c.args[i] == param) continue;
    ValueId to = bound_.at(param.get()).value;
    if (w_.place_of(to) == Place::scalar) {
      scalars.push_back({to, scalar(c.args[i])});
      scalar_targets.insert(to);
    } else {
      objects.push_back({to, object(c.args[i])});
      object_targets.insert(to);
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
