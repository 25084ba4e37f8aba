// Changes of programs that planted faults are made of.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "ir/module.h"

namespace relay::fuzz {

// What an expression becomes; null leaves it.
using Edit = std::function<Expr(const Expr&)>;

Module edited(const Module& mod, const Edit& edit);
// Every expression and pattern, children first.
void visit(const Module& mod, const std::function<void(const Node&)>& f);

bool same_type(const Expr& a, const Expr& b);
Call with_args(const CallNode& c, std::vector<Expr> args);
// The list with the first two neighbours that are different and of one type swapped; null if there
// are none.
std::optional<std::vector<Expr>> swapped(std::vector<Expr> list);
// The call with such arguments swapped; null if there are none.
Expr swap_args(const CallNode& c);

}  // namespace relay::fuzz
