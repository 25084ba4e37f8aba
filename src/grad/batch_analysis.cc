#include "grad/batch_analysis.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "base/codes/batching.h"
#include "grad/lift.h"
#include "grad/type_depth.h"
#include "ir/bindings.h"
#include "ir/op.h"
#include "ir/scope.h"
#include "node/walk.h"

namespace relay {
namespace {

// What room can be made for before the first lane is computed: tensors of numbers of known sizes.
bool has_known_sizes(const Type& type) {
  auto tensors = flatten_tensor_types(type);
  if (!tensors) return false;
  for (const TensorType& t : *tensors) {
    if (t->shape_var || t->dtype_var || t->dtype.is_string() ||
        std::ranges::any_of(t->shape, is_any))
      return false;
  }
  return true;
}

// Whether a value of the type can hold functions or references.
bool may_hold_state(const Type& type) {
  bool found = false;
  post_order(
      type,
      [&](const Node& n) {
        found |= isa<FuncTypeNode>(&n) || isa<RefTypeNode>(&n) || isa<TypeVarNode>(&n);
      },
      family::type);
  return found;
}

// The value of a Let whose body is its variable: that is its result.
const ExprNode* returned_value(const ExprNode& e) {
  auto* l = as<LetNode>(&e);
  return l != nullptr && l->body.get() == l->var.get() ? l->value.get() : nullptr;
}

[[noreturn]] void cannot_batch(const DiagnosticCode& code, const Span& span,
                               const std::string& what, const std::string& found,
                               const std::string& help = {}) {
  throw UserError(Diagnostic(code, span, what).found(found).help(help));
}

}  // namespace

// ---- What depends on what

class BatchAnalysis::Constraints {
 public:
  explicit Constraints(BatchAnalysis& a) : a_(a), types_(*a.types_) {}

  void add(const Function& f, LaneType* type) {
    for (size_t i = 0; i < f->params.size(); ++i) a_.of_[f->params[i].get()] = type->parts[i];
    body(f->body, *f.get(), type);
  }

 private:
  LaneType* of(const Expr& e) { return a_.of(e); }

  // The functions that Lets name may be called before their value is met.
  LaneType* declare(const FunctionNode& f) {
    LaneType*& known = a_.of_[&f];
    if (known != nullptr) return known;
    std::vector<Type> params;
    for (const Var& p : f.params) params.push_back(p->type);
    LaneType* made = types_.fresh(func_type(std::move(params), f.body->type, f.type_params));
    for (size_t i = 0; i < f.params.size(); ++i) a_.of_[f.params[i].get()] = made->parts[i];
    return a_.of_[&f] = made;
  }

  void body(const Expr& root, const FunctionNode& f, LaneType* type) {
    auto enter = [&](const Node& n) {
      if (a_.regions_.contains(&n)) {
        region(static_cast<const ExprNode&>(n));
        return false;
      }
      if (auto* inner = as<FunctionNode>(&n)) declare(*inner);
      if (auto* l = as<LetNode>(&n)) {
        if (auto* named = as<FunctionNode>(l->value)) a_.of_[l->var.get()] = declare(*named);
      }
      return true;
    };
    post_order_if(
        root, enter, [&](const Node& n) { node(n); }, family::program);
    returns(root, f, type->result());
  }

  // The result of a function with a mask is distinguished where it is found.
  void returns(const Expr& e, const FunctionNode& f, LaneType* result) {
    const Masked* m = a_.masked(f);
    if (m == nullptr) {
      types_.flow(of(e), result);
    } else {
      types_.all_of(result, -1);
      if (a_.tail_of(*e.get()) == nullptr) types_.flow(of(e), result);
    }
  }

  void node(const Node& n) {
    if (a_.regions_.contains(&n) || n.info().family != family::expr || isa<VarNode>(&n)) return;
    const auto& e = static_cast<const ExprNode&>(n);
    if (auto* c = as<CallNode>(&n)) {
      a_.of_[&n] = types_.fresh(e.type);
      call(*c);
    } else if (auto* t = as<TupleNode>(&n)) {
      LaneType* whole = a_.of_[&n] = types_.fresh(e.type);
      for (size_t i = 0; i < t->fields.size(); ++i) types_.flow(of(t->fields[i]), whole->parts[i]);
    } else if (auto* g = as<TupleGetItemNode>(&n)) {
      a_.of_[&n] = of(g->tuple)->parts[static_cast<size_t>(g->index)];
    } else if (auto* l = as<LetNode>(&n)) {
      types_.flow(of(l->value), of(l->var));
      a_.of_[&n] = of(l->body);
    } else if (auto* i = as<IfNode>(&n)) {
      LaneType* whole = a_.of_[&n] = types_.fresh(e.type);
      types_.flow(of(i->true_branch), whole);
      types_.flow(of(i->false_branch), whole);
      if (is_tensors(*whole)) types_.all_of(whole, of(i->cond)->bit);
    } else if (auto* m = as<MatchNode>(&n)) {
      LaneType* whole = a_.of_[&n] = types_.fresh(e.type);
      for (const Clause& c : m->clauses) {
        pattern(c->lhs, of(m->data));
        types_.flow(of(c->rhs), whole);
      }
    } else if (auto* f = as<FunctionNode>(&n)) {
      returns(f->body, *f, of(Expr(f))->result());
    } else if (auto* r = as<RefCreateNode>(&n)) {
      LaneType* whole = a_.of_[&n] = types_.fresh(e.type);
      types_.flow(of(r->value), whole->parts[0]);
    } else if (auto* r = as<RefReadNode>(&n)) {
      a_.of_[&n] = of(r->ref)->parts[0];
    } else if (auto* w = as<RefWriteNode>(&n)) {
      types_.flow(of(w->value), of(w->ref)->parts[0]);
      a_.of_[&n] = types_.fresh(e.type);
    }
    if (const Masked* m = a_.tail_of(n)) tail(e, *m);
  }

  // In tail position of a function with a mask: results and parameters of lanes that part.
  void tail(const ExprNode& e, const Masked& m) {
    LaneType* type = a_.of_.at(m.function);
    if (auto* i = as<IfNode>(&e)) {
      bool both = !a_.leaves_parameters(i->true_branch) && !a_.leaves_parameters(i->false_branch);
      for (size_t k = 0; both && k < type->params(); ++k)
        types_.all_of(type->parts[k], of(i->cond)->bit);
      for (const Expr& branch : {i->true_branch, i->false_branch}) leaf(branch, type);
      return;
    }
    if (auto* l = as<LetNode>(&e)) {
      if (returned_value(e) == nullptr) leaf(l->body, type);
      return;
    }
    if (a_.is_tail_call(e, m)) return;
    types_.flow(of(Expr(&e)), type->result());
  }

  void leaf(const Expr& e, LaneType* function) {
    if (a_.tail_of(*e.get()) == nullptr) types_.flow(of(e), function->result());
  }

  void pattern(const Pattern& root, LaneType* data) {
    std::vector<std::pair<Pattern, LaneType*>> todo{{root, data}};
    while (!todo.empty()) {
      auto [p, type] = todo.back();
      todo.pop_back();
      a_.of_[p.get()] = type;
      if (auto* v = as<PatternVarNode>(p)) {
        types_.equal(type, of(v->var));
      } else if (auto* c = as<PatternConstructorNode>(p)) {
        std::vector<LaneType*> inputs = types_.inputs(c->constructor, *type);
        for (size_t i = 0; i < c->patterns.size(); ++i)
          todo.emplace_back(c->patterns[i], inputs[i]);
      } else if (auto* t = as<PatternTupleNode>(p)) {
        for (size_t i = 0; i < t->patterns.size(); ++i)
          todo.emplace_back(t->patterns[i], type->parts[i]);
      }
    }
  }

  void call(const CallNode& c) {
    LaneType* result = a_.of_.at(&c);
    if (auto* op = as<OpNode>(c.op)) {
      const OpInfo& row = *op->row;
      if (!row.batching && row.batching.reason() == Absent::OnlySizes) return;
      int any = types_.new_bit();
      for (const Expr& arg : c.args) types_.all_from(of(arg), any);
      types_.all_of(result, any);
      return;
    }
    if (auto* constructor = as<ConstructorNode>(c.op)) {
      std::vector<LaneType*> inputs = types_.inputs(ref(*constructor), *result);
      for (size_t i = 0; i < inputs.size(); ++i) types_.flow(of(c.args[i]), inputs[i]);
      return;
    }
    LaneType* callee = of(c.op);
    CallTypes& seen = a_.call_types_[&c];
    seen = {};
    LaneTypes::Variables variables;
    auto* type = as<FuncTypeNode>(callee->type);
    if (type != nullptr && !type->type_params.empty()) {
      if (c.type_args.size() == type->type_params.size()) {
        for (size_t i = 0; i < c.type_args.size(); ++i) {
          const TypeVar& v = type->type_params[i];
          LaneType* given = v->kind == Kind::Type ? types_.fresh(c.type_args[i]) : nullptr;
          if (given != nullptr) variables[v.get()] = given;
          seen.type_args.push_back(given);
        }
      } else {
        for (size_t i = 0; i < c.args.size(); ++i)
          LaneTypes::match(callee->parts[i], of(c.args[i]), variables);
        LaneTypes::match(callee->result(), result, variables);
      }
    }
    for (size_t i = 0; i < c.args.size(); ++i) {
      seen.params.push_back(types_.instance(callee->parts[i], variables));
      types_.flow(of(c.args[i]), seen.params.back());
    }
    seen.result = types_.instance(callee->result(), variables);
    types_.flow(seen.result, result);
  }

  void region(const ExprNode& e) {
    LaneType* result = types_.fresh(e.type);
    a_.of_[&e] = result;
    // A loop stacks what it gives, also what is the same in all lanes.
    types_.all_of(result, -1);
    if (const Masked* m = a_.tail_of(e)) tail(e, *m);
  }

  BatchAnalysis& a_;
  LaneTypes& types_;
};

// ---- Regions

BatchAnalysis::BatchAnalysis(const Module& mod, std::string entry, Dim lanes,
                             const std::vector<BatchAxes>& in, const BatchAxes& out)
    : mod_(mod),
      entry_(std::move(entry)),
      lanes_(std::move(lanes)),
      in_(in),
      out_(out),
      purity_(mod) {
  index();
  note_failures();
}

// Who is around whom, in all functions that the entry may call.
void BatchAnalysis::index() {
  std::vector<std::string> todo{entry_};
  std::map<std::string, bool> seen{{entry_, true}};
  while (!todo.empty()) {
    Function f = mod_->find(todo.back());
    function_name_[f.get()] = todo.back();
    todo.pop_back();
    check_type_depth(f, codes::batch_function);
    post_order(
        f,
        [&](const Node& n) {
          auto around = [&](const Expr& inner) {
            parent_[inner.get()] = static_cast<const ExprNode*>(&n);
          };
          has_references_ |= isa<RefCreateNode>(&n);
          if (auto* l = as<LetNode>(&n)) {
            if (!isa<VarNode>(l->value)) around(l->value);
            if (!isa<VarNode>(l->body)) around(l->body);
          } else if (auto* i = as<IfNode>(&n)) {
            around(i->true_branch);
            around(i->false_branch);
          } else if (auto* m = as<MatchNode>(&n)) {
            for (const Clause& c : m->clauses) around(c->rhs);
          } else if (auto* inner = as<FunctionNode>(&n)) {
            around(inner->body);
          } else if (auto* g = as<GlobalVarNode>(&n)) {
            if (!seen[g->name_hint]) todo.push_back(g->name_hint);
            seen[g->name_hint] = true;
          }
        },
        family::program);
  }
}

// Which expressions may end the run when they are evaluated.
void BatchAnalysis::note_failures() {
  std::unordered_map<std::string, std::vector<std::string>> callers;
  std::unordered_set<std::string> failing;
  std::vector<std::string> todo;
  auto each_node = [&](const auto& visit) {
    for (size_t i = 0; i < mod_->functions.size(); ++i) {
      const std::string& name = mod_->global_vars[i]->name_hint;
      post_order(
          mod_->functions[i]->body, [&](const Node& n) { visit(name, n); }, family::program);
    }
  };
  each_node([&](const std::string& name, const Node& n) {
    auto* c = as<CallNode>(&n);
    if (c != nullptr && may_end_run(*c) && failing.insert(name).second) todo.push_back(name);
    if (auto* g = as<GlobalVarNode>(&n)) callers[g->name_hint].push_back(name);
  });
  while (!todo.empty()) {
    std::string callee = std::move(todo.back());
    todo.pop_back();
    for (const std::string& caller : callers[callee]) {
      if (failing.insert(caller).second) todo.push_back(caller);
    }
  }
  if (failing.empty()) return;
  each_node([&](const std::string&, const Node& n) {
    auto* c = as<CallNode>(&n);
    auto* g = as<GlobalVarNode>(&n);
    bool fails =
        (c != nullptr && may_end_run(*c)) || (g != nullptr && failing.contains(g->name_hint));
    for_each_child(n, [&](const NodeRef& child) { fails |= may_fail_.contains(child.get()); });
    if (fails) may_fail_.insert(&n);
  });
}

const std::vector<Var>& BatchAnalysis::free_of(const Node& n) {
  auto [list, fresh] = free_.emplace(&n);
  if (fresh) list = free_vars(Expr(static_cast<const ExprNode*>(&n)));
  return list;
}

const LaneByLane* BatchAnalysis::region(const Node& n) const { return regions_.find(&n); }

bool BatchAnalysis::is_batched_global(const std::string& name) const {
  auto it = globals_.find(name);
  return it != globals_.end() && types_->any(*it->second.type);
}

const BatchAnalysis::Masked* BatchAnalysis::tail_of(const Node& n) const {
  const int* at = tail_.find(&n);
  return at == nullptr ? nullptr : &masked_[static_cast<size_t>(*at)];
}

const BatchAnalysis::Masked* BatchAnalysis::masked(const FunctionNode& f) const {
  for (const Masked& m : masked_) {
    if (m.function == &f) return &m;
  }
  return nullptr;
}

bool BatchAnalysis::is_tail_call(const Node& n, const Masked& m) const {
  auto* c = as<CallNode>(&n);
  if (c == nullptr) return false;
  auto* g = as<GlobalVarNode>(c->op);
  auto* own = as<GlobalVarNode>(m.name);
  return g != nullptr && own != nullptr ? g->name_hint == own->name_hint
                                        : c->op.get() == m.name.get();
}

// Tensors in and out. Whether what else comes in is the same in all lanes, only the lane types say.
bool BatchAnalysis::may_be_region(const Expr& e) {
  if (!has_known_sizes(e->type)) return false;
  for (const Var& v : free_of(*e.get())) {
    if (!flatten_tensor_types(v->type) && has_references_ && may_hold_state(v->type)) return false;
  }
  return true;
}

void BatchAnalysis::part(const Expr& at, const std::string& what, const std::string& why) {
  // A region that is not good enough gives way to one around it.
  const ExprNode* e = at.get();
  bool grow = regions_.contains(e);
  for (;;) {
    if (!grow && !isa<FunctionNode>(e) && may_be_region(Expr(e))) break;
    grow = false;
    const ExprNode* const* around = parent_.find(e);
    if (around == nullptr) {
      const std::string* name = function_name_.find(e);
      RELAY_CHECK(name != nullptr, "an expression outside of every function");
      if (*name == entry_) {
        cannot_batch(codes::batch_ragged, at->span,
                     what + " has to be computed lane by lane, and so has the whole function",
                     why + "; a result of type " + to_string(as<FunctionNode>(e)->body->type) +
                         ", parameters that are not all tensors",
                     "give tensors of known sizes from the function, or batch a part of it");
      }
      lone_.insert(*name);
      return;
    }
    e = *around;
    // What stands between this value and the end of its scope comes with it.
    while (isa<LetNode>(e)) {
      const ExprNode* const* next = parent_.find(e);
      auto* l = next == nullptr ? nullptr : as<LetNode>(*next);
      if (l == nullptr || l->body.get() != e) break;
      e = l;
    }
  }
  regions_[e] = {at->span, what, why};
}

// ---- Masks

// Makes the function around a branch one that goes on until its last lane is done. False when it does
// not call itself in tail position, or does something else that lanes must not do twice.
bool BatchAnalysis::mask(const Expr& at) {
  const ExprNode* e = at.get();
  const ExprNode* below = nullptr;
  while (!isa<FunctionNode>(e)) {
    const ExprNode* const* around = parent_.find(e);
    if (around == nullptr) return false;
    below = e;
    e = *around;
  }
  auto* f = static_cast<const FunctionNode*>(e);
  if (masked(*f) != nullptr || !f->type_params.empty() || below != f->body.get()) return false;
  Masked made{f, nullptr};
  if (const std::string* name = function_name_.find(f)) {
    made.name = mod_->find_global_var(*name);
    if (*name == entry_) return false;
  } else {
    const ExprNode* const* l = parent_.find(f);
    if (l == nullptr || !isa<LetNode>(*l)) return false;
    made.name = static_cast<const LetNode*>(*l)->var;
  }
  if (!has_known_sizes(f->body->type)) return false;
  for (const Var& p : f->params) {
    if (!has_known_sizes(p->type)) return false;
  }
  // Tail positions, outer ones first.
  std::vector<const ExprNode*> tails, todo{f->body.get()};
  bool found = false, pure = true;
  size_t calls = 0;
  while (!todo.empty()) {
    const ExprNode* t = todo.back();
    todo.pop_back();
    if (is_leaf(*t)) continue;
    tails.push_back(t);
    found |= t == at.get();
    if (regions_.contains(t)) return false;
    if (const ExprNode* value = returned_value(*t)) {
      todo.push_back(value);
    } else if (auto* l = as<LetNode>(t)) {
      pure &= purity_.of(l->value).pure();
      todo.push_back(l->body.get());
    } else if (auto* i = as<IfNode>(t)) {
      todo.push_back(i->true_branch.get());
      todo.push_back(i->false_branch.get());
    } else if (is_tail_call(*t, made)) {
      ++calls;
    } else {
      pure &= purity_.of(Expr(t)).pure();
    }
  }
  size_t uses = 0;
  post_order(
      f->body,
      [&](const Node& n) {
        for_each_child(n, [&](const NodeRef& child) {
          auto* g = as<GlobalVarNode>(child);
          auto* own = as<GlobalVarNode>(made.name);
          uses += own != nullptr ? g != nullptr && g->name_hint == own->name_hint
                                 : child.get() == made.name.get();
        });
      },
      family::expr);
  if (!found || !pure || calls == 0 || uses != calls) return false;
  for (const ExprNode* t : tails) tail_[t] = static_cast<int>(masked_.size());
  masked_.push_back(made);
  for (size_t i = tails.size(); i-- > 0;) {
    const ExprNode* t = tails[i];
    bool leaves = true;
    if (const ExprNode* value = returned_value(*t)) {
      leaves = leaves_parameters(Expr(value));
    } else if (auto* l = as<LetNode>(t)) {
      leaves = leaves_parameters(l->body);
    } else if (auto* both = as<IfNode>(t)) {
      leaves = leaves_parameters(both->true_branch) && leaves_parameters(both->false_branch);
    } else {
      leaves = !is_tail_call(*t, made);
    }
    if (leaves) leaves_parameters_.insert(t);
  }
  return true;
}

// ---- The whole

LaneType* BatchAnalysis::of(const Expr& e) {
  LaneType*& known = of_[e.get()];
  if (known != nullptr) return known;
  if (auto* g = as<GlobalVarNode>(e)) return visit(g->name_hint).type;
  // A leaf.
  LaneType* made = types_->fresh(e->type);
  return of_[e.get()] = made;
}

const BatchAnalysis::Global& BatchAnalysis::visit(const std::string& name) {
  Global& g = globals_[name];
  if (g.type != nullptr) return g;
  g.function = mod_->find(name);
  std::vector<Type> params;
  for (const Var& p : g.function->params) params.push_back(p->type);
  g.type =
      types_->fresh(func_type(std::move(params), g.function->body->type, g.function->type_params));
  of_[g.function.get()] = g.type;
  waiting_.push_back(name);
  return g;
}

namespace {

// Lanes where axes are.
void add_lanes(LaneTypes& types, LaneType* type, const BatchAxes& axes) {
  if (axes.fields.empty()) {
    if (axes.axis) types.all_of(type, -1);
    return;
  }
  for (size_t i = 0; i < axes.fields.size(); ++i) add_lanes(types, type->parts[i], axes.fields[i]);
}

}  // namespace

void BatchAnalysis::analyze() {
  for (;;) {
    types_ = std::make_unique<LaneTypes>(mod_, lanes_);
    of_.clear();
    globals_.clear();
    const Global& entry = visit(entry_);
    for (size_t i = 0; i < in_.size(); ++i) add_lanes(*types_, entry.type->parts[i], in_[i]);
    result_ = types_->fresh(entry.function->body->type);
    types_->flow(entry.type->result(), result_);
    add_lanes(*types_, result_, out_);
    while (!waiting_.empty()) {
      Global g = globals_[waiting_.back()];
      waiting_.pop_back();
      Constraints(*this).add(g.function, g.type);
    }
    types_->solve();
    std::vector<Conflict> found = conflicts();
    if (found.empty()) return;
    // Outer ones first: what is inside a region parts with it.
    NodeSet inside;
    for (size_t i = found.size(); i-- > 0;) {
      const Conflict& c = found[i];
      if (inside.contains(c.at.get()) || tail_of(*c.at.get()) != nullptr) continue;
      if (c.by_mask && mask(c.at)) continue;
      part(c.at, c.why.what, c.why.why);
      post_order(
          c.at, [&](const Node& n) { inside.insert(&n); }, family::program);
    }
  }
}

std::vector<BatchAnalysis::Conflict> BatchAnalysis::conflicts() {
  std::vector<Conflict> out;
  auto add = [&](const Node& n, std::string what, std::string why, bool by_mask = false) {
    const auto& e = static_cast<const ExprNode&>(n);
    out.push_back({Expr(&e), {e.span, std::move(what), std::move(why)}, by_mask});
  };
  auto check = [&](const Node& n) {
    if (auto* i = as<IfNode>(&n)) {
      if (tail_of(n) != nullptr || !any(i->cond)) return;
      Effects effects = purity_.of(i->true_branch) | purity_.of(i->false_branch);
      if (!is_tensors(*of(Expr(i)))) {
        add(n, "if", "the condition depends on the lane, and the branches give no tensors");
      } else if (!effects.pure() || may_fail_.contains(i->true_branch.get()) ||
                 may_fail_.contains(i->false_branch.get())) {
        bool only_partial = effects.pure() || effects == Effects::partial();
        add(n, "if",
            only_partial ? "the condition depends on the lane, and a branch may fail or not end"
                         : "the condition depends on the lane, and a branch has effects",
            only_partial);
      }
      return;
    }
    auto* c = as<CallNode>(&n);
    if (c == nullptr) return;
    if (auto* op = as<OpNode>(c->op)) {
      if (op->row->effect.get() != Effect::Pure)
        add(n, op->name,
            op->row->effect.get() == Effect::Random ? "it draws random numbers from no key"
                                                    : "it has effects");
      return;
    }
    auto* g = as<GlobalVarNode>(c->op);
    if (g == nullptr || !types_->any(*of(c->op))) return;
    Function f = mod_->find(g->name_hint);
    if (lone_.contains(g->name_hint)) {
      add(n, "@" + g->name_hint, "something in it has to be computed lane by lane");
    } else if (f->has_attr(kCustomGradient)) {
      add(n, "@" + g->name_hint, "it has a gradient of its own");
    } else if (f->is_primitive() || f->has_attr(attr::kExtern) || f->has_attr(attr::kCompiler)) {
      add(n, "@" + g->name_hint, "it is one kernel");
    }
  };
  for (const auto& [name, g] : globals_) {
    // What calls a function that cannot be batched parts around the call.
    if (lone_.contains(name)) continue;
    if (!types_->any(*g.type) && purity_.of_body(g.function).pure()) continue;
    for (const TypeVar& v : g.function->type_params) {
      if (v->kind != Kind::Type && v->kind != Kind::Dim && types_->any(*g.type))
        cannot_batch(codes::batch_function, g.function->span,
                     "@" + name + " is for any shape or dtype",
                     "the type parameter " + v->name_hint,
                     "write the function for the shapes that it is called with");
    }
    post_order_if(
        g.function->body,
        [&](const Node& n) {
          const LaneByLane* r = regions_.find(&n);
          if (r == nullptr) return true;
          for (const Var& v : free_of(n)) {
            if (is_tensors(*of(v)) || !types_->any(*of(v))) continue;
            add(n, r->what, r->why);
            break;
          }
          return false;
        },
        [&](const Node& n) { check(n); }, family::program);
  }
  return out;
}

}  // namespace relay
