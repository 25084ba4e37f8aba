// A module: functions and data types by name. Immutable; passes make new ones.
#pragma once

#include <string>
#include <vector>

#include "ir/expr.h"

namespace relay {

struct ModuleNode : Node {
  static constexpr int kKind = 0x400;
  // Parallel lists in definition order; names are unique.
  std::vector<GlobalVar> global_vars;
  std::vector<Function> functions;
  std::vector<TypeData> type_definitions;
  Dict attrs;
  ModuleNode() : Node(static_info()) {}
  static const NodeInfo& static_info();

  // The function of that name, or null. Constant time.
  Function find(std::string_view name) const;
  // The global variable of that name, or null.
  GlobalVar find_global_var(std::string_view name) const;
  TypeData find_type(std::string_view name) const;
  // The constructor of that name in any type, or null.
  Constructor find_constructor(std::string_view name) const;

 private:
  friend Ref<ModuleNode> make_module(std::vector<GlobalVar>, std::vector<Function>,
                                     std::vector<TypeData>, Dict);
  std::map<std::string, size_t, std::less<>> function_index_;
  std::map<std::string, size_t, std::less<>> type_index_;
};
using Module = Ref<ModuleNode>;

// Throws UserError E0104 for a name defined twice.
Module make_module(std::vector<GlobalVar> global_vars, std::vector<Function> functions,
                   std::vector<TypeData> type_definitions = {}, Dict attrs = {});

// A module whose @main is the expression (wrapped into a function if it is none).
Module module_from_expr(const Expr& main);

// The module with each function replaced by `update`'s result; the identical handle when nothing
// changed.
Module map_functions(const Module& mod,
                     const std::function<Function(const GlobalVar&, const Function&)>& update);

// The module with one function added or replaced.
Module with_function(const Module& mod, const GlobalVar& name, const Function& f);

}  // namespace relay
