// Functions that are given as text: templates of expressions, and patterns.
//
//   Function f = read_function("mylib.op, definition", "fn (%x) { multiply(%x, sigmoid(%x)) }", 1);
//   Expr e = instantiated(f, {x});
//   FunctionPattern p = function_pattern(f, {});
#pragma once

#include <set>
#include <string>
#include <vector>

#include "ir/expr.h"
#include "passes/pattern/dataflow_pattern.h"

namespace relay::extend {

// The function of a text. Its parameters need no types: an expression that is made of it has those of its arguments.
// `what` is how errors call the text. Throws what the parser does, and UserError E1305 for a text that is not a function of
// `params` parameters.
Function read_function(const std::string& what, const std::string& text, size_t params);

// The body of the function for arguments of known types, typed. Only the body is looked at, however large the arguments
// are.
Expr instantiated(const Function& f, const std::vector<Expr>& args);

// What looks like the body of a function.
struct FunctionPattern {
  DFPattern pattern;
  std::vector<DFPattern> params;
};

// A parameter stands for anything, or for a constant where `constants` has its name. Attributes are compared where they
// are not the operator's defaults. Throws UserError E0316 for what no pattern says: bindings, functions, matches, and
// parameters that do not occur.
FunctionPattern function_pattern(const Function& f, const std::set<std::string>& constants);

}  // namespace relay::extend
