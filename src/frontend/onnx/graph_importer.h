// Walks a model's graph and builds @main.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "frontend/given_weights.h"
#include "frontend/onnx/importer.h"
#include "frontend/onnx/onnx.h"
#include "frontend/onnx/tensor_data.h"

namespace google::protobuf {
template <typename Element>
class RepeatedPtrField;
}  // namespace google::protobuf
namespace onnx {
class FunctionProto;
class ModelProto;
class OperatorSetIdProto;
}  // namespace onnx

namespace relay::frontend::onnx {

class Importer : public ProgramBuilder {
 public:
  Importer(std::shared_ptr<const SourceFile> file, const OnnxOptions& options,
           TensorSource tensors);

  // Builds the module. Errors of independent nodes are thrown together.
  ImportedModel run(const ::onnx::ModelProto& model);

  // ---- For NodeContext
  Values import_graph(const ::onnx::GraphProto& graph, const Values& inputs, const Span& span);
  // The attribute a reference inside a model-local function stands for; null when not given.
  const ::onnx::AttributeProto* function_attr(const std::string& name) const;
  // The value of that name that the node being imported sees; null for none.
  ValuePtr value_named(const std::string& name) const { return scope_->find(name); }
  TensorSource& tensors() { return tensors_; }

 private:
  // The body of a model-local function being inlined, or the main graph.
  struct Frame {
    OpsetImports opsets;
    std::map<std::string, const ::onnx::AttributeProto*> attrs;
  };

  void check_versions(const ::onnx::ModelProto& model);
  void check_operators(const ::onnx::ModelProto& model);
  void import_initializers(const ::onnx::GraphProto& graph, Scope& scope);
  // `results` are the names that are asked for afterwards.
  using Names = std::vector<std::string>;
  template <class Nodes>
  void import_nodes(const Nodes& nodes, Scope& scope, const Names& results, int first = 0);
  void import_node(const ::onnx::NodeProto& node, int index, Scope& scope);
  Values convert(const ::onnx::NodeProto& node, Values inputs, const Span& span);
  Values inline_function(const ::onnx::FunctionProto& function, const ::onnx::NodeProto& node,
                         const Values& inputs, const Span& span);
  const ::onnx::FunctionProto* find_function(const ::onnx::NodeProto& node) const;

  int64_t opset_;  // OnnxOptions::opset
  TensorSource tensors_;
  GivenWeights given_;  // OnnxOptions::weights
  std::vector<Frame> frames_;
  Scope* scope_ = nullptr;
  std::map<std::string, const ::onnx::FunctionProto*> functions_;  // by domain, name, overload
};

// The inputs of a graph, in graph_inputs.cc.
std::vector<DeclaredInput> declared_inputs(const ::onnx::GraphProto& graph);

// ---- Names, in model_check.cc

// "" and "ai.onnx" are the same domain.
bool is_default_domain(std::string_view domain);
std::string_view canonical_domain(std::string_view domain);
OpsetImports opsets_of(
    const google::protobuf::RepeatedPtrField<::onnx::OperatorSetIdProto>& imports);
std::string function_key(const std::string& domain, const std::string& name,
                         const std::string& overload);

// "node conv1 (Conv)", or "node #12 (Conv) -> output".
std::string node_label(const ::onnx::NodeProto& node, int index);

}  // namespace relay::frontend::onnx
