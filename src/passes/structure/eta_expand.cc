#include "passes/structure/eta_expand.h"

#include "types/eta_expansion.h"

namespace relay {
namespace {

Module run_eta_expand(const Module& mod, PassContext& ctx) {
  return eta_expand(mod, ctx.option<bool>(kEtaExpand, "expand_constructor"),
                    ctx.option<bool>(kEtaExpand, "expand_global_var"));
}

}  // namespace

const Pass kEtaExpand{
    "EtaExpand",
    1,
    Form::any,
    Form::any,
    "Makes functions of constructors and global functions used as values.",
    run_eta_expand,
    {{"expand_constructor", PassOption::Type::boolean, AttrValue(true), "Expand constructors."},
     {"expand_global_var", PassOption::Type::boolean, AttrValue(false),
      "Expand functions of the module."}}};

}  // namespace relay
