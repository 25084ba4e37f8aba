// From the bytes of a model to its graph, with the weights left where they are.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/common/mapped_file.h"
#include "frontend/onnx/summary.h"

namespace onnx {
class ModelProto;
}  // namespace onnx

namespace relay::frontend::onnx {

// Fills `model`, and returns where the bytes of its tensors are. UserError for what is not a model.
std::vector<std::string_view> parse_model(std::string_view bytes,
                                          const std::shared_ptr<const SourceFile>& file,
                                          ::onnx::ModelProto& model);

ModelSummary with_parsed_file(const std::string& path,
                              const std::function<ModelSummary(const ::onnx::ModelProto&)>& use);

}  // namespace relay::frontend::onnx
