// All rows, sorted.
#include <algorithm>

#include "frontend/torch/node_context.h"

namespace relay::frontend::torch {
namespace {

template <size_t... kFamilies>
std::vector<Row> make_table(std::index_sequence<kFamilies...>) {
  std::vector<Row> all;
  auto add = [&](std::span<const Row> family) {
    all.insert(all.end(), family.begin(), family.end());
  };
  (add(rows<static_cast<Family>(kFamilies)>()), ...);
  std::ranges::sort(all, {}, &Row::target);
  auto twice = std::ranges::adjacent_find(all, {}, &Row::target);
  RELAY_CHECK(twice == all.end(), std::string(twice->target) + " has two rows");
  return all;
}

}  // namespace

const std::vector<Row>& all_rows() {
  static const std::vector<Row> table =
      make_table(std::make_index_sequence<static_cast<size_t>(Family::kCount)>());
  return table;
}

const Row* find_row(std::string_view target) {
  auto it = std::ranges::lower_bound(all_rows(), target, {}, &Row::target);
  return it == all_rows().end() || it->target != target ? nullptr : &*it;
}

FoundRow row_for(std::string_view target) {
  if (const Row* row = find_row(target)) return {row, false};
  const size_t dot = target.rfind('.');
  if (dot == std::string_view::npos || dot == 0 || target[dot - 1] != '_') return {};
  const Row* row =
      find_row(std::string(target.substr(0, dot - 1)) + std::string(target.substr(dot)));
  return {row, row != nullptr};
}

}  // namespace relay::frontend::torch

namespace relay {

std::vector<std::string> torch_operators() {
  std::vector<std::string> out;
  for (const auto& row : frontend::torch::all_rows()) out.emplace_back(row.target);
  return out;
}

}  // namespace relay
