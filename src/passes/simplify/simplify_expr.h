// SimplifyExpr: rewrites by a table of small rules.
//
// before                                   after
//   add(%x, const(0))                        %x                    (integers)
//   transpose(transpose(%x, p), q)           transpose(%x, p of q)
//   squeeze(expand_dims(%x))                 reshape(%x)
//   add(reshape(nn.matmul(%x, %w)), %b)      reshape(add(nn.matmul(%x, %w), %b))
//   tanh(reshape(nn.matmul(%x, %w)))         reshape(tanh(nn.matmul(%x, %w)))
//   nn.matmul(%x, %c)                        multiply(%x, %c) + 0  (%c one number, %x a column)
//   cast(cast(%x, int32), int8)              cast(%x, int8)        (%x of int16)
//   clip(nn.relu(%x), 0, 6)                  clip(%x, 0, 6)
//
// A rule is a row {name, pattern, rewrite} in simplify/*.cc; every row has a program on which it
// fires and one on which it must not in the tests. Legal: a rule's result has the same type and the
// same bits for every input, NaN, infinities and -0.0 included (so x + 0.0 stays: it turns -0.0
// into 0.0; x - 0.0 does not). Two exceptions: a signalling NaN may become quiet or stay one, and
// x ** 2 becomes x * x, which is correctly rounded where the power is within two units in the last
// place. Operands are dropped (x * 0) only in functions without effects.
// Loses when a result in the middle of a pair is needed by others too and was the cheaper to read.
// Does not evaluate constants (FoldConstant) or look through Lets (ToGraphNormalForm).
#pragma once

#include <string_view>
#include <vector>

#include "passes/pass.h"

namespace relay {

extern const Pass kSimplifyExpr;

// The names of the rules, in the order in which they are tried.
std::vector<std::string_view> simplify_expr_rules();

}  // namespace relay
