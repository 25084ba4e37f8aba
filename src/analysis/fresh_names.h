// Names for new functions of a module.
#pragma once

#include <string>
#include <unordered_map>
#include <unordered_set>

#include "ir/module.h"

namespace relay {

class FreshNames {
 public:
  explicit FreshNames(const Module& mod) {
    for (const GlobalVar& g : mod->global_vars) taken_.insert(g->name_hint);
    for (const TypeData& t : mod->type_definitions) {
      taken_.insert(t->header->name_hint);
      for (const Constructor& c : t->constructors) taken_.insert(c->name_hint);
    }
  }

  // `base`, or `base` with a number, such that neither the module has it nor an earlier call gave
  // it.
  std::string fresh(const std::string& base) {
    if (taken_.insert(base).second) return base;
    int& n = next_[base];
    std::string name;
    do {
      name = base + "_" + std::to_string(++n);
    } while (!taken_.insert(name).second);
    return name;
  }

 private:
  std::unordered_set<std::string> taken_;
  std::unordered_map<std::string, int> next_;
};

}  // namespace relay
