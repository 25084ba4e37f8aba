#include "frontend/tflite/rows.h"

#include <algorithm>
#include <utility>

namespace relay::frontend::tflite {
namespace {

template <size_t... kIndices>
std::vector<Row> collect(std::index_sequence<kIndices...>) {
  std::vector<Row> out;
  auto add = [&](std::span<const Row> family) {
    out.insert(out.end(), family.begin(), family.end());
  };
  (add(rows<static_cast<Family>(kIndices)>()), ...);
  std::ranges::sort(out, {}, &Row::op);
  return out;
}

}  // namespace

const std::vector<Row>& all_rows() {
  static const std::vector<Row> all =
      collect(std::make_index_sequence<static_cast<size_t>(Family::kCount)>());
  return all;
}

const Row* find_row(std::string_view op) {
  auto row = std::ranges::lower_bound(all_rows(), op, {}, &Row::op);
  return row == all_rows().end() || row->op != op ? nullptr : &*row;
}

}  // namespace relay::frontend::tflite
