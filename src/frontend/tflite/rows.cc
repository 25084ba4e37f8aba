#include "frontend/tflite/rows.h"

#include <algorithm>

#include "frontend/common/row_table.h"

namespace relay::frontend::tflite {
const std::vector<Row>& all_rows() {
  static const auto all = sorted_rows<Row, static_cast<size_t>(Family::kCount)>(
      []<size_t i>() { return rows<static_cast<Family>(i)>(); }, &Row::op);
  return all;
}

const Row* row_of(const OperatorKind& kind) {
  auto row = std::ranges::lower_bound(all_rows(), kind.name, {}, &Row::op);
  if (row == all_rows().end() || row->op != kind.name) return nullptr;
  // A custom operator may have the name of a builtin one, which it is not.
  return kind.is_custom && builtin_code(row->op) >= 0 ? nullptr : &*row;
}

}  // namespace relay::frontend::tflite
