// All converters, sorted.
#include <algorithm>

#include "frontend/common/row_table.h"
#include "frontend/onnx/importer.h"
#include "frontend/onnx/onnx.h"

namespace relay::frontend::onnx {
const std::vector<ConverterRow>& converter_table() {
  static const auto table = sorted_rows<ConverterRow, static_cast<size_t>(Converters::kCount)>(
      []<size_t i>() { return converter_rows<static_cast<Converters>(i)>(); },
      [](const ConverterRow& row) { return std::tie(row.domain, row.op, row.since); });
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
