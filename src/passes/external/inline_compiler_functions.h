// InlineCompilerFunctionsBoundTo: functions of external code generators become a part of the program again.
//
// before   def @main(%x: float32) { @f(%x) }
//          def @f(%a: float32, Primitive=1, Compiler="dnnl") { fn (%b: float32, Composite="dnnl.relu") { nn.relu(%b) }(%a) }
// after    def @main(%x: float32) { nn.relu(%x) }
//
// Of the functions that `global_vars` names, with the composite functions inside them. A function that is also used as a value
// becomes one of Relay's own.
#pragma once

#include <set>
#include <string>

#include "passes/pass.h"

namespace relay {

extern const Pass kInlineCompilerFunctionsBoundTo;

Module inline_compiler_functions(const Module& mod, const std::set<std::string>& names);

// The function for arguments of these types, without type parameters; null where they do not tell all of them by name.
Function for_arguments(const Function& f, const std::vector<Expr>& args);

// What a call of the function gives, without the call; null as above.
Expr inlined(const Function& f, const std::vector<Expr>& args);

}  // namespace relay
