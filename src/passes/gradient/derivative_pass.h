// The derivative of a function, added to its module and cleaned up.
//
//   add_derivative(mod, mod->find("f"), DerivativeKind::gradient, "g", ctx)      @g in the module
//
// What reverse mode makes of references, closures and data is done at compile time as far as the
// program's own structure decides it (partial_evaluate.h): of a program without recursion nothing of
// it is left. Functions and data types that stay are added under names of their own. Where BatchTrees is
// asked for, recursion over trees is computed depth by depth before it is differentiated.
#pragma once

#include <string>

#include "grad/derivatives.h"
#include "passes/pass.h"

namespace relay {

// With respect to the first `count` parameters. Throws UserError E0104 when the module has a function of that name, and what `derivative` throws.
Module add_derivative(const Module& mod, const Function& f, DerivativeKind kind,
                      const std::string& name, PassContext& ctx, size_t count = kAllParams);
// The same for plain dataflow, by first_order_gradient.
Module add_first_order_gradient(const Module& mod, const Function& f, const std::string& name);

}  // namespace relay
