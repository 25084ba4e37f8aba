#include "analysis/definitions.h"

#include "ir/op.h"
#include "node/walk.h"

namespace relay {
namespace {

const DefinitionRule* definition_of(const Node& n) {
  auto* c = as<CallNode>(&n);
  auto* op = c == nullptr ? nullptr : as<OpNode>(c->op);
  return op == nullptr || !op->row->definition ? nullptr : &op->row->definition;
}

NodeRef expand_once(const NodeRef& program) {
  return rewrite(
      program,
      [](const NodeRef&, NodeRef rebuilt) -> NodeRef {
        const DefinitionRule* definition = definition_of(*rebuilt.get());
        if (definition == nullptr) return rebuilt;
        auto& call = *as<CallNode>(rebuilt);
        BuildAt place(call.span);
        return (*definition)(call);
      },
      family::expr | family::pattern);
}

}  // namespace

bool has_definitions(const NodeRef& program) {
  bool found = false;
  post_order(
      program, [&](const Node& n) { found |= definition_of(n) != nullptr; },
      family::expr | family::pattern);
  return found;
}

Expr expand_definitions(const Expr& expr) {
  NodeRef out = expr;
  // A definition may use operators with a definition.
  while (has_definitions(out)) out = expand_once(out);
  return Expr::unchecked(out);
}

Module expand_definitions(const Module& mod) {
  return map_functions(mod, [](const GlobalVar&, const Function& f) {
    return cast<FunctionNode>(expand_definitions(Expr(f)));
  });
}

}  // namespace relay
