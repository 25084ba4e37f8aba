// PyTorch's symbolic expressions as Relay's dimensions.
//
//   parse_size("Add(Mul(Integer(2), Symbol('s0', integer=True)), Integer(1))", symbols, span)   // 2 * s0 + 1
//   parse_size("(s0//2)", symbols, span)                                                        // s0 // 2
//
// Both forms that sympy prints are read: that of `srepr`, which archives have, and the mathematical one.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "frontend/torch/schema.h"
#include "ir/type.h"

namespace relay::frontend::torch {

// The dimension of a symbol; `?` for one that only a run knows.
using Symbols = std::function<Dim(const std::string& name)>;

// E0507 for what is no expression, E0505 for a function that no dimension says, E0506 for parentheses beyond 100 levels.
Dim parse_size(std::string_view text, const Symbols& symbols, const Span& span);
Dim size_of(const SizeText& size, const Symbols& symbols, const Span& span);
// The symbol that the text is; empty for other expressions.
std::string symbol_of(const SizeText& size);

}  // namespace relay::frontend::torch
