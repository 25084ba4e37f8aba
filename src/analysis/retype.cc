#include "analysis/retype.h"

#include <algorithm>

#include "node/walk.h"

namespace relay {

Type Retyper::type(const Type& t) {
  auto it = types_.find(t.get());
  if (it != types_.end()) return it->second;
  keep_.push_back(t);
  return types_[t.get()] = retype(t);
}

std::vector<Type> Retyper::types(const std::vector<Type>& list) {
  std::vector<Type> out;
  for (const Type& t : list) out.push_back(type(t));
  return out;
}

NodeRef Retyper::now(const NodeRef& n) {
  if (!n) return n;
  if (isa<TypeNode>(n)) return type(Type::unchecked(n));
  if (auto* g = as<GlobalVarNode>(n)) return retype_global(ref(*g));
  auto it = made_.find(n.get());
  if (it != made_.end()) return it->second;
  auto* v = as<VarNode>(n);
  if (v == nullptr) return n;
  Type t = type(v->type);
  keep_.push_back(n);
  NodeRef out = t == v->type ? n : NodeRef(var(v->name_hint, t, v->span));
  made_[v] = out;
  return out;
}

Expr Retyper::rewritten(const Expr& e) { return Expr::unchecked(now(e)); }

void Retyper::fit_uses(const Node& n, std::vector<NodeRef>& children) {
  auto fit = [&](const Expr& e, const Type& to) -> Expr {
    return e->type == to ? rewritten(e) : retype_use(rewritten(e), e->type, to);
  };
  auto put = [&](const NodeRef& was, const NodeRef& is) {
    std::replace(children.begin(), children.end(), now(was), is);
  };
  if (auto* i = as<IfNode>(&n)) {
    put(i->true_branch, fit(i->true_branch, i->type));
    put(i->false_branch, fit(i->false_branch, i->type));
  } else if (auto* l = as<LetNode>(&n)) {
    put(l->value, fit(l->value, l->var->type));
  } else if (auto* m = as<MatchNode>(&n)) {
    for (const Clause& c : m->clauses) {
      Clause made = cast<ClauseNode>(now(c));
      Expr rhs = fit(c->rhs, m->type);
      if (rhs != made->rhs) put(c, clause(made->lhs, rhs));
    }
  }
}

std::vector<Var> Retyper::rewritten(const std::vector<Var>& vars) {
  std::vector<Var> out;
  for (const Var& v : vars) out.push_back(cast<VarNode>(now(v)));
  return out;
}

Expr Retyper::rewrite_body(const Function& f) {
  keep_.push_back(f);
  post_order(
      f->body,
      [&](const Node& n) {
        if (isa<VarNode>(&n) || isa<GlobalVarNode>(&n)) return;
        if (auto* c = as<ConstantNode>(&n)) {
          made_[c] = retype_constant(ref(*c));
          return;
        }
        if (auto* c = as<ConstructorNode>(&n)) {
          made_[c] = retype_constructor(ref(*c));
          return;
        }
        if (auto* c = as<CallNode>(&n)) {
          std::vector<Expr> args;
          for (const Expr& a : c->args) args.push_back(rewritten(a));
          made_[c] = retype_call(*c, std::move(args));
          return;
        }
        std::vector<NodeRef> children = children_of(n);
        for (NodeRef& c : children) c = now(c);
        fit_uses(n, children);
        made_[&n] = with_children(NodeRef(&n), children);
      },
      family::program);
  return rewritten(f->body);
}

}  // namespace relay
