#include "vm/function_compiler.h"

#include <algorithm>

#include "base/budget.h"
#include "vm/last_use.h"

namespace relay::vm {

runtime::Function FunctionCompiler::run() {
  choose_return();
  find_escapes();
  declare_params();
  find_dense();
  find_joins();
  claim_outputs();
  emit(f_->body, Target{Target::kReturn, 0});
  while (!tasks_.empty()) {
    check_budget();
    std::function<void()> task = std::move(tasks_.back());
    tasks_.pop_back();
    task();
  }
  runtime::Function out = std::move(b_).finish();
  MemoryPlan plan = plan_buffers();
  for (Operand& o : out.operands) {
    if (o.kind == Operand::kArena) o.index = plan.offsets[static_cast<size_t>(o.index)];
  }
  out.arena_bytes = plan.arena_bytes;
  mark_last_uses(out);
  report_.arena_bytes = plan.arena_bytes;
  report_.lower_bound = plan.lower_bound;
  report_.pieces = static_cast<int64_t>(pieces_.size()) - report_.reused;
  return out;
}

void FunctionCompiler::emit(const Expr& body, Target target) {
  Expr at = body;
  while (auto* l = as<LetNode>(at)) {
    ++step_;
    now_ = l;
    bool tail = target.kind == Target::kReturn && !writes_outputs_ && l->body == l->var;
    if (isa<IfNode>(l->value) || isa<MatchNode>(l->value)) {
      Target inner = target;
      if (!tail) {
        bool is_scalar = scalar_dtype(l->value->type).has_value();
        inner =
            is_scalar ? Target{Target::kScalar, b_.int_reg()} : Target{Target::kRegister, b_.reg()};
        places_[l->var.get()] = Place{is_scalar ? Place::kScalar : Place::kRegister, inner.reg, {}};
        Expr rest = l->body;
        tasks_.push_back([this, rest, target] { emit(rest, target); });
      }
      if (auto* i = as<IfNode>(l->value)) {
        emit_if(*i, inner);
      } else {
        emit_match(*as<MatchNode>(l->value), inner);
      }
      return;
    }
    if (tail && emit_tail_call(*l)) return;
    places_[l->var.get()] = emit_value(*l);
    at = l->body;
  }
  ++step_;
  finish(at, target);
}

void FunctionCompiler::finish(const Expr& result, Target target) {
  if (target.kind == Target::kRegister) {
    b_.move(target.reg, object(result));
    return;
  }
  if (target.kind == Target::kScalar) {
    b_.move_int(target.reg, scalar(result));
    return;
  }
  if (!writes_outputs_) {
    auto it = places_.find(result.get());
    if (it != places_.end() && it->second.kind == Place::kScalar) {
      b_.ret_scalar(static_cast<int32_t>(it->second.index), *scalar_dtype(result->type));
    } else {
      b_.ret(object(result));
    }
    return;
  }
  std::vector<Operand> sources;
  operands_of(place_of(result), result->type, sources);
  for (size_t i = 0; i < sources.size(); ++i) {
    Operand target_operand = Operand::output(static_cast<int64_t>(i));
    if (!(sources[i] == target_operand)) b_.copy(target_operand, sources[i]);
  }
  b_.ret_outputs();
}

void FunctionCompiler::emit_if(const IfNode& i, Target target) {
  auto else_label = b_.label();
  b_.if_zero(scalar(i.cond), else_label);
  Expr true_branch = i.true_branch, false_branch = i.false_branch;
  size_t mark = scalar_trail_.size();
  if (target.kind == Target::kReturn) {
    tasks_.push_back([this, mark] { forget_scalars(mark); });
    tasks_.push_back([this, false_branch, target] { emit(false_branch, target); });
    tasks_.push_back([this, else_label, mark] {
      forget_scalars(mark);
      b_.bind(else_label);
    });
  } else {
    auto end = b_.label();
    tasks_.push_back([this, end, mark] {
      forget_scalars(mark);
      b_.bind(end);
    });
    tasks_.push_back([this, false_branch, target] { emit(false_branch, target); });
    tasks_.push_back([this, else_label, end, mark] {
      forget_scalars(mark);
      b_.jump(end);
      b_.bind(else_label);
    });
  }
  emit(true_branch, target);
}

void FunctionCompiler::emit_match(const MatchNode& m, Target target) {
  int32_t data = object(m.data);
  int32_t where = m.span ? program_.string(m.span.describe()) : -1;
  auto end = b_.label();
  tasks_.push_back([this, end, where] {
    b_.match_fail(where);
    b_.bind(end);
  });
  Match keep(&m);
  size_t mark = scalar_trail_.size();
  for (size_t c = m.clauses.size(); c-- > 0;) {
    tasks_.push_back([this, keep, c, data, target, end, mark] {
      auto next = b_.label();
      // Dimensions that this clause's pattern names are known in this clause only.
      auto dims = dim_regs_;
      emit_pattern(keep->clauses[c]->lhs, data, next);
      // What follows the clause's body, which may queue tasks of its own.
      tasks_.push_back([this, next, end, target, mark, dims = std::move(dims)] {
        dim_regs_ = dims;
        forget_scalars(mark);
        if (target.kind != Target::kReturn) b_.jump(end);
        b_.bind(next);
      });
      emit(keep->clauses[c]->rhs, target);
    });
  }
}

void FunctionCompiler::emit_pattern(const Pattern& pattern, int32_t object_reg,
                                    FunctionBuilder::Label fail) {
  std::vector<std::pair<Pattern, int32_t>> stack{{pattern, object_reg}};
  while (!stack.empty()) {
    auto [p, reg] = stack.back();
    stack.pop_back();
    const std::vector<Pattern>* parts = nullptr;
    if (auto* v = as<PatternVarNode>(p)) {
      places_[v->var.get()] = Place{Place::kRegister, reg, {}};
      bind_given_dims(v->var);
    } else if (auto* c = as<PatternConstructorNode>(p)) {
      b_.if_not_tag(reg, static_cast<int32_t>(c->constructor->tag), fail);
      parts = &c->patterns;
    } else if (auto* t = as<PatternTupleNode>(p)) {
      parts = &t->patterns;
    }
    if (parts == nullptr) continue;
    for (size_t i = parts->size(); i-- > 0;) {
      if (isa<PatternWildcardNode>((*parts)[i])) continue;
      int32_t r = b_.reg();
      b_.get_field(r, reg, static_cast<int32_t>(i));
      stack.emplace_back((*parts)[i], r);
    }
  }
}

FunctionCompiler::Place FunctionCompiler::emit_value(const LetNode& l) {
  const Expr& e = l.value;
  switch (e->kind()) {
    case ExprKind::Call:
      return emit_call(l, *as<CallNode>(e));
    case ExprKind::Tuple: {
      Place p{Place::kTuple, 0, {}};
      auto& t = *as<TupleNode>(e);
      for (const Expr& f : t.fields) p.fields.push_back(place_of(f));
      if (!escapes_.contains(l.var.get())) return p;
      return Place{Place::kRegister, object(p, e->type, e->span), {}};
    }
    case ExprKind::TupleGetItem: {
      auto& g = *as<TupleGetItemNode>(e);
      return field(place_of(g.tuple), g.index);
    }
    case ExprKind::Function: {
      auto& f = *as<FunctionNode>(e);
      std::vector<Var> captured = free_variables(f);
      bool recursive = std::find(captured.begin(), captured.end(), l.var) != captured.end();
      std::erase(captured, l.var);
      std::vector<int32_t> regs;
      for (const Var& v : captured) regs.push_back(object(v));
      int32_t index = program_.local(Function(&f), captured, recursive ? l.var : nullptr);
      int32_t r = b_.reg();
      b_.alloc_closure(r, index, regs);
      return Place{Place::kRegister, r, {}};
    }
    case ExprKind::RefCreate: {
      int32_t r = b_.reg();
      b_.ref_new(r, object(as<RefCreateNode>(e)->value));
      return Place{Place::kRegister, r, {}};
    }
    case ExprKind::RefRead: {
      int32_t r = b_.reg();
      b_.ref_read(r, object(as<RefReadNode>(e)->ref));
      if (auto* t = as<TensorTypeNode>(e->type)) {
        check_dims(
            *t, l.var, [&] { return r; }, /*named=*/true);
      }
      return Place{Place::kRegister, r, {}};
    }
    case ExprKind::RefWrite: {
      auto& w = *as<RefWriteNode>(e);
      int32_t value = object(w.value);
      b_.ref_write(object(w.ref), value);
      return Place{Place::kTuple, 0, {}};
    }
    default:
      return place_of(e);
  }
}

}  // namespace relay::vm
