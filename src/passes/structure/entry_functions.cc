#include "passes/structure/entry_functions.h"

#include "passes/structure/remove_unused_functions.h"

namespace relay {

std::vector<Function> entry_functions(const Module& mod, const PassContext& ctx) {
  std::vector<Function> out;
  auto* names = ctx.asked<ValueList>(kRemoveUnusedFunctions, "entry_functions");
  if (names != nullptr) {
    for (const AttrValue& name : *names) {
      auto* text = name.get_if<std::string>();
      Function f = text == nullptr ? nullptr : mod->find(*text);
      if (f) out.push_back(f);
    }
  } else {
    for (size_t i = 0; i < mod->functions.size(); ++i) {
      const Function& f = mod->functions[i];
      // The symbol of an external code generator's function is between the two of them.
      const bool is_exported = f->has_attr(attr::kGlobalSymbol) && !f->has_attr(attr::kCompiler);
      if (mod->global_vars[i]->name_hint == "main" || is_exported) {
        out.push_back(f);
      }
    }
  }
  return out.empty() ? mod->functions : out;
}

}  // namespace relay
