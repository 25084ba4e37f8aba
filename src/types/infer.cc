#include "types/infer.h"

#include <algorithm>
#include <deque>

#include "base/diagnostic_codes.h"
#include "ir/op.h"
#include "node/structural.h"
#include "node/walk.h"
#include "types/unify.h"

namespace relay {
namespace {

constexpr uint32_t kPrograms = family::expr | family::pattern;

class Inference {
 public:
  explicit Inference(const Module& mod) : mod_(mod) {}

  Module run() {
    declare_globals();
    for (const Function& f : mod_->functions) visit(f);
    for (size_t i = 0; i < mod_->functions.size(); ++i) {
      equal(global_types_.at(mod_->global_vars[i]->name_hint), type_of(mod_->functions[i].get()),
            mod_->functions[i]->span, "the function's parts contradict each other");
    }
    solve();
    diags_.throw_if_errors();
    std::vector<Function> functions;
    std::vector<GlobalVar> vars;
    for (size_t i = 0; i < mod_->functions.size(); ++i) {
      functions.push_back(cast<FunctionNode>(Typed(*this).run(mod_->functions[i])));
      vars.push_back(typed_global(*mod_->global_vars[i].get()));
    }
    diags_.throw_if_errors();
    if (functions == mod_->functions && vars == mod_->global_vars) return mod_;
    return make_module(std::move(vars), std::move(functions), mod_->type_definitions, mod_->attrs);
  }

  Expr run(const Expr& e) {
    declare_globals();
    visit(e);
    solve();
    diags_.throw_if_errors();
    Expr typed = cast<ExprNode>(Typed(*this).run(e));
    diags_.throw_if_errors();
    return typed;
  }

 private:
  // An operator call whose relation cannot tell yet.
  struct Pending {
    const CallNode* call;
    std::vector<Type> args;
    Type result;
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
    auto it = types_.find(n);
    if (it != types_.end()) return it->second;
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

  bool equal(const Type& a, const Type& b, const Span& span, const std::string& what,
             const Span& other = {}) {
    std::string why;
    if (unifier_.unify(a, b, why)) return true;
    bool infinite = why.find("contain itself") != std::string::npos;
    Diagnostic& d = diags_.error(infinite ? codes::type_infinite : codes::type_mismatch, span,
                                 what + ": " + why);
    d.expected(to_string(unifier_.resolve(a))).found(to_string(unifier_.resolve(b)));
    if (other) d.note(other, "the other type comes from here");
    return false;
  }

  // ---- Constraints
  // -----------------------------------------------------------------------------------

  void visit(const Expr& root) {
    // Let-bound functions are known by their annotations inside themselves and after.
    post_order(
        root,
        [&](const Node& n) {
          auto* l = as<LetNode>(&n);
          if (l == nullptr || l->var->type_annotation) return;
          if (auto* f = as<FunctionNode>(l->value)) types_[l->var.get()] = declared_type(*f);
        },
        kPrograms);
    post_order(
        root,
        [&](const Node& n) {
          if (n.info().family == family::pattern) {
            pattern(n);
          } else {
            constrain(static_cast<const ExprNode&>(n));
          }
        },
        kPrograms);
  }

  void constrain(const ExprNode& e) {
    switch (e.kind()) {
      case ExprKind::Constant:
        types_[&e] = e.type;
        return;
      case ExprKind::Call:
        call(static_cast<const CallNode&>(e));
        return;
      case ExprKind::Function: {
        auto& f = static_cast<const FunctionNode&>(e);
        Type declared = declared_type(f);
        equal(as<FuncTypeNode>(declared)->ret_type, type_of(f.body), f.body->span,
              "the function's result is not of its declared type", f.span);
        types_[&e] = declared;
        return;
      }
      case ExprKind::Let: {
        auto& l = static_cast<const LetNode&>(e);
        equal(type_of(l.var.get()), type_of(l.value), l.value->span,
              "the value is not of its variable's type", l.var->span);
        types_[&e] = type_of(l.body);
        return;
      }
      case ExprKind::If: {
        auto& i = static_cast<const IfNode&>(e);
        equal(scalar_type(DType::Bool()), type_of(i.cond), i.cond->span,
              "the condition of an if must be one bool");
        equal(type_of(i.true_branch), type_of(i.false_branch), i.span,
              "the branches of an if have different types");
        types_[&e] = type_of(i.true_branch);
        return;
      }
      case ExprKind::Tuple: {
        std::vector<Type> fields;
        for (const Expr& f : static_cast<const TupleNode&>(e).fields) fields.push_back(type_of(f));
        types_[&e] = tuple_type(std::move(fields));
        return;
      }
      case ExprKind::TupleGetItem: {
        auto& g = static_cast<const TupleGetItemNode&>(e);
        if (!project(g)) projections_.push_back(&g);
        return;
      }
      case ExprKind::Match: {
        auto& m = static_cast<const MatchNode&>(e);
        if (m.clauses.empty()) return;
        Type result = type_of(m.clauses[0]->rhs);
        for (const Clause& c : m.clauses) {
          equal(type_of(m.data), types_.at(c->lhs.get()), c->lhs->span,
                "the pattern does not fit the matched value", m.data->span);
          equal(result, type_of(c->rhs), c->rhs->span, "the clauses have different types",
                m.clauses[0]->rhs->span);
        }
        types_[&e] = result;
        return;
      }
      case ExprKind::RefCreate:
        types_[&e] = ref_type(type_of(static_cast<const RefCreateNode&>(e).value));
        return;
      case ExprKind::RefRead: {
        auto& r = static_cast<const RefReadNode&>(e);
        Type content = unifier_.hole(e.span);
        equal(ref_type(content), type_of(r.ref), e.span, "only a reference can be read");
        types_[&e] = content;
        return;
      }
      case ExprKind::RefWrite: {
        auto& w = static_cast<const RefWriteNode&>(e);
        equal(type_of(w.ref), ref_type(type_of(w.value)), e.span,
              "the value does not fit the reference");
        types_[&e] = tuple_type({});
        return;
      }
      default:
        type_of(&e);
    }
  }

  void call(const CallNode& c) {
    if (isa<OpNode>(c.op)) {
      Pending p{&c, {}, unifier_.hole(c.span)};
      for (const Expr& a : c.args) p.args.push_back(type_of(a));
      types_[&c] = p.result;
      if (!relate(p)) pending_.push_back(std::move(p));
      return;
    }
    Type callee = unifier_.shallow(type_of(c.op));
    if (isa<FuncTypeNode>(callee)) {
      auto f = cast<FuncTypeNode>(callee);
      if (f->arg_types.size() != c.args.size()) {
        diags_.error(codes::type_arity, c.span, "a call has the wrong number of arguments")
            .expected(std::to_string(f->arg_types.size()) + " for " +
                      to_string(unifier_.resolve(f)))
            .found(std::to_string(c.args.size()));
        types_[&c] = unifier_.hole(c.span);
        return;
      }
      std::vector<Type> type_args;
      FuncType body = unifier_.instantiate(f, c.span, type_args);
      for (size_t i = 0; i < c.type_args.size() && i < type_args.size(); ++i) {
        equal(c.type_args[i], type_args[i], c.span, "a type argument does not fit");
      }
      for (size_t i = 0; i < c.args.size(); ++i) {
        equal(body->arg_types[i], type_of(c.args[i]), c.args[i]->span ? c.args[i]->span : c.span,
              "argument " + std::to_string(i + 1) + " does not fit", c.op->span);
      }
      if (!type_args.empty()) type_args_[&c] = std::move(type_args);
      types_[&c] = body->ret_type;
      return;
    }
    std::vector<Type> args;
    for (const Expr& a : c.args) args.push_back(type_of(a));
    Type result = unifier_.hole(c.span);
    if (!isa<IncompleteTypeNode>(callee)) {
      diags_.error(codes::type_not_callable, c.span, "this value cannot be called")
          .expected("a function")
          .found(to_string(unifier_.resolve(callee)));
    } else {
      equal(callee, func_type(std::move(args), result), c.span, "a call does not fit its function");
    }
    types_[&c] = result;
  }

  bool project(const TupleGetItemNode& g) {
    Type t = unifier_.shallow(type_of(g.tuple));
    Type& mine = types_[&g];
    if (auto* tuple = as<TupleTypeNode>(t)) {
      if (g.index < 0 || g.index >= static_cast<int64_t>(tuple->fields.size())) {
        diags_
            .error(codes::type_not_tuple, g.span,
                   "the tuple has no field " + std::to_string(g.index))
            .expected("an index below " + std::to_string(tuple->fields.size()))
            .found(std::to_string(g.index));
        if (!mine) mine = unifier_.hole(g.span);
        return true;
      }
      const Type& field = tuple->fields[static_cast<size_t>(g.index)];
      if (mine) {
        equal(mine, field, g.span, "the field is used as another type");
      } else {
        mine = field;
      }
      return true;
    }
    if (!mine) mine = unifier_.hole(g.span);
    if (isa<IncompleteTypeNode>(t)) return false;
    diags_.error(codes::type_not_tuple, g.span, "this value is no tuple")
        .expected("a tuple")
        .found(to_string(unifier_.resolve(t)));
    return true;
  }

  void pattern(const Node& n) {
    if (auto* v = as<PatternVarNode>(&n)) {
      types_[&n] = type_of(v->var.get());
    } else if (auto* t = as<PatternTupleNode>(&n)) {
      std::vector<Type> fields;
      for (const Pattern& p : t->patterns) fields.push_back(types_.at(p.get()));
      types_[&n] = tuple_type(std::move(fields));
    } else if (auto* c = as<PatternConstructorNode>(&n)) {
      std::vector<Type> type_args;
      FuncType f =
          unifier_.instantiate(cast<FuncTypeNode>(c->constructor->type), c->span, type_args);
      if (f->arg_types.size() != c->patterns.size()) {
        diags_.error(codes::type_arity, c->span, "the pattern has the wrong number of parts")
            .expected(std::to_string(f->arg_types.size()))
            .found(std::to_string(c->patterns.size()));
      } else {
        for (size_t i = 0; i < c->patterns.size(); ++i) {
          equal(f->arg_types[i], types_.at(c->patterns[i].get()), c->patterns[i]->span,
                "a part of the pattern does not fit");
        }
      }
      types_[&n] = f->ret_type;
    } else if (!isa<ClauseNode>(&n)) {
      types_[&n] = unifier_.hole(static_cast<const PatternNode&>(n).span);
    }
  }

  // ---- Relations
  // ---------------------------------------------------------------------------------------

  // True when the relation is settled, for good or bad.
  bool relate(Pending& p) {
    const OpInfo& row = *as<OpNode>(p.call->op)->row;
    if (p.args.size() != row.args.size()) {
      try {
        apply_relation(row, p.args, p.call->attrs, p.call->span);
      } catch (const UserError& e) {
        for (const Diagnostic& d : e.diagnostics()) diags_.add(d);
      }
      return true;
    }
    std::vector<Type> args;
    for (const Type& a : p.args) args.push_back(unifier_.resolve(a));
    RelationContext ctx(row, args, p.call->attrs, p.call->span);
    Type result = run_relation(ctx);
    if (ctx.failure()) {
      diags_.add(*ctx.failure());
      return true;
    }
    for (const auto& [i, type] : ctx.solved()) {
      equal(p.args[i], type, p.call->span,
            "argument '" + std::string(row.args[i].name) + "' of " + std::string(row.name) +
                " does not fit");
    }
    if (!result) return false;
    equal(p.result, result, p.call->span,
          "the result of " + std::string(row.name) + " does not fit");
    return true;
  }

  void solve() {
    while (!pending_.empty() || !projections_.empty()) {
      size_t before = unifier_.progress() + diags_.error_count();
      std::vector<Pending> waiting = std::move(pending_);
      pending_.clear();
      for (Pending& p : waiting) {
        if (!relate(p)) pending_.push_back(std::move(p));
      }
      std::erase_if(projections_, [&](const TupleGetItemNode* g) { return project(*g); });
      if (unifier_.progress() + diags_.error_count() == before) break;
    }
  }

  // ---- The typed program
  // ---------------------------------------------------------------------------------

  Type final_type(const ExprNode& e) {
    Type t = unifier_.resolve(type_of(&e));
    if (t && !unifier_.is_complete(t) && unsolved_.insert(&e).second && !diags_.has_errors()) {
      Diagnostic& d = diags_.error(codes::type_unsolved, e.span, "this type cannot be inferred");
      d.found(to_string(t)).help("annotate it: %x: Tensor[(...), float32]");
      if (auto* v = as<VarNode>(&e))
        d.message = "the type of %" + v->name_hint + " cannot be inferred";
    }
    return t;
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

  class Typed : public Rewriter {
   public:
    explicit Typed(Inference& inference) : Rewriter(kPrograms), inference_(inference) {}

    NodeRef pre(const NodeRef& node) override {
      if (auto* g = as<GlobalVarNode>(node)) return inference_.typed_global(*g);
      if (isa<OpNode>(node) || isa<ConstructorNode>(node)) return node;
      return nullptr;
    }

    NodeRef post(const NodeRef& original, NodeRef rebuilt) override {
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
  std::unordered_map<const Node*, Type> types_;
  std::unordered_map<const Node*, Type> return_holes_;
  std::unordered_map<const Node*, std::vector<Type>> type_args_;
  std::map<std::string, Type> global_types_;
  std::map<std::string, GlobalVar> typed_globals_;
  std::unordered_set<const Node*> unsolved_;
  std::vector<Pending> pending_;
  std::vector<const TupleGetItemNode*> projections_;
};

}  // namespace

Module infer_types(const Module& mod) { return Inference(mod).run(); }

Expr infer_type(const Expr& expr, const Module& context) { return Inference(context).run(expr); }

}  // namespace relay
