// Sums of products over named axes.
#pragma once

#include <string>
#include <vector>

#include "frontend/common/builder.h"

namespace relay::frontend {

// numpy's einsum: "bij,bjk->bik", with or without "->" and its result, and with "..." for axes that broadcast. Operands
// are contracted from left to right, each pair as a batched matrix product. E0504 for an equation that does not fit.
Expr einsum(const Builder& build, std::string equation, const std::vector<Expr>& operands);

}  // namespace relay::frontend
