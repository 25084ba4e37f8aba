#include "vm/function_compiler.h"

namespace relay::vm {

bool FunctionCompiler::calls_itself(const CallNode& c) const {
  if (auto* g = as<GlobalVarNode>(c.op)) return is_global_ && program_.global(*g) == index_;
  return self_ && c.op == self_;
}

bool FunctionCompiler::is_loop() const {
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

void FunctionCompiler::begin_loop() {
  for (const Var& v : f_->params) {
    auto dtype = scalar_dtype(v->type);
    if (!dtype) continue;
    Place& place = places_.at(v.get());
    int32_t r = b_.int_reg();
    b_.load_scalar(r, *dtype, Operand::reg(place.index));
    place = Place{Place::kScalar, r, {}};
  }
  loop_ = b_.label();
  b_.bind(*loop_);
}

void FunctionCompiler::emit_next_iteration(const CallNode& c) {
  struct Move {
    int32_t to;
    int32_t from;
  };
  std::vector<Move> scalars, objects;
  std::unordered_set<int32_t> scalar_targets, object_targets;
  for (size_t i = 0; i < c.args.size(); ++i) {
    const Var& param = f_->params[i];
    if (c.args[i] == param) continue;
    Place place = places_.at(param.get());
    auto to = static_cast<int32_t>(place.index);
    if (place.kind == Place::kScalar) {
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
    int32_t aside = b_.int_reg();
    b_.move_int(aside, m.from);
    m.from = aside;
  }
  for (Move& m : objects) {
    if (m.from == m.to || !object_targets.contains(m.from)) continue;
    int32_t aside = b_.reg();
    b_.move(aside, m.from);
    m.from = aside;
  }
  for (const Move& m : scalars) {
    if (m.from != m.to) b_.move_int(m.to, m.from);
  }
  // A tensor made in this iteration changes places with the one that it replaces, whose memory the
  // next iteration then uses. A tensor that goes to two parameters is moved to the first ones.
  std::unordered_map<int32_t, size_t> uses;
  for (const Move& m : objects) ++uses[m.from];
  std::vector<Move> swaps;
  for (const Move& m : objects) {
    if (m.from == m.to) continue;
    if (loop_tensors_.contains(m.from) && --uses[m.from] == 0) {
      swaps.push_back(m);
    } else {
      b_.move(m.to, m.from);
    }
  }
  for (const Move& m : swaps) b_.swap(m.to, m.from);
  b_.jump(*loop_);
}

}  // namespace relay::vm
