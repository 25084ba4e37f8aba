// All rows, sorted.
#include <algorithm>

#include "frontend/common/row_table.h"
#include "frontend/torch/complex.h"
#include "frontend/torch/node_context.h"

namespace relay::frontend::torch {
const std::vector<Row>& all_rows() {
  static const auto table = sorted_rows<Row, static_cast<size_t>(Family::kCount)>(
      []<size_t i>() { return rows<static_cast<Family>(i)>(); }, &Row::target);
  return table;
}

const Row* find_row(std::string_view target) {
  auto it = std::ranges::lower_bound(all_rows(), target, {}, &Row::target);
  return it == all_rows().end() || it->target != target ? nullptr : &*it;
}

FoundRow row_for(std::string_view target) {
  if (const Row* row = find_row(target)) return {row};
  const size_t dot = target.rfind('.');
  if (dot == std::string_view::npos) return {};
  // The row without an ending of the operator's name.
  auto without = [&](std::string_view ending) -> const Row* {
    const std::string_view name = target.substr(0, dot);
    if (!name.ends_with(ending)) return nullptr;
    return find_row(std::string(name.substr(0, name.size() - ending.size())) +
                    std::string(target.substr(dot)));
  };
  if (const Row* row = without("_")) return {.row = row, .in_place = true};
  const Row* row = without("_copy");
  if (row == nullptr || row->view == nullptr) return {};
  return {.row = row, .copies = true};
}

bool is_imported(std::string_view target) {
  return row_for(target).row != nullptr || std::ranges::binary_search(complex_operators(), target);
}

}  // namespace relay::frontend::torch

namespace relay {

std::vector<std::string> torch_operators() {
  std::vector<std::string> out;
  for (const auto& row : frontend::torch::all_rows()) out.emplace_back(row.target);
  for (std::string_view target : frontend::torch::complex_operators()) out.emplace_back(target);
  std::ranges::sort(out);
  return out;
}

}  // namespace relay
