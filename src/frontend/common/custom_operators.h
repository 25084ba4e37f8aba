// Operators that no front end knows, imported by functions from outside.
//
//   register_custom_operator("tflite", "MyScale", [](const CustomCall& call) { return std::vector{...}; });
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/source.h"
#include "ir/expr.h"

namespace relay {

// A node of a model that is such an operator.
struct CustomCall {
  std::vector<Expr> inputs;  // null for one that is left out
  std::string_view options;  // as the model stores them
  size_t num_outputs = 1;
  Span span;
};
// Gives an expression for each output.
using CustomConverter = std::function<std::vector<Expr>(const CustomCall& call)>;

// Adds or replaces the function for an operator of that name; an empty function removes it.
void register_custom_operator(const std::string& front_end, const std::string& name,
                              CustomConverter convert);
// Empty where there is none.
CustomConverter custom_operator(std::string_view front_end, std::string_view name);

}  // namespace relay
