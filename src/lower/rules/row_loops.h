// Products of rows with rows as loops: what rules for them ask of a block.
#pragma once

#include <optional>

#include "lower/rules/common.h"
#include "target/rows_by_rows.h"

namespace relay {

// The product that the block sums in `spatial` loops, over rows and then columns, and one loop of the sum; nullopt where the
// block is no sum of products in such loops, or a size is 0. Open rows that the function bounds count
// as that many.
std::optional<RowsByRows> rows_by_rows(const tir::Schedule& s, const tir::BlockRV& sum,
                                       size_t spatial);

// How many rows the kernel for few of them serves, by the rule "row_products": of a function whose one open size is the
// number of rows of a product. Nullopt for other functions, and where a kernel for any number is as fast for few.
std::optional<int64_t> few_rows_of_product(const tir::PrimFunc& f, const Target& target);

// The same by the rule "panel_products" for a matrix with its columns last, which the other kernel reads in place.
std::optional<int64_t> few_rows_beside_panels(const tir::PrimFunc& f, const Target& target);

}  // namespace relay
