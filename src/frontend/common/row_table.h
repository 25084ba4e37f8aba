// The rows of a front end's families as one sorted table.
#pragma once

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "base/diagnostic.h"

namespace relay::frontend {

// `rows_of.operator()<i>()` gives the rows of family i < kFamilies, `key` the key of a row; two rows of one key are a
// defect of the front end.
template <class Row, size_t kFamilies, class RowsOf, class Key>
std::vector<Row> sorted_rows(const RowsOf& rows_of, const Key& key) {
  std::vector<Row> out;
  auto add = [&](std::span<const Row> family) {
    out.insert(out.end(), family.begin(), family.end());
  };
  [&]<size_t... i>(std::index_sequence<i...>) { (add(rows_of.template operator()<i>()), ...); }
  (std::make_index_sequence<kFamilies>());
  std::ranges::sort(out, {}, key);
  RELAY_CHECK(std::ranges::adjacent_find(out, {}, key) == out.end(), "two rows have one key");
  return out;
}

}  // namespace relay::frontend
