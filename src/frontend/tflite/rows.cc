#include "frontend/tflite/rows.h"

#include <algorithm>

#include "frontend/common/row_table.h"

namespace relay::frontend::tflite {
const std::vector<Row>& all_rows() {
  static const auto all = sorted_rows<Row, static_cast<size_t>(Family::kCount)>(
      []<size_t i>() { return rows<static_cast<Family>(i)>(); }, &Row::op);
  return all;
}

const Row* find_row(std::string_view op) {
  auto row = std::ranges::lower_bound(all_rows(), op, {}, &Row::op);
  return row == all_rows().end() || row->op != op ? nullptr : &*row;
}

}  // namespace relay::frontend::tflite
