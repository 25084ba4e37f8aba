// The work of a kernel whose sizes a run says: operations and bytes, as formulas of these sizes.
//
//   OpenWork w = open_work(*primitive.get());
//   w.flops   2*n*m*512 + 3*n*m: a sum of products of numbers and sizes
//
// The formulas count what ComposedKernel::flops and bytes count where all sizes are numbers. How many
// operations a call has is the operator's column `cost`, a number for sizes that are numbers. It is
// asked for some of them: where its answers are those of one product of powers, that is the formula,
// checked at sizes that it was not made of.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ir/expr.h"

namespace relay {

struct OpenWork {
  struct Product {
    double number = 1;
    std::vector<Dim> sizes;
  };
  using Sum = std::vector<Product>;

  // Nothing where it is no sum of products, or of sizes that are not named.
  std::optional<Sum> flops;
  std::optional<Sum> bytes;
};

// Of a primitive function that is a kernel's.
OpenWork open_work(const FunctionNode& primitive);

// Adds the products of `more`.
void add_to(OpenWork::Sum& sum, const OpenWork::Sum& more);

// "3*n*m + 64", for people.
std::string to_string(const OpenWork::Sum& sum);

// A size for machines: numbers, places among `names`, and operators behind their two operands: with
// the name n, (n - 1) // 2 is {"#0", "1", "-", "2", "//"}. Empty where it is of other names.
std::vector<std::string> in_postfix(const Dim& size, const std::vector<Dim>& names);

}  // namespace relay
