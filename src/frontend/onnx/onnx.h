// ONNX models as Relay programs.
//
//   ImportedModel m = import_onnx_file("resnet50.onnx", {});
//   m.module->find("main");   // fn (%data: Tensor[(1, 3, 224, 224), float32]) -> ...
//
// @main takes the model's inputs in their order and gives its output (a tuple when there are
// several). A dimension that the model leaves open becomes a named dimension of @main. Every
// expression carries the model's node as its span. Types are deduced while the program is built.
//
// Models are hostile input: everything that a file says is checked before it is used, and what a
// model may cost is bounded by ImportOptions. All errors are UserErrors with codes E05xx (or the
// E02xx of an operator that does not accept its inputs); independent ones are reported together.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/common/front_end.h"

namespace relay {

struct OnnxOptions : ImportOptions {
  // The version of the default operator set that nodes are read by, in place of the model's; 0: that.
  int64_t opset = 0;
  // Values of initializers in place of the model's.
  std::optional<WeightFile> weights = {};
};

// Reads a model file. Weights stay in the file and are mapped where their alignment allows. Weights
// in other files ("external data") are read from the folder of the model and nowhere else.
ImportedModel import_onnx_file(const std::string& path, const OnnxOptions& options = {});

// Reads a model from memory, which is not kept. `source_name` appears in messages; `folder` is
// where external data may lie, empty for nowhere.
ImportedModel import_onnx_bytes(std::string_view data, const std::string& source_name,
                                const std::string& folder = {}, const OnnxOptions& options = {});

// All operators that can be imported, sorted by domain, name and version; "" is the default domain, ai.onnx.
std::vector<SupportedOperator> supported_onnx_operators();

// Its own option `opset` is OnnxOptions::opset.
FrontEnd onnx_front_end();

}  // namespace relay
