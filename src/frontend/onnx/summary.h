// What an ONNX file is made of, whether or not it can be imported.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace relay {

struct OnnxSummary {
  struct Operator {
    std::string domain;  // "ai.onnx" for the default one
    std::string name;
    int64_t opset = 0;  // the version that its nodes are written in
    int64_t nodes = 0;  // in the graph, its subgraphs and the model's own functions
    bool imported = false;
  };
  struct OpenSize {
    std::string name;                                   // "" where the model gives none
    std::vector<std::pair<std::string, int64_t>> axes;  // input and axis
  };
  std::string producer;
  std::vector<std::pair<std::string, int64_t>> opsets;
  std::vector<Operator> operators;  // sorted by domain and name
  std::vector<OpenSize> open_sizes;
  int64_t nodes = 0;
  int64_t parameters = 0;  // elements of initializers
  int64_t parameter_bytes = 0;
};

// Reads a model file, but none of its weights. UserError E0507 for what is not one.
OnnxSummary summarize_onnx_file(const std::string& path);

}  // namespace relay
