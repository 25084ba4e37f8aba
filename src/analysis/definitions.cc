#include "analysis/definitions.h"

#include "base/budget.h"
#include "ir/op.h"
#include "node/walk.h"

namespace relay {
namespace {

using Which = bool (*)(const OpInfo& row);

bool without_rule(const OpInfo& row) { return !row.compute; }
bool by_definition_only(const OpInfo& row) {
  return !row.gradient && row.gradient.reason() == Absent::Pending;
}

const DefinitionRule* definition_of(const Node& n, Which which = without_rule) {
  auto* c = as<CallNode>(&n);
  auto* op = c == nullptr ? nullptr : as<OpNode>(c->op);
  bool wanted = op != nullptr && op->row->definition && which(*op->row);
  return wanted ? &op->row->definition : nullptr;
}

NodeRef expand_once(const NodeRef& program, Which which) {
  return rewrite(
      program,
      [which](const NodeRef&, NodeRef rebuilt) -> NodeRef {
        const DefinitionRule* definition = definition_of(*rebuilt.get(), which);
        if (definition == nullptr) return rebuilt;
        auto& call = *as<CallNode>(rebuilt);
        BuildAt place(call.span);
        return (*definition)(call);
      },
      family::program);
}

bool has_definitions(const NodeRef& program, Which which) {
  bool found = false;
  post_order(
      program, [&](const Node& n) { found |= definition_of(n, which) != nullptr; },
      family::program);
  return found;
}

NodeRef expand(const NodeRef& program, Which which) {
  NodeRef out = program;
  // A definition may use operators with a definition.
  while (has_definitions(out, which)) {
    check_budget_now();
    out = expand_once(out, which);
  }
  return out;
}

Module expand_functions(const Module& mod, Which which) {
  return map_functions(mod, [&](const GlobalVar&, const Function& f) {
    return cast<FunctionNode>(expand(f, which));
  });
}

}  // namespace

bool has_definitions(const NodeRef& program) { return has_definitions(program, without_rule); }

Expr expand_definitions(const Expr& expr) { return Expr::unchecked(expand(expr, without_rule)); }

Module expand_definitions(const Module& mod) { return expand_functions(mod, without_rule); }

Module expand_for_gradients(const Module& mod) { return expand_functions(mod, by_definition_only); }

Function expand_for_gradients(const Function& f) {
  return cast<FunctionNode>(expand(f, by_definition_only));
}

}  // namespace relay
