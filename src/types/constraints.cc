// Type constraints of each kind of expression and pattern.
#include "base/codes/types.h"
#include "ir/join_types.h"
#include "types/inference.h"

namespace relay {

void Inference::visit(const Expr& root) {
  // Facts that are known before inference: let-bound functions, by their annotations, within
  // themselves and after; and the let that binds each value.
  post_order(
      root,
      [&](const Node& n) {
        auto* l = as<LetNode>(&n);
        if (l == nullptr) return;
        auto [user, first] = let_of_.emplace(l->value.get());
        if (first) user = l;
        if (auto* f = as<FunctionNode>(l->value)) {
          function_of_[l->var.get()] = f;
          if (!l->var->type_annotation) types_[l->var.get()] = declared_type(*f);
        } else if (isa<GlobalVarNode>(l->value) || isa<ConstructorNode>(l->value)) {
          if (!l->var->type_annotation) types_[l->var.get()] = type_of(l->value);
        }
      },
      kPrograms);
  match_of_.clear();
  post_order_if(
      root,
      [&](const Node& n) {
        if (auto* m = as<MatchNode>(&n)) {
          for (const Clause& c : m->clauses) {
            if (!match_of_[c.get()].taken) match_of_[c.get()].match = m;
          }
        }
        if (n.info().family != family::pattern) return true;
        if (n.kind() == PatternKind::Clause) begin_clause(static_cast<const ClauseNode&>(n));
        return n.kind() == PatternKind::Clause;
      },
      [&](const Node& n) {
        if (n.info().family == family::expr) constrain(static_cast<const ExprNode&>(n));
        settle();
      },
      kPrograms);
}

void Inference::constrain(const ExprNode& e) {
  switch (e.kind()) {
    case ExprKind::Constant:
      types_[&e] = e.type;
      break;
    case ExprKind::Var:
      break;  // where it is bound or used
    case ExprKind::Call:
      call(static_cast<const CallNode&>(e));
      break;
    case ExprKind::Function:
      function(static_cast<const FunctionNode&>(e));
      break;
    case ExprKind::Let: {
      auto& l = static_cast<const LetNode&>(e);
      let_value(l);
      types_[&e] = value_type(e, l.body, nullptr);
      break;
    }
    case ExprKind::If: {
      auto& i = static_cast<const IfNode&>(e);
      unify(scalar_type(DType::Bool()), value_type(e, i.cond, nullptr), place(i.cond, i.span),
            "the condition of an if must be one bool", {origin(i.cond)});
      Type wanted = value_type(e, i.true_branch, nullptr);
      Type other = value_type(e, i.false_branch, wanted);
      unify(wanted, other, place(i.false_branch, i.span),
            "the branches of an if have different types",
            {{place(i.true_branch, i.span), "the first branch stands here"},
             origin(i.true_branch),
             origin(i.false_branch)});
      types_[&e] = joined(wanted, other);
      break;
    }
    case ExprKind::Tuple: {
      std::vector<Type> fields;
      for (const Expr& f : static_cast<const TupleNode&>(e).fields) {
        fields.push_back(value_type(e, f, nullptr));
      }
      types_[&e] = tuple_type(std::move(fields));
      break;
    }
    case ExprKind::TupleGetItem: {
      auto& g = static_cast<const TupleGetItemNode&>(e);
      Type tuple = value_type(e, g.tuple, nullptr);
      if (auto* known = as<TupleTypeNode>(unifier_.shallow(tuple));
          known != nullptr && g.index >= 0 &&
          g.index < static_cast<int64_t>(known->fields.size())) {
        types_[&e] = known->fields[static_cast<size_t>(g.index)];
        break;
      }
      Type result = types_[&e] = unifier_.hole(e.span);
      demand({e.span, nullptr, nullptr, &e, {tuple}, result});
      break;
    }
    case ExprKind::Match:
      match(static_cast<const MatchNode&>(e));
      break;
    case ExprKind::RefCreate:
      types_[&e] = ref_type(value_type(e, static_cast<const RefCreateNode&>(e).value, nullptr));
      break;
    case ExprKind::RefRead: {
      auto& r = static_cast<const RefReadNode&>(e);
      Type ref = unifier_.shallow(value_type(e, r.ref, nullptr));
      if (auto* known = as<RefTypeNode>(ref)) {
        types_[&e] = known->value;
        break;
      }
      Type content = unifier_.hole(e.span);
      unify(ref_type(content), ref, place(r.ref, e.span), "only a reference can be read",
            {origin(r.ref)});
      types_[&e] = content;
      break;
    }
    case ExprKind::RefWrite: {
      auto& w = static_cast<const RefWriteNode&>(e);
      types_[&e] = tuple_type({});
      Type ref = unifier_.shallow(value_type(e, w.ref, nullptr));
      auto* known = as<RefTypeNode>(ref);
      Type content = known == nullptr ? unifier_.hole(e.span) : known->value;
      if (unify(ref_type(content), ref, place(w.ref, e.span), "only a reference can be written",
                {origin(w.ref)}) != nullptr) {
        break;
      }
      unify(content, value_type(e, w.value, content), place(w.value, e.span),
            "the value does not fit the reference", {origin(w.ref), origin(w.value)});
      break;
    }
    default:
      type_of(&e);
  }
  if (auto* named = let_of_.find(&e)) let_value(**named);
}

void Inference::function(const FunctionNode& f) {
  Type declared = declared_type(f);
  types_[&f] = declared;
  const Type& result = as<FuncTypeNode>(declared)->ret_type;
  unify(result, value_type(f, f.body, result), place(f.body, f.span),
        "the body of a function is not of its result type",
        {{f.span, f.ret_type ? "the result type is declared here" : "the function begins here"},
         origin(f.body)});
}

// Once the value is known, so that the body sees its type.
void Inference::let_value(const LetNode& l) {
  if (!lets_done_.insert(&l)) return;
  // A variable whose type has not been requested has its value's type, without a hole to fill.
  if (!l.var->type_annotation && !l.var->type && !types_.contains(l.var.get()) &&
      !isa<OpNode>(l.value)) {
    types_[l.var.get()] = type_of(l.value);
    return;
  }
  Type wanted = type_of(l.var.get());
  Type found = isa<OpNode>(l.value) || l.var->type_annotation ? value_type(l, l.value, wanted)
                                                              : type_of(l.value);
  unify(wanted, found, place(l.value, l.span), "the value is not of its variable's type",
        {{l.var->span, "%" + l.var->name_hint + " is declared here"}, origin(l.value)});
}

// Between the matched value and the right side, which sees the types of the pattern's variables.
void Inference::begin_clause(const ClauseNode& c) {
  ClauseUse& use = match_of_.at(&c);
  use.taken = true;
  match_pattern(*use.match, c.lhs);
}

// The type of two unified types; a size that only one of them knows is unknown.
Type Inference::joined(const Type& a, const Type& b) {
  if (a == b || !unifier_.is_complete(a) || !unifier_.is_complete(b)) return a;
  Type out = join_types(unifier_.resolve(a), unifier_.resolve(b));
  return out ? out : a;
}

void Inference::match(const MatchNode& m) {
  if (m.clauses.empty()) {
    diags_.error(codes::type_match, m.span, "a match without clauses has no value")
        .help("add a clause: _ => ...,");
    types_[&m] = unifier_.hole(m.span);
    return;
  }
  Type wanted;
  Reason first;
  for (const Clause& c : m.clauses) {
    if (match_of_.at(c.get()).match != &m) match_pattern(m, c->lhs);
    Type found = value_type(*c.get(), m.span, c->rhs, wanted);
    if (!wanted) {
      wanted = found;
      first = {place(c->rhs, m.span), "the first clause gives its value here"};
      continue;
    }
    unify(wanted, found, place(c->rhs, c->lhs->span), "the clauses of a match have different types",
          {first, origin(c->rhs)});
    wanted = joined(wanted, found);
  }
  types_[&m] = wanted;
}

Inference::Definition Inference::defined_by(const Expr& callee) {
  if (auto* g = as<GlobalVarNode>(callee)) {
    Function f = mod_ ? mod_->find(g->name_hint) : nullptr;
    return {"@" + g->name_hint, f ? f->span : Span(), f.get()};
  }
  if (auto* c = as<ConstructorNode>(callee)) return {c->name_hint, c->span, nullptr};
  if (auto* v = as<VarNode>(callee)) {
    auto f = function_of_.find(v);
    return {"%" + v->name_hint, v->span, f == function_of_.end() ? nullptr : f->second};
  }
  if (auto* f = as<FunctionNode>(callee)) return {"the function", f->span, f};
  return {};
}

void Inference::call(const CallNode& c) {
  if (auto* op = as<OpNode>(c.op)) {
    const OpInfo& row = *op->row;
    Pending p{c.span, &row, c.attrs, &c, {}, unifier_.hole(c.span)};
    for (const Expr& a : c.args) p.args.push_back(value_type(c, a, nullptr));
    types_[&c] = p.result;
    if (c.args.size() == row.args.size()) {
      demand(std::move(p));
      return;
    }
    diags_
        .error(codes::type_arity, c.span,
               std::string(row.name) + " is called with the wrong number of arguments")
        .expected(named_args(row))
        .found(std::to_string(c.args.size()));
    return;
  }
  Type callee = unifier_.resolve(type_of(c.op));
  auto* f = as<FuncTypeNode>(callee);
  Definition definition = defined_by(c.op);
  if (f != nullptr && f->arg_types.size() != c.args.size()) {
    Diagnostic& d =
        diags_.error(codes::type_arity, c.span, "a call has the wrong number of arguments");
    d.expected(std::to_string(f->arg_types.size()) + " for " + to_string(callee))
        .found(std::to_string(c.args.size()));
    if (definition.span) d.note(definition.span, definition.name + " is defined here");
    types_[&c] = unifier_.hole(c.span);
    return;
  }
  if (f != nullptr && (f->type_params.empty() || unifier_.is_complete(callee))) {
    known_call(c, cast<FuncTypeNode>(callee), definition);
    return;
  }
  Type result = types_[&c] = unifier_.hole(c.span);
  if (f == nullptr && !isa<IncompleteTypeNode>(callee)) {
    Diagnostic& d = diags_.error(codes::type_not_callable, c.span, "this value cannot be called");
    d.expected("a function").found(to_string(callee));
    add_note(d, origin(c.op));
    return;
  }
  std::vector<Type> args;
  for (const Expr& a : c.args) args.push_back(value_type(c, a, nullptr));
  Type used = func_type(std::move(args), result);
  if (f == nullptr) {
    unify(callee, used, c.span, "a call does not fit its function");
  } else {
    demand({c.span, nullptr, nullptr, nullptr, {callee}, used});
  }
}

void Inference::known_call(const CallNode& c, const FuncType& f, const Definition& definition) {
  std::vector<Type> type_args;
  FuncType body = unifier_.instantiate(f, c.span, type_args);
  if (!c.type_args.empty() && c.type_args.size() != type_args.size()) {
    Diagnostic& d =
        diags_.error(codes::type_arity, c.span, "a call has the wrong number of type arguments");
    d.expected(std::to_string(type_args.size())).found(std::to_string(c.type_args.size()));
    if (definition.span) d.note(definition.span, definition.name + " is defined here");
  } else {
    for (size_t i = 0; i < c.type_args.size(); ++i) {
      unify(type_args[i], c.type_args[i], c.span, "a type argument does not fit");
    }
  }
  types_[&c] = body->ret_type;
  for (size_t i = 0; i < c.args.size(); ++i) {
    const Type& wanted = body->arg_types[i];
    Reason why;
    if (definition.function != nullptr) {
      const Var& p = definition.function->params[i];
      why = {p->span, "%" + p->name_hint + " is declared here"};
    } else if (definition.span) {
      why = {definition.span, definition.name + " is defined here"};
    }
    Diagnostic* clash =
        unify(wanted, value_type(c, c.args[i], wanted), place(c.args[i], c.span),
              "argument " + std::to_string(i + 1) + " does not fit", {why, origin(c.args[i])});
    if (clash != nullptr && definition.function != nullptr && f->type_params.empty() &&
        !definition.function->params[i]->type_annotation) {
      clash->help("a function is used at several types when it declares type parameters: [A](%" +
                  definition.function->params[i]->name_hint + ": A)");
    }
  }
  if (!type_args.empty() && all_types(*f.get())) type_args_[&c] = std::move(type_args);
}

// The type of the values that a pattern matches. Passes share patterns between matches at several
// types, so each occurrence of a pattern counts separately.
Type Inference::pattern(const Pattern& root) {
  struct Frame {
    const PatternNode* at;
    std::vector<Type> parts;
  };
  std::vector<Frame> stack{{root.get(), {}}};
  for (;;) {
    Frame& f = stack.back();
    const std::vector<Pattern>* parts = parts_of(*f.at);
    if (parts != nullptr && f.parts.size() < parts->size()) {
      stack.push_back({(*parts)[f.parts.size()].get(), {}});
      continue;
    }
    Type t = pattern(*f.at, std::move(f.parts));
    stack.pop_back();
    if (stack.empty()) return t;
    stack.back().parts.push_back(std::move(t));
  }
}

const std::vector<Pattern>* Inference::parts_of(const PatternNode& p) {
  if (auto* t = as<PatternTupleNode>(&p)) return &t->patterns;
  auto* c = as<PatternConstructorNode>(&p);
  return c == nullptr ? nullptr : &c->patterns;
}

Type Inference::pattern(const PatternNode& p, std::vector<Type> parts) {
  if (auto* v = as<PatternVarNode>(&p)) return type_of(v->var.get());
  if (isa<PatternTupleNode>(&p)) return tuple_type(std::move(parts));
  auto* c = as<PatternConstructorNode>(&p);
  if (c == nullptr) return unifier_.hole(p.span);
  std::vector<Type> type_args;
  FuncType f = unifier_.instantiate(cast<FuncTypeNode>(c->constructor->type), p.span, type_args);
  if (f->arg_types.size() != parts.size()) {
    diags_.error(codes::type_arity, p.span, "the pattern has the wrong number of parts")
        .expected(std::to_string(f->arg_types.size()) + " for " + c->constructor->name_hint)
        .found(std::to_string(parts.size()))
        .note(c->constructor->span, c->constructor->name_hint + " is defined here");
    return f->ret_type;
  }
  for (size_t i = 0; i < parts.size(); ++i) {
    unify(f->arg_types[i], parts[i], c->patterns[i]->span, "a part of the pattern does not fit",
          {{c->constructor->span, c->constructor->name_hint + " is defined here"}});
  }
  return f->ret_type;
}

void Inference::match_pattern(const MatchNode& m, const Pattern& p) {
  unify(type_of(m.data), pattern(p), p->span, "the pattern does not fit the matched value",
        {{place(m.data, m.span), "the matched value stands here"}, origin(m.data)});
}

}  // namespace relay
