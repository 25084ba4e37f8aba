#include "passes/layout/packing.h"

#include <algorithm>

#include "analysis/calls.h"
#include "passes/layout/matrix_products.h"
#include "target/dot_products.h"
#include "target/rows_by_rows.h"

namespace relay {
namespace {

// More zeros than this cost more than lanes that are empty.
constexpr int64_t kMostMerged = 8;
// Columns of the widest panel: what is left of a kernel's registers is few rows.
constexpr int64_t kWidestPanel = 64;

// Columns of the narrowest panel: half a vector of 256 bits.
constexpr int64_t kNarrowestPanel = 4;

bool is_byte(DType d) { return d.is_integer() && d.bits == 8; }

int64_t word_of(const Target& target, const CallNode& c, const Contraction& contraction) {
  auto *data = tensor_of(c.args[0]), *weight = tensor_of(c.args[1]), *result = tensor_of(Expr(&c));
  constexpr int64_t kBytes = 4, kHalves = 2;
  if (data->dtype.is_bfloat16() && weight->dtype.is_bfloat16() && result->dtype.is_float(32)) {
    return by_matrix_unit(c, contraction, MatrixFactors::BFloat16, target) ||
                   by_bfloat16_dot(c, contraction, target)
               ? kHalves
               : 1;
  }
  if (!is_byte(data->dtype) || !is_byte(weight->dtype) || result->dtype != DType::Int(32)) return 1;
  const bool dots = data->dtype.is_uint() && weight->dtype.is_int() && has_byte_dot(target) &&
                    as_const(contraction.dims.back().extent).value_or(1) % kBytes == 0;
  return dots || by_matrix_unit(c, contraction, MatrixFactors::Byte, target) ? kBytes : 1;
}

// Panels of `groups` groups of `columns` columns each; `out.panel` is the width of those without groups.
void pack_groups(Packing& out, const Target& target, int64_t groups, int64_t columns,
                 bool constant_weight) {
  if (columns == 0) {
    out.panel = 0;
    return;
  }
  int64_t width = out.panel;
  // One vector is as good as two where more would be zeros.
  if (columns % width != 0) width /= 2;
  const bool fits = columns % width == 0, divides = columns < width && width % columns == 0;
  const int64_t merged = fits ? 1 : divides ? width / columns : 0;
  if (merged != 0 && merged <= kMostMerged && groups % merged == 0 &&
      (merged == 1 || constant_weight)) {
    out.panel = width;
    out.merged = merged;
    return;
  }
  // Each group is a panel, unless most lanes of its last vector would be empty.
  const bool narrow = 2 * columns < target.lanes(32) || columns > kWidestPanel;
  out.panel = narrow ? 0 : columns;
}

}  // namespace

Packing packing(const Target& target, const CallNode& c, const Contraction& contraction,
                bool constant_weight) {
  Packing out;
  out.panel = panel_columns(target, tensor_of(c.args[1])->dtype.bits);
  out.word = word_of(target, c, contraction);
  auto group = contraction.only(ContractionRole::Group),
       column = contraction.only(ContractionRole::Column);
  auto groups = group ? as_const(contraction.dims[*group].extent) : std::nullopt;
  auto columns = column ? as_const(contraction.dims[*column].extent) : std::nullopt;
  if (groups && columns && *groups > 1) {
    pack_groups(out, target, *groups, *columns, constant_weight);
  } else if (columns && out.word == 1) {
    // Of few columns, no more than the smallest vector that holds them: zeros beside them are read with each row.
    while (*columns > 0 && out.panel > kNarrowestPanel && *columns <= out.panel / 2) out.panel /= 2;
  }
  return out;
}

}  // namespace relay
