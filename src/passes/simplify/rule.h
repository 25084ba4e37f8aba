// One row of SimplifyExpr's table, and what rows share.
#pragma once

#include <functional>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "passes/pattern/dataflow_pattern.h"

namespace relay::simplify {

struct Rule {
  std::string_view name;
  DFPattern pattern;
  // What takes the place of the matched call, or null when the rule does not apply after all. A
  // result of another type is not taken.
  std::function<Expr(const DFMatch& m, const CallNode& root)> rewrite;
  // Operands may go that were computed before: not where they have effects.
  bool drops_operands = false;
};

// Numbers, bits and truth values.
std::vector<Rule> arithmetic_rules();
// Shapes, layouts and dtypes.
std::vector<Rule> shape_rules();

// A call of an operator with some attributes, at the place of another call.
Expr make_call(std::string_view op, std::vector<Expr> args,
               const std::vector<std::pair<std::string, Value>>& attrs, const CallNode& at);

const TensorTypeNode* tensor_of(const Expr& e);
std::optional<std::vector<int64_t>> static_shape(const Expr& e);
// Certainly the same shape, symbolic sizes included; never with `?`.
bool same_shape(const Expr& a, const Expr& b);
Value to_value(const std::vector<int64_t>& list);
// A list of integers; nullopt for None.
std::optional<std::vector<int64_t>> ints_attr(const CallNode& c, std::string_view name);
int64_t int_attr(const CallNode& c, std::string_view name);
double float_attr(const CallNode& c, std::string_view name);
std::string text_attr(const CallNode& c, std::string_view name);

}  // namespace relay::simplify
