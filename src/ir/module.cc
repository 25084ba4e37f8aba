#include "ir/module.h"

#include "base/codes/text.h"

namespace relay {

const NodeInfo& ModuleNode::static_info() {
  static const NodeInfo info = describe<ModuleNode>(
      "IRModule", kKind, family::module,
      {child("global_vars", &ModuleNode::global_vars),
       child("type_definitions", &ModuleNode::type_definitions),
       child("functions", &ModuleNode::functions), attribute("attrs", &ModuleNode::attrs)});
  return info;
}

Function ModuleNode::find(std::string_view name) const {
  auto it = function_index_.find(name);
  return it == function_index_.end() ? nullptr : functions[it->second];
}
GlobalVar ModuleNode::find_global_var(std::string_view name) const {
  auto it = function_index_.find(name);
  return it == function_index_.end() ? nullptr : global_vars[it->second];
}
TypeData ModuleNode::find_type(std::string_view name) const {
  auto it = type_index_.find(name);
  return it == type_index_.end() ? nullptr : type_definitions[it->second];
}
Constructor ModuleNode::find_constructor(std::string_view name) const {
  for (const TypeData& t : type_definitions) {
    for (const Constructor& c : t->constructors) {
      if (c->name_hint == name) return c;
    }
  }
  return nullptr;
}

Module make_module(std::vector<GlobalVar> global_vars, std::vector<Function> functions,
                   std::vector<TypeData> type_definitions, Dict attrs) {
  RELAY_CHECK(global_vars.size() == functions.size());
  return make<ModuleNode>([&](ModuleNode& m) {
    m.global_vars = std::move(global_vars);
    m.functions = std::move(functions);
    m.type_definitions = std::move(type_definitions);
    m.attrs = std::move(attrs);
    for (size_t i = 0; i < m.functions.size(); ++i) {
      const std::string& name = m.global_vars[i]->name_hint;
      if (!m.function_index_.emplace(name, i).second) {
        throw UserError(Diagnostic(codes::text_duplicate_name, m.functions[i]->span,
                                   "the function @" + name + " is defined twice"));
      }
    }
    for (size_t i = 0; i < m.type_definitions.size(); ++i) {
      const std::string& name = m.type_definitions[i]->header->name_hint;
      if (!m.type_index_.emplace(name, i).second) {
        throw UserError(Diagnostic(codes::text_duplicate_name, m.type_definitions[i]->span,
                                   "the type " + name + " is defined twice"));
      }
    }
  });
}

Module module_from_expr(const Expr& main) {
  Function f = isa<FunctionNode>(main) ? cast<FunctionNode>(main) : function({}, main);
  return make_module({global_var("main", f->type)}, {f});
}

Module map_functions(const Module& mod,
                     const std::function<Function(const GlobalVar&, const Function&)>& update) {
  std::vector<Function> functions;
  bool changed = false;
  for (size_t i = 0; i < mod->functions.size(); ++i) {
    functions.push_back(update(mod->global_vars[i], mod->functions[i]));
    changed |= !(functions.back() == mod->functions[i]);
  }
  if (!changed) return mod;
  return make_module(mod->global_vars, std::move(functions), mod->type_definitions, mod->attrs);
}

Module with_function(const Module& mod, const GlobalVar& name, const Function& f) {
  std::vector<GlobalVar> vars = mod->global_vars;
  std::vector<Function> functions = mod->functions;
  for (size_t i = 0; i < vars.size(); ++i) {
    if (vars[i]->name_hint == name->name_hint) {
      if (functions[i] == f) return mod;
      functions[i] = f;
      return make_module(std::move(vars), std::move(functions), mod->type_definitions, mod->attrs);
    }
  }
  vars.push_back(name);
  functions.push_back(f);
  return make_module(std::move(vars), std::move(functions), mod->type_definitions, mod->attrs);
}

}  // namespace relay
