// The importer's inside: what a converter sees, and the table of converters.
//
// A converter is a function from one ONNX node to Relay values. It is found by domain,
// operator and version, in the table of its family, and sees the node only through NodeContext.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "frontend/common/operands.h"
#include "frontend/common/tensor_bytes.h"

namespace onnx {
class AttributeProto;
class GraphProto;
class NodeProto;
}  // namespace onnx

namespace relay::frontend::onnx {

class Importer;

// One node during its conversion: its inputs, its attributes, and the builders of frontend/common.
class NodeContext : public Operands {
 public:
  NodeContext(Importer& importer, const ::onnx::NodeProto& node, Values inputs, int64_t opset,
              Span span);

  const std::string& op_type() const;
  int64_t opset() const { return opset_; }
  Importer& importer() const { return importer_; }
  const ::onnx::NodeProto& node() const { return node_; }
  size_t num_outputs() const;
  bool output_used(size_t i) const;

  // ---- Attributes; E0504 when one has another type than asked for.
  bool has_attr(const char* name) const;
  int64_t attr(const char* name, int64_t otherwise) const;
  double attr_float(const char* name, double otherwise) const;
  std::string attr_string(const char* name, const std::string& otherwise) const;
  std::vector<int64_t> attr_ints(const char* name, std::vector<int64_t> otherwise = {}) const;
  // A list of so many numbers, all `otherwise` where it is absent or empty; E0504 for another length.
  std::vector<int64_t> attr_list(const char* name, size_t size, int64_t otherwise) const;
  // What attribute 'axes' says of a tensor of this rank, which is all axes where it is absent.
  std::vector<int64_t> attr_axes(int64_t rank) const;
  std::vector<double> attr_floats(const char* name, std::vector<double> otherwise = {}) const;
  std::vector<std::string> attr_strings(const char* name,
                                        std::vector<std::string> otherwise = {}) const;
  // The same without a copy, for lists of millions; empty when absent.
  std::span<const int64_t> attr_int_span(const char* name) const;
  std::span<const float> attr_float_span(const char* name) const;
  std::span<const std::string* const> attr_string_span(const char* name) const;
  Tensor attr_tensor(const char* name) const;  // null when absent
  DType attr_dtype(const char* name, DType otherwise) const;
  const ::onnx::GraphProto& attr_graph(const char* name) const;
  const ::onnx::AttributeProto* find_attr(const char* name) const;

  // Imports a subgraph of this node; `inputs` are bound to its inputs in order.
  Values import_graph(const ::onnx::GraphProto& graph, const Values& inputs) const;

 private:
  Importer& importer_;
  const ::onnx::NodeProto& node_;
  int64_t opset_;
};

// Converts a node into its outputs, as many as the node has (null for unused ones).
using Converter = Values (*)(NodeContext& ctx);

// Domains of operators.
inline constexpr std::string_view kOnnx = "", kMicrosoft = "com.microsoft", kMl = "ai.onnx.ml";

// A row of the table of operators. It holds from its version until the next row of the same operator; a node uses the row
// with the highest version that its model's opset reaches. Versions in which only types were added have no row of their
// own. Of opsets before 7 only the operators are read that mean the same since.
struct ConverterRow {
  std::string_view domain;
  std::string_view op;
  int since;
  Converter convert;
  // The operator is made of several of Relay's, each of which would round to float16 or bfloat16: such inputs are cast to
  // float32, and the outputs back.
  bool in_float32 = false;
};
inline constexpr bool kInFloat32 = true;

// The families of converters. Each is a file convert_*.cc with a table of its rows.
enum class Converters {
  Contrib,
  Control,
  Elementwise,
  Gather,
  Ml,
  Move,
  Nn,
  Patch,
  Pool,
  Product,
  Quantize,
  Random,
  Recent,
  Recurrent,
  Reduce,
  Resize,
  Select,
  Sequence,
  Shape,
  Signal,
  Support,
  Text,
  Train,
  Transformer,
  Trees,
  kCount,
};

// The rows of a family; they live as long as the process.
template <Converters kFamily>
std::span<const ConverterRow> converter_rows();

// The row for a node, or null when the operator is unknown at that version.
const ConverterRow* find_converter(std::string_view domain, std::string_view op, int64_t opset);
// Sorted by domain, operator and version.
const std::vector<ConverterRow>& converter_table();

// The versions of the operator sets that a model (or model-local function) is written in.
struct OpsetImports {
  std::vector<std::pair<std::string, int64_t>> versions;
  // The version of a domain, 0 when the model does not import it.
  int64_t of(std::string_view domain) const;
};

}  // namespace relay::frontend::onnx
