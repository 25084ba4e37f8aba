#include "grad/let_chains.h"

#include "node/walk.h"

namespace relay {
namespace {}  // namespace

LetChains::LetChains(const Function& f) : function_(f) {
  post_order(
      f->body,
      [&](const Node& n) {
        for_each_child(n, [&](const NodeRef& c) { ++edges_[c.get()]; });
        auto* l = as<LetNode>(&n);
        if (l != nullptr && isa<LetNode>(l->body)) inner_.insert(l->body.get());
      },
      family::program);
}

int LetChains::uses(const Node* n) const {
  auto it = edges_.find(n);
  return it == edges_.end() ? 0 : it->second;
}

Function LetChains::rewritten(const std::function<Lets(Lets chain)>& rewrite_chain) const {
  auto chain = [&](const Expr& first) {
    Lets all;
    Expr rest = first;
    while (auto* l = as<LetNode>(rest)) {
      all.emplace_back(l->var, l->value);
      rest = Expr(l->body);
    }
    Lets out = rewrite_chain(all);
    if (out == all) return first;
    for (size_t i = out.size(); i-- > 0;) rest = let(out[i].first, out[i].second, rest);
    return rest;
  };
  Expr body = cast<ExprNode>(rewrite(
      function_->body,
      [&](const NodeRef& original, NodeRef rebuilt) -> NodeRef {
        const bool first = isa<LetNode>(original) && !inner_.contains(original.get());
        return first ? NodeRef(chain(cast<ExprNode>(rebuilt))) : rebuilt;
      },
      family::program));
  if (body == function_->body) return function_;
  return function(function_->params, body, function_->ret_type, function_->type_params,
                  function_->attrs, function_->span);
}

}  // namespace relay
