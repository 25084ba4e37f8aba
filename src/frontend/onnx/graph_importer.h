// Walks a model's graph and builds @main.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "analysis/known_values.h"
#include "frontend/onnx/branches.h"
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
class ValueInfoProto;
}  // namespace onnx

namespace relay::importer {

// Subgraphs and calls of model-local functions inside each other; each level costs C++ stack.
inline constexpr int kMaxNesting = 20;

class Importer {
 public:
  Importer(std::shared_ptr<const SourceFile> file, const OnnxOptions& options,
           TensorSource tensors);
  ~Importer();

  // Builds the module. Errors of independent nodes are thrown together.
  ImportedModel run(const ::onnx::ModelProto& model);

  // ---- For NodeContext
  Values import_graph(const ::onnx::GraphProto& graph, const Values& inputs, const Span& span);
  Expr expr_of(const ValuePtr& v);
  // A parameter and an axis that have a named dimension as their size; null for no such name.
  const std::pair<Var, int64_t>* source_of(const TypeVar& size) const {
    auto it = dim_sources_.find(size.get());
    return it == dim_sources_.end() ? nullptr : &it->second;
  }
  // What is known of the elements of an expression; null for nothing.
  const KnownValue* known_of(const Expr& e) { return known_values_.of(e); }
  // The attribute a reference inside a model-local function stands for; null when not given.
  const ::onnx::AttributeProto* function_attr(const std::string& name) const;
  void charge_bytes(int64_t bytes, const Span& span);
  // Whether something can be imported: what it reports or throws is forgotten when it cannot, but
  // not that a limit was reached.
  bool attempt(const std::function<void()>& import);
  // Whether a variable is a weight that is a parameter of @main.
  bool is_weight(const VarNode& v) const { return result_.params.contains(v.name_hint); }
  // The value of that name that the node being imported sees; null for none.
  ValuePtr value_named(const std::string& name) const { return scope_->find(name); }
  // From here on the program has the functions of sequences.h.
  void use_sequence_library() { uses_sequences_ = true; }
  TensorSource& tensors() { return tensors_; }
  const OnnxOptions& options() const { return options_; }

 private:
  // Names in sight: those of a graph, then those of the graph around it.
  struct Scope {
    std::unordered_map<std::string, ValuePtr> values;
    const Scope* parent = nullptr;
    ValuePtr find(const std::string& name) const;
  };
  // The body of a model-local function being inlined, or the main graph.
  struct Frame {
    OpsetImports opsets;
    std::map<std::string, const ::onnx::AttributeProto*> attrs;
  };

  void check_versions(const ::onnx::ModelProto& model);
  void check_operators(const ::onnx::ModelProto& model);
  void declare_inputs(const ::onnx::GraphProto& graph);
  // The value in the input's type; E0510 when it does not fit. Names of its sizes hold for other inputs.
  Tensor value_for(const ::onnx::ValueInfoProto& input, const Tensor& given, const Span& span);
  void freeze_input(const ::onnx::ValueInfoProto& input, const Tensor& value, const Span& span);
  void specialise_input(const ::onnx::ValueInfoProto& input, const Tensor& value, const Span& span);
  // Declares a sequence or an optional of which is known what it holds; false when it is not known, or not one.
  bool declare_elements(const ::onnx::ValueInfoProto& input, const Span& span);
  // Notes the inputs that values, or that an expression, are computed from, if more can be said of them.
  void note_deciding(const Values& values);
  void note_deciding(const Expr& e);
  // E0505 for branches of different ranks; notes what decides.
  Diagnostic open_branches(const BranchesDiffer& branches, const Span& span);
  // Throws what was reported, if anything: as RankIsOpen where specialising may help.
  void throw_if_errors(const ::onnx::GraphProto& graph) const;
  // The body behind tests of the inputs that the program is specialised for.
  Expr with_checks(Expr body);
  // Declares an input that is a sequence, an optional or a map; false for other kinds.
  bool declare_structure(const ::onnx::GraphProto& graph, const ::onnx::ValueInfoProto& input,
                         const Span& span);
  void add_param(const ::onnx::ValueInfoProto& input, const Var& v, const Span& span);
  Dim input_dim(const ::onnx::ValueInfoProto& input, int axis, const Span& span);
  void import_initializers(const ::onnx::GraphProto& graph, Scope& scope);
  // `results` are the names that are asked for afterwards.
  using Names = std::vector<std::string>;
  template <class Nodes>
  void import_nodes(const Nodes& nodes, Scope& scope, const Names& results, int first = 0);
  // The nodes behind one whose outputs have one rank or another, once for each (branches.h).
  template <class Nodes>
  void import_both_ways(const BranchesDiffer& branches, const Nodes& nodes, int at, Scope& scope,
                        const Names& results);
  void import_node(const ::onnx::NodeProto& node, int index, Scope& scope);
  Values convert(const ::onnx::NodeProto& node, Values inputs, const Span& span);
  Values inline_function(const ::onnx::FunctionProto& function, const ::onnx::NodeProto& node,
                         const Values& inputs, const Span& span);
  const ::onnx::FunctionProto* find_function(const ::onnx::NodeProto& node) const;
  void define(Scope& scope, const std::string& name, ValuePtr value, const Span& span);
  void report(Diagnostic diagnostic);
  void check_budget(const Span& span);
  // Imports a subgraph's or function's nodes one level deeper.
  template <class Nodes>
  void import_nested(const Nodes& nodes, Scope& scope, const Names& results, const Span& span);
  void enter(const Span& span);
  [[noreturn]] void exceed(const Span& span, std::string message, std::string expected);
  Span place(std::string label) const { return Span::place(file_, std::move(label)); }
  std::string unique_name(const std::string& name);
  void drop_unused_weights(const Expr& body);
  Expr known_expr(const KnownValue& known, const Span& span);
  Expr dim_expr(const Dim& d, const Span& span);

  std::shared_ptr<const SourceFile> file_;
  OnnxOptions options_;
  TensorSource tensors_;
  Diagnostics diagnostics_;
  std::vector<Frame> frames_;
  Scope* scope_ = nullptr;
  int nesting_ = 0;
  bool exceeded_ = false;
  bool uses_sequences_ = false;
  std::vector<DecidingInput> deciding_;
  // Parameters that the program is specialised for, with their values.
  std::vector<std::pair<Var, Tensor>> specialised_;
  std::map<std::string, const ::onnx::FunctionProto*> functions_;  // by domain, name, overload
  int64_t nodes_ = 0;
  int64_t constant_bytes_ = 0;
  std::chrono::steady_clock::time_point deadline_;

  // The signature of @main.
  Scope main_scope_;
  std::vector<Var> params_;
  std::vector<TypeVar> type_params_;
  std::map<std::string, Dim> dims_by_name_;
  // Where the size of a named dimension is found at run time: a parameter and an axis.
  std::unordered_map<const Node*, std::pair<Var, int64_t>> dim_sources_;
  std::map<std::string, int> names_;
  KnownValues known_values_;
  ImportedModel result_;
};

// ---- Names, in model_check.cc

// Names in messages are cut to this length.
inline constexpr size_t kMaxLabel = 160;
std::string shorten(const std::string& name);
// "" and "ai.onnx" are the same domain.
bool is_default_domain(std::string_view domain);
std::string_view canonical_domain(std::string_view domain);
OpsetImports opsets_of(
    const google::protobuf::RepeatedPtrField<::onnx::OperatorSetIdProto>& imports);
std::string function_key(const std::string& domain, const std::string& name,
                         const std::string& overload);

// "node conv1 (Conv)", or "node #12 (Conv) -> output".
std::string node_label(const ::onnx::NodeProto& node, int index);

}  // namespace relay::importer
