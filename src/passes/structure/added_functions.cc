#include "passes/structure/added_functions.h"

#include <set>

#include "base/codes/text.h"
#include "node/walk.h"

namespace relay {
namespace {

// The data types that functions of a module mention, and those that these mention.
std::vector<TypeData> mentioned_types(const Module& mod, const Module& known) {
  std::set<std::string> names;
  for (const TypeData& t : known->type_definitions) names.insert(t->header->name_hint);
  auto collect = [&](const NodeRef& root) {
    post_order(root, [&](const Node& n) {
      if (auto* g = as<GlobalTypeVarNode>(&n)) names.insert(g->name_hint);
      auto* e = n.info().family == family::expr ? static_cast<const ExprNode*>(&n) : nullptr;
      if (e == nullptr || !e->type) return;
      post_order(
          e->type,
          [&](const Node& t) {
            if (auto* g = as<GlobalTypeVarNode>(&t)) names.insert(g->name_hint);
          },
          family::type);
    });
  };
  for (const Function& f : mod->functions) collect(f);
  size_t before;
  do {
    before = names.size();
    for (const TypeData& t : mod->type_definitions) {
      if (!names.contains(t->header->name_hint)) continue;
      for (const Constructor& c : t->constructors) collect(c);
    }
  } while (names.size() != before);
  std::vector<TypeData> out;
  for (const TypeData& t : mod->type_definitions) {
    if (names.contains(t->header->name_hint)) out.push_back(t);
  }
  return out;
}

}  // namespace

void check_name_is_free(const Module& mod, const std::string& name) {
  if (!mod->find(name)) return;
  throw UserError(
      Diagnostic(codes::text_duplicate_name, {}, "the module has a function @" + name + " already")
          .help("give what is made another name"));
}

Module with_what_is_new(const Module& mod, const Module& whole) {
  std::vector<GlobalVar> names = mod->global_vars;
  std::vector<Function> functions = mod->functions;
  for (size_t i = 0; i < whole->functions.size(); ++i) {
    if (mod->find(whole->global_vars[i]->name_hint)) continue;
    names.push_back(whole->global_vars[i]);
    functions.push_back(whole->functions[i]);
  }
  Module all = make_module(names, functions, whole->type_definitions, mod->attrs);
  return make_module(names, functions, mentioned_types(all, mod), mod->attrs);
}

}  // namespace relay
