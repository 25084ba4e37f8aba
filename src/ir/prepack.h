// Inputs that are prepacked: a caller sets them once for many runs, as weights that are no constants.
//
//   def @main(%x: Tensor[(8, 64), float32], %w: Tensor[(32, 64), float32], prepack=["w"]) {
//     nn.dense(%x, %w)
//   }
//
// It changes nothing about what the function computes, only when: what follows from prepacked inputs
// alone, such as a weight in the panels that kernels read, becomes a function of its own
// (passes/layout/prepack_inputs.h), which is run once.
#pragma once

#include <string>
#include <vector>

#include "ir/module.h"

namespace relay {

namespace attr {
inline constexpr const char* kPrepack = "prepack";
}

// The name of the function that computes what follows from prepacked inputs of `function` alone.
std::string prepack_function(const std::string& function);

// What the function's attribute says, in its order; without one nothing.
std::vector<Var> prepacked_params(const FunctionNode& f);

// Throws UserError, for all functions of the module: E1401 for a parameter that is not there or named
// twice, or an attribute of another form; E1402 for one of another type than a tensor of numbers of known sizes, or that
// is donated; E1403 where a function of the module calls the one with the attribute.
void check_prepacking(const Module& mod);

// The module with inputs of @main prepacked, by the names that callers know. Throws as above.
Module with_prepacked(const Module& mod, const std::vector<std::string>& names);

}  // namespace relay
