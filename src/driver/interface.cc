#include "driver/interface.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <unordered_set>

#include "ir/text/text.h"
#include "node/walk.h"
#include "types/read_module.h"

namespace relay {
namespace {

// The names of data types, each once.
class Names {
 public:
  // Those that a type mentions; false when there are none.
  bool add_all_in(const Type& type) {
    bool found = false;
    post_order(
        type,
        [&](const Node& n) {
          auto* name = as<GlobalTypeVarNode>(&n);
          if (name == nullptr) return;
          found = true;
          if (known_.insert(name->name_hint).second) all_.push_back(name->name_hint);
        },
        family::type | family::expr);
    return found;
  }

  const std::vector<std::string>& all() const { return all_; }

 private:
  std::vector<std::string> all_;
  std::unordered_set<std::string> known_;
};

// fn (params) { @name(params) }, of the function's type.
Function calls_itself(const GlobalVar& name, const Function& f) {
  std::vector<Var> params;
  for (const Var& p : f->params) params.push_back(var(p->name_hint, p->type));
  std::vector<Type> type_args(f->type_params.begin(), f->type_params.end());
  Expr body = call(name, std::vector<Expr>(params.begin(), params.end()), nullptr, {}, type_args);
  return function(std::move(params), body, f->body->type, f->type_params);
}

}  // namespace

std::string interface_text(const Module& mod, const runtime::Program& program) {
  std::vector<GlobalVar> globals;
  std::vector<Function> functions;
  Names names;
  for (const runtime::Function& compiled : program.functions) {
    Function f = compiled.internal ? nullptr : mod->find(compiled.name);
    if (!f || !names.add_all_in(f->type)) continue;
    globals.push_back(global_var(compiled.name, f->type));
    functions.push_back(calls_itself(globals.back(), f));
  }
  std::vector<TypeData> types;
  for (size_t i = 0; i < names.all().size(); ++i) {
    TypeData t = mod->find_type(names.all()[i]);
    if (!t) continue;
    types.push_back(t);
    names.add_all_in(t);
  }
  if (functions.empty()) return {};
  return print_module(make_module(std::move(globals), std::move(functions), std::move(types)));
}

Module interface_of(const runtime::Module& loaded) {
  auto has_other = [](const std::vector<runtime::Slot>& slots) {
    return !std::ranges::all_of(slots, &runtime::Slot::is_tensor);
  };
  const bool needed =
      std::ranges::any_of(loaded.program().functions, [&](const runtime::Function& f) {
        return !f.internal && (has_other(f.params) || has_other(f.results));
      });
  if (!needed) return nullptr;
  nlohmann::json root = nlohmann::json::parse(loaded.metadata(), nullptr, false);
  auto text = root.is_object() ? root.find("interface") : root.end();
  if (!root.is_object() || text == root.end() || !text->is_string()) return nullptr;
  return read_module(SourceFile::make("<artifact>", text->get<std::string>()));
}

}  // namespace relay
