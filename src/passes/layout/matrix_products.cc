#include "passes/layout/matrix_products.h"

#include <algorithm>

#include "analysis/calls.h"

namespace relay {

bool by_matrix_unit(const CallNode& c, const Contraction& product, MatrixFactors factors,
                    const Target& target, int64_t times) {
  auto unit = matrix_unit(target, factors);
  if (!unit || c.args.size() != 2 || product.transposed()) return false;
  // Rows may be open, unless windows go over them.
  auto in_window = [&](size_t dim) {
    return std::ranges::any_of(product.operands[0], [&](const Contraction::Axis& axis) {
      return axis.window && axis.has(dim);
    });
  };
  bool constant = true;
  for (size_t d = 0; d < product.dims.size(); ++d) {
    constant = constant && (as_const(product.dims[d].extent) ||
                            (product.dims[d].role == ContractionRole::Row && !in_window(d)));
  }
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
