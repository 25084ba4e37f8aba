#include "passes/structure/to_a_normal_form.h"

#include "passes/structure/name_values.h"

namespace relay {
namespace {

Module run_to_a_normal_form(const Module& mod, PassContext&) {
  return map_functions(mod, [](const GlobalVar&, const Function& f) {
    return f->is_primitive() ? f : to_a_normal_form(f);
  });
}

}  // namespace

Function to_a_normal_form(const Function& f) {
  return name_values(f, analyze_scopes(*f.get()),
                     {.wanted = [](const ExprNode&) { return true; }, .flatten = true});
}

const Pass kToANormalForm{
    "ToANormalForm",     0, Form::any, Form::anf, "Names every intermediate value.",
    run_to_a_normal_form};

}  // namespace relay
