#include "passes/matrix_products.h"

#include <algorithm>

#include "analysis/calls.h"

namespace relay {

bool by_matrix_unit(const CallNode& c, const Contraction& product, MatrixFactors factors,
                    const Target& target, int64_t times) {
  auto unit = matrix_unit(target, factors);
  if (!unit || c.args.size() != 2 || product.transposed()) return false;
  bool constant = std::ranges::all_of(
      product.dims, [](const Contraction::Dimension& d) { return as_const(d.extent).has_value(); });
  auto column = product.only(ContractionRole::Column);
  if (!constant || !column || !product.only(ContractionRole::Reduced) ||
      product.count(ContractionRole::Group) + product.count(ContractionRole::Batch) > 0 ||
      product.dims.back().role != ContractionRole::Reduced) {
    return false;
  }
  return *as_const(product.dims[*column].extent) >= unit->words / 2 &&
         matrix_words(*unit, *as_const(product.dims.back().extent) * times) != 0;
}

int64_t rows_of(const Contraction& product) {
  int64_t rows = 1;
  for (const Contraction::Dimension& d : product.dims) {
    if (d.role == ContractionRole::Row) rows *= as_const(d.extent).value_or(1);
  }
  return rows;
}

}  // namespace relay
