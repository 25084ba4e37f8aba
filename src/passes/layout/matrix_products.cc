#include "passes/layout/matrix_products.h"

#include <algorithm>

#include "analysis/calls.h"
#include "target/rows_by_rows.h"

namespace relay {

namespace {

// A sum of rows by columns, and sizes but those of rows are constants; `in_windows`: which sizes those of rows in windows may be.
struct RowsByColumns {
  int64_t columns, sum;  // `sum`: its last part
};
std::optional<RowsByColumns> rows_by_columns(const CallNode& c, const Contraction& product,
                                             bool (*in_windows)(const Dim& size)) {
  if (c.args.size() != 2 || product.transposed()) return std::nullopt;
  auto in_window = [&](size_t dim) {
    return std::ranges::any_of(product.operands[0], [&](const Contraction::Axis& axis) {
      return axis.window && axis.has(dim);
    });
  };
  bool constant = true;
  for (size_t d = 0; d < product.dims.size(); ++d) {
    constant = constant && (as_const(product.dims[d].extent) ||
                            (product.dims[d].role == ContractionRole::Row &&
                             (!in_window(d) || in_windows(product.dims[d].extent))));
  }
  auto column = product.only(ContractionRole::Column);
  if (!constant || !column || !product.only(ContractionRole::Reduced) ||
      product.count(ContractionRole::Group) + product.count(ContractionRole::Batch) > 0 ||
      product.dims.back().role != ContractionRole::Reduced) {
    return std::nullopt;
  }
  return RowsByColumns{*as_const(product.dims[*column].extent),
                       *as_const(product.dims.back().extent)};
}

}  // namespace

bool by_matrix_unit(const CallNode& c, const Contraction& product, MatrixFactors factors,
                    const Target& target, int64_t times) {
  auto unit = matrix_unit(target, factors);
  if (!unit) return false;
  // A kernel asks for each row of a size that may be negative, such as `n - 2`, and the unit asks nothing.
  auto sizes = rows_by_columns(c, product, never_negative);
  return sizes && sizes->columns >= unit->words / 2 && matrix_words(*unit, sizes->sum * times) != 0;
}

bool by_bfloat16_dot(const CallNode& c, const Contraction& product, const Target& target) {
  constexpr int64_t kSum = 32, kWord = 2;
  if (!has_bfloat16_dot(target)) return false;
  auto sizes = rows_by_columns(c, product, [](const Dim&) { return true; });
  return sizes && sizes->columns >= target.lanes(kSum) && sizes->sum % kWord == 0;
}

bool by_pairs_of_batch(const CallNode& c, const Contraction& product, const Target& target) {
  constexpr int64_t kBytes = 2;
  const bool bfloat16 = std::ranges::all_of(c.args, [](const Expr& e) {
    auto* type = tensor_of(e);
    return type != nullptr && type->dtype.is_bfloat16();
  });
  auto row = product.only(ContractionRole::Row), column = product.only(ContractionRole::Column),
       sum = product.only(ContractionRole::Reduced);
  if (!bfloat16 || c.args.size() != 2 || product.transposed() || product.dims.size() != 4 || !row ||
      !column || !sum || product.count(ContractionRole::Batch) != 1 ||
      product.operands[0].size() != 3 || !product.operands[0].back().has(*sum) ||
      product.operands[1].size() != 3 || !product.result.back().has(*column) ||
      is_any(product.dims[*column].extent) || is_any(product.dims[*sum].extent)) {
    return false;
  }
  // An open size is 0 here.
  if (std::ranges::any_of(product.dims, [](const auto& d) { return as_const(d.extent) == 0; })) {
    return false;
  }
  auto size = [&](size_t d) { return as_const(product.dims[d].extent).value_or(0); };
  const RowsByRows matrix{size(*row), size(*column), whole_sum(c, product, target, size(*sum)),
                          kBytes, selects_matrices(c, product)};
  return words_in_panels(target, matrix) || pairs_in_panels(target, matrix);
}

int64_t whole_sum(const CallNode& c, const Contraction& product, const Target& target,
                  int64_t terms) {
  constexpr int64_t kPair = 2;
  const auto unit = matrix_unit(target, MatrixFactors::BFloat16);
  const bool by_unit = unit && !selects_matrices(c, product);
  return by_unit ? whole_matrix_words(*unit, terms) : terms + terms % kPair;
}

bool selects_matrices(const CallNode& c, const Contraction& product) {
  auto* take =
      c.args.size() == 2 && is_call_to(c.args[1], "take") ? as<CallNode>(c.args[1]) : nullptr;
  if (take == nullptr) return false;
  auto *from = tensor_of(take->args[0]), *places = tensor_of(take->args[1]);
  auto batch = product.only(ContractionRole::Batch);
  return from != nullptr && places != nullptr && from->shape.size() == 3 &&
         places->shape.size() == 1 && attr_value(take->attrs, "axis") == AttrValue(int64_t{0}) &&
         batch && product.operands[1][0].has(*batch) && !product.operands[1][0].blocked();
}

int64_t rows_of(const Contraction& product) {
  int64_t rows = 1;
  for (const Contraction::Dimension& d : product.dims) {
    if (d.role == ContractionRole::Row) rows *= as_const(d.extent).value_or(1);
  }
  return rows;
}

}  // namespace relay
