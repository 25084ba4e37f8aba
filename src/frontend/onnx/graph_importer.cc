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

// The tensor in a dtype that holds all its numbers, else as it is.
Tensor in_dtype(const Tensor& t, DType dtype) {
  const DType from = t.dtype();
  bool numbers = (from.is_integer() || from.is_float(32) || from.is_float(64)) && !from.is_bool() &&
                 (dtype.is_integer() || dtype.is_floating()) && !dtype.is_bool();
  if (from == dtype || !numbers) return t;
  Tensor out = Tensor::empty(dtype, t.shape());
  for (int64_t i = 0; i < t.num_elements(); ++i) {
    if (from.is_integer()) {
      out.set_from_int(i, t.get_as_int(i));
      if (dtype.is_integer() ? out.get_as_int(i) != t.get_as_int(i)
                             : out.get_as_double(i) != static_cast<double>(t.get_as_int(i))) {
        return t;
      }
    } else if (dtype.is_floating()) {
      out.set_from_double(i, t.get_as_double(i));
    } else {
      return t;
    }
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
  if (diagnostics_.error_count() > missing) diagnostics_.throw_if_errors();
  Names asked;
  for (const auto& o : graph.output()) asked.push_back(o.name());
  try {
    import_nodes(graph.node(), main_scope_, asked);
  } catch (const BranchesDiffer& branches) {
    report(rank_is_open(branches, place("outputs")));
    diagnostics_.throw_if_errors();
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
  diagnostics_.throw_if_errors();
  RELAY_CHECK(static_cast<int>(outputs.size()) == graph.output_size(),
              "an output failed without a message");

  Expr body = outputs.size() == 1 ? outputs[0] : Expr(tuple(outputs, place("outputs")));
  drop_unused_weights(body);
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

// ---- Inputs and weights ------------------------------------------------------------------------

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

namespace {

// Whether a dimension's name says which size it is. Exporters also write words for "not known", one
// and the same for every such dimension of a model; these name nothing.
bool names_a_size(const std::string& name) {
  std::string word;
  for (char c : name) {
    if (std::isalpha(static_cast<unsigned char>(c))) word += static_cast<char>(std::tolower(c));
  }
  constexpr std::string_view kUnknown[] = {"",    "none",    "null",     "nan",
                                           "unk", "unknown", "undefined"};
  bool only_word = word.size() == name.size() || word.empty();
  return !only_word || std::ranges::find(kUnknown, word) == std::end(kUnknown);
}

}  // namespace

Dim Importer::input_dim(const ::onnx::ValueInfoProto& input, int axis, const Span& span) {
  const auto& d = input.type().tensor_type().shape().dim(axis);
  int64_t wanted = -1;
  if (auto it = options_.shapes.find(input.name()); it != options_.shapes.end()) {
    wanted = it->second[static_cast<size_t>(axis)];
  }
  auto contradiction = [&](int64_t declared) {
    throw UserError(Diagnostic(codes::frontend_input, span,
                               "dimension " + std::to_string(axis) + " of input '" +
                                   shorten(input.name()) + "' is fixed by the model")
                        .expected(std::to_string(declared))
                        .found(std::to_string(wanted)));
  };
  // Some exporters write -1 for an open dimension.
  if (d.has_dim_value() && d.dim_value() != -1) {
    if (d.dim_value() < 0) {
      throw UserError(Diagnostic(codes::frontend_tensor, span,
                                 "input '" + shorten(input.name()) + "' has a negative dimension")
                          .expected("sizes of 0 or more")
                          .found(std::to_string(d.dim_value())));
    }
    if (wanted >= 0 && wanted != d.dim_value()) contradiction(d.dim_value());
    return dim(d.dim_value());
  }
  std::string name = d.dim_param();
  if (!names_a_size(name)) name = input.name() + "_" + std::to_string(axis);
  Dim& known = dims_by_name_[name];
  if (wanted >= 0) {
    if (known && as_const(known) && *as_const(known) != wanted) contradiction(*as_const(known));
    known = dim(wanted);
  }
  if (!known) {
    TypeVar var = type_var(unique_name(name), Kind::Dim);
    type_params_.push_back(var);
    known = dim(var);
  }
  return known;
}

namespace {

// The number of dimensions of a tensor that a node puts into a sequence; nullopt where none tells it.
std::optional<int> rank_of_inserted(const ::onnx::GraphProto& graph, const std::string& sequence) {
  for (const auto& n : graph.node()) {
    if (n.op_type() != "SequenceInsert" || n.input_size() < 2 || n.input(0) != sequence) continue;
    for (const auto& i : graph.input()) {
      const auto& tensor = i.type().tensor_type();
      if (i.name() == n.input(1) && tensor.has_shape()) return tensor.shape().dim_size();
    }
  }
  return std::nullopt;
}

// The type of a sequence or an optional, from the inside out; null with what is missing. Tensors whose number of
// dimensions is not told have `rank`.
Type type_of_proto(const ::onnx::TypeProto& proto, std::optional<int> rank, int depth,
                   const char*& missing) {
  if (depth > 2) {
    missing = "at most an optional of a sequence of tensors";
    return nullptr;
  }
  if (proto.has_sequence_type()) {
    Type element = type_of_proto(proto.sequence_type().elem_type(), rank, depth + 1, missing);
    return element == nullptr ? nullptr : list_type(opened(element));
  }
  if (proto.has_optional_type()) {
    Type element = type_of_proto(proto.optional_type().elem_type(), rank, depth + 1, missing);
    return element == nullptr ? nullptr : option_type(element);
  }
  if (!proto.has_tensor_type()) {
    missing = "tensors in it";
    return nullptr;
  }
  auto dtype = dtype_of(proto.tensor_type().elem_type());
  if (!dtype) {
    missing = "elements of a type that Relay has";
    return nullptr;
  }
  if (!proto.tensor_type().has_shape() && !rank) {
    missing = "the number of dimensions of what it holds";
    return nullptr;
  }
  std::vector<Dim> shape;
  if (!proto.tensor_type().has_shape()) shape.assign(static_cast<size_t>(*rank), dim_any());
  for (const auto& d : proto.tensor_type().shape().dim()) {
    bool fixed = d.has_dim_value() && d.dim_value() >= 0;
    shape.push_back(fixed ? dim(d.dim_value()) : dim_any());
  }
  return static_cast<int64_t>(shape.size()) > kMaxRank
             ? nullptr
             : Type(tensor_type(std::move(shape), *dtype));
}

}  // namespace

void Importer::add_param(const ::onnx::ValueInfoProto& input, const Var& v, const Span& span) {
  params_.push_back(v);
  result_.input_names.push_back(input.name());
  ValuePtr value = value_of(Expr(v));
  value->name = input.name();
  value->span = span;
  define(main_scope_, input.name(), std::move(value), span);
}

void Importer::freeze_input(const ::onnx::ValueInfoProto& input, const Tensor& given,
                            const Span& span) {
  const auto& tensor = input.type().tensor_type();
  auto wanted = dtype_of(tensor.elem_type());
  const Tensor value = wanted ? in_dtype(given, *wanted) : given;
  bool fits = input.type().has_tensor_type() && wanted == value.dtype();
  if (fits && tensor.has_shape()) {
    fits = tensor.shape().dim_size() == value.rank();
    for (int a = 0; fits && a < value.rank(); ++a) {
      const auto& d = tensor.shape().dim(a);
      int64_t size = value.dim(static_cast<size_t>(a));
      fits = !d.has_dim_value() || d.dim_value() == -1 || d.dim_value() == size;
      // The names of its sizes hold for other inputs.
      if (fits && !d.has_dim_value() && names_a_size(d.dim_param())) {
        Dim& known = dims_by_name_[d.dim_param()];
        if (!known) known = dim(size);
        fits = as_const(known) == size;
      }
    }
  }
  if (!fits) {
    throw UserError(
        Diagnostic(codes::frontend_input, span,
                   "the value given for input '" + shorten(input.name()) + "' does not fit")
            .expected("a tensor of the input's type and sizes")
            .found(runtime::type_string(value.dtype(), value.shape())));
  }
  ValuePtr constant = value_of(value);
  constant->name = input.name();
  constant->span = span;
  define(main_scope_, input.name(), std::move(constant), span);
}

bool Importer::declare_sequence(const ::onnx::GraphProto& graph,
                                const ::onnx::ValueInfoProto& input, const Span& span) {
  if (!input.type().has_sequence_type() && !input.type().has_optional_type()) return false;
  const char* missing = "fewer dimensions";
  Type type = type_of_proto(input.type(), rank_of_inserted(graph, input.name()), 0, missing);
  if (type == nullptr) {
    throw UserError(Diagnostic(codes::frontend_attribute, span,
                               "input '" + shorten(input.name()) + "' cannot be imported")
                        .expected(missing)
                        .found("a sequence or an optional without that"));
  }
  use_sequence_library();
  add_param(input, var(unique_name(input.name()), type, span), span);
  return true;
}

void Importer::declare_inputs(const ::onnx::GraphProto& graph) {
  for (const auto& i : graph.input()) {
    const auto& tensor = i.type().tensor_type();
    if (options_.numbers.contains(i.name()) && tensor.has_shape() && tensor.shape().dim_size() == 0)
      options_.shapes.erase(i.name());
  }
  std::vector<std::string_view> names;
  for (const auto& i : graph.input()) names.push_back(i.name());
  auto check_option = [&](const std::string& name) {
    if (std::find(names.begin(), names.end(), name) != names.end()) return;
    std::string known;
    for (auto n : names) known += (known.empty() ? "" : ", ") + shorten(std::string(n));
    report(Diagnostic(codes::frontend_input, place("inputs"),
                      "the model has no input '" + shorten(name) + "'")
               .expected(known)
               .help(suggest(name, names)));
  };
  for (const auto& [name, shape] : options_.shapes) check_option(name);
  for (const auto& [name, dtype] : options_.dtypes) check_option(name);
  for (const auto& [name, value] : options_.frozen) check_option(name);

  // Sizes given for named dimensions hold for every input, also for earlier ones.
  for (const auto& i : graph.input()) {
    auto it = options_.shapes.find(i.name());
    if (auto f = options_.frozen.find(i.name()); f != options_.frozen.end()) {
      const auto& dims = i.type().tensor_type().shape();
      for (int a = 0; a < dims.dim_size() && a < f->second.rank(); ++a) {
        if (dims.dim(a).has_dim_value() || !names_a_size(dims.dim(a).dim_param())) continue;
        dims_by_name_.try_emplace(dims.dim(a).dim_param(),
                                  dim(f->second.dim(static_cast<size_t>(a))));
      }
    }
    if (it == options_.shapes.end()) continue;
    const auto& shape = i.type().tensor_type().shape();
    for (int a = 0; a < shape.dim_size() && a < static_cast<int>(it->second.size()); ++a) {
      int64_t size = it->second[static_cast<size_t>(a)];
      if (size >= 0 && names_a_size(shape.dim(a).dim_param())) {
        dims_by_name_.try_emplace(shape.dim(a).dim_param(), dim(size));
      }
    }
  }

  for (const auto& i : graph.input()) {
    Span span = place("input " + shorten(i.name()));
    if (main_scope_.values.contains(i.name())) continue;  // a weight with a default
    try {
      if (auto it = options_.frozen.find(i.name()); it != options_.frozen.end()) {
        freeze_input(i, it->second, span);
        continue;
      }
      if (declare_sequence(graph, i, span)) continue;
      if (!i.type().has_tensor_type()) {
        throw UserError(Diagnostic(codes::frontend_attribute, span,
                                   "input '" + shorten(i.name()) + "' is not a tensor")
                            .expected("a tensor")
                            .found("a map or sparse tensor"));
      }
      const auto& tensor = i.type().tensor_type();
      auto dtype = dtype_of(tensor.elem_type());
      if (auto it = options_.dtypes.find(i.name()); it != options_.dtypes.end()) {
        dtype = it->second;
      }
      if (!dtype) {
        throw UserError(
            Diagnostic(codes::frontend_tensor, span,
                       "input '" + shorten(i.name()) + "' has an element type that Relay lacks")
                .expected("a float, integer or bool type of at most 64 bits")
                .found(onnx_type_name(tensor.elem_type())));
      }
      auto wanted = options_.shapes.find(i.name());
      if (!tensor.has_shape() && wanted == options_.shapes.end()) {
        throw UserError(
            Diagnostic(codes::frontend_input, span,
                       "the model does not say which shape input '" + shorten(i.name()) + "' has")
                .help("give its shape, as in --input NAME=1x3x224x224"));
      }
      std::vector<Dim> shape;
      if (!tensor.has_shape()) {
        for (size_t a = 0; a < wanted->second.size(); ++a) {
          int64_t size = wanted->second[a];
          if (size >= 0) {
            shape.push_back(dim(size));
            continue;
          }
          TypeVar var = type_var(unique_name(i.name() + "_" + std::to_string(a)), Kind::Dim);
          type_params_.push_back(var);
          shape.push_back(dim(var));
        }
      } else {
        int rank = tensor.shape().dim_size();
        if (rank > kMaxRank) {
          throw UserError(Diagnostic(codes::frontend_tensor, span,
                                     "input '" + shorten(i.name()) + "' has too many dimensions")
                              .expected("at most " + std::to_string(kMaxRank))
                              .found(std::to_string(rank)));
        }
        if (wanted != options_.shapes.end() && static_cast<int>(wanted->second.size()) != rank) {
          throw UserError(
              Diagnostic(codes::frontend_input, span,
                         "the shape given for input '" + shorten(i.name()) + "' has the wrong rank")
                  .expected("rank " + std::to_string(rank))
                  .found(runtime::shape_to_string(wanted->second)));
        }
        for (int a = 0; a < rank; ++a) shape.push_back(input_dim(i, a, span));
      }
      int64_t bytes = static_cast<int64_t>(dtype->bytes());
      for (const Dim& d : shape) {
        auto size = as_const(d);
        if (size && (__builtin_mul_overflow(bytes, std::max<int64_t>(*size, 1), &bytes) ||
                     bytes > (int64_t{1} << 62))) {
          throw UserError(Diagnostic(codes::frontend_tensor, span,
                                     "the size of input '" + shorten(i.name()) + "' overflows")
                              .expected("a product below 2^62")
                              .found(to_string(tensor_type(shape, *dtype))));
        }
      }
      Var v = var(unique_name(i.name()), tensor_type(shape, *dtype), span);
      for (size_t a = 0; a < shape.size(); ++a) {
        if (auto* named = as<DimVarNode>(shape[a])) {
          dim_sources_.try_emplace(named->var.get(), v, static_cast<int64_t>(a));
        }
      }
      add_param(i, v, span);
    } catch (const UserError& e) {
      for (const Diagnostic& d : e.diagnostics()) report(d);
    }
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
    throw UserError(rank_is_open(branches, span));
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
  NodeContext ctx(*this, node, {}, frames_.back().opsets.of(node.domain()), span);
  Values chosen;
  if (yes.good && no.good) {
    chosen = join_branches(ctx, branches.condition, results_of(yes), results_of(no));
  } else if (yes.good != no.good && are_type_errors(yes.good ? no.found : yes.found)) {
    chosen = only_if(ctx, branches.condition, yes.good, results_of(yes.good ? yes : no));
  } else {
    report(rank_is_open(branches, span));
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
  if (usable) {
    Scope* outer = std::exchange(scope_, &scope);
    try {
      outputs = convert(node, inputs, span);
    } catch (const Poisoned&) {
      outputs.clear();
    } catch (const UserError& e) {
      scope_ = outer;
      if (exceeded_) throw;
      std::string types = describe_inputs(node, inputs);
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
      if (!outputs.empty()) {
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
  NodeContext ctx(*this, node, std::move(inputs), opset, span);
  Values outputs = row->convert(ctx);
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

Expr Importer::transposed(const ValuePtr& v) {
  if (v->failed || !v->data || v->is_parameter || v->data.shape().size() != 2) return nullptr;
  if (!v->transposed) v->transposed = constant(transpose_matrix(v->data), v->span, v->name);
  return v->transposed;
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
