// The bytes of an ONNX model, with the big payloads set aside.
//
// Protobuf copies every string that it parses. Weights are most of a model, so the message is
// walked first: payloads of tensors become views into the file, and what is left, the skeleton, is
// small enough to be parsed in the ordinary way.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/source.h"

namespace relay::frontend::onnx {

struct StrippedModel {
  // The model without documentation and without raw_data of at least kMinPayload bytes. A tensor
  // whose raw_data was set aside has a doc_string: the index of its payload in decimal.
  std::string skeleton;
  std::vector<std::string_view> payloads;
};

inline constexpr size_t kMinPayload = 64;
inline constexpr int kMaxGraphDepth = 12;

// Throws UserError E0502 (with the byte offset) for bytes that are not a model, E0506 for subgraphs
// nested deeper than kMaxGraphDepth.
StrippedModel strip_payloads(std::string_view model, const std::shared_ptr<const SourceFile>& file);

}  // namespace relay::frontend::onnx
