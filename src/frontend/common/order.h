// Elements in order, and what runs along an axis.
#pragma once

#include "frontend/common/builder.h"

namespace relay::frontend {

// Elements in order along an axis, and where they were, as int64.
struct Ordered {
  Expr values, places;
};
struct TopSpec {
  int64_t axis = 0;    // in [0, rank)
  bool least = false;  // from the least element on, not from the greatest
};
// The first k elements in order; E0504 for a k out of range.
Ordered top_k(const Builder& build, const Expr& x, int64_t k, const TopSpec& spec);
// The same for a k that is a vector of one element, which a run checks.
Ordered top_k_at_run_time(const Builder& build, const Expr& x, const Expr& k, const TopSpec& spec);
// All elements in order.
Ordered sorted(const Builder& build, const Expr& x, const TopSpec& spec);

enum class Running { Sum, Product };
// The sum or the product of the elements up to each one along an axis, from the end for `reverse`; an `exclusive` one leaves
// out the element itself.
Expr running(const Builder& build, Running kind, const Expr& x, int64_t axis, bool exclusive,
             bool reverse);

}  // namespace relay::frontend
