// The importer's inside: values of a model on their way to Relay, and what a converter sees.
//
// A converter is a function from one ONNX node to Relay values. It is found by domain,
// operator and version, in the table of its family, and sees the node only through NodeContext.
#pragma once

#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analysis/known_value.h"
#include "ir/expr.h"

namespace onnx {
class AttributeProto;
class GraphProto;
class NodeProto;
}  // namespace onnx

namespace relay::importer {

class Importer;
struct ModelValue;
using ValuePtr = std::shared_ptr<ModelValue>;
using Values = std::vector<ValuePtr>;

// A value of the model. What is known about it is kept beside its expression, which is made only
// when somebody asks for it; so shape arithmetic leaves no trace in the program.
struct ModelValue {
  std::string name;
  Span span;
  Expr expr;                        // null until asked for
  Expr transposed;                  // of a constant matrix, null until asked for
  Tensor data;                      // a constant's data, possibly misaligned (tensor_data.h)
  std::optional<KnownValue> known;  // the elements, when all of them are known
  bool is_parameter = false;  // a weight that becomes a parameter when its expression is needed
  bool is_list = false;       // an ONNX sequence: a list of values at import time
  Values list;
  bool absent = false;  // an optional input of a function that the call leaves out
  bool failed = false;  // its node was reported; what depends on it is skipped
};

ValuePtr value_of(Expr expr);
ValuePtr value_of(KnownValue known);
ValuePtr value_of(Tensor data);

using AttrList = std::vector<std::pair<std::string, AttrValue>>;
AttrValue to_value(const std::vector<int64_t>& v);
AttrValue to_value(DType dtype);

// Thrown to leave a node of which an input or a part of its subgraph has been reported already.
struct Poisoned {};

// One node during its conversion: inputs, attributes, and builders that put the node's span on
// everything they make.
class NodeContext {
 public:
  NodeContext(Importer& importer, const ::onnx::NodeProto& node, Values inputs, int64_t opset,
              Span span);

  const std::string& op_type() const;
  int64_t opset() const { return opset_; }
  const Span& span() const { return span_; }
  Importer& importer() const { return importer_; }
  const ::onnx::NodeProto& node() const { return node_; }

  // ---- Inputs
  size_t num_inputs() const { return inputs_.size(); }
  bool has(size_t i) const { return i < inputs_.size() && inputs_[i] != nullptr; }
  const ValuePtr& value(size_t i) const;
  Expr in(size_t i) const;
  // All inputs as expressions.
  std::vector<Expr> all() const;
  size_t num_outputs() const;
  bool output_used(size_t i) const;
  // What is known about an input's elements.
  std::optional<KnownValue> known(size_t i) const;
  // The same when the operator cannot do without: E0505 otherwise. `what` is "the shape".
  KnownValue must_know(size_t i, const char* what) const;
  std::vector<int64_t> const_ints(size_t i, const char* what) const;
  int64_t const_int(size_t i, const char* what) const;
  // The data of a constant input, or null.
  Tensor constant_data(size_t i) const;

  // ---- Attributes; E0504 when one has another type than asked for.
  bool has_attr(const char* name) const;
  int64_t attr(const char* name, int64_t otherwise) const;
  double attr_float(const char* name, double otherwise) const;
  std::string attr_string(const char* name, const std::string& otherwise) const;
  std::vector<int64_t> attr_ints(const char* name, std::vector<int64_t> otherwise = {}) const;
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

  // ---- Types
  static const TensorTypeNode& type_of(const Expr& e);
  static int64_t rank_of(const Expr& e) { return type_of(e).rank(); }
  static DType dtype_of(const Expr& e) { return type_of(e).dtype; }
  static const std::vector<Dim>& shape_of(const Expr& e) { return type_of(e).shape; }
  // A dimension that must be a number: E0505 when it is symbolic.
  int64_t const_dim(const Expr& e, int64_t axis, const char* what) const;
  // An axis in [-rank, rank) as one in [0, rank); E0504 when it is outside.
  int64_t axis(int64_t value, int64_t rank) const;
  std::vector<int64_t> axes(std::vector<int64_t> values, int64_t rank) const;

  // ---- Builders
  // Whether this build of Relay has an operator; where not, a converter may have another way.
  static bool has_op(std::string_view op);
  Expr call(std::string_view op, std::vector<Expr> args, const AttrList& attrs = {}) const;
  Expr add(Expr a, Expr b) const { return call("add", {std::move(a), std::move(b)}); }
  Expr sub(Expr a, Expr b) const { return call("subtract", {std::move(a), std::move(b)}); }
  Expr mul(Expr a, Expr b) const { return call("multiply", {std::move(a), std::move(b)}); }
  Expr div(Expr a, Expr b) const { return call("divide", {std::move(a), std::move(b)}); }
  // A scalar of the dtype, or of the dtype of another expression.
  Expr scalar(double value, DType dtype) const;
  Expr scalar_like(double value, const Expr& like) const { return scalar(value, dtype_of(like)); }
  Expr constant(Tensor data) const { return relay::constant(std::move(data), span_); }
  Expr ints(const std::vector<int64_t>& values, DType dtype = DType::Int(64)) const;
  Expr item(const Expr& tuple, int64_t index) const { return tuple_get_item(tuple, index, span_); }
  Expr tuple_of(std::vector<Expr> fields) const { return relay::tuple(std::move(fields), span_); }
  Expr cast(Expr e, DType dtype) const;  // the identical expression when it has the dtype
  Expr transpose(Expr e, const std::vector<int64_t>& axes) const;  // identity gives `e`
  Expr expand_dims(Expr e, int64_t axis, int64_t count = 1) const;
  Expr squeeze(Expr e, const std::vector<int64_t>& axes) const;
  // `e` with the given dimensions, which must hold as many elements.
  Expr reshape(Expr e, const std::vector<Dim>& shape) const;
  Expr reshape(Expr e, const std::vector<int64_t>& shape) const;
  // Axes [begin, end) as one, whatever is known of their sizes.
  Expr merge_axes(Expr e, size_t begin, size_t end) const;
  // The same tensor, with sizes in its type that are `?` there and known here; `?` here says nothing. A run checks them.
  Expr with_sizes(Expr e, const std::vector<Dim>& sizes) const;
  // numpy broadcasting to exactly `shape`.
  Expr broadcast_to(Expr e, const std::vector<Dim>& shape) const;
  // Elements [begin, end) of an axis.
  Expr slice(Expr e, int64_t axis, int64_t begin, int64_t end) const;
  // The i-th part along an axis, which is removed.
  Expr select(Expr e, int64_t axis, int64_t index) const;
  Expr concat(std::vector<Expr> parts, int64_t axis) const;
  // What is known of the elements of an expression, some of which may be `?`; nullopt for nothing.
  std::optional<KnownValue> partly_known(const Expr& e) const;
  // Equal parts along an axis.
  std::vector<Expr> split(Expr e, int64_t axis, int64_t parts) const;
  Expr reduce(const char* op, Expr e, std::vector<int64_t> axes, bool keepdims) const;
  // A tensor filled with a value.
  Expr full(double value, const std::vector<Dim>& shape, DType dtype) const;
  // The matrix product of ONNX's MatMul: any ranks, batch dimensions broadcast.
  Expr matmul(Expr a, Expr b) const;
  // The same with an input on the right; a constant matrix becomes the weight of nn.dense.
  Expr matmul_input(Expr a, size_t b) const;
  // The product of every line along an axis with a matrix (old size, new size).
  Expr matmul_along(Expr e, int64_t axis, const Tensor& matrix) const;

  // ---- Subgraphs
  // Imports a subgraph of this node; `inputs` are bound to its inputs in order.
  Values import_graph(const ::onnx::GraphProto& graph, const Values& inputs) const;
  // The expression of a value of this model.
  Expr expr_of(const ValuePtr& v) const;
  // Counts constants that the importer makes; E0506 when they exceed their bound.
  void charge_bytes(int64_t elements, DType dtype) const;

  [[noreturn]] void fail(const DiagnosticCode& code, std::string message, std::string expected = {},
                         std::string found = {}, std::string help = {}) const;
  // E0504: this variant of the operator cannot be imported.
  [[noreturn]] void unsupported(const std::string& what, std::string help = {}) const;

 private:
  Expr batch_matmul(Expr a, Expr b, const std::vector<Dim>& batch) const;
  Expr open_batch_matmul(const Expr& a, const Expr& b, const std::vector<Dim>& batch) const;

  Importer& importer_;
  const ::onnx::NodeProto& node_;
  Values inputs_;
  int64_t opset_;
  Span span_;
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

// Strings of attributes as a tensor of rank 1.
Tensor string_vector(const std::vector<std::string>& strings);

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

}  // namespace relay::importer
