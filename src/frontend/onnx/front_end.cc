// The row of the front end.
#include <algorithm>
#include <optional>

#include "frontend/onnx/onnx.h"
#include "frontend/onnx/summary.h"

namespace relay {
namespace {

// A field of a message and how it is stored: 0 is a number, 2 bytes behind their length.
struct Field {
  uint64_t number, wire;
};
constexpr uint64_t kVersion = 1, kGraph = 7;
// Of ModelProto and GraphProto in onnx.proto.
constexpr Field kModel[] = {{kVersion, 0}, {2, 2}, {3, 2},  {4, 2},  {5, 0}, {6, 2},
                            {kGraph, 2},   {8, 2}, {14, 2}, {20, 2}, {25, 2}};
constexpr Field kGraphFields[] = {{1, 2},  {2, 2},  {5, 2},  {10, 2}, {11, 2},
                                  {12, 2}, {13, 2}, {14, 2}, {15, 2}};

// A number at the front of the text, which it takes away; nullopt for none.
std::optional<uint64_t> take_number(std::string_view& text) {
  uint64_t value = 0;
  for (size_t i = 0; i < std::min<size_t>(text.size(), 10); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    value |= uint64_t{byte & 0x7fu} << (7 * i);
    if (byte < 0x80) {
      text.remove_prefix(i + 1);
      return value;
    }
  }
  return std::nullopt;
}

// The number of the field at the front of the text, if it is one of these.
std::optional<uint64_t> take_field(std::string_view& text, std::span<const Field> fields) {
  auto tag = take_number(text);
  if (!tag) return std::nullopt;
  const bool known = std::ranges::any_of(
      fields, [&](const Field& f) { return f.number == *tag >> 3 && f.wire == (*tag & 7); });
  return known ? std::optional(*tag >> 3) : std::nullopt;
}

// The format has no mark at its begin. Its fields are known, and among the first of them are its version or its graph.
bool is_onnx(std::string_view head) {
  while (!head.empty()) {
    auto field = take_field(head, kModel);
    auto size = field ? take_number(head) : std::nullopt;
    if (!size) return false;
    if (*field == kVersion) return *size > 0 && *size < 1000;
    if (*field == kGraph) {
      const bool known = take_field(head, kGraphFields).has_value();
      auto inner = take_number(head);
      return known && inner && *inner < *size;
    }
    if (*field == 5) continue;  // a number
    if (*size > head.size()) return false;
    head.remove_prefix(*size);
  }
  return false;
}

ImportedModel import_onnx(const ModelSource& source, const ImportOptions& options) {
  OnnxOptions own{options};
  if (auto opset = options.own.find("opset"); opset != options.own.end()) {
    own.opset = *opset->second.get_if<int64_t>();
  }
  own.weights = source.weights;
  return source.bytes ? import_onnx_bytes(*source.bytes, source.path, source.folder, own)
                      : import_onnx_file(source.path, own);
}

}  // namespace

FrontEnd onnx_front_end() {
  return {
      .name = "onnx",
      .title = "ONNX model",
      .endings = {".onnx"},
      .sniff = is_onnx,
      .check = summarize_onnx_file,
      .import = import_onnx,
      .options = {{"opset", int64_t{0},
                   "The version of the default operator set to read nodes by; 0 for the model's."}},
      .takes_weights = true,
      .operators = supported_onnx_operators,
  };
}

}  // namespace relay
