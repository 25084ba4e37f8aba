#include "types/infer.h"

#include <algorithm>

#include "base/diagnostic_codes.h"
#include "ir/op.h"
#include "node/node_map.h"
#include "node/structural.h"
#include "node/walk.h"
#include "types/eta_expansion.h"
#include "types/kinds.h"
#include "types/match.h"
#include "types/unify.h"

namespace relay {
namespace {

constexpr uint32_t kPrograms = family::expr | family::pattern;

// Where an expression stands: a name's own span is that of its definition, so that of what uses it
// says more.
Span place(const Expr& e, const Span& user) {
  bool name = isa<VarNode>(e) || isa<GlobalVarNode>(e) || isa<OpNode>(e) || isa<ConstructorNode>(e);
  return e->span && !name ? e->span : user;
}

bool is_polymorphic(const Type& t) {
  auto* f = as<FuncTypeNode>(t);
  return f != nullptr && !f->type_params.empty();
}

class Inference {
 public:
  explicit Inference(const Module& mod) : mod_(mod) {}

  Module run() {
    check_kinds(mod_, diags_);
    diags_.throw_if_errors();
    declare_globals();
    for (const Function& f : mod_->functions) visit(f);
    diags_.throw_if_errors();
    std::vector<Function> functions;
    std::vector<GlobalVar> vars;
    for (size_t i = 0; i < mod_->functions.size(); ++i) {
      functions.push_back(cast<FunctionNode>(Typed(*this).run(mod_->functions[i])));
      vars.push_back(typed_global(*mod_->global_vars[i].get()));
    }
    diags_.throw_if_errors();
    Module typed = mod_;
    if (functions != mod_->functions || vars != mod_->global_vars) {
      typed =
          make_module(std::move(vars), std::move(functions), mod_->type_definitions, mod_->attrs);
    }
    for (Diagnostic& d : check_matches(typed)) diags_.add(std::move(d));
    diags_.throw_if_errors();
    return typed;
  }

  Expr run(const Expr& e) {
    check_kinds(e, mod_, diags_);
    diags_.throw_if_errors();
    declare_globals();
    visit(e);
    diags_.throw_if_errors();
    Expr typed = cast<ExprNode>(Typed(*this).run(e));
    for (Diagnostic& d : check_matches(typed, mod_)) diags_.add(std::move(d));
    diags_.throw_if_errors();
    return typed;
  }

 private:
  // A second place that takes part in a clash: with a sentence, or the definition of a variable
  // whose type takes part.
  struct Reason {
    Span span;
    std::string text;
    const VarNode* variable = nullptr;
  };

  // A constraint that may wait until more is known: an operator's relation (`row`; `at` is its
  // call, null for an operator as a value), a projection (`at`), or the use of a polymorphic
  // function whose type is not complete (neither).
  struct Pending {
    Span span;
    const OpInfo* row = nullptr;
    Attrs attrs;
    const ExprNode* at = nullptr;
    std::vector<Type> args;
    Type result;
    bool done = false;
  };

  // An operator or polymorphic function that is used as a value: at one type, as a child of some
  // node. A null `instance` says that the value is wanted as it is.
  struct ValueUse {
    const Node* child = nullptr;
    Type instance;
    std::vector<Type> type_args;
    Span span;
  };

  // The match by which the walk comes to a clause first.
  struct ClauseUse {
    const MatchNode* match = nullptr;
    bool taken = false;
  };

  // ---- Types of expressions
  // ------------------------------------------------------------------------

  void declare_globals() {
    if (!mod_) return;
    for (size_t i = 0; i < mod_->functions.size(); ++i) {
      global_types_[mod_->global_vars[i]->name_hint] = declared_type(*mod_->functions[i].get());
    }
  }

  // A function's type as far as it is annotated.
  Type declared_type(const FunctionNode& f) {
    std::vector<Type> args;
    for (const Var& p : f.params) args.push_back(type_of(p.get()));
    return func_type(std::move(args), f.ret_type ? f.ret_type : return_hole(f), f.type_params);
  }

  Type return_hole(const FunctionNode& f) {
    Type& t = return_holes_[&f];
    if (!t) t = unifier_.hole(f.span);
    return t;
  }

  Type type_of(const Node* n) {
    if (const Type* known = types_.find(n)) return *known;
    auto& e = *static_cast<const ExprNode*>(n);
    Type t;
    if (auto* v = as<VarNode>(n)) {
      t = v->type_annotation ? v->type_annotation : v->type;
    } else if (isa<OpNode>(n)) {
      return nullptr;
    } else if (auto* g = as<GlobalVarNode>(n)) {
      auto known = global_types_.find(g->name_hint);
      if (known != global_types_.end()) return known->second;
      t = g->type;
      if (!t) {
        diags_.error(codes::text_unbound_name, g->span, "there is no function @" + g->name_hint);
      }
    } else {
      t = e.type;
    }
    if (!t) t = unifier_.hole(e.span);
    types_[n] = t;
    return t;
  }
  Type type_of(const Expr& e) { return type_of(e.get()); }

  // Demands that the two are one type. `span` is where the found type stands, `reasons` say where
  // both come from. Null, or the error that is reported, for further advice.
  Diagnostic* unify(const Type& expected, const Type& found, const Span& span,
                    const std::string& what, std::vector<Reason> reasons = {}) {
    Clash clash;
    if (unifier_.unify(expected, found, span, clash)) return nullptr;
    if (clash.infinite) {
      auto [a, b] = with_named_holes(expected, found);
      Diagnostic& d =
          diags_.error(codes::type_infinite, span, what + ": its type would be infinite");
      d.expected(a).found(b);
      d.help("a type cannot be a part of itself; a data type can: type T { C(fn (T) -> T), }");
      return &d;
    }
    Diagnostic& d = diags_.error(codes::type_mismatch, span, what + ": " + clash.why);
    d.expected(shown(expected)).found(shown(found));
    for (Reason& r : reasons) add_note(d, std::move(r));
    for (const Type& side : {expected, found}) {
      Span filled = unifier_.filled_at(side);
      if (!filled || filled == span) continue;
      d.note(filled, "it was found to be " + shown(side) + " here");
      break;
    }
    return &d;
  }

  // Both types in text, with a name for each hole that they share.
  std::pair<std::string, std::string> with_named_holes(const Type& a, const Type& b) {
    std::unordered_map<const Node*, NodeRef> names;
    Type both = unifier_.resolve(tuple_type({a, b}));
    for (const Node* hole : unifier_.open_parts(both)) {
      std::string name(1, static_cast<char>('A' + names.size() % 26));
      if (isa<IncompleteTypeNode>(hole)) names.emplace(hole, type_var(name));
    }
    auto* named = as<TupleTypeNode>(both = Type::unchecked(substitute(both, names)));
    return {to_string(named->fields[0]), to_string(named->fields[1])};
  }

  // Where a value's type comes from, if it is a name.
  static Reason origin(const Expr& e) {
    auto* v = as<VarNode>(e);
    return v == nullptr ? Reason{} : Reason{v->span, {}, v};
  }

  void add_note(Diagnostic& d, Reason r) {
    bool said = std::ranges::any_of(d.notes, [&](const auto& n) { return n.first == r.span; });
    if (!r.span || r.span == d.span || said) return;
    if (r.variable != nullptr) {
      r.text = "%" + r.variable->name_hint + " is " + shown(type_of(r.variable));
    }
    d.note(r.span, std::move(r.text));
  }

  // The type in text, as far as it is known.
  std::string shown(const Type& t) { return to_string(unifier_.resolve(t)); }

  // The type of a child that is used as a value. Operators have the type that the use asks for; a
  // polymorphic function has one of its instances, unless a polymorphic one is wanted.
  Type value_type(const ExprNode& user, const Expr& child, const Type& wanted) {
    return value_type(user, user.span, child, wanted);
  }
  Type value_type(const Node& user, const Span& span, const Expr& child, const Type& wanted) {
    if (auto* op = as<OpNode>(child)) {
      Pending p{span, op->row, default_attrs(*op->row), nullptr, {}, unifier_.hole(span)};
      for (size_t i = 0; i < op->row->args.size(); ++i) p.args.push_back(unifier_.hole(span));
      Type instance = func_type(p.args, p.result);
      value_uses_[&user].push_back({op, instance, {}, span});
      demand(std::move(p));
      return instance;
    }
    Type t = unifier_.shallow(type_of(child));
    if (!is_polymorphic(t)) return t;
    ValueUse use{child.get(), nullptr, {}, place(child, span)};
    if (!wanted || !is_polymorphic(unifier_.shallow(wanted))) {
      FuncType f = cast<FuncTypeNode>(unifier_.resolve(t));
      if (unifier_.is_complete(f)) {
        t = use.instance = unifier_.instantiate(f, use.span, use.type_args);
        if (!all_types(*f.get())) use.type_args.clear();
      } else {
        t = use.instance = unifier_.hole(use.span);
        demand({use.span, nullptr, nullptr, nullptr, {f}, t});
      }
    }
    value_uses_[&user].push_back(std::move(use));
    return t;
  }

  // Type arguments stand in a call when they are types; what dimensions, shapes and base types are,
  // inference finds in the arguments.
  static bool all_types(const FuncTypeNode& f) {
    return std::ranges::all_of(f.type_params,
                               [](const TypeVar& v) { return v->kind == Kind::Type; });
  }

  // ---- Constraints
  // -----------------------------------------------------------------------------------

  void visit(const Expr& root) {
    // What is known before anything is looked at: let-bound functions, by their annotations, inside
    // themselves and after; which let asks for a value.
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

  void constrain(const ExprNode& e) {
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
        unify(wanted, value_type(e, i.false_branch, wanted), place(i.false_branch, i.span),
              "the branches of an if have different types",
              {{place(i.true_branch, i.span), "the first branch stands here"},
               origin(i.true_branch),
               origin(i.false_branch)});
        types_[&e] = wanted;
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

  void function(const FunctionNode& f) {
    Type declared = declared_type(f);
    types_[&f] = declared;
    const Type& result = as<FuncTypeNode>(declared)->ret_type;
    unify(result, value_type(f, f.body, result), place(f.body, f.span),
          "the body of a function is not of its result type",
          {{f.span, f.ret_type ? "the result type is declared here" : "the function begins here"},
           origin(f.body)});
  }

  // Once the value is known, so that the body sees its type.
  void let_value(const LetNode& l) {
    if (!lets_done_.insert(&l)) return;
    // A variable that nothing has asked about has its value's type, without a hole to fill.
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
  void begin_clause(const ClauseNode& c) {
    ClauseUse& use = match_of_.at(&c);
    use.taken = true;
    match_pattern(*use.match, c.lhs);
  }

  void match(const MatchNode& m) {
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
      unify(wanted, found, place(c->rhs, c->lhs->span),
            "the clauses of a match have different types", {first, origin(c->rhs)});
    }
    types_[&m] = wanted;
  }

  // What a callee is called, where it is defined and, if it is one, the function.
  struct Definition {
    std::string name;
    Span span;
    const FunctionNode* function = nullptr;
  };
  Definition defined_by(const Expr& callee) {
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

  void call(const CallNode& c) {
    if (auto* op = as<OpNode>(c.op)) {
      const OpInfo& row = *op->row;
      Pending p{c.span, &row, c.attrs, &c, {}, unifier_.hole(c.span)};
      for (const Expr& a : c.args) p.args.push_back(value_type(c, a, nullptr));
      types_[&c] = p.result;
      if (c.args.size() == row.args.size()) {
        demand(std::move(p));
        return;
      }
      std::string names;
      for (const ArgInfo& a : row.args) names += (names.empty() ? "" : ", ") + std::string(a.name);
      diags_
          .error(codes::type_arity, c.span,
                 std::string(row.name) + " is called with the wrong number of arguments")
          .expected(std::to_string(row.args.size()) + " (" + names + ")")
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

  void known_call(const CallNode& c, const FuncType& f, const Definition& definition) {
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

  // The type of the values that a pattern takes. Passes share patterns between matches at several
  // types, so each place of a pattern counts by itself.
  Type pattern(const Pattern& root) {
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

  static const std::vector<Pattern>* parts_of(const PatternNode& p) {
    if (auto* t = as<PatternTupleNode>(&p)) return &t->patterns;
    auto* c = as<PatternConstructorNode>(&p);
    return c == nullptr ? nullptr : &c->patterns;
  }

  Type pattern(const PatternNode& p, std::vector<Type> parts) {
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

  void match_pattern(const MatchNode& m, const Pattern& p) {
    unify(type_of(m.data), pattern(p), p->span, "the pattern does not fit the matched value",
          {{place(m.data, m.span), "the matched value stands here"}, origin(m.data)});
  }

  // ---- Constraints that wait
  // ---------------------------------------------------------------------------

  void demand(Pending p) {
    pending_.push_back(std::move(p));
    try_pending(pending_.size() - 1);
  }

  // Looks again at what waits for the holes that were filled meanwhile.
  void settle() {
    for (std::vector<const Node*> filled = unifier_.take_filled(); !filled.empty();
         filled = unifier_.take_filled()) {
      for (const Node* hole : filled) {
        auto it = waiting_.find(hole);
        if (it == waiting_.end()) continue;
        std::vector<size_t> woken = std::move(it->second);
        waiting_.erase(it);
        for (size_t i : woken) try_pending(i);
      }
    }
  }

  void try_pending(size_t i) {
    Pending p = pending_[i];
    if (p.done) return;
    pending_[i].done = p.row != nullptr ? relate(p) : p.at != nullptr ? project(p) : specialise(p);
    if (pending_[i].done) {
      pending_[i] = Pending{};
      pending_[i].done = true;
      return;
    }
    std::vector<Type> parts = p.args;
    parts.push_back(p.result);
    for (const Type& t : parts) {
      std::vector<const Node*> open = unifier_.open_parts(t);
      if (!open.empty()) waiting_[open.front()].push_back(i);
    }
  }

  // The use of a polymorphic function; waits for its type to be complete.
  bool specialise(const Pending& p) {
    if (!unifier_.is_complete(p.args[0])) return false;
    std::vector<Type> type_args;
    FuncType f = cast<FuncTypeNode>(unifier_.resolve(p.args[0]));
    unify(unifier_.instantiate(f, p.span, type_args), p.result, p.span,
          "a polymorphic function does not fit its use");
    return true;
  }

  bool project(const Pending& p) {
    Type t = unifier_.shallow(p.args[0]);
    if (isa<IncompleteTypeNode>(t)) return false;
    auto& g = static_cast<const TupleGetItemNode&>(*p.at);
    auto* tuple = as<TupleTypeNode>(t);
    if (tuple == nullptr) {
      Diagnostic& d = diags_.error(codes::type_not_tuple, p.span, "this value is no tuple");
      d.expected("a tuple").found(shown(t));
      add_note(d, origin(g.tuple));
    } else if (g.index < 0 || g.index >= static_cast<int64_t>(tuple->fields.size())) {
      diags_
          .error(codes::type_not_tuple, p.span, "the tuple has no field " + std::to_string(g.index))
          .expected("an index below " + std::to_string(tuple->fields.size()))
          .found(std::to_string(g.index));
    } else {
      unify(p.result, tuple->fields[static_cast<size_t>(g.index)], p.span,
            "the field is used as another type");
    }
    return true;
  }

  // True when the relation is settled, for good or bad.
  bool relate(const Pending& p) {
    for (bool again = true; again;) {
      std::vector<Type> args;
      for (const Type& a : p.args) {
        args.push_back(unifier_.resolve(a));
        if (auto* t = as<TensorTypeNode>(args.back());
            t != nullptr && unifier_.has_open_parts(*t)) {
          return false;
        }
      }
      RelationContext ctx(*p.row, args, p.attrs, p.span, unifier_.resolve(p.result));
      Type result = run_relation(ctx);
      if (ctx.failure()) {
        Diagnostic d = *ctx.failure();
        if (auto* c = as<CallNode>(p.at)) {
          for (const Expr& a : c->args) add_note(d, origin(a));
        }
        diags_.add(std::move(d));
        return true;
      }
      size_t before = unifier_.progress();
      for (const auto& [i, type] : ctx.solved()) {
        unify(p.args[i], type, p.span,
              "argument '" + std::string(p.row->args[i].name) + "' of " + std::string(p.row->name) +
                  " does not fit");
      }
      if (result) {
        unify(p.result, result, p.span,
              "the result of " + std::string(p.row->name) + " does not fit");
        return true;
      }
      again = unifier_.progress() != before && !ctx.solved().empty();
    }
    return false;
  }
  // ---- The typed program
  // ---------------------------------------------------------------------------------

  Type final_type(const ExprNode& e) {
    // A program with errors is not built; asking each expression what is open in it takes long.
    if (diags_.has_errors()) return type_of(&e);
    Type t = unifier_.resolve(type_of(&e));
    if (t && !unifier_.is_complete(t) && unsolved_.insert(&e).second && !diags_.has_errors()) {
      report_unsolved(e, t);
    }
    return t;
  }

  void report_unsolved(const ExprNode& e, const Type& t) {
    auto* call = as<CallNode>(&e);
    auto* callee = call == nullptr ? nullptr : as<GlobalVarNode>(call->op);
    if (callee != nullptr && isa<IncompleteTypeNode>(t)) {
      diags_
          .error(codes::type_unsolved, e.span,
                 "the result of @" + callee->name_hint + " cannot be inferred")
          .found(to_string(t))
          .help(
              "a function that calls itself before it gives a value, or that is polymorphic and "
              "calls itself, declares its result: def @" +
              callee->name_hint + "(...) -> " + example_of(t));
      return;
    }
    auto* v = as<VarNode>(&e);
    std::string name = v == nullptr ? "" : "%" + v->name_hint;
    diags_
        .error(codes::type_unsolved, e.span,
               (v == nullptr ? "this type" : "the type of " + name) + " cannot be inferred")
        .found(to_string(t))
        .help(v == nullptr ? "give it a name with a type: let %x: " + example_of(t) + " = ..."
                           : "annotate it, for example " + name + ": " + example_of(t));
  }

  // The type with something in its holes.
  std::string example_of(const Type& t) {
    std::unordered_map<const Node*, NodeRef> filled;
    Type part = scalar_type(DType::Float(32));
    for (const Node* hole : unifier_.open_parts(t)) {
      if (isa<IncompleteTypeNode>(hole)) filled.emplace(hole, part);
    }
    return isa<IncompleteTypeNode>(t) ? "Tensor[(2, 3), float32]"
                                      : to_string(Type::unchecked(substitute(t, filled)));
  }

  GlobalVar typed_global(const GlobalVarNode& g) {
    GlobalVar& made = typed_globals_[g.name_hint];
    if (made) return made;
    auto known = global_types_.find(g.name_hint);
    Type t = known == global_types_.end() ? g.type : unifier_.resolve(known->second);
    if (g.type && t && structural_equal(g.type, t)) return made = ref(g);
    made = make<GlobalVarNode>([&](GlobalVarNode& n) {
      n.name_hint = g.name_hint;
      n.span = g.span;
      n.type = t;
    });
    return made;
  }

  // Operators and polymorphic functions that `original` uses as values become functions of the one
  // type at which they are used.
  NodeRef with_values(const Node& original, NodeRef rebuilt) {
    auto uses = value_uses_.find(&original);
    if (uses == value_uses_.end()) return rebuilt;
    std::vector<NodeRef> before = children_of(original), now = children_of(*rebuilt.get());
    auto use = uses->second.begin();
    for (size_t i = isa<CallNode>(&original) ? 1 : 0; i < now.size(); ++i) {
      if (use == uses->second.end()) break;
      if (before[i].get() != use->child) continue;
      if (use->instance) now[i] = value_of(Expr::unchecked(now[i]), *use);
      ++use;
    }
    return with_children(rebuilt, now);
  }

  Expr value_of(const Expr& child, const ValueUse& use) {
    Type type = unifier_.resolve(use.instance);
    if (!unifier_.is_complete(type)) {
      if (!diags_.has_errors()) {
        auto* op = as<OpNode>(child);
        diags_
            .error(codes::type_unsolved, use.span,
                   "the type at which " + (op == nullptr ? "this function" : op->name) +
                       " is used cannot be inferred")
            .found(to_string(type))
            .help("write a function with annotated parameters around it: fn (%x: ...) { ... }");
      }
      return child;
    }
    std::vector<Type> type_args;
    for (const Type& a : use.type_args) type_args.push_back(unifier_.resolve(a));
    return eta_expansion(child, cast<FuncTypeNode>(type), std::move(type_args));
  }

  class Typed : public Rewriter {
   public:
    explicit Typed(Inference& inference) : Rewriter(kPrograms), inference_(inference) {}

    NodeRef pre(const NodeRef& node) override {
      if (auto* g = as<GlobalVarNode>(node)) return inference_.typed_global(*g);
      if (isa<OpNode>(node) || isa<ConstructorNode>(node)) return node;
      return nullptr;
    }

    NodeRef post(const NodeRef& original, NodeRef rebuilt) override {
      rebuilt = inference_.with_values(*original.get(), std::move(rebuilt));
      if (!isa<ExprNode>(rebuilt)) return rebuilt;
      auto& before = *static_cast<const ExprNode*>(original.get());
      Type t = inference_.final_type(before);
      auto& now = *static_cast<const ExprNode*>(rebuilt.get());
      bool same = now.type && t && (now.type == t || structural_equal(now.type, t));
      auto args = inference_.type_args_.find(original.get());
      if (same && (args == inference_.type_args_.end() ||
                   static_cast<const CallNode&>(now).type_args.size() == args->second.size())) {
        return rebuilt;
      }
      Node* copy = now.info().clone(now);
      NodeRef owner(copy);
      static_cast<ExprNode*>(copy)->type = t;
      if (copy->kind() == ExprKind::Var) static_cast<VarNode*>(copy)->type_annotation = t;
      if (copy->kind() == ExprKind::Function) {
        static_cast<FunctionNode*>(copy)->ret_type = as<FuncTypeNode>(t)->ret_type;
      }
      if (args != inference_.type_args_.end()) {
        std::vector<Type>& out = static_cast<CallNode*>(copy)->type_args;
        out.clear();
        for (const Type& a : args->second) out.push_back(inference_.final_type_arg(a));
      }
      return owner;
    }

   private:
    Inference& inference_;
  };

  // A type argument; one of kind Dim stands as the variable it was solved to.
  Type final_type_arg(const Type& t) { return unifier_.resolve(t); }

  Module mod_;
  Unifier unifier_;
  Diagnostics diags_;
  NodeMap<Type> types_;
  NodeMap<Type> return_holes_;
  std::unordered_map<const Node*, std::vector<Type>> type_args_;
  std::map<std::string, Type> global_types_;
  std::map<std::string, GlobalVar> typed_globals_;
  std::unordered_set<const Node*> unsolved_;
  NodeMap<const LetNode*> let_of_;                                    // by value
  std::unordered_map<const Node*, ClauseUse> match_of_;               // by clause
  std::unordered_map<const Node*, const FunctionNode*> function_of_;  // by let-bound variable
  NodeSet lets_done_;
  std::unordered_map<const Node*, std::vector<ValueUse>> value_uses_;
  std::vector<Pending> pending_;
  std::unordered_map<const Node*, std::vector<size_t>> waiting_;  // by what they wait for
};

}  // namespace

Module infer_types(const Module& mod) { return Inference(mod).run(); }

Expr infer_type(const Expr& expr, const Module& context) { return Inference(context).run(expr); }

}  // namespace relay
