#include <algorithm>

#include "analysis/closures.h"
#include "analysis/primitives.h"
#include "analysis/read_counts.h"
#include "base/budget.h"
#include "base/codes/lowering.h"
#include "ir/bindings.h"
#include "node/walk.h"
#include "plan/function_planner.h"

namespace relay::plan {

[[noreturn]] void unsupported(const Span& span, std::string what, std::string help) {
  throw UserError(
      Diagnostic(codes::lower_unsupported, span, std::move(what)).help(std::move(help)));
}

FunctionPlanner::FunctionPlanner(ProgramPlanner& program, const Function& f, std::string name,
                                 std::vector<Var> captured, Var self, int32_t index, bool internal)
    : program_(program),
      f_(f),
      captured_(std::move(captured)),
      self_(std::move(self)),
      index_(index),
      w_(std::move(name)),
      writes_outputs_(writes_outputs(*f.get()) && results_on_host(*f.get(), program.placement())),
      escapes_(find_escapes(*f.get(), writes_outputs_)),
      joins_(find_joins(*f.get(), escapes_, program.lowered())) {
  w_.function().internal = internal;
  if (!internal) {
    donations_ = find_donations(*f.get(), program_.module(), program_.is_called(index),
                                writes_outputs_, escapes_, joins_, program_.lowered());
    w_.function().donations = donations_.rows;
  }
  find_updated();
  find_escaping_parts();
  reads_ = read_counts(f_->body);
  find_whole();
  if (writes_outputs_) claimed_ = claim_outputs(*f.get(), escapes_, joins_);
}

void FunctionPlanner::find_updated() {
  post_order_outside_primitives(f_->body, [&](const Node& n) {
    auto* c = as<CallNode>(&n);
    auto* f = c == nullptr ? nullptr : primitive_of(*c);
    if (f == nullptr || !is_update(*f)) return;
    for (const Expr& a : c->args) updated_.insert(a.get());
  });
}

void FunctionPlanner::find_escaping_parts() {
  post_order_outside_primitives(f_->body, [&](const Node& n) {
    auto* l = as<LetNode>(&n);
    auto* part = l == nullptr ? nullptr : as<TupleGetItemNode>(l->value);
    if (part == nullptr || !escapes_.contains(l->var.get())) return;
    escaping_parts_[part->tuple.get()].insert(static_cast<size_t>(part->index));
  });
}

bool FunctionPlanner::escapes(const Node* v, size_t result) const {
  if (escapes_.contains(v)) return true;
  auto parts = escaping_parts_.find(v);
  return parts != escaping_parts_.end() && parts->second.contains(result);
}

PlanFunction FunctionPlanner::run() {
  declare_params();
  plan(f_->body, Target{Target::kReturn, -1, program_.placement().result(*f_.get())});
  while (!tasks_.empty()) {
    check_budget();
    std::function<void()> task = std::move(tasks_.back());
    tasks_.pop_back();
    task();
  }
  return std::move(w_).finish();
}

void FunctionPlanner::plan(const Expr& body, Target target) {
  Expr at = body;
  while (auto* l = as<LetNode>(at)) {
    now_ = l;
    bool tail = target.kind == Target::kReturn && !writes_outputs_ && l->body == l->var;
    if (isa<IfNode>(l->value) || isa<MatchNode>(l->value)) {
      Target inner = target;
      if (!tail) {
        const std::string& name = l->var->name_hint;
        const Type& type = l->value->type;
        const Device device = program_.placement().device_of(l->var);
        inner = !reads_.contains(l->var.get()) ? Target{Target::kNowhere}
                : register_dtype(type, device) ? Target{Target::kScalar, w_.scalar(type, name)}
                                               : Target{Target::kObject, w_.object(type, name),
                                                        program_.placement().domain(l->var)};
        if (inner.kind != Target::kNowhere) bind(l->var, {inner.value});
        Expr rest = l->body;
        tasks_.push_back([this, rest, target] { plan(rest, target); });
      }
      if (auto* i = as<IfNode>(l->value)) {
        plan_if(*i, inner);
      } else {
        plan_match(*as<MatchNode>(l->value), inner);
      }
      return;
    }
    if (tail && tail_call(*l)) return;
    bind(l->var, value_of(*l));
    at = l->body;
  }
  finish(at, target);
}

void FunctionPlanner::finish(const Expr& result, Target target) {
  if (target.kind == Target::kNowhere) return;
  if (target.kind == Target::kObject) {
    const Bound given = constants_at(bound(result), result->type, target.where);
    w_.add(StepKind::set, {target.value}, {object(given, result->type)});
    return;
  }
  if (target.kind == Target::kScalar) {
    w_.add(StepKind::set_scalar, {target.value}, {scalar(result)});
    return;
  }
  if (!writes_outputs_) {
    auto it = bound_.find(result.get());
    bool is_scalar = it != bound_.end() && !it->second.is_tuple() &&
                     w_.place_of(it->second.value) == Place::scalar;
    if (is_scalar) {
      w_.add(StepKind::return_scalar, {}, {it->second.value}).dtype = *scalar_dtype(result->type);
    } else {
      const Bound given = constants_at(bound(result), result->type, target.where);
      w_.add(StepKind::return_value, {}, {object(given, result->type)});
    }
    return;
  }
  std::vector<ValueId> sources;
  tensors_of(bound(result), result->type, sources);
  for (size_t i = 0; i < sources.size(); ++i) {
    if (w_.same_place(sources[i], outputs_[i])) continue;
    bool there = is_donated(w_.function(), sources[i], outputs_[i]);
    w_.add(there ? StepKind::alias : StepKind::copy, {outputs_[i]}, {sources[i]});
  }
  w_.add(StepKind::return_outputs);
}

void FunctionPlanner::plan_if(const IfNode& i, Target target) {
  ValueId condition = scalar(i.cond);
  Step& step = w_.add(StepKind::if_, {}, {condition});
  if (target.value >= 0) step.results = {target.value};
  Expr true_branch = i.true_branch, false_branch = i.false_branch;
  size_t mark = scalar_trail_.size();
  tasks_.push_back([this, mark] {
    forget_scalars(mark);
    w_.add(StepKind::end);
  });
  tasks_.push_back([this, false_branch, target] { plan(false_branch, target); });
  tasks_.push_back([this, mark] {
    forget_scalars(mark);
    w_.add(StepKind::else_);
  });
  plan(true_branch, target);
}

void FunctionPlanner::plan_match(const MatchNode& m, Target target) {
  ValueId data = object(m.data);
  Step& step = w_.add(StepKind::match, {}, {data});
  step.where = program_.where(m.span);
  step.text = program_.constructors(m);
  if (target.value >= 0) step.results = {target.value};
  tasks_.push_back([this] { w_.add(StepKind::end); });
  Match keep(&m);
  size_t mark = scalar_trail_.size();
  for (size_t c = m.clauses.size(); c-- > 0;) {
    tasks_.push_back([this, keep, c, data, target, mark] {
      // Dimensions that this clause's pattern names are known in this clause only.
      auto dims = dims_;
      w_.add(StepKind::clause);
      plan_pattern(keep->clauses[c]->lhs, data);
      // What follows the clause's body, which may queue tasks of its own.
      tasks_.push_back([this, mark, dims = std::move(dims)] {
        dims_ = dims;
        forget_scalars(mark);
      });
      plan(keep->clauses[c]->rhs, target);
    });
  }
}

void FunctionPlanner::plan_pattern(const Pattern& pattern, ValueId object) {
  std::vector<std::pair<Pattern, ValueId>> stack{{pattern, object}};
  while (!stack.empty()) {
    auto [p, value] = stack.back();
    stack.pop_back();
    const std::vector<Pattern>* parts = nullptr;
    if (auto* v = as<PatternVarNode>(p)) {
      bind(v->var, {value});
      bind_given_dims(v->var);
    } else if (auto* c = as<PatternConstructorNode>(p)) {
      w_.add(StepKind::tag, {}, {value}, static_cast<int64_t>(c->constructor->tag));
      parts = &c->patterns;
    } else if (auto* t = as<PatternTupleNode>(p)) {
      parts = &t->patterns;
    }
    if (parts == nullptr) continue;
    for (size_t i = parts->size(); i-- > 0;) {
      if (isa<PatternWildcardNode>((*parts)[i])) continue;
      auto* v = as<PatternVarNode>((*parts)[i]);
      ValueId part = w_.add_object(StepKind::field, {value}, static_cast<int64_t>(i),
                                   v == nullptr ? nullptr : v->var->type);
      stack.emplace_back((*parts)[i], part);
    }
  }
}

FunctionPlanner::Bound FunctionPlanner::value_of(const LetNode& l) {
  const Expr& e = l.value;
  switch (e->kind()) {
    case ExprKind::Call:
      return call(l, *as<CallNode>(e));
    case ExprKind::Tuple: {
      Bound tuple;
      auto& fields = as<TupleNode>(e)->fields;
      for (size_t i = 0; i < fields.size(); ++i) tuple.fields.push_back(operand(*e, i, fields[i]));
      // One that is only returned or taken apart is made where it is needed.
      if (!escapes_.contains(l.var.get()) || !whole_.contains(l.var.get())) return tuple;
      return {object(tuple, e->type)};
    }
    case ExprKind::TupleGetItem: {
      auto& g = *as<TupleGetItemNode>(e);
      return field(bound(g.tuple), g.tuple->type, static_cast<size_t>(g.index));
    }
    case ExprKind::Function: {
      if (auto made = w_.function().internal ? std::nullopt : program_.closure_of(index_)) {
        std::vector<ValueId> values;
        for (const Var& v : f_->params) values.push_back(object(v));
        return {w_.add_object(StepKind::closure, values, *made, e->type)};
      }
      std::vector<Var> captured = free_vars(e);
      bool recursive = std::find(captured.begin(), captured.end(), l.var) != captured.end();
      std::erase(captured, l.var);
      std::vector<Var> around = captured_;
      around.insert(around.end(), f_->params.begin(), f_->params.end());
      for (const Var& v : size_sources(*as<FunctionNode>(e), around)) {
        if (std::find(captured.begin(), captured.end(), v) == captured.end()) captured.push_back(v);
      }
      std::vector<ValueId> values;
      for (const Var& v : captured) values.push_back(object(v));
      int32_t index = program_.local(cast<FunctionNode>(e), captured, recursive ? l.var : nullptr);
      return {w_.add_object(StepKind::closure, values, index, e->type)};
    }
    case ExprKind::RefCreate: {
      ValueId r = w_.object(e->type);
      w_.add(StepKind::ref_new, {r}, {object_operand(*e, 0, as<RefCreateNode>(e)->value)});
      return {r};
    }
    case ExprKind::RefRead: {
      ValueId r = w_.object(e->type);
      w_.add(StepKind::ref_read, {r}, {object(as<RefReadNode>(e)->ref)});
      if (auto* t = as<TensorTypeNode>(e->type)) {
        check_dims(
            *t, l.var, [&] { return r; }, /*named=*/true);
      }
      return {r};
    }
    case ExprKind::RefWrite: {
      auto& w = *as<RefWriteNode>(e);
      ValueId value = object_operand(*e, 1, w.value);
      w_.add(StepKind::ref_write, {}, {object(w.ref), value});
      return {};
    }
    default:
      return constants_at(bound(e), e->type, program_.placement().domain(l.var));
  }
}

}  // namespace relay::plan
