#include "passes/gradient/first_order_gradient.h"

#include "analysis/definitions.h"
#include "grad/dataflow.h"

namespace relay {
namespace {

Module run_first_order_gradient(const Module& mod, PassContext&) {
  std::vector<GlobalVar> names;
  std::vector<Function> functions;
  for (size_t i = 0; i < mod->functions.size(); ++i) {
    Function f = mod->functions[i];
    if (!f->is_primitive() && !f->has_attr(attr::kExtern))
      f = first_order_gradient(expand_for_gradients(f));
    names.push_back(global_var(mod->global_vars[i]->name_hint, f->type));
    functions.push_back(f);
  }
  return make_module(std::move(names), std::move(functions), mod->type_definitions, mod->attrs);
}

}  // namespace

const Pass kFirstOrderGradient{"FirstOrderGradient",
                               0,
                               Form::any,
                               Form::any,
                               "Makes gradients of functions that are plain dataflow.",
                               run_first_order_gradient,
                               {},
                               /*keeps_meaning=*/false};

}  // namespace relay
