#include "analysis/function_types.h"

#include <unordered_map>
#include <vector>

#include "node/walk.h"

namespace relay {

bool mentions_function(const Type& t) {
  if (isa<TensorTypeNode>(t)) return false;
  bool any = false;
  post_order(
      t, [&](const Node& n) { any |= isa<FuncTypeNode>(&n); }, family::type);
  return any;
}

FunctionalData::FunctionalData(const Module& mod) {
  std::unordered_map<std::string, std::vector<std::string>> users;
  std::vector<std::string> work;
  for (const TypeData& t : mod->type_definitions) {
    const std::string& name = t->header->name_hint;
    for (const Constructor& c : t->constructors) {
      for (const Type& input : c->inputs) {
        post_order(
            input,
            [&](const Node& n) {
              if (auto* g = as<GlobalTypeVarNode>(&n)) users[g->name_hint].push_back(name);
              if (isa<FuncTypeNode>(&n) && names_.insert(name).second) work.push_back(name);
            },
            family::type);
      }
    }
  }
  while (!work.empty()) {
    std::vector<std::string> next = std::move(users[work.back()]);
    work.pop_back();
    for (const std::string& user : next) {
      if (names_.insert(user).second) work.push_back(user);
    }
  }
}

bool FunctionalData::mentioned_in(const Type& t) const {
  if (names_.empty()) return false;
  bool any = false;
  post_order(
      t,
      [&](const Node& n) {
        auto* g = as<GlobalTypeVarNode>(&n);
        any |= g != nullptr && names_.contains(g->name_hint);
      },
      family::type);
  return any;
}

}  // namespace relay
