// The inputs of a model: parameters of @main, or constants where values are given for them.
#include <algorithm>
#include <set>

#include "base/codes/frontend.h"
#include "base/suggest.h"
#include "frontend/common/program_builder.h"
#include "frontend/common/tensor_bytes.h"
#include "ir/op.h"

namespace relay::frontend {
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

using Sizes = std::vector<DeclaredInput::Size>;

// The declared dimensions; none where the model does not say.
const Sizes& sizes_of(const DeclaredInput& input) {
  static const Sizes none;
  return input.shape ? *input.shape : none;
}

// What an open dimension of an input is called.
std::string name_of_dim(const DeclaredInput& input, size_t axis) {
  const std::string& name = (*input.shape)[axis].name;
  return names_a_size(name) ? name : input.name + "_" + std::to_string(axis);
}

}  // namespace

Dim ProgramBuilder::dim_of(const DeclaredInput& input, size_t axis, const Span& span) {
  const DeclaredInput::Size& d = (*input.shape)[axis];
  int64_t wanted = -1;
  if (auto it = options_.shapes.find(input.name); it != options_.shapes.end()) {
    wanted = it->second[axis];
  }
  auto contradiction = [&](int64_t declared) {
    throw UserError(Diagnostic(codes::frontend_input, span,
                               "dimension " + std::to_string(axis) + " of input '" +
                                   shorten(input.name) + "' is fixed by the model")
                        .expected(std::to_string(declared))
                        .found(std::to_string(wanted)));
  };
  if (d.size) {
    if (*d.size < 0) {
      throw UserError(Diagnostic(codes::frontend_tensor, span,
                                 "input '" + shorten(input.name) + "' has a negative dimension")
                          .expected("sizes of 0 or more")
                          .found(std::to_string(*d.size)));
    }
    if (wanted >= 0 && wanted != *d.size) contradiction(*d.size);
    return dim(*d.size);
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

void ProgramBuilder::add_param(const DeclaredInput& input, const Var& v, ValuePtr value,
                               const Span& span) {
  params_.push_back(v);
  result_.input_names.push_back(input.name);
  value->name = input.name;
  value->span = span;
  define(main_scope_, input.name, std::move(value), span);
}

Tensor ProgramBuilder::value_for(const DeclaredInput& input, const Tensor& given,
                                 const Span& span) {
  const Tensor value = input.dtype ? in_dtype(given, *input.dtype) : given;
  bool fits = !input.structure && input.unusable.empty() && input.dtype == value.dtype();
  if (fits && input.shape) {
    fits = static_cast<int64_t>(input.shape->size()) == value.rank();
    for (size_t a = 0; fits && a < input.shape->size(); ++a) {
      const DeclaredInput::Size& d = (*input.shape)[a];
      int64_t size = value.dim(a);
      fits = !d.size || *d.size == size;
      // The names of its sizes hold for other inputs.
      if (fits && !d.size && names_a_size(d.name)) {
        Dim& known = dims_by_name_[d.name];
        if (!known) known = dim(size);
        fits = as_const(known) == size;
      }
    }
  }
  if (!fits) {
    throw UserError(
        Diagnostic(codes::frontend_input, span,
                   "the value given for input '" + shorten(input.name) + "' does not fit")
            .expected("a tensor of the input's type and sizes")
            .found(runtime::type_string(value.dtype(), value.shape())));
  }
  return value;
}

void ProgramBuilder::declare_structure(const DeclaredInput& input, const Span& span) {
  const DeclaredInput::Structure& structure = *input.structure;
  if (structure.type == nullptr) {
    if (structure.element) deciding_.push_back({input.name, DecidingInput::Elements});
    throw UserError(Diagnostic(codes::frontend_dynamic, span,
                               "input '" + shorten(input.name) + "' cannot be imported")
                        .expected(structure.missing)
                        .found("a sequence, an optional or a map without that"));
  }
  if (!isa<TupleTypeNode>(structure.type)) use_list_library();
  Var v = var(unique_name(input.name), structure.type, span);
  add_param(input, v, value_of(Expr(v)), span);
}

void ProgramBuilder::specialise(const DeclaredInput& input, const Tensor& given, const Span& span) {
  Tensor value = value_for(input, given, span);
  std::vector<int64_t> shape(value.shape().begin(), value.shape().end());
  Var v = var(unique_name(input.name), tensor_type(shape, value.dtype()), span);
  specialised_.emplace_back(v, value);
  add_param(input, v, value_of(std::move(value)), span);
}

bool ProgramBuilder::declare_elements(const DeclaredInput& input, const Span& span) {
  auto given = options_.elements.find(input.name);
  if (given == options_.elements.end() || !input.structure || !input.structure->element)
    return false;
  std::vector<Type> fields;
  if (given->second) {
    for (const auto& shape : *given->second)
      fields.emplace_back(tensor_type(shape, *input.structure->element));
  }
  const bool one = !input.structure->is_list && fields.size() == 1;
  Var v = var(unique_name(input.name), one ? fields[0] : Type(tuple_type(fields)), span);
  ValuePtr value = value_of(Expr(v));
  if (!given->second) {
    value = absent_value();
  } else if (!one) {
    Values items;
    for (size_t i = 0; i < fields.size(); ++i)
      items.push_back(value_of(tuple_get_item(v, static_cast<int64_t>(i), span)));
    value = list_of(std::move(items));
  }
  add_param(input, v, std::move(value), span);
  return true;
}

void ProgramBuilder::check_named_inputs() {
  std::vector<std::string_view> names;
  for (const DeclaredInput& i : declared_) names.push_back(i.name);
  auto check = [&](const auto& options) {
    for (const auto& [name, value] : options) {
      if (std::find(names.begin(), names.end(), name) != names.end()) continue;
      std::string known;
      for (auto n : names) known += (known.empty() ? "" : ", ") + shorten(std::string(n));
      report(Diagnostic(codes::frontend_input, place("inputs"),
                        "the model has no input '" + shorten(name) + "'")
                 .expected(known)
                 .help(suggest(name, names)));
    }
  };
  check(options_.shapes);
  check(options_.dtypes);
  check(options_.frozen);
  check(options_.specialised);
  check(options_.elements);
}

// Sizes that are given for named dimensions hold for every input, also for earlier ones.
void ProgramBuilder::use_sizes_by_name() {
  std::set<std::string> open;
  for (const DeclaredInput& i : declared_) {
    for (size_t a = 0; a < sizes_of(i).size(); ++a) {
      if (!sizes_of(i)[a].size) open.insert(name_of_dim(i, a));
    }
  }
  for (const auto& [name, size] : options_.dims) {
    if (!open.contains(name)) {
      report(no_such_dimension("the model", name, {open.begin(), open.end()}));
    } else {
      dims_by_name_.emplace(name, dim(size));
    }
  }
  for (const DeclaredInput& i : declared_) {
    const Sizes& sizes = sizes_of(i);
    if (auto frozen = options_.frozen.find(i.name); frozen != options_.frozen.end()) {
      const Tensor& value = frozen->second;
      for (size_t a = 0; a < std::min(sizes.size(), static_cast<size_t>(value.rank())); ++a) {
        if (!sizes[a].size && names_a_size(sizes[a].name))
          dims_by_name_.try_emplace(sizes[a].name, dim(value.dim(a)));
      }
    }
    auto shape = options_.shapes.find(i.name);
    if (shape == options_.shapes.end()) continue;
    for (size_t a = 0; a < std::min(sizes.size(), shape->second.size()); ++a) {
      if (shape->second[a] >= 0 && !sizes[a].size && names_a_size(sizes[a].name))
        dims_by_name_.try_emplace(sizes[a].name, dim(shape->second[a]));
    }
  }
}

std::vector<Dim> ProgramBuilder::shape_of(const DeclaredInput& input, const Span& span) {
  auto wanted = options_.shapes.find(input.name);
  std::vector<Dim> shape;
  if (!input.shape) {
    if (wanted == options_.shapes.end()) {
      deciding_.push_back({input.name, DecidingInput::Sizes});
      throw UserError(
          Diagnostic(codes::frontend_dynamic, span,
                     "the model does not say which shape input '" + shorten(input.name) + "' has")
              .help("give its shape, as in --input NAME=1x3x224x224"));
    }
    for (size_t a = 0; a < wanted->second.size(); ++a) {
      int64_t size = wanted->second[a];
      if (size >= 0) {
        shape.push_back(dim(size));
        continue;
      }
      TypeVar var = type_var(unique_name(input.name + "_" + std::to_string(a)), Kind::Dim);
      type_params_.push_back(var);
      shape.push_back(dim(var));
    }
    return shape;
  }
  const size_t rank = input.shape->size();
  if (rank > kMaxRank) {
    throw UserError(Diagnostic(codes::frontend_tensor, span,
                               "input '" + shorten(input.name) + "' has too many dimensions")
                        .expected("at most " + std::to_string(kMaxRank))
                        .found(std::to_string(rank)));
  }
  if (wanted != options_.shapes.end() && wanted->second.size() != rank) {
    throw UserError(
        Diagnostic(codes::frontend_input, span,
                   "the shape given for input '" + shorten(input.name) + "' has the wrong rank")
            .expected("rank " + std::to_string(rank))
            .found(runtime::shape_to_string(wanted->second)));
  }
  for (size_t a = 0; a < rank; ++a) shape.push_back(dim_of(input, a, span));
  return shape;
}

void ProgramBuilder::declare(const DeclaredInput& input, const Span& span) {
  if (auto it = options_.frozen.find(input.name); it != options_.frozen.end()) {
    ValuePtr constant = value_of(value_for(input, it->second, span));
    constant->name = input.name;
    constant->span = span;
    define(main_scope_, input.name, std::move(constant), span);
    return;
  }
  if (auto it = options_.specialised.find(input.name); it != options_.specialised.end()) {
    specialise(input, it->second, span);
    return;
  }
  if (declare_elements(input, span)) return;
  if (input.structure) {
    declare_structure(input, span);
    return;
  }
  if (!input.unusable.empty()) {
    throw UserError(Diagnostic(codes::frontend_attribute, span,
                               "input '" + shorten(input.name) + "' is not a tensor")
                        .expected("a tensor")
                        .found(input.unusable));
  }
  std::optional<DType> dtype = input.dtype;
  if (auto it = options_.dtypes.find(input.name); it != options_.dtypes.end()) dtype = it->second;
  if (!dtype) {
    throw UserError(
        Diagnostic(codes::frontend_tensor, span,
                   "input '" + shorten(input.name) + "' has an element type that Relay lacks")
            .expected("a float, integer or bool type of at most 64 bits")
            .found(input.dtype_name));
  }
  std::vector<Dim> shape = shape_of(input, span);
  int64_t bytes = static_cast<int64_t>(dtype->bytes());
  for (const Dim& d : shape) {
    auto size = as_const(d);
    if (size && (__builtin_mul_overflow(bytes, std::max<int64_t>(*size, 1), &bytes) ||
                 bytes > (int64_t{1} << 62))) {
      throw UserError(Diagnostic(codes::frontend_tensor, span,
                                 "the size of input '" + shorten(input.name) + "' overflows")
                          .expected("a product below 2^62")
                          .found(to_string(tensor_type(shape, *dtype))));
    }
  }
  Var v = var(unique_name(input.name), tensor_type(shape, *dtype), span);
  for (size_t a = 0; a < shape.size(); ++a) {
    if (auto* named = as<DimVarNode>(shape[a])) {
      dim_sources_.try_emplace(named->var.get(), v, static_cast<int64_t>(a));
    }
  }
  add_param(input, v, value_of(Expr(v)), span);
}

void ProgramBuilder::declare_inputs(std::vector<DeclaredInput> inputs) {
  declared_ = std::move(inputs);
  for (const DeclaredInput& i : declared_) {
    if (options_.numbers.contains(i.name) && i.shape && i.shape->empty())
      options_.shapes.erase(i.name);
  }
  check_named_inputs();
  use_sizes_by_name();
  for (const DeclaredInput& i : declared_) {
    if (main_scope_.values.contains(i.name)) continue;  // a weight with a default
    try {
      declare(i, place("input " + shorten(i.name)));
    } catch (const UserError& e) {
      report(e);
    }
  }
}

}  // namespace relay::frontend

namespace relay {

Diagnostic no_such_dimension(const std::string& where, const std::string& name,
                             const std::vector<std::string_view>& open) {
  std::string known;
  for (std::string_view n : open)
    known += (known.empty() ? "" : ", ") + frontend::shorten(std::string(n));
  return Diagnostic(codes::frontend_input, {},
                    where + " has no open dimension '" + frontend::shorten(name) + "'")
      .expected(known.empty() ? "no sizes: no open dimension has a name" : known)
      .help(suggest(name, open));
}

}  // namespace relay
