#include "types/verify.h"

#include "base/codes/types.h"
#include "node/node_map.h"
#include "node/structural.h"
#include "node/walk.h"

namespace relay {
namespace {

Diagnostic ill_formed(const Span& span, std::string message) {
  return Diagnostic(codes::type_ill_formed, span, std::move(message));
}

// "Function", "TupleGetItem".
std::string kind_name(const Node& n) {
  std::string_view name = n.info().name;
  return std::string(name.substr(name.rfind('.') + 1));
}

// Variables bound by a node, for the scope of that node.
void each_binder(const Node& n, const std::function<void(const Node*)>& visit) {
  for (const Field& f : n.info().fields) {
    if (f.role != Role::binder) continue;
    const void* at = f.in(n);
    for (size_t i = 0; i < f.ops->count(at); ++i) visit(f.ops->get_child(at, i).get());
  }
}

std::optional<Diagnostic> check_function(const Module& mod, const Function& f) {
  std::optional<Diagnostic> problem;
  NodeMap<const Node*> binder_of;
  // First all binders, then uses: a variable is used only below its binder; since every use is
  // reached from the function, it suffices that the binder is reached, and once.
  post_order(
      f,
      [&](const Node& n) {
        if (n.info().family != family::expr && n.info().family != family::pattern) return;
        each_binder(n, [&](const Node* v) {
          if (v == nullptr || v->kind() != ExprKind::Var || problem) return;
          auto [binder, fresh] = binder_of.emplace(v);
          if (fresh) binder = &n;
          if (binder != &n) {
            problem = ill_formed(
                static_cast<const VarNode*>(v)->span,
                "variable %" + static_cast<const VarNode*>(v)->name_hint + " is bound twice");
          }
        });
      },
      family::program);
  if (problem) return problem;
  post_order(
      f,
      [&](const Node& n) {
        if (problem || n.info().family != family::expr) return;
        auto& e = static_cast<const ExprNode&>(n);
        if (auto* v = as<VarNode>(&n)) {
          if (!binder_of.contains(v)) {
            problem = ill_formed(v->span, "variable %" + v->name_hint + " is not bound");
          } else if (!v->type) {
            problem = ill_formed(v->span, "variable %" + v->name_hint + " has no type");
          }
          return;
        }
        if (auto* g = as<GlobalVarNode>(&n)) {
          if (!mod->find(g->name_hint)) {
            problem = ill_formed(g->span, "there is no function @" + g->name_hint);
          }
          return;
        }
        if (isa<OpNode>(&n) || isa<ConstructorNode>(&n)) return;
        if (!e.type) {
          problem = ill_formed(e.span, kind_name(n) + " has no type");
          return;
        }
        Type again;
        try {
          again = deduce_type(e);
        } catch (const UserError& error) {
          problem = error.diagnostics().front();
          return;
        }
        // If only inference can determine it (polymorphic calls), the kept type is used.
        if (again && !(again == e.type) && !structural_equal(again, e.type)) {
          problem = ill_formed(e.span, "the type kept for a " + kind_name(n) +
                                           " is not the one that its parts have");
          problem->expected(to_string(again)).found(to_string(e.type));
        }
      },
      family::program);
  return problem;
}

}  // namespace

std::optional<Diagnostic> find_ill_formed(const Module& mod) {
  for (const Function& f : mod->functions) {
    if (auto problem = check_function(mod, f)) return problem;
  }
  return std::nullopt;
}

}  // namespace relay
