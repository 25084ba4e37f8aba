#include "types/eta_expansion.h"

namespace relay {

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

}  // namespace relay
