#include "frontend/onnx/graph_importer.h"

#include <onnx/onnx-ml.pb.h>

#include <algorithm>

#include "base/codes/frontend.h"
#include "base/codes/text.h"
#include "frontend/onnx/sequences.h"
#include "ir/op.h"
#include "node/node_map.h"
#include "node/walk.h"

namespace relay::importer {
namespace {

// The types of a node's inputs, as far as they are known.
std::string describe_inputs(const ::onnx::NodeProto& node, const Values& inputs) {
  std::string out;
  for (size_t i = 0; i < inputs.size() && i < 8; ++i) {
    const ValuePtr& v = inputs[i];
    if (v == nullptr) continue;
    Type type = v->expr ? v->expr->type : Type();
    std::string text;
    if (type) {
      text = to_string(type);
    } else if (v->data) {
      text = runtime::type_string(v->data.dtype(), v->data.shape());
    } else if (v->known) {
      text = runtime::type_string(v->known->dtype, v->known->shape);
    } else {
      continue;
    }
    out += (out.empty() ? "" : ", ") + shorten(node.input(static_cast<int>(i))) + ": " + text;
  }
  return out;
}

}  // namespace

std::string node_label(const ::onnx::NodeProto& node, int index) {
  std::string op = "(" + shorten(node.op_type()) + ")";
  if (!node.name().empty()) return "node " + shorten(node.name()) + " " + op;
  std::string out = node.output_size() > 0 ? shorten(node.output(0)) : "nothing";
  return "node #" + std::to_string(index) + " " + op + " -> " + out;
}

ValuePtr value_of(Expr expr) {
  auto v = std::make_shared<ModelValue>();
  v->expr = std::move(expr);
  return v;
}
ValuePtr value_of(KnownValue known) {
  auto v = std::make_shared<ModelValue>();
  v->known = std::move(known);
  return v;
}
ValuePtr value_of(Tensor data) {
  auto v = std::make_shared<ModelValue>();
  v->known = known_from(data);
  v->data = std::move(data);
  return v;
}

Importer::Importer(std::shared_ptr<const SourceFile> file, const OnnxOptions& options,
                   TensorSource tensors)
    : file_(std::move(file)),
      options_(options),
      tensors_(std::move(tensors)),
      known_values_(options.evaluate) {
  deadline_ = std::chrono::steady_clock::now() +
              std::chrono::milliseconds(static_cast<int64_t>(options.max_seconds * 1000));
}
Importer::~Importer() = default;

ValuePtr Importer::Scope::find(const std::string& name) const {
  for (const Scope* s = this; s != nullptr; s = s->parent) {
    if (auto it = s->values.find(name); it != s->values.end()) return it->second;
  }
  return nullptr;
}

// ---- Budget and errors -------------------------------------------------------------------------

void Importer::exceed(const Span& span, std::string message, std::string expected) {
  exceeded_ = true;
  throw UserError(Diagnostic(codes::frontend_limit, span, std::move(message))
                      .expected(std::move(expected))
                      .help("the limits are options of the importer; is the model trusted?"));
}

void Importer::check_budget(const Span& span) {
  if (++nodes_ > options_.max_nodes) {
    exceed(span, "the model has too many nodes once functions and loops are expanded",
           "at most " + std::to_string(options_.max_nodes));
  }
  if (nodes_ % 64 == 0 && std::chrono::steady_clock::now() > deadline_) {
    exceed(span, "importing the model takes too long",
           "at most " + std::to_string(static_cast<int64_t>(options_.max_seconds)) + " seconds");
  }
}

void Importer::charge_bytes(int64_t bytes, const Span& span) {
  if (bytes > options_.max_constant_bytes - constant_bytes_) {
    exceed(span, "the constants that this model makes are too large",
           "at most " + std::to_string(options_.max_constant_bytes) + " bytes together");
  }
  constant_bytes_ += bytes;
}

bool Importer::attempt(const std::function<void()>& import) {
  Diagnostics before = diagnostics_;
  std::vector<DecidingInput> deciding = deciding_;
  Scope* scope = scope_;
  int nesting = nesting_;
  bool good = true;
  try {
    import();
    good = diagnostics_.error_count() == before.error_count();
  } catch (const Poisoned&) {
    good = false;
  } catch (const UserError&) {
    if (exceeded_) throw;
    good = false;
  }
  if (good) return true;
  diagnostics_ = std::move(before);
  deciding_ = std::move(deciding);
  scope_ = scope;
  nesting_ = nesting;
  return false;
}

void Importer::report(Diagnostic diagnostic) { diagnostics_.add(std::move(diagnostic)); }

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
  if (options_.opset > 0) {
    std::erase_if(opsets.versions, [](const auto& v) { return is_default_domain(v.first); });
    opsets.versions.emplace_back("", options_.opset);
  }
  result_.opset = opsets.of("");
  result_.producer = model.producer_name();
  if (!model.producer_version().empty()) result_.producer += " " + model.producer_version();

  const auto& graph = model.graph();
  frames_.push_back({std::move(opsets), {}});
  scope_ = &main_scope_;
  const size_t missing = diagnostics_.error_count();
  import_initializers(graph, main_scope_);
  declare_inputs(graph);
  if (diagnostics_.error_count() > missing) throw_if_errors(graph);
  Names asked;
  for (const auto& o : graph.output()) asked.push_back(o.name());
  try {
    import_nodes(graph.node(), main_scope_, asked);
  } catch (const BranchesDiffer& branches) {
    report(open_branches(branches, place("outputs")));
    throw_if_errors(graph);
  }

  std::vector<Expr> outputs;
  for (const auto& o : graph.output()) {
    Span span = place("output " + shorten(o.name()));
    result_.output_names.push_back(o.name());
    ValuePtr v = main_scope_.find(o.name());
    if (v == nullptr) {
      report(Diagnostic(codes::frontend_graph, span,
                        "output '" + shorten(o.name()) + "' is not computed by any node"));
      continue;
    }
    if (v->failed) continue;
    try {
      outputs.push_back(expr_of(v));  // of a sequence a tuple
    } catch (const UserError& e) {
      for (const Diagnostic& d : e.diagnostics()) report(d);
    }
  }
  if (graph.output_size() == 0) {
    report(Diagnostic(codes::frontend_graph, place("graph"), "the model has no outputs"));
  }
  throw_if_errors(graph);
  RELAY_CHECK(static_cast<int>(outputs.size()) == graph.output_size(),
              "an output failed without a message");

  Expr body = outputs.size() == 1 ? outputs[0] : Expr(tuple(outputs, place("outputs")));
  drop_unused_weights(body);
  body = with_checks(std::move(body));
  ValueList inputs, results;
  for (size_t i = 0; i < params_.size(); ++i) {
    const std::string &mine = params_[i]->name_hint, &name = result_.input_names[i];
    // Weights go by the names that they are returned under.
    if (name != mine && !result_.params.contains(mine)) inputs.emplace_back(ValueList{mine, name});
  }
  for (const std::string& name : result_.output_names) results.emplace_back(name);
  Dict attrs{{attr::kOutputNames, AttrValue(std::move(results))}};
  if (!inputs.empty()) attrs[attr::kInputNames] = AttrValue(std::move(inputs));
  Function main = function(params_, body, nullptr, type_params_, std::move(attrs), place("graph"));
  std::vector<GlobalVar> names{global_var("main", main->type)};
  std::vector<Function> functions{main};
  std::vector<TypeData> types;
  if (uses_sequences_) {
    const Module& library = sequence_library();
    names.insert(names.end(), library->global_vars.begin(), library->global_vars.end());
    functions.insert(functions.end(), library->functions.begin(), library->functions.end());
    types = library->type_definitions;
  }
  result_.module = make_module(std::move(names), std::move(functions), std::move(types));
  return std::move(result_);
}

// Weights that only decided sizes and axes are no parameters.
void Importer::drop_unused_weights(const Expr& body) {
  if (result_.params.empty()) return;
  NodeMap<bool> used;
  post_order(
      body, [&](const Node& n) { used[&n] = true; }, family::expr | family::pattern);
  size_t kept = 0;
  for (size_t i = 0; i < params_.size(); ++i) {
    auto weight = result_.params.find(params_[i]->name_hint);
    if (weight != result_.params.end() && !used.contains(params_[i].get())) {
      result_.params.erase(weight);
      continue;
    }
    params_[kept] = params_[i];
    result_.input_names[kept++] = result_.input_names[i];
  }
  params_.resize(kept);
  result_.input_names.resize(kept);
}

std::string Importer::unique_name(const std::string& name) {
  std::string out;
  for (char c : name.substr(0, kMaxLabel)) {
    bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    out += plain ? c : '_';
  }
  bool letter =
      !out.empty() && ((out[0] >= 'a' && out[0] <= 'z') || (out[0] >= 'A' && out[0] <= 'Z'));
  if (!letter) out = "v" + out;
  int& used = names_[out];
  std::string candidate = out;
  while (used > 0 && names_.contains(candidate)) candidate = out + "_" + std::to_string(used++);
  if (used == 0) used = 1;
  names_[candidate] = std::max(names_[candidate], 1);
  return candidate;
}

// ---- Weights -----------------------------------------------------------------------------------

void Importer::import_initializers(const ::onnx::GraphProto& graph, Scope& scope) {
  auto add = [&](const std::string& name, auto&& read) {
    Span span = place("initializer " + shorten(name));
    ValuePtr v;
    try {
      v = value_of(read(span));
    } catch (const UserError& e) {
      for (const Diagnostic& d : e.diagnostics()) report(d);
      v = std::make_shared<ModelValue>();
      v->failed = true;
    }
    v->name = name;
    v->span = span;
    v->is_parameter = !options_.freeze_params;
    define(scope, name, std::move(v), span);
  };
  for (const auto& t : graph.initializer()) {
    add(t.name(), [&](const Span& span) { return read_tensor(t, tensors_, span); });
  }
  for (const auto& t : graph.sparse_initializer()) {
    add(t.values().name(), [&](const Span& span) {
      return read_sparse_tensor(t, tensors_, options_.max_constant_bytes, span);
    });
  }
}

// ---- Nodes -------------------------------------------------------------------------------------

void Importer::define(Scope& scope, const std::string& name, ValuePtr value, const Span& span) {
  if (name.empty()) return;
  auto [it, inserted] = scope.values.try_emplace(name, std::move(value));
  if (!inserted) {
    report(Diagnostic(codes::frontend_graph, span, "value '" + shorten(name) + "' is defined twice")
               .expected("one definition of each name")
               .help("the exporter wrote a graph that is not in single-assignment form"));
  }
}

template <class Nodes>
void Importer::import_nodes(const Nodes& nodes, Scope& scope, const Names& results, int first) {
  for (int i = first; i < nodes.size(); ++i) {
    Scope* outer = scope_;
    try {
      import_node(nodes[i], i, scope);
    } catch (const BranchesDiffer& branches) {
      scope_ = outer;
      return import_both_ways(branches, nodes, i, scope, results);
    }
  }
}

template <class Nodes>
void Importer::import_both_ways(const BranchesDiffer& branches, const Nodes& nodes, int at,
                                Scope& scope, const Names& results) {
  const auto& node = nodes[at];
  const Span span = place(node_label(node, at));
  // Of a model-local function some outputs may be the same either way.
  if (static_cast<int>(branches.then_values.size()) != node.output_size()) {
    throw UserError(open_branches(branches, span));
  }
  enter(span);
  struct Way {
    Scope scope;
    std::vector<Diagnostic> found;
    bool good = true;
  };
  auto follow = [&](const Values& values) {
    Way way;
    way.scope.parent = &scope;
    Diagnostics before = std::exchange(diagnostics_, Diagnostics());
    for (int i = 0; i < node.output_size(); ++i) {
      define(way.scope, node.output(i), values[static_cast<size_t>(i)], span);
    }
    import_nodes(nodes, way.scope, results, at + 1);
    way.good = !diagnostics_.has_errors();
    way.found = std::exchange(diagnostics_, std::move(before)).all();
    return way;
  };
  Way yes = follow(branches.then_values), no = follow(branches.else_values);
  --nesting_;
  // What is a result and comes after the node. One that no node computes is reported where it is asked for.
  Names after;
  for (const std::string& name : results) {
    bool computed = yes.scope.find(name) != nullptr && no.scope.find(name) != nullptr;
    if (scope.find(name) == nullptr && computed) after.push_back(name);
  }
  auto results_of = [&](const Way& way) {
    Values out;
    for (const std::string& name : after) out.push_back(way.scope.find(name));
    return out;
  };
  // What was reported before may have kept a way from its results.
  auto sound = [](const Values& values) {
    return std::ranges::none_of(values, [](const ValuePtr& v) {
      return v->failed || std::ranges::any_of(v->list, &ModelValue::failed);
    });
  };
  NodeContext ctx(*this, node, {}, frames_.back().opsets.of(node.domain()), span);
  Values chosen;
  if (yes.good && no.good) {
    Values a = results_of(yes), b = results_of(no);
    if (sound(a) && sound(b)) {
      chosen = join_branches(ctx, branches.condition, std::move(a), std::move(b));
    }
  } else if (yes.good != no.good && are_type_errors(yes.good ? no.found : yes.found)) {
    Values values = results_of(yes.good ? yes : no);
    if (sound(values)) chosen = only_if(ctx, branches.condition, yes.good, values);
  } else {
    report(open_branches(branches, span));
    for (const Diagnostic& d : (yes.good ? no : yes).found) report(d);
  }
  for (size_t i = 0; i < after.size(); ++i) {
    ValuePtr v = i < chosen.size() ? chosen[i] : std::make_shared<ModelValue>();
    v->failed = v->failed || chosen.empty();
    define(scope, after[i], std::move(v), span);
  }
}

void Importer::enter(const Span& span) {
  if (nesting_ == kMaxNesting) {
    exceed(span, "subgraphs and model-local functions are nested too deeply, or call themselves",
           "at most " + std::to_string(kMaxNesting) + " levels");
  }
  ++nesting_;
}

template <class Nodes>
void Importer::import_nested(const Nodes& nodes, Scope& scope, const Names& results,
                             const Span& span) {
  enter(span);
  import_nodes(nodes, scope, results);
  --nesting_;
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
    } catch (const UserError& e) {
      scope_ = outer;
      if (exceeded_) throw;
      std::string types = describe_inputs(node, inputs);
      if (e.diagnostics().front().code == codes::frontend_dynamic.id) note_deciding(inputs);
      for (Diagnostic d : e.diagnostics()) {
        if (!d.span) d.span = span;
        if (d.code == codes::text_unknown_operator.id) {
          d.help_text = "this operator of Relay is not built in; " + d.help_text;
          d.code = codes::frontend_unsupported.id;
        }
        if (!types.empty()) d.note(span, "its inputs are " + types);
        report(std::move(d));
      }
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
      v = std::make_shared<ModelValue>();
      v->failed = true;
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
  if (row == nullptr && diagnostics_.has_errors())
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
  for (ValuePtr& v : outputs) {
    if (v == nullptr || !v->expr || v->data || v->known) continue;
    const KnownValue* known = known_values_.of(v->expr);
    if (known != nullptr && known->is_complete()) v = value_of(*known);
  }
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
  auto absent = [] {
    auto v = std::make_shared<ModelValue>();
    v->absent = true;
    return v;
  };
  for (int i = 0; i < function.input_size(); ++i) {
    auto at = static_cast<size_t>(i);
    ValuePtr v = at < inputs.size() ? inputs[at] : nullptr;
    // An input that is not given counts as left out inside, too.
    define(scope, function.input(i), v != nullptr ? v : absent(), span);
  }
  frames_.push_back(std::move(frame));
  try {
    import_nested(function.node(), scope, {function.output().begin(), function.output().end()},
                  span);
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
  import_nested(graph.node(), scope, results, span);
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

// ---- Expressions of values ---------------------------------------------------------------------

Expr Importer::expr_of(const ValuePtr& v) {
  if (v->failed) throw Poisoned{};
  if (v->expr) return v->expr;
  if (v->is_list) {
    std::vector<Expr> fields;
    for (const ValuePtr& f : v->list) fields.push_back(expr_of(f));
    return v->expr = tuple(std::move(fields), v->span);
  }
  if (v->data) v->data = aligned(v->data);
  if (v->data && v->is_parameter) {
    std::vector<int64_t> shape(v->data.shape().begin(), v->data.shape().end());
    Var p = var(unique_name(v->name), tensor_type(shape, v->data.dtype()), v->span);
    params_.push_back(p);
    result_.input_names.push_back(v->name);
    result_.params[p->name_hint] = v->data;
    // Lists of sizes and axes are constants of the program; numbers are the parameter's own.
    if (v->known && v->known->is_int()) known_values_.assume(p, *v->known);
    return v->expr = p;
  }
  if (v->data) return v->expr = constant(v->data, v->span, v->name);
  if (v->known) return v->expr = known_expr(*v->known, v->span);
  throw UserError(Diagnostic(codes::frontend_attribute, v->span,
                             "an input that is absent is used as a tensor"));
}

}  // namespace relay::importer
