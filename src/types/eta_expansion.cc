#include "types/eta_expansion.h"

#include <unordered_map>

#include "node/walk.h"

namespace relay {
namespace {

// The function with the callee's own type, which may be polymorphic.
Expr expanded(const Expr& callee) {
  auto* type = as<FuncTypeNode>(callee->type);
  std::unordered_map<const Node*, NodeRef> fresh;
  std::vector<TypeVar> type_params;
  std::vector<Type> type_args, arg_types;
  for (const TypeVar& t : type->type_params) {
    type_params.push_back(type_var(t->name_hint, t->kind));
    type_args.push_back(type_params.back());
    fresh.emplace(t.get(), type_params.back());
  }
  auto own = [&](const Type& t) { return Type::unchecked(substitute(t, fresh)); };
  for (const Type& t : type->arg_types) arg_types.push_back(own(t));
  FuncType as_value = func_type(std::move(arg_types), own(type->ret_type), std::move(type_params));
  return eta_expansion(callee, as_value, std::move(type_args));
}

class Expander : public Rewriter {
 public:
  Expander(bool constructors, bool globals)
      : Rewriter(family::program), constructors_(constructors), globals_(globals) {}

  // Looks from the parent, which knows a callee from a value.
  NodeRef post(const NodeRef&, NodeRef rebuilt) override {
    bool clause = isa<ClauseNode>(rebuilt);
    if (!clause && !isa<ExprNode>(rebuilt)) return rebuilt;
    auto* c = as<CallNode>(rebuilt);
    std::vector<NodeRef> children = children_of(*rebuilt.get());
    for (NodeRef& child : children) {
      if (!wanted(child) || (c != nullptr && child == c->op && &child == &children.front())) {
        continue;
      }
      child = expanded_once(child);
    }
    return with_children(rebuilt, children);
  }

 private:
  bool wanted(const NodeRef& n) const {
    bool kind = (constructors_ && isa<ConstructorNode>(n)) || (globals_ && isa<GlobalVarNode>(n));
    return kind && isa<FuncTypeNode>(static_cast<const ExprNode*>(n.get())->type);
  }

  // One value for all uses in a function.
  NodeRef expanded_once(const NodeRef& n) {
    NodeRef& known = made_[n.get()];
    if (!known) known = expanded(Expr::unchecked(n));
    return known;
  }

  bool constructors_;
  bool globals_;
  std::unordered_map<const Node*, NodeRef> made_;
};

}  // namespace

Function eta_expansion(const Expr& callee, const FuncType& type, std::vector<Type> type_args) {
  std::vector<Var> params;
  std::vector<Expr> args;
  for (const Type& t : type->arg_types) {
    params.push_back(var("p" + std::to_string(params.size()), t, callee->span));
    args.push_back(params.back());
  }
  Call body = call(callee, std::move(args), nullptr, callee->span, std::move(type_args));
  // A result that depends on dimensions or shapes of the callee is not deduced.
  if (!body->type) {
    Node* copy = body->info().clone(*body);
    static_cast<CallNode*>(copy)->type = type->ret_type;
    body = cast<CallNode>(NodeRef(copy));
  }
  return function(std::move(params), body, type->ret_type, type->type_params, {}, callee->span);
}

Module eta_expand(const Module& mod, bool constructors, bool globals) {
  return map_functions(mod, [&](const GlobalVar&, const Function& f) {
    return Expander(constructors, globals).apply(f);
  });
}

}  // namespace relay
