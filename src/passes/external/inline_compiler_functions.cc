#include "passes/external/inline_compiler_functions.h"

#include <unordered_map>
#include <vector>

#include "analysis/size_hints.h"
#include "base/codes/passes.h"
#include "ir/external.h"
#include "ir/type_params.h"
#include "node/walk.h"

namespace relay {
namespace {

Expr inline_composites(const Expr& body) {
  return cast<ExprNode>(rewrite(
      body,
      [](const NodeRef&, NodeRef rebuilt) -> NodeRef {
        auto* c = as<CallNode>(rebuilt);
        auto* f = c == nullptr ? nullptr : as<FunctionNode>(c->op);
        if (f == nullptr || !f->has_attr(attr::kComposite)) return rebuilt;
        const Expr in_place = inlined(Function(f), c->args);
        return in_place ? NodeRef(in_place) : rebuilt;
      },
      family::program));
}

// The function as one of Relay's own.
Function own(const Function& f, const Expr& body) {
  Dict attrs = f->attrs;
  for (const char* key : {attr::kCompiler, attr::kPrimitive, attr::kGlobalSymbol,
                          attr::kExternalLibrary, attr::kExternalFunction}) {
    attrs.erase(key);
  }
  return function(f->params, body, body->type, f->type_params, std::move(attrs), f->span);
}

Module run_inline_compiler_functions(const Module& mod, PassContext& ctx) {
  std::set<std::string> names;
  if (auto* asked = ctx.asked<ValueList>(kInlineCompilerFunctionsBoundTo, "global_vars")) {
    for (const AttrValue& n : *asked) names.insert(*n.get_if<std::string>());
  }
  for (const std::string& name : names) {
    const Function f = mod->find(name);
    if (f && compiler_of(*f.get()) != nullptr) continue;
    throw UserError(
        Diagnostic(codes::external_codegen, {}, "@" + name + " cannot be put in place of its calls")
            .expected("a function of an external code generator")
            .found(f ? "one of Relay's own" : "no function of that name"));
  }
  return inline_compiler_functions(mod, names);
}

}  // namespace

Function for_arguments(const Function& f, const std::vector<Expr>& args) {
  if (f->type_params.empty()) return f;
  std::vector<Type> wanted, given;
  for (const Var& p : f->params) wanted.push_back(p->type);
  for (const Expr& a : args) given.push_back(a->type);
  auto sizes = solve_type_params(*func_type(wanted, f->body->type, f->type_params).get(), given);
  if (!sizes) return nullptr;
  for (const TypeVar& p : f->type_params) {
    auto found = sizes->find(p.get());
    if (found == sizes->end()) return nullptr;
    const Dim size = dim_argument(found->second);
    if (!size || is_any(size)) return nullptr;
  }
  return for_sizes(f, *sizes);
}

Expr inlined(const Function& f, const std::vector<Expr>& args) {
  const Function known = for_arguments(f, args);
  if (!known) return nullptr;
  std::unordered_map<const Node*, NodeRef> values;
  for (size_t i = 0; i < args.size(); ++i) values[known->params[i].get()] = args[i];
  return cast<ExprNode>(substitute(known->body, values, family::program));
}

Module inline_compiler_functions(const Module& mod, const std::set<std::string>& names) {
  if (names.empty()) return mod;
  std::unordered_map<std::string, Function> bodies;
  for (const std::string& name : names) {
    const Function f = mod->find(name);
    bodies[name] = own(f, inline_composites(f->body));
  }
  std::set<std::string> kept;
  auto in_place = [&](const NodeRef&, NodeRef rebuilt) -> NodeRef {
    auto* c = as<CallNode>(rebuilt);
    auto* g = c == nullptr ? nullptr : as<GlobalVarNode>(c->op);
    auto found = g == nullptr ? bodies.end() : bodies.find(g->name_hint);
    if (found == bodies.end()) return rebuilt;
    const Expr out = inlined(found->second, c->args);
    return out ? NodeRef(out) : rebuilt;
  };
  Module out = map_functions(mod, [&](const GlobalVar& name, const Function& f) {
    auto found = bodies.find(name->name_hint);
    if (found != bodies.end()) return found->second;
    const Function now = cast<FunctionNode>(rewrite(f, in_place, family::program));
    post_order(
        now,
        [&](const Node& n) {
          auto* g = as<GlobalVarNode>(&n);
          if (g != nullptr && names.contains(g->name_hint)) kept.insert(g->name_hint);
        },
        family::program);
    return now;
  });
  std::vector<GlobalVar> globals;
  std::vector<Function> functions;
  for (size_t i = 0; i < out->functions.size(); ++i) {
    const std::string& name = out->global_vars[i]->name_hint;
    if (names.contains(name) && !kept.contains(name)) continue;
    globals.push_back(out->global_vars[i]);
    functions.push_back(out->functions[i]);
  }
  return make_module(std::move(globals), std::move(functions), out->type_definitions, out->attrs);
}

const Pass kInlineCompilerFunctionsBoundTo{
    "InlineCompilerFunctionsBoundTo",
    0,
    Form::any,
    Form::any,
    "Puts functions of external code generators in place of their calls.",
    run_inline_compiler_functions,
    {{"global_vars", PassOption::Type::names, AttrValue(), "Names of the functions."}}};

}  // namespace relay
