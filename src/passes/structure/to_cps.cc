#include "passes/structure/to_cps.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "analysis/fresh_names.h"
#include "analysis/function_types.h"
#include "analysis/primitives.h"
#include "ir/type_params.h"
#include "node/walk.h"
#include "passes/structure/to_a_normal_form.h"
#include "types/eta_expansion.h"

namespace relay {
namespace {

// Marks a function in continuation-passing style.
constexpr const char* kCps = "CPS";

// A call that does not only compute: of a function, not of an operator, constructor or kernel.
bool is_function_call(const Node& n) {
  auto* c = as<CallNode>(&n);
  return c != nullptr && !isa<OpNode>(c->op) && !isa<ConstructorNode>(c->op) &&
         as_primitive(c->op.get()) == nullptr;
}

FuncType continuation_type(const Type& value, const TypeVar& answer) {
  return func_type({value}, answer);
}

// Function types with a continuation, for one type of answers.
class CpsTypes {
 public:
  explicit CpsTypes(TypeVar answer) : answer_(std::move(answer)) {}

  Type operator()(const Type& t) {
    if (!mentions_function(t)) return t;
    NodeRef& known = known_[t.get()];
    if (known) return Type::unchecked(known);
    keep_.push_back(t);
    known = rewrite(
        t,
        [&](const NodeRef&, NodeRef rebuilt) -> NodeRef {
          auto* f = as<FuncTypeNode>(rebuilt);
          if (f == nullptr) return rebuilt;
          std::vector<Type> args = f->arg_types;
          args.push_back(continuation_type(f->ret_type, answer_));
          return func_type(std::move(args), answer_, f->type_params, f->type_constraints);
        },
        family::type);
    return Type::unchecked(known);
  }

  const TypeVar& answer() const { return answer_; }

 private:
  TypeVar answer_;
  std::unordered_map<const Node*, NodeRef> known_;
  std::vector<NodeRef> keep_;
};

using CpsNames = std::unordered_map<std::string, GlobalVar>;

// Converts one function in A-normal form. Blocks are found from the outside in, each with the
// continuation that it gives its value to, and written from the inside out.
class Converter {
 public:
  Converter(const CpsNames& names, TypeVar answer) : names_(names), types_(std::move(answer)) {}

  Function run(const Function& f) {
    find_calls(f);
    Var k = continuation("k", f->body->type);
    find_blocks(f->body, k);
    for (size_t i = blocks_.size(); i-- > 0;) blocks_[i].result = write(blocks_[i]);
    std::vector<TypeVar> type_params = f->type_params;
    type_params.push_back(types_.answer());
    Dict attrs = f->attrs;
    attrs.erase(attr::kGlobalSymbol);
    attrs.insert_or_assign(kCps, AttrValue(int64_t{1}));
    return finish(*f.get(), k, blocks_[0].result, std::move(type_params), std::move(attrs));
  }

 private:
  struct Block {
    Expr body;
    Var k;  // null: the value is the block's
    Expr result;
  };

  // What is written in several blocks.
  struct Parts {
    std::vector<size_t> blocks;  // of a function, a branch or a match, in order
    Var k;                       // a function's, or that of what follows a branch
  };

  void find_calls(const Function& f) {
    post_order(
        f,
        [&](const Node& n) {
          bool calls = is_function_call(n);
          if (!isa<FunctionNode>(&n)) {
            for_each_child(n, [&](const NodeRef& c) { calls |= calls_.contains(c.get()); });
          }
          if (calls) calls_.insert(&n);
        },
        family::program);
  }

  Var continuation(std::string name, const Type& value) {
    return var(std::move(name), continuation_type(types_(value), types_.answer()));
  }

  size_t add_block(const Expr& body, const Var& k) {
    blocks_.push_back({body, k, nullptr});
    return blocks_.size() - 1;
  }

  static bool is_last(const LetNode& l) { return l.body == l.var; }

  void find_blocks(const Expr& body, const Var& k) {
    add_block(body, k);
    for (size_t b = 0; b < blocks_.size(); ++b) {
      Var own = blocks_[b].k;
      for (const Expr* at = &blocks_[b].body; isa<LetNode>(*at);) {
        // `blocks_` grows, so nothing refers into it; the Lets are the program's.
        auto* l = as<LetNode>(*at);
        at = &l->body;
        Parts parts;
        bool calls = calls_.contains(l->value.get());
        if (auto* f = as<FunctionNode>(l->value); f != nullptr && !f->is_primitive()) {
          parts.k = continuation("k", f->body->type);
          parts.blocks = {add_block(f->body, parts.k)};
        } else if (auto* i = as<IfNode>(l->value)) {
          if (calls) parts.k = is_last(*l) && own ? own : continuation("rest", l->value->type);
          parts.blocks = {add_block(i->true_branch, parts.k)};
          parts.blocks.push_back(add_block(i->false_branch, parts.k));
        } else if (auto* m = as<MatchNode>(l->value)) {
          if (calls) parts.k = is_last(*l) && own ? own : continuation("rest", l->value->type);
          for (const Clause& c : m->clauses) parts.blocks.push_back(add_block(c->rhs, parts.k));
        } else {
          continue;
        }
        parts_.emplace(l->value.get(), std::move(parts));
      }
    }
  }

  // A variable with its type in the new style.
  NodeRef converted(const NodeRef& n) {
    auto* v = as<VarNode>(n);
    if (v == nullptr) return isa<TypeNode>(n) ? NodeRef(types_(Type::unchecked(n))) : n;
    Type type = types_(v->type);
    if (type == v->type) return n;
    NodeRef& known = vars_[v];
    if (!known) known = var(v->name_hint, type, v->span);
    return known;
  }

  Expr atom(const Expr& e) { return Expr::unchecked(converted(e)); }

  Pattern pattern(const Pattern& p) {
    return cast<PatternNode>(rewrite(
        p, [&](const NodeRef&, NodeRef rebuilt) { return converted(rebuilt); }, family::program));
  }

  const Expr& result(size_t block) const { return blocks_[block].result; }

  Function finish(const FunctionNode& f, const Var& k, const Expr& body,
                  std::vector<TypeVar> type_params, Dict attrs) {
    std::vector<Var> params;
    for (const Var& p : f.params) params.push_back(cast<VarNode>(converted(p)));
    params.push_back(k);
    return function(std::move(params), body, body->type, std::move(type_params), std::move(attrs),
                    f.span);
  }

  // The value of a Let that does not call.
  Expr value(const Expr& e) {
    if (isa<VarNode>(e)) return atom(e);
    auto it = parts_.find(e.get());
    if (it != parts_.end()) return in_parts(e, it->second);
    std::vector<NodeRef> children = children_of(*e.get());
    for (NodeRef& c : children) {
      if (as_primitive(c.get()) == nullptr) c = converted(c);
    }
    return as_primitive(e.get()) != nullptr ? e : Expr::unchecked(with_children(e, children));
  }

  Expr in_parts(const Expr& e, const Parts& parts) {
    if (auto* f = as<FunctionNode>(e)) {
      return finish(*f, parts.k, result(parts.blocks[0]), f->type_params, f->attrs);
    }
    if (auto* i = as<IfNode>(e)) {
      return if_(atom(i->cond), result(parts.blocks[0]), result(parts.blocks[1]), i->span);
    }
    auto* m = as<MatchNode>(e);
    std::vector<Clause> clauses;
    for (size_t c = 0; c < m->clauses.size(); ++c) {
      clauses.push_back(clause(pattern(m->clauses[c]->lhs), result(parts.blocks[c])));
    }
    return match(atom(m->data), std::move(clauses), m->complete, m->span);
  }

  // What comes after the Let, as a function of its value.
  Expr rest_after(const LetNode& l, const Expr& rest) {
    return function({cast<VarNode>(converted(l.var))}, rest, rest->type, {}, {}, l.span);
  }

  Expr call_with(const CallNode& c, const Expr& k) {
    std::vector<Expr> args;
    for (const Expr& a : c.args) args.push_back(atom(a));
    std::vector<Type> type_args;
    for (const Type& t : c.type_args) type_args.push_back(types_(t));
    auto* g = as<GlobalVarNode>(c.op);
    if (g == nullptr) {
      args.push_back(k);
      return call(atom(c.op), std::move(args), nullptr, c.span, std::move(type_args));
    }
    auto known = names_.find(g->name_hint);
    if (known == names_.end()) {
      Expr direct = call(c.op, std::move(args), nullptr, c.span, std::move(type_args));
      Var v = var("r", direct->type, c.span);
      return let(v, direct, call(k, {v}, nullptr, c.span), c.span);
    }
    args.push_back(k);
    // Without the others, which the arguments tell, the answer is told by them too.
    auto* type = as<FuncTypeNode>(g->type);
    if (type_args.size() == type->type_params.size()) type_args.push_back(types_.answer());
    return call(known->second, std::move(args), nullptr, c.span, std::move(type_args));
  }

  Expr write(const Block& b) {
    std::vector<const LetNode*> lets;
    const Expr* at = &b.body;
    for (; isa<LetNode>(*at); at = &as<LetNode>(*at)->body) lets.push_back(as<LetNode>(*at));
    bool gives_last =
        b.k && !lets.empty() && is_last(*lets.back()) && calls_.contains(lets.back()->value.get());
    Expr out;
    if (gives_last) {
      const Expr& last = lets.back()->value;
      auto* c = as<CallNode>(last);
      out = c != nullptr ? call_with(*c, b.k) : in_parts(last, parts_.at(last.get()));
      lets.pop_back();
    } else {
      out = b.k ? Expr(call(b.k, {atom(*at)}, nullptr, (*at)->span)) : atom(*at);
    }
    for (size_t i = lets.size(); i-- > 0;) {
      const LetNode& l = *lets[i];
      if (!calls_.contains(l.value.get())) {
        out = let(cast<VarNode>(converted(l.var)), value(l.value), out, l.span);
      } else if (auto* c = as<CallNode>(l.value)) {
        out = call_with(*c, rest_after(l, out));
      } else {
        const Parts& parts = parts_.at(l.value.get());
        out = let(parts.k, rest_after(l, out), in_parts(l.value, parts), l.span);
      }
    }
    return out;
  }

  const CpsNames& names_;
  CpsTypes types_;
  std::unordered_set<const Node*> calls_;  // what calls a function when it is evaluated
  std::vector<Block> blocks_;
  std::unordered_map<const Node*, Parts> parts_;
  std::unordered_map<const Node*, NodeRef> vars_;
};

// A name for the type of the answers that no type parameter in the function has.
std::string answer_name(const Function& f) {
  std::unordered_set<std::string> taken;
  post_order(
      f,
      [&](const Node& n) {
        if (auto* v = as<TypeVarNode>(&n)) taken.insert(v->name_hint);
      },
      family::program | family::type | family::dim | family::attrs);
  std::string name = "R";
  for (int i = 1; taken.contains(name); ++i) name = "R" + std::to_string(i);
  return name;
}

// Which functions can be converted: all types that they handle can follow, and they hand no
// function to one that stays.
class ConvertibleFunctions {
 public:
  ConvertibleFunctions(const Module& mod, const Module& expanded) {
    FunctionalData data(mod);
    std::vector<std::vector<size_t>> callers(mod->functions.size());
    std::unordered_map<std::string, size_t> index;
    for (size_t i = 0; i < mod->functions.size(); ++i) {
      index.emplace(mod->global_vars[i]->name_hint, i);
    }
    can_.assign(mod->functions.size(), true);
    std::vector<size_t> out;
    auto exclude = [&](size_t i) {
      if (can_[i]) out.push_back(i);
      can_[i] = false;
    };
    for (size_t i = 0; i < mod->functions.size(); ++i) {
      const Function& f = expanded->functions[i];
      if (f->is_primitive() || f->has_attr(attr::kCompiler) || f->has_attr(attr::kExtern) ||
          f->has_attr(kCps) || is_wrapper(mod, f)) {
        exclude(i);
        continue;
      }
      post_order(
          f,
          [&](const Node& n) {
            if (auto* g = as<GlobalVarNode>(&n)) callers[index.at(g->name_hint)].push_back(i);
            auto* e = n.info().family == family::expr ? static_cast<const ExprNode*>(&n) : nullptr;
            if (e != nullptr && e->type && data.mentioned_in(e->type)) exclude(i);
          },
          family::program);
    }
    while (!out.empty()) {
      size_t i = out.back();
      out.pop_back();
      if (!mentions_function(signature(mod, i))) continue;
      for (size_t caller : callers[i]) exclude(caller);
    }
  }

  bool contains(size_t i) const { return can_[i]; }

  // Parameters and result, as one type.
  static Type signature(const Module& mod, size_t i) {
    const FunctionNode& f = *mod->functions[i].get();
    std::vector<Type> types{f.body->type};
    for (const Var& p : f.params) types.push_back(p->type);
    return tuple_type(std::move(types));
  }

 private:
  static bool is_wrapper(const Module& mod, const Function& f) {
    auto* c = as<CallNode>(f->body);
    auto* g = c == nullptr ? nullptr : as<GlobalVarNode>(c->op);
    Function callee = g == nullptr ? nullptr : mod->find(g->name_hint);
    return callee && callee->has_attr(kCps);
  }

  std::vector<bool> can_;
};

Module run_to_cps(const Module& mod, PassContext&) { return to_cps(mod); }

}  // namespace

Module to_cps(const Module& mod) {
  // Functions of the module and constructors are called where they are named.
  Module expanded = eta_expand(mod, true, true);
  ConvertibleFunctions candidates(mod, expanded);
  FreshNames fresh(mod);
  CpsNames names;
  std::vector<TypeVar> answers(mod->functions.size());
  for (size_t i = 0; i < mod->functions.size(); ++i) {
    if (!candidates.contains(i)) continue;
    const FunctionNode& f = *mod->functions[i].get();
    answers[i] = type_var(answer_name(expanded->functions[i]));
    CpsTypes types(answers[i]);
    std::vector<Type> args;
    for (const Var& p : f.params) args.push_back(types(p->type));
    args.push_back(continuation_type(types(f.body->type), answers[i]));
    std::vector<TypeVar> type_params = f.type_params;
    type_params.push_back(answers[i]);
    const std::string& name = mod->global_vars[i]->name_hint;
    names.emplace(name, global_var(fresh.fresh(name + "_cps"),
                                   func_type(std::move(args), answers[i], std::move(type_params))));
  }
  if (names.empty()) return mod;
  std::vector<GlobalVar> globals;
  std::vector<Function> functions;
  for (size_t i = 0; i < mod->functions.size(); ++i) {
    const Function& f = mod->functions[i];
    globals.push_back(mod->global_vars[i]);
    functions.push_back(f);
    if (!candidates.contains(i)) continue;
    const GlobalVar& cps = names.at(mod->global_vars[i]->name_hint);
    globals.push_back(cps);
    functions.push_back(Converter(names, answers[i]).run(to_a_normal_form(expanded->functions[i])));
    if (mentions_function(ConvertibleFunctions::signature(mod, i))) continue;
    Function wrapper = un_cps(cps);
    functions[functions.size() - 2] = function(wrapper->params, wrapper->body, wrapper->ret_type,
                                               wrapper->type_params, f->attrs, f->span);
  }
  return make_module(std::move(globals), std::move(functions), mod->type_definitions, mod->attrs);
}

Function un_cps(const Expr& callee) {
  auto* type = as<FuncTypeNode>(callee->type);
  RELAY_CHECK(type != nullptr && !type->type_params.empty() && !type->arg_types.empty());
  auto* k = as<FuncTypeNode>(type->arg_types.back());
  RELAY_CHECK(k != nullptr && k->arg_types.size() == 1 && k->ret_type == type->type_params.back());
  // The callee's parameters stay its own.
  TypeParams renamed;
  std::vector<TypeVar> type_params;
  for (size_t i = 0; i + 1 < type->type_params.size(); ++i) {
    const TypeVar& p = type->type_params[i];
    type_params.push_back(type_var(p->name_hint, p->kind));
    renamed[p.get()] = type_params.back();
  }
  Type result = with_type_params(k->arg_types[0], renamed);
  std::vector<Var> params;
  for (size_t i = 0; i + 1 < type->arg_types.size(); ++i) {
    params.push_back(
        var("p" + std::to_string(i), with_type_params(type->arg_types[i], renamed), callee->span));
  }
  std::vector<Expr> args(params.begin(), params.end());
  Var r = var("r", result, callee->span);
  args.push_back(function({r}, r, result));
  std::vector<Type> type_args(type_params.begin(), type_params.end());
  type_args.push_back(result);
  Expr body = call(callee, std::move(args), nullptr, callee->span, std::move(type_args));
  return function(std::move(params), body, result, std::move(type_params), {}, callee->span);
}

const Pass kToCPS{
    "ToCPS",   1, Form::any, Form::any, "Puts functions into continuation-passing style.",
    run_to_cps};

}  // namespace relay
