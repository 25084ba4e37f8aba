#include "passes/partial/machine.h"

#include <algorithm>
#include <span>

#include "base/budget.h"
#include "ir/join_types.h"
#include "ir/op.h"
#include "ir/type_params.h"
#include "node/structural.h"
#include "node/walk.h"
#include "passes/partial/patterns.h"
#include "passes/partial/store.h"

namespace relay::partial {
namespace {

constexpr uint32_t kPrograms = family::program;

// How often an evaluation is begun anew without what led it nowhere.
constexpr int kMaxAttempts = 16;

// Thrown when the current evaluation cannot finish.
struct Regret {
  bool try_again;
};

bool same_type(const Type& a, const Type& b) { return a == b || structural_equal(a, b); }

bool is_opaque(const FunctionNode& f) {
  for (const char* key : {attr::kPrimitive, attr::kCompiler, attr::kExtern}) {
    if (f.has_attr(key)) return true;
  }
  return false;
}

class Machine {
 public:
  Machine(const EvaluationContext& program, Unroller& unroller, bool last_attempt,
          std::vector<Stop>& stops)
      : program_(program), unroller_(unroller), last_attempt_(last_attempt), stops_(stops) {
    unroller_.restart(cost_);
  }

  int64_t steps() const { return steps_; }

  // The residual body; null when nothing was done.
  Expr run(const Function& f) {
    Env* env = arena_.env(nullptr, nullptr);
    block_ = arena_.block(nullptr);
    for (const Var& p : f->params) bind(*env, p.get(), atom_value(p, p->type));
    go(f->body, env);
    run();
    StaticValue* result = result_;
    if (!result->atom) {
      demand(result);
      run();
    }
    Expr body = close(*block_, result->atom);
    return cost_.gained == 0 ? nullptr : body;
  }

 private:
  struct Frame {
    enum Kind : uint8_t {
      bind,      // the result is the value of a Let's variable
      retry,     // the expression again, now that what it needs has atoms
      leave,     // out of the function `expr` that was inlined
      demand,    // an atom for `value`
      body,      // the result is that of the body of the closure `value`
      branches,  // the result is that of a branch
    };
    Kind kind;
    Expr expr;
    Env* env = nullptr;
    StaticValue* value = nullptr;
    StaticValue* result = nullptr;  // body, branches: while its atom is made
    const LetNode* name = nullptr;  // what `naming_` was
  };
  // An If or Match that a run decides.
  struct Branching {
    Block* around;
    Store::Part part;
    StaticValue* on;
    std::vector<Expr> done;
    std::vector<Pattern> patterns;  // of the branches of a Match
  };
  // The body of a function that stays in the program.
  struct Body {
    Block* around;
    Store::Part part;
    std::vector<Var> params;
    std::vector<TypeVar> type_params;
    std::vector<StaticValue*> out_of_reach;
  };

  // ---- Values

  StaticValue* make_value(StaticValue::Kind kind, Type type, Span span = {}) {
    StaticValue* v = arena_.value(kind, std::move(type), block_);
    v->span = std::move(span);
    return v;
  }

  StaticValue* atom_value(Expr atom, Type type) {
    StaticValue* v = make_value(StaticValue::dynamic, std::move(type));
    v->atom = std::move(atom);
    return v;
  }

  Type type_in(const Env& env, const Type& t) const {
    if (env.types == nullptr || !t) return t;
    return with_type_params(t, *env.types);
  }
  std::vector<Type> types_in(const Env& env, std::vector<Type> types) const {
    for (Type& t : types) t = type_in(env, t);
    return types;
  }

  void bind(Env& env, const Node* variable, StaticValue* v) {
    env.values[variable] = v;
    depth_[variable] = env.depth;
  }

  StaticValue* find(const Node& variable, const Env& env) const {
    auto depth = depth_.find(&variable);
    RELAY_CHECK(depth != depth_.end(), "a variable without a value");
    const Env* e = &env.at_depth(depth->second);
    if (auto it = e->values.find(&variable); it != e->values.end()) return it->second;
    // It belongs to a function that is shared by places of different depths.
    for (e = &env;; e = e->parent) {
      RELAY_CHECK(e != nullptr, "a variable without a value");
      if (auto it = e->values.find(&variable); it != e->values.end()) return it->second;
    }
  }

  StaticValue* leaf(const Expr& e, const Env& env) {
    if (isa<VarNode>(e)) return find(*e.get(), env);
    StaticValue* v = atom_value(e, e->type);
    if (isa<ConstantNode>(e)) v->kind = StaticValue::tensor;
    if (auto* g = as<GlobalVarNode>(e)) {
      v->kind = StaticValue::global;
      v->function = program_.mod->find(g->name_hint);
    }
    return v;
  }
  std::vector<StaticValue*> leaves(const std::vector<Expr>& list, const Env& env) {
    std::vector<StaticValue*> out;
    out.reserve(list.size());
    for (const Expr& e : list) out.push_back(leaf(e, env));
    return out;
  }

  // Gives an unknown tuple its parts, where it was made.
  void expand(StaticValue& v) {
    auto& type = *as<TupleTypeNode>(v.type);
    for (size_t i = 0; i < type.fields.size(); ++i) {
      StaticValue* part = arena_.value(StaticValue::dynamic, type.fields[i], v.home);
      part->atom = bind_in(*v.home, tuple_get_item(atom(v, *v.home), static_cast<int64_t>(i)));
      v.parts.push_back(part);
    }
    v.kind = StaticValue::tuple;
  }

  // ---- The residual program

  Expr bind_in(Block& block, Expr value) {
    const int64_t free = program_.limits.max_bindings;
    if (++cost_.grown > free + std::min(cost_.gained, 3 * free)) stop("its code grows");
    auto* call = as<CallNode>(value);
    auto* tensor = as<TensorTypeNode>(value->type);
    if (call != nullptr && isa<OpNode>(call->op) && tensor != nullptr && tensor->rank() > 0) {
      ++cost_.tensors;
    }
    Var name = var(naming_ == nullptr ? "x" : naming_->var->name_hint, value->type, value->span);
    block.bindings.emplace_back(name, std::move(value));
    return name;
  }

  // An unknown value, with the expression that computes it.
  StaticValue* emit(const Expr& value) { return atom_value(bind_in(*block_, value), value->type); }

  static Expr close(Block& block, Expr result) {
    for (size_t i = block.bindings.size(); i-- > 0;) {
      auto& [name, value] = block.bindings[i];
      Span span = value->span;
      result = let(name, value, result, span);
    }
    block.bindings.clear();
    return result;
  }

  // Ends the evaluation of what is not available yet; or all of it, when an unrolling is better not
  // begun.
  void stop(const char* why) {
    if (stopped_) return;
    const CallNode* cause = unroller_.outermost();
    if (cause != nullptr && !last_attempt_ && !unroller_.outermost_pays())
      begin_without(cause, why);
    stops_.push_back({why, cause != nullptr ? cause->span : expr_ ? expr_->span : Span()});
    stopped_ = true;
  }

  // Begins anew, without going into the call.
  [[noreturn]] void begin_without(const CallNode* cause, const char* why) {
    stops_.push_back({why, cause->span});
    unroller_.give_up(cause);
    throw Regret{true};
  }

  // The atom of a value that has one, for use in a block.
  static Expr atom(const StaticValue& v, const Block& where) {
    // The name of a function in the making is bound inside its body only. A value that is older
    // than the function and refers to it through a reference cannot say so.
    if (v.pending && (v.out_of_reach > 0 || where.serial < v.body_serial)) throw Regret{false};
    return v.atom;
  }
  static std::vector<Expr> atoms(std::span<StaticValue* const> values, const Block& where) {
    std::vector<Expr> out;
    out.reserve(values.size());
    for (const StaticValue* v : values) out.push_back(atom(*v, where));
    return out;
  }

  // ---- Control

  void go(const Expr& e, Env* env) {
    expr_ = e;
    env_ = env;
  }
  void give(StaticValue* v) {
    result_ = v;
    expr_ = nullptr;
  }
  void push(Frame::Kind kind, Expr expr, Env* env, StaticValue* value = nullptr) {
    frames_.push_back({kind, std::move(expr), env, value, nullptr, naming_});
  }
  void demand(StaticValue* v) {
    push(Frame::demand, nullptr, nullptr, v);
    expr_ = nullptr;
  }

  // True when all values have atoms; else they are made first, and the expression is evaluated
  // again.
  bool ready(std::span<StaticValue* const> values) {
    bool all = true;
    for (StaticValue* v : values) {
      if (v->atom) continue;
      if (all) push(Frame::retry, expr_, env_);
      all = false;
      push(Frame::demand, nullptr, nullptr, v);
    }
    if (!all) expr_ = nullptr;
    return all;
  }
  bool ready(std::initializer_list<StaticValue*> values) {
    return ready(std::span<StaticValue* const>(values.begin(), values.size()));
  }

  void run() {
    while (expr_ || !frames_.empty()) {
      check_budget();
      if (++steps_ > program_.limits.max_steps) stop("it takes long");
      if (expr_) {
        evaluate(expr_);
      } else {
        proceed();
      }
    }
  }

  void proceed() {
    Frame f = frames_.back();
    naming_ = f.name;
    switch (f.kind) {
      case Frame::bind: {
        auto& l = static_cast<const LetNode&>(*f.expr);
        frames_.pop_back();
        bind(*f.env, l.var.get(), result_);
        return go(l.body, f.env);
      }
      case Frame::retry:
        frames_.pop_back();
        return go(f.expr, f.env);
      case Frame::leave:
        frames_.pop_back();
        return unroller_.leave(cast<FunctionNode>(f.expr));
      case Frame::demand:
        return make_atom(*f.value);
      case Frame::body:
        if (result_has_atom()) end_body(*f.value);
        return;
      case Frame::branches:
        if (result_has_atom()) end_branch(f.expr, f.env);
        return;
    }
  }

  // Of the current frame; else it is made first.
  bool result_has_atom() {
    Frame& f = frames_.back();
    if (f.result == nullptr) f.result = result_;
    if (f.result->atom) return true;
    demand(f.result);
    return false;
  }

  // ---- Atoms

  void make_atom(StaticValue& v) {
    if (v.atom) return frames_.pop_back();
    switch (v.kind) {
      case StaticValue::tuple:
      case StaticValue::data: {
        if (!parts_have_atoms(v.parts)) return;
        std::vector<Expr> parts = atoms(v.parts, *v.home);
        v.atom = bind_in(*v.home, v.kind == StaticValue::tuple
                                      ? Expr(tuple(std::move(parts), v.span))
                                      : Expr(call(v.constructor, std::move(parts), nullptr, v.span,
                                                  v.type_args)));
        return frames_.pop_back();
      }
      case StaticValue::reference:
        // One that holds itself would have to be written after it is made.
        if (v.pending && !v.content->atom) throw Regret{false};
        v.pending = true;
        if (!parts_have_atoms({&v.content, 1})) return;
        v.pending = false;
        store_.share(v, bind_in(*v.home, ref_create(atom(*v.content, *v.home), v.span)), *block_);
        return frames_.pop_back();
      case StaticValue::closure:
        frames_.pop_back();
        return begin_body(v);
      default:
        RELAY_CHECK(false, "a value without an atom");
    }
  }

  bool parts_have_atoms(std::span<StaticValue* const> parts) {
    bool all = true;
    for (StaticValue* v : parts) {
      if (v->atom) continue;
      all = false;
      push(Frame::demand, nullptr, nullptr, v);
    }
    return all;
  }

  // A closure that somebody unknown may call: its body is evaluated for arguments of which nothing
  // is known, at a time of which nothing is known.
  void begin_body(StaticValue& v) {
    const Function& f = v.function;
    Body b{block_, store_.begin(), {}, {}, {}};
    Env* env = arena_.env(v.env, v.env->types);
    if (!f->type_params.empty()) {
      TypeArguments* types = arena_.types();
      if (v.env->types != nullptr) *types = *v.env->types;
      for (const TypeVar& t : f->type_params) {
        b.type_params.push_back(type_var(t->name_hint, t->kind));
        (*types)[t.get()] = b.type_params.back();
      }
      env->types = types;
    }
    v.atom = var(naming_ == nullptr ? "f" : naming_->var->name_hint, v.type, v.span);
    store_.enter_body();
    block_ = arena_.block(nullptr);
    v.pending = true;
    v.body_serial = block_->serial;
    for (size_t i = pending_.size(); i-- > 0 && pending_[i]->body_serial > v.home->serial;) {
      ++pending_[i]->out_of_reach;
      b.out_of_reach.push_back(pending_[i]);
    }
    pending_.push_back(&v);
    for (const Var& p : f->params) {
      Type type = type_in(*env, p->type);
      b.params.push_back(var(p->name_hint, type, p->span));
      bind(*env, p.get(), atom_value(b.params.back(), type));
    }
    bodies_.push_back(std::move(b));
    push(Frame::body, nullptr, nullptr, &v);
    go(f->body, env);
  }

  void end_body(StaticValue& v) {
    Expr body = close(*block_, atom(*frames_.back().result, *block_));
    frames_.pop_back();
    Body b = std::move(bodies_.back());
    bodies_.pop_back();
    store_.end_branch(b.part);
    block_ = b.around;
    pending_.pop_back();
    v.pending = false;
    ++cost_.stays;
    for (StaticValue* p : b.out_of_reach) --p->out_of_reach;
    Type result = body->type;
    v.home->bindings.emplace_back(cast<VarNode>(v.atom),
                                  function(std::move(b.params), std::move(body), result,
                                           std::move(b.type_params), v.function->attrs, v.span));
  }

  // ---- Branches

  void begin_branches(const Expr& e, StaticValue* on) {
    branchings_.push_back({block_, store_.begin(), on, {}, {}});
    push(Frame::branches, e, env_);
    begin_branch(e, env_);
  }

  void begin_branch(const Expr& e, Env* env) {
    Branching& b = branchings_.back();
    block_ = arena_.block(b.around);
    if (auto* i = as<IfNode>(e)) return go(b.done.empty() ? i->true_branch : i->false_branch, env);
    const Clause& clause = static_cast<const MatchNode&>(*e).clauses[b.done.size()];
    std::unordered_map<const Node*, NodeRef> fresh;
    for (const Var& v : variables_of(clause->lhs)) {
      Type type = type_in(*env, v->type);
      Var name = var(v->name_hint, type, v->span);
      fresh.emplace(v.get(), name);
      bind(*env, v.get(), atom_value(name, type));
    }
    b.patterns.push_back(cast<PatternNode>(substitute(clause->lhs, fresh, kPrograms)));
    // What is known of a part stays known.
    std::vector<std::pair<const Node*, StaticValue*>> bound;
    if (fit(
            clause->lhs, b.on, [](StaticValue&) {}, bound) != Fit::no) {
      for (const auto& [variable, value] : bound) {
        if (value->kind != StaticValue::dynamic) bind(*env, variable, value);
      }
    }
    go(clause->rhs, env);
  }

  // What is known of a branch may be more than the others share, such as sizes where the whole has
  // `?`: then each is declared as the whole.
  static void declare_where_types_part(std::vector<Expr>& branches, const Type& whole) {
    Type joined = branches[0]->type;
    for (const Expr& branch : branches) {
      joined = joined ? join_types(joined, branch->type) : nullptr;
    }
    if (joined) return;
    for (Expr& branch : branches) {
      Var declared = var("declared", whole, branch->span);
      branch = let(declared, branch, declared, branch->span);
    }
  }

  void end_branch(const Expr& e, Env* env) {
    Frame& f = frames_.back();
    Branching& b = branchings_.back();
    b.done.push_back(close(*block_, atom(*f.result, *block_)));
    f.result = nullptr;
    store_.end_branch(b.part);
    auto* m = as<MatchNode>(e);
    if (b.done.size() < (m == nullptr ? 2 : m->clauses.size())) return begin_branch(e, env);
    frames_.pop_back();
    Branching finished = std::move(b);
    branchings_.pop_back();
    block_ = finished.around;
    store_.join(finished.part);
    Expr on = atom(*finished.on, *block_);
    declare_where_types_part(finished.done, type_in(*env, e->type));
    if (m == nullptr) return give(emit(if_(on, finished.done[0], finished.done[1], e->span)));
    std::vector<Clause> clauses;
    for (size_t i = 0; i < finished.done.size(); ++i) {
      clauses.push_back(clause(finished.patterns[i], finished.done[i]));
    }
    give(emit(match(on, std::move(clauses), m->complete, e->span)));
  }

  // ---- Expressions

  void evaluate(Expr e) {
    switch (e->kind()) {
      case ExprKind::Let: {
        auto& l = static_cast<const LetNode&>(*e);
        push(Frame::bind, e, env_);
        naming_ = &l;
        expr_ = l.value;
        return;
      }
      case ExprKind::Function: {
        auto f = cast<FunctionNode>(e);
        if (is_opaque(*f.get())) return give(atom_value(e, e->type));
        StaticValue* v = make_value(StaticValue::closure, type_in(*env_, e->type), e->span);
        v->function = f;
        v->env = env_;
        return give(v);
      }
      case ExprKind::Call:
        return evaluate_call(static_cast<const CallNode&>(*e));
      case ExprKind::If: {
        auto& i = static_cast<const IfNode&>(*e);
        StaticValue* on = leaf(i.cond, *env_);
        if (on->kind != StaticValue::tensor) return begin_branches(e, on);
        ++cost_.gained;
        bool yes = as<ConstantNode>(on->atom)->data.get_as_int(0) != 0;
        return go(yes ? i.true_branch : i.false_branch, env_);
      }
      case ExprKind::Tuple: {
        StaticValue* v = make_value(StaticValue::tuple, type_in(*env_, e->type), e->span);
        v->parts = leaves(static_cast<const TupleNode&>(*e).fields, *env_);
        return give(v);
      }
      case ExprKind::TupleGetItem: {
        auto& g = static_cast<const TupleGetItemNode&>(*e);
        StaticValue* v = leaf(g.tuple, *env_);
        if (v->kind != StaticValue::tuple) {
          return give(emit(tuple_get_item(atom(*v, *block_), g.index, g.span)));
        }
        ++cost_.gained;
        return give(v->parts[static_cast<size_t>(g.index)]);
      }
      case ExprKind::Match:
        return evaluate_match(e);
      case ExprKind::RefCreate: {
        StaticValue* v = make_value(StaticValue::reference, type_in(*env_, e->type), e->span);
        v->content = leaf(static_cast<const RefCreateNode&>(*e).value, *env_);
        return give(v);
      }
      case ExprKind::RefRead:
        return evaluate_read(static_cast<const RefReadNode&>(*e));
      case ExprKind::RefWrite:
        return evaluate_write(static_cast<const RefWriteNode&>(*e));
      default:
        return give(leaf(e, *env_));
    }
  }

  void evaluate_match(const Expr& e) {
    auto& m = static_cast<const MatchNode&>(*e);
    StaticValue* on = leaf(m.data, *env_);
    std::vector<std::pair<const Node*, StaticValue*>> bound;
    for (const Clause& c : m.clauses) {
      Fit f = fit(
          c->lhs, on, [this](StaticValue& v) { expand(v); }, bound);
      if (f == Fit::no) continue;
      if (f == Fit::maybe) break;
      ++cost_.gained;
      for (const auto& [variable, value] : bound) bind(*env_, variable, value);
      return go(c->rhs, env_);
    }
    if (ready({on})) begin_branches(e, on);
  }

  void evaluate_read(const RefReadNode& e) {
    StaticValue* r = leaf(e.ref, *env_);
    bool known = r->kind == StaticValue::reference;
    if (StaticValue* content = known ? store_.content(*r, *block_) : nullptr) {
      ++cost_.gained;
      return give(content);
    }
    if (!ready({r})) return;
    StaticValue* content = emit(ref_read(atom(*r, *block_), e.span));
    if (known) store_.learn(*r, content);
    give(content);
  }

  void evaluate_write(const RefWriteNode& e) {
    StaticValue* r = leaf(e.ref, *env_);
    StaticValue* value = leaf(e.value, *env_);
    bool known = r->kind == StaticValue::reference;
    if (known && Store::is_own(*r) && r->home == block_) {
      ++cost_.gained;
    } else {
      if (!ready({r, value})) return;
      emit(ref_write(atom(*r, *block_), atom(*value, *block_), e.span));
    }
    if (known) {
      store_.learn(*r, value);
    } else {
      store_.forget_all();
    }
    give(make_value(StaticValue::tuple, e.type, e.span));
  }

  // ---- Calls

  void evaluate_call(const CallNode& c) {
    std::vector<StaticValue*> args = leaves(c.args, *env_);
    if (isa<OpNode>(c.op)) return evaluate_op(c, args);
    if (isa<FunctionNode>(c.op)) {
      if (!ready(args)) return;
      return give(emit(call(c.op, atoms(args, *block_), c.attrs, c.span, c.type_args)));
    }
    StaticValue* callee = leaf(c.op, *env_);
    if (isa<ConstructorNode>(callee->atom)) {
      StaticValue* v = make_value(StaticValue::data, type_in(*env_, c.type), c.span);
      v->constructor = callee->atom;
      v->type_args = types_in(*env_, c.type_args);
      v->parts = std::move(args);
      return give(v);
    }
    if (Env* env = stopped_ ? nullptr : env_for(*callee, c, args)) {
      switch (unroller_.judge(*callee, callee->function, args, c, *block_)) {
        case Unroller::Verdict::enter:
          ++cost_.gained;
          unroller_.enter(*callee, callee->function, args, c, *block_);
          push(Frame::leave, callee->function, nullptr);
          return go(callee->function->body, env);
        case Unroller::Verdict::regret:
          if (last_attempt_) break;
          begin_without(unroller_.start_of_failure(), "no end is in sight");
        case Unroller::Verdict::repeats:
          if (last_attempt_) break;
          begin_without(unroller_.start_of_failure(), "each step leaves a call");
        case Unroller::Verdict::refuse:
          break;
      }
    }
    args.push_back(callee);
    if (!ready(args)) return;
    args.pop_back();
    if (program_.purity.of_node(ref(c)).writes()) store_.forget_all();
    const std::vector<Type> type_args = types_in(*env_, c.type_args);
    std::vector<Expr> values = atoms(args, *block_);
    Expr made = call(atom(*callee, *block_), values, c.attrs, c.span, type_args);
    if (!join_types(made->type, type_in(*env_, c.type))) {
      for (size_t i = 0; i < values.size(); ++i) values[i] = declared(values[i], c.args[i]->type);
      made = call(atom(*callee, *block_), values, c.attrs, c.span, type_args);
    }
    ++cost_.stays;
    give(emit(made));
  }

  // The value as one of the type that it has in the program, where more is known of it: sizes where that
  // has `?`. A callee gives names to them, and a reference or data of its result is then of another type
  // than what the program does with it.
  Expr declared(const Expr& value, const Type& in_program) {
    Type type = type_in(*env_, in_program);
    if (same_type(value->type, type)) return value;
    Var name = var("declared", type, value->span);
    block_->bindings.emplace_back(name, value);
    return name;
  }

  // The variables of a function that can be inlined; null for others.
  Env* env_for(const StaticValue& callee, const CallNode& c,
               const std::vector<StaticValue*>& args) {
    if (callee.kind != StaticValue::closure && callee.kind != StaticValue::global) return nullptr;
    const FunctionNode* f = callee.function.get();
    if (f == nullptr || is_opaque(*f) || f->params.size() != args.size()) return nullptr;
    Env* env = arena_.env(callee.env, callee.env == nullptr ? nullptr : callee.env->types);
    if (!f->type_params.empty()) {
      TypeArguments* types = arena_.types();
      if (env->types != nullptr) *types = *env->types;
      env->types = types;
      if (!bind_types(*types, c, *f, args)) return nullptr;
    }
    for (size_t i = 0; i < args.size(); ++i) {
      // What is more precise than the parameter would make the body's types so too.
      if (!same_type(type_in(*env, f->params[i]->type), args[i]->type)) return nullptr;
      bind(*env, f->params[i].get(), args[i]);
    }
    // Nor may the result be another reference, or other data, than what is done with it.
    return join_types(type_in(*env, f->body->type), type_in(*env_, c.type)) ? env : nullptr;
  }

  // What the type parameters of a callee stand for; false when that is not known.
  bool bind_types(TypeArguments& types, const CallNode& c, const FunctionNode& f,
                  const std::vector<StaticValue*>& args) {
    if (c.type_args.size() == f.type_params.size()) {
      for (size_t i = 0; i < c.type_args.size(); ++i) {
        if (f.type_params[i]->kind != Kind::Type) return false;
        types[f.type_params[i].get()] = type_in(*env_, c.type_args[i]);
      }
      return true;
    }
    // Named dimensions are not written at calls: arguments tell.
    std::vector<Type> wanted, given;
    for (size_t i = 0; i < args.size(); ++i) {
      wanted.push_back(f.params[i]->type);
      given.push_back(args[i]->type);
    }
    auto solved = solve_type_params(*func_type(wanted, f.ret_type, f.type_params).get(), given);
    if (!solved) return false;
    for (const TypeVar& p : f.type_params) {
      auto it = solved->find(p.get());
      if (it == solved->end()) return false;
      Dim size = dim_argument(it->second);
      if (size && is_any(size)) return false;
      types[p.get()] = it->second;
    }
    return true;
  }

  void evaluate_op(const CallNode& c, const std::vector<StaticValue*>& args) {
    const Attrs attrs = env_->types == nullptr ? c.attrs : with_type_params(c.attrs, *env_->types);
    if (Constant known = fold(c, attrs, args)) {
      ++cost_.gained;
      return give(leaf(known, *env_));
    }
    if (!ready(args)) return;
    give(emit(call(c.op, atoms(args, *block_), attrs, c.span, types_in(*env_, c.type_args))));
  }

  Constant fold(const CallNode& c, const Attrs& attrs, const std::vector<StaticValue*>& args) {
    std::vector<Constant> leaves;
    std::vector<Expr> operands;
    for (const StaticValue* v : args) {
      std::vector<Expr> parts;
      for (const StaticValue* part : v->kind == StaticValue::tuple
                                         ? std::span<StaticValue* const>(v->parts)
                                         : std::span<StaticValue* const>()) {
        if (part->kind != StaticValue::tensor) return nullptr;
        leaves.push_back(cast<ConstantNode>(part->atom));
        parts.push_back(part->atom);
      }
      if (v->kind == StaticValue::tuple) {
        operands.push_back(tuple(std::move(parts)));
      } else if (v->kind == StaticValue::tensor) {
        leaves.push_back(cast<ConstantNode>(v->atom));
        operands.push_back(v->atom);
      } else {
        return nullptr;
      }
    }
    return program_.folding.fold(call(c.op, std::move(operands), attrs, c.span), leaves);
  }

  const EvaluationContext& program_;
  Unroller& unroller_;
  bool last_attempt_;
  Arena arena_;
  Store store_;
  std::unordered_map<const Node*, uint32_t> depth_;  // how deep a variable's function is nested
  std::vector<Frame> frames_;
  std::vector<Branching> branchings_;
  std::vector<Body> bodies_;
  std::vector<StaticValue*> pending_;  // closures whose bodies are being made
  // What is being evaluated; null when `result_` is available.
  Expr expr_;
  Env* env_ = nullptr;
  StaticValue* result_ = nullptr;
  Block* block_ = nullptr;
  const LetNode* naming_ = nullptr;  // gives names to what is emitted
  std::vector<Stop>& stops_;
  Cost cost_;
  int64_t steps_ = 0;
  bool stopped_ = false;  // no more calls are inlined
};

}  // namespace

Function evaluate(const EvaluationContext& program, Unroller& unroller, const Function& f,
                  std::vector<Stop>& stops) {
  unroller.begin();
  int64_t steps = 0;
  for (int attempt = 1;; ++attempt) {
    bool last = attempt == kMaxAttempts || steps > program.limits.max_steps;
    Machine machine(program, unroller, last, stops);
    try {
      Expr body = machine.run(f);
      if (!body) return nullptr;
      std::vector<NodeRef> children = children_of(*f.get());
      for (NodeRef& c : children) {
        if (c == f->body) c = body;
      }
      return cast<FunctionNode>(with_children(f, children));
    } catch (const Regret& regret) {
      if (!regret.try_again) return nullptr;
      steps += machine.steps();
    }
  }
}

}  // namespace relay::partial
