// Which elements of a factor matter to the elements of a sum of products that are asked for.
//
//   nn.dense(%x: (m, k), %w: (n, k)), mask (m, n)     of %x any(mask, axis=[1]) as (m, 1): whole rows
//                                                     of %w any(mask, axis=[0]) as (n, 1)
#pragma once

#include <vector>

#include "ir/contraction.h"

namespace relay {

// A mask that broadcasts to operand `k`, from one that broadcasts to the result; `args` are the
// operands, `sum` is what `call` is as a contraction. Through windows, those elements that a window
// around an element that is asked for reaches.
Expr asked_factor(const CallNode& call, const Contraction& sum, size_t k,
                  const std::vector<Expr>& args, const Expr& mask);

}  // namespace relay
