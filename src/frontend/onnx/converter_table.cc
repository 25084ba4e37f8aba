// All converters, sorted.
#include <algorithm>

#include "frontend/onnx/importer.h"
#include "frontend/onnx/onnx.h"

namespace relay::frontend::onnx {
namespace {

template <size_t... kFamilies>
std::vector<ConverterRow> make_table(std::index_sequence<kFamilies...>) {
  std::vector<ConverterRow> rows;
  auto add = [&](std::span<const ConverterRow> family) {
    rows.insert(rows.end(), family.begin(), family.end());
  };
  (add(converter_rows<static_cast<Converters>(kFamilies)>()), ...);
  std::sort(rows.begin(), rows.end(), [](const ConverterRow& a, const ConverterRow& b) {
    return std::tie(a.domain, a.op, a.since) < std::tie(b.domain, b.op, b.since);
  });
  return rows;
}

}  // namespace

const std::vector<ConverterRow>& converter_table() {
  static const std::vector<ConverterRow> table =
      make_table(std::make_index_sequence<static_cast<size_t>(Converters::kCount)>());
  return table;
}

const ConverterRow* find_converter(std::string_view domain, std::string_view op, int64_t opset) {
  const auto& table = converter_table();
  auto key = std::make_tuple(domain, op, opset);
  auto after =
      std::upper_bound(table.begin(), table.end(), key, [](const auto& k, const ConverterRow& row) {
        return k < std::make_tuple(row.domain, row.op, static_cast<int64_t>(row.since));
      });
  if (after == table.begin()) return nullptr;
  const ConverterRow& row = *std::prev(after);
  return row.domain == domain && row.op == op ? &row : nullptr;
}

}  // namespace relay::frontend::onnx

namespace relay {

std::vector<SupportedOperator> supported_onnx_operators() {
  std::vector<SupportedOperator> out;
  for (const auto& row : frontend::onnx::converter_table())
    out.push_back({std::string(row.domain), std::string(row.op), row.since});
  return out;
}

}  // namespace relay
