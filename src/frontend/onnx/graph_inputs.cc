// The inputs of a model: parameters of @main, or constants where values are given for them.
#include <onnx/onnx-ml.pb.h>

#include <algorithm>
#include <set>

#include "base/codes/frontend.h"
#include "frontend/onnx/graph_importer.h"
#include "frontend/onnx/sequences.h"
#include "ir/op.h"

namespace relay::importer {
namespace {

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

// Some exporters write -1 for an open dimension.
bool is_open(const ::onnx::TensorShapeProto::Dimension& d) {
  return !d.has_dim_value() || d.dim_value() == -1;
}

// What an open dimension of an input is called.
std::string name_of_dim(const ::onnx::ValueInfoProto& input, int axis) {
  const std::string& name = input.type().tensor_type().shape().dim(axis).dim_param();
  return names_a_size(name) ? name : input.name() + "_" + std::to_string(axis);
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
  if (!is_open(d)) {
    if (d.dim_value() < 0) {
      throw UserError(Diagnostic(codes::frontend_tensor, span,
                                 "input '" + shorten(input.name()) + "' has a negative dimension")
                          .expected("sizes of 0 or more")
                          .found(std::to_string(d.dim_value())));
    }
    if (wanted >= 0 && wanted != d.dim_value()) contradiction(d.dim_value());
    return dim(d.dim_value());
  }
  std::string name = name_of_dim(input, axis);
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

// A map is its keys and its values: two vectors, side by side. Null with what is missing.
Type type_of_map(const ::onnx::TypeProto::Map& map, const char*& missing) {
  auto key = dtype_of(map.key_type());
  auto value = map.value_type().has_tensor_type()
                   ? dtype_of(map.value_type().tensor_type().elem_type())
                   : std::nullopt;
  if (!key || !value) {
    missing = "a map to numbers or strings";
    return nullptr;
  }
  auto list = [](DType dtype) { return Type(tensor_type(std::vector<Dim>{dim_any()}, dtype)); };
  return tuple_type({list(*key), list(*value)});
}

// The type of a sequence, an optional or a map, from the inside out; null with what is missing. Tensors whose number of
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
  if (proto.has_map_type()) return type_of_map(proto.map_type(), missing);
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

Tensor Importer::value_for(const ::onnx::ValueInfoProto& input, const Tensor& given,
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
  return value;
}

void Importer::freeze_input(const ::onnx::ValueInfoProto& input, const Tensor& given,
                            const Span& span) {
  ValuePtr constant = value_of(value_for(input, given, span));
  constant->name = input.name();
  constant->span = span;
  define(main_scope_, input.name(), std::move(constant), span);
}

bool Importer::declare_structure(const ::onnx::GraphProto& graph,
                                 const ::onnx::ValueInfoProto& input, const Span& span) {
  const auto& declared = input.type();
  if (!declared.has_sequence_type() && !declared.has_optional_type() && !declared.has_map_type())
    return false;
  const char* missing = "fewer dimensions";
  Type type = type_of_proto(input.type(), rank_of_inserted(graph, input.name()), 0, missing);
  if (type == nullptr) {
    if (!declared.has_map_type()) deciding_.push_back({input.name(), DecidingInput::Elements});
    throw UserError(Diagnostic(codes::frontend_dynamic, span,
                               "input '" + shorten(input.name()) + "' cannot be imported")
                        .expected(missing)
                        .found("a sequence, an optional or a map without that"));
  }
  if (!declared.has_map_type()) use_sequence_library();
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
  for (const auto& [name, value] : options_.specialised) check_option(name);
  for (const auto& [name, value] : options_.elements) check_option(name);

  std::set<std::string> open;
  for (const auto& i : graph.input()) {
    const auto& shape = i.type().tensor_type().shape();
    for (int a = 0; a < shape.dim_size(); ++a) {
      if (is_open(shape.dim(a))) open.insert(name_of_dim(i, a));
    }
  }
  for (const auto& [name, size] : options_.dims) {
    if (!open.contains(name)) {
      report(no_such_dimension("the model", name, {open.begin(), open.end()}));
    } else {
      dims_by_name_.emplace(name, dim(size));
    }
  }

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
      if (auto it = options_.specialised.find(i.name()); it != options_.specialised.end()) {
        specialise_input(i, it->second, span);
        continue;
      }
      if (declare_elements(i, span) || declare_structure(graph, i, span)) continue;
      if (!i.type().has_tensor_type()) {
        throw UserError(Diagnostic(codes::frontend_attribute, span,
                                   "input '" + shorten(i.name()) + "' is not a tensor")
                            .expected("a tensor")
                            .found("a sparse tensor"));
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
        deciding_.push_back({i.name(), DecidingInput::Sizes});
        throw UserError(
            Diagnostic(codes::frontend_dynamic, span,
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

}  // namespace relay::importer

namespace relay {

Diagnostic no_such_dimension(const std::string& where, const std::string& name,
                             const std::vector<std::string_view>& open) {
  std::string known;
  for (std::string_view n : open)
    known += (known.empty() ? "" : ", ") + importer::shorten(std::string(n));
  return Diagnostic(codes::frontend_input, {},
                    where + " has no open dimension '" + importer::shorten(name) + "'")
      .expected(known.empty() ? "no sizes: every dimension is fixed" : known)
      .help(suggest(name, open));
}

}  // namespace relay
