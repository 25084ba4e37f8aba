// Products of rows with rows as loops: what rules for them ask of a block.
#pragma once

#include <optional>

#include "lower/rules/common.h"
#include "target/rows_by_rows.h"

namespace relay {

// The product that the block sums in `spatial` loops, over rows and then columns, and one loop of the sum; nullopt where the
// block is no sum of products in such loops, or a size other than one of rows is open or 0. Open rows that the function bounds
// count as that many.
std::optional<RowsByRows> rows_by_rows(const tir::Schedule& s, const tir::BlockRV& sum,
                                       size_t spatial);

// Of a function with one open size that computes a product of so many rows: the most of them for which the rule "row_products"
// takes less time than those for any number of rows; nullopt where there is none.
std::optional<int64_t> few_rows_of_product(const tir::PrimFunc& f, const Target& target);

}  // namespace relay
