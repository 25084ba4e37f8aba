// One row of SimplifyExpr's table.
#pragma once

#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "analysis/calls.h"
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

// Whether every value of a dtype lies in [low, high].
bool covers(double low, double high, DType dtype);

// The value that all elements have, to the bit, of a constant or of what fills a tensor.
std::optional<double> uniform(const Expr& e);

// Numbers, bits and truth values.
std::vector<Rule> arithmetic_rules();
// Shapes, layouts and dtypes.
std::vector<Rule> shape_rules();
// Sums of products.
std::vector<Rule> product_rules();
// Tensors that are put together of parts.
std::vector<Rule> part_rules();
// Scans, selections and copies.
std::vector<Rule> order_rules();
// A reshape for changes of the order of axes that undo each other behind one.
Rule permuted_view_rule();

}  // namespace relay::simplify
