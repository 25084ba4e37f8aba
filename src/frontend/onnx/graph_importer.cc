#include "frontend/onnx/graph_importer.h"

#include <onnx/onnx-ml.pb.h>

#include <algorithm>

#include "base/codes/frontend.h"
#include "frontend/common/branches.h"
#include "frontend/common/builder.h"
#include "frontend/common/operator_error.h"

namespace relay::frontend::onnx {
std::string node_label(const ::onnx::NodeProto& node, int index) {
  std::string op = "(" + shorten(node.op_type()) + ")";
  if (!node.name().empty()) return "node " + shorten(node.name()) + " " + op;
  std::string out = node.output_size() > 0 ? shorten(node.output(0)) : "nothing";
  return "node #" + std::to_string(index) + " " + op + " -> " + out;
}

Importer::Importer(std::shared_ptr<const SourceFile> file, const OnnxOptions& options,
                   TensorSource tensors)
    : ProgramBuilder(std::move(file), options),
      opset_(options.opset),
      tensors_(std::move(tensors)),
      given_(options.weights) {}

// ---- The whole model ---------------------------------------------------------------------------

ImportedModel Importer::run(const ::onnx::ModelProto& model) {
  if (!model.has_graph()) {
    throw UserError(Diagnostic(codes::frontend_damaged, place("model"),
                               "this is not an ONNX model, or it is damaged: it has no graph")
                        .help("check that the file was copied or downloaded completely"));
  }
  check_versions(model);
  for (const auto& f : model.functions()) {
    functions_[function_key(f.domain(), f.name(), f.overload())] = &f;
  }
  check_operators(model);

  OpsetImports opsets = opsets_of(model.opset_import());
  if (opset_ > 0) {
    std::erase_if(opsets.versions, [](const auto& v) { return is_default_domain(v.first); });
    opsets.versions.emplace_back("", opset_);
  }
  result().version = opsets.of("");
  result().producer = model.producer_name();
  if (!model.producer_version().empty()) result().producer += " " + model.producer_version();

  const auto& graph = model.graph();
  frames_.push_back({std::move(opsets), {}});
  scope_ = &main_scope();
  const size_t missing = diagnostics().error_count();
  import_initializers(graph, main_scope());
  declare_inputs(declared_inputs(graph));
  if (diagnostics().error_count() > missing) throw_if_errors();
  Names asked;
  for (const auto& o : graph.output()) asked.push_back(o.name());
  try {
    import_nodes(graph.node(), main_scope(), asked);
  } catch (const BranchesDiffer& branches) {
    report(open_branches(branches, place("outputs")));
    throw_if_errors();
  }
  try {
    given_.finish();
  } catch (const UserError& e) {
    report(e);
  }
  std::vector<std::pair<std::string, ValuePtr>> outputs;
  for (const std::string& name : asked) outputs.emplace_back(name, main_scope().find(name));
  return finish(outputs);
}

// ---- Weights -----------------------------------------------------------------------------------

void Importer::import_initializers(const ::onnx::GraphProto& graph, Scope& scope) {
  auto add = [&](const std::string& name, auto&& read) {
    Span span = place("initializer " + shorten(name));
    ValuePtr v;
    try {
      v = value_of(read(span));
    } catch (const UserError& e) {
      report(e);
      v = failed_value();
    }
    v->name = name;
    v->span = span;
    v->is_parameter = !options().freeze_params;
    define(scope, name, std::move(v), span);
  };
  for (const auto& t : graph.initializer()) {
    add(t.name(), [&](const Span& span) {
      if (auto dtype = dtype_of(t.data_type())) {
        const Tensor given = given_.take(t.name(), *dtype, {t.dims().begin(), t.dims().end()});
        if (given) return given;
      }
      return read_tensor(t, tensors_, span);
    });
  }
  for (const auto& t : graph.sparse_initializer()) {
    add(t.values().name(), [&](const Span& span) {
      return read_sparse_tensor(t, tensors_, options().max_constant_bytes, span);
    });
  }
}

// ---- Nodes -------------------------------------------------------------------------------------

template <class Nodes>
void Importer::import_nodes(const Nodes& nodes, Scope& scope, const Names& results, int first) {
  for (int i = first; i < nodes.size(); ++i) {
    try {
      import_node(nodes[i], i, scope);
    } catch (const BranchesDiffer& branches) {
      const auto& node = nodes[i];
      return import_both_ways(Builder(*this, node.op_type(), place(node_label(node, i))), branches,
                              {node.output().begin(), node.output().end()}, scope, results,
                              [&](Scope& way) { import_nodes(nodes, way, results, i + 1); });
    }
  }
}

const ::onnx::FunctionProto* Importer::find_function(const ::onnx::NodeProto& node) const {
  if (functions_.empty()) return nullptr;
  auto it = functions_.find(function_key(node.domain(), node.op_type(), node.overload()));
  return it == functions_.end() ? nullptr : it->second;
}

void Importer::import_node(const ::onnx::NodeProto& node, int index, Scope& scope) {
  Span span = place(node_label(node, index));
  check_budget(span);
  Values inputs;
  bool usable = true;
  for (const auto& name : node.input()) {
    if (name.empty()) {
      inputs.push_back(nullptr);
      continue;
    }
    ValuePtr v = scope.find(name);
    if (v == nullptr) {
      report(Diagnostic(codes::frontend_graph, span,
                        "input '" + shorten(name) + "' is not defined before this node")
                 .expected("a model input, an initializer, or the output of an earlier node")
                 .help("the nodes are not in order, form a cycle, or one is missing"));
      usable = false;
    } else if (v->failed) {
      usable = false;
    } else if (v->absent) {
      v = nullptr;
    }
    inputs.push_back(std::move(v));
  }

  Values outputs;
  bool converted = false;
  if (usable) {
    Scope* outer = std::exchange(scope_, &scope);
    try {
      outputs = convert(node, inputs, span);
      converted = true;
    } catch (const Poisoned&) {
      outputs.clear();
    } catch (const BranchesDiffer&) {
      scope_ = outer;
      throw;
    } catch (const UserError& e) {
      scope_ = outer;
      if (exceeded()) throw;
      report_operator(e, span, inputs,
                      [&](size_t k) { return shorten(node.input(static_cast<int>(k))); });
      outputs.clear();
    }
    scope_ = outer;
  }
  for (int i = 0; i < node.output_size(); ++i) {
    if (node.output(i).empty()) continue;
    auto at = static_cast<size_t>(i);
    ValuePtr v = at < outputs.size() ? outputs[at] : nullptr;
    if (v == nullptr) {
      if (converted) {
        report(Diagnostic(codes::frontend_unsupported, span,
                          "output " + std::to_string(i) + " of operator " +
                              shorten(node.op_type()) + " cannot be imported")
                   .help("export the model without it"));
      }
      v = failed_value();
    }
    if (v->name.empty()) {
      v->name = node.output(i);
      v->span = span;
    }
    define(scope, node.output(i), std::move(v), span);
  }
}

namespace {

// Inputs of float16 or bfloat16 become float32. The dtype that they had; float32 where there are none.
DType widen(const NodeContext& ctx, Values& inputs) {
  DType narrow = DType::Float(32);
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i] == nullptr || inputs[i]->is_list) continue;
    Expr e = ctx.in(i);
    const DType dtype = NodeContext::dtype_of(e);
    if (!dtype.is_floating() || dtype.bits != 16) continue;
    narrow = dtype;
    inputs[i] = value_of(ctx.cast(e, DType::Float(32)));
  }
  return narrow;
}

}  // namespace

Values Importer::convert(const ::onnx::NodeProto& node, Values inputs, const Span& span) {
  if (const auto* f = find_function(node)) return inline_function(*f, node, inputs, span);
  int64_t opset = frames_.back().opsets.of(node.domain());
  if (opset == 0) opset = frames_.front().opsets.of(node.domain());
  if (opset == 0) opset = 1;
  const ConverterRow* row = find_converter(canonical_domain(node.domain()), node.op_type(), opset);
  if (row == nullptr && diagnostics().has_errors())
    throw Poisoned{};  // check_operators has reported it
  if (row == nullptr) {
    throw UserError(Diagnostic(codes::frontend_unsupported, span,
                               "operator " + shorten(node.op_type()) + " cannot be imported"));
  }
  DType narrow = DType::Float(32);
  if (row->in_float32) narrow = widen(NodeContext(*this, node, inputs, opset, span), inputs);
  NodeContext ctx(*this, node, std::move(inputs), opset, span);
  Values outputs = row->convert(ctx);
  for (ValuePtr& v : outputs) {
    if (narrow.bits != 16 || v == nullptr || v->is_list) continue;
    Expr e = expr_of(v);
    if (NodeContext::dtype_of(e) == DType::Float(32)) v = value_of(ctx.cast(e, narrow));
  }
  for (ValuePtr& v : outputs) v = with_known(std::move(v));
  return outputs;
}

Values Importer::inline_function(const ::onnx::FunctionProto& function,
                                 const ::onnx::NodeProto& node, const Values& inputs,
                                 const Span& span) {
  if (node.input_size() > function.input_size()) {
    throw UserError(Diagnostic(codes::frontend_graph, span,
                               "a model-local function is called with too many inputs")
                        .expected(std::to_string(function.input_size()))
                        .found(std::to_string(node.input_size())));
  }
  if (node.output_size() > function.output_size()) {
    throw UserError(Diagnostic(codes::frontend_graph, span,
                               "a model-local function has fewer outputs than are asked of it")
                        .expected(std::to_string(node.output_size()))
                        .found(std::to_string(function.output_size())));
  }
  Frame frame{opsets_of(function.opset_import()), {}};
  for (const auto& a : function.attribute_proto()) frame.attrs[a.name()] = &a;
  for (const auto& a : node.attribute()) {
    frame.attrs[a.name()] = a.ref_attr_name().empty() ? &a : function_attr(a.ref_attr_name());
  }
  Scope scope;
  for (int i = 0; i < function.input_size(); ++i) {
    auto at = static_cast<size_t>(i);
    ValuePtr v = at < inputs.size() ? inputs[at] : nullptr;
    // An input that is not given counts as left out inside, too.
    define(scope, function.input(i), v != nullptr ? v : absent_value(), span);
  }
  frames_.push_back(std::move(frame));
  try {
    nested(span, [&] {
      import_nodes(function.node(), scope, {function.output().begin(), function.output().end()});
    });
  } catch (...) {
    frames_.pop_back();
    throw;
  }
  frames_.pop_back();
  Values outputs;
  for (const auto& name : function.output()) {
    ValuePtr v = scope.find(name);
    if (v == nullptr) {
      throw UserError(
          Diagnostic(codes::frontend_graph, span,
                     "output '" + shorten(name) + "' of a model-local function is not computed"));
    }
    outputs.push_back(std::move(v));
  }
  return outputs;
}

const ::onnx::AttributeProto* Importer::function_attr(const std::string& name) const {
  const auto& attrs = frames_.back().attrs;
  auto it = attrs.find(name);
  return it == attrs.end() ? nullptr : it->second;
}

Values Importer::import_graph(const ::onnx::GraphProto& graph, const Values& inputs,
                              const Span& span) {
  if (graph.input_size() != static_cast<int>(inputs.size())) {
    throw UserError(
        Diagnostic(codes::frontend_graph, span, "a subgraph has the wrong number of inputs")
            .expected(std::to_string(inputs.size()))
            .found(std::to_string(graph.input_size())));
  }
  Scope scope;
  scope.parent = scope_;
  import_initializers(graph, scope);
  for (int i = 0; i < graph.input_size(); ++i) {
    define(scope, graph.input(i).name(), inputs[static_cast<size_t>(i)], span);
  }
  Names results;
  for (const auto& o : graph.output()) results.push_back(o.name());
  nested(span, [&] { import_nodes(graph.node(), scope, results); });
  Values outputs;
  for (const auto& o : graph.output()) {
    ValuePtr v = scope.find(o.name());
    if (v == nullptr) {
      throw UserError(
          Diagnostic(codes::frontend_graph, span,
                     "output '" + shorten(o.name()) + "' of a subgraph is not computed"));
    }
    if (v->failed) throw Poisoned{};
    outputs.push_back(std::move(v));
  }
  return outputs;
}

}  // namespace relay::frontend::onnx
