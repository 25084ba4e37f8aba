#include "frontend/torch/node_context.h"

#include <algorithm>

#include "base/codes/frontend.h"
#include "base/codes/types.h"
#include "base/quantities.h"

namespace relay::frontend::torch {
namespace {

struct ScalarType {
  int64_t number;
  const char* name;
  std::optional<DType> dtype;
};

// The numbers of PyTorch's schema.
const ScalarType kScalarTypes[] = {
    {1, "uint8", DType::UInt(8)},
    {2, "int8", DType::Int(8)},
    {3, "int16", DType::Int(16)},
    {4, "int32", DType::Int(32)},
    {5, "int64", DType::Int(64)},
    {6, "float16", DType::Float(16)},
    {7, "float32", DType::Float(32)},
    {8, "float64", DType::Float(64)},
    {9, "complex32", std::nullopt},
    {10, "complex64", std::nullopt},
    {11, "complex128", std::nullopt},
    {12, "bool", DType::Bool()},
    {13, "bfloat16", DType::BFloat16()},
    {28, "uint16", DType::UInt(16)},
    {29, "float8_e4m3fn", DType::Narrow(DType::kFloat8E4M3FN)},
    {30, "float8_e5m2", DType::Narrow(DType::kFloat8E5M2)},
    {31, "float8_e4m3fnuz", DType::Narrow(DType::kFloat8E4M3FNUZ)},
    {32, "float8_e5m2fnuz", DType::Narrow(DType::kFloat8E5M2FNUZ)},
    {33, "float8_e8m0fnu", DType::Narrow(DType::kFloat8E8M0FNU)},
    {34, "uint32", DType::UInt(32)},
    {35, "uint64", DType::UInt(64)},
};

const ScalarType* scalar_type(int64_t number) {
  auto it = std::ranges::find(kScalarTypes, number, &ScalarType::number);
  return it == std::end(kScalarTypes) ? nullptr : it;
}

// Arguments that change where and how a tensor is stored, but not its elements.
constexpr std::string_view kStorageArguments[] = {
    "device", "pin_memory", "non_blocking", "memory_format", "requires_grad", "copy",
    // How a library of another device computes.
    "cudnn_enabled", "cudnn_enable", "benchmark", "deterministic", "allow_tf32"};

int category(DType d) { return d.is_bool() ? 0 : d.is_floating() ? 2 : 1; }

}  // namespace

std::string_view operator_of(std::string_view target) {
  constexpr std::string_view kOps = "torch.ops.";
  if (target.starts_with(kOps)) target.remove_prefix(kOps.size());
  return target;
}

std::optional<DType> dtype_of(int64_t number) {
  const ScalarType* type = scalar_type(number);
  return type == nullptr ? std::nullopt : type->dtype;
}

const char* name_of_scalar_type(int64_t number) {
  const ScalarType* type = scalar_type(number);
  return type == nullptr ? "an unknown element type" : type->name;
}

DType promoted(DType a, DType b) {
  if (a == b) return a;
  if (category(a) != category(b)) return category(a) > category(b) ? a : b;
  if (category(a) == 2) {
    if (a.bits == b.bits) return DType::Float(32);  // float16 and bfloat16
    return a.bits > b.bits ? a : b;
  }
  if (a.is_int() == b.is_int()) return a.bits > b.bits ? a : b;
  // A signed integer that holds the unsigned one, too; int64 where none does.
  const DType with = a.is_int() ? a : b, without = a.is_int() ? b : a;
  return with.bits > without.bits ? with : DType::Int(std::min(64, 2 * int{without.bits}));
}

NodeContext::NodeContext(Importer& importer, const Graph& graph, const Node& node, const Row& row,
                         Span span)
    : Builder(importer, std::string(operator_of(node.target)), std::move(span)),
      importer_(importer),
      graph_(graph),
      node_(node),
      row_(row),
      outputs_(outputs_of(graph, node)),
      read_(node.inputs.size(), false) {}

std::string_view NodeContext::relay_op() const { return row_.relay; }

// ---- Arguments ---------------------------------------------------------------------------------

void NodeContext::bad_argument(std::string_view name, const char* expected) const {
  fail(codes::frontend_attribute,
       "argument '" + shorten(std::string(name)) + "' has another type than the operator takes",
       expected);
}

const Argument* NodeContext::find(std::string_view name) const {
  for (size_t i = 0; i < node_.inputs.size(); ++i) {
    if (node_.inputs[i].first != name) continue;
    read_[i] = true;
    const Argument& a = node_.inputs[i].second;
    if (a.kind == Argument::Kind::unsupported) {
      unsupported("an argument of the form " + shorten(a.what));
    }
    if (a.is_none()) return nullptr;
    // A list of one None, as optional tensors are stored.
    return &a;
  }
  return nullptr;
}

const Argument& NodeContext::at(size_t index) const {
  if (index >= node_.inputs.size()) {
    fail(codes::frontend_graph, "argument " + std::to_string(index) + " is missing",
         "at least " + counted(index + 1, "argument"), std::to_string(node_.inputs.size()));
  }
  read_[index] = true;
  return node_.inputs[index].second;
}

const Argument& NodeContext::must(std::string_view name) const {
  const Argument* a = find(name);
  if (a == nullptr) fail(codes::frontend_graph, "argument '" + std::string(name) + "' is missing");
  return *a;
}

ValuePtr NodeContext::value_of_element(const Element& e) const {
  if (const auto* name = std::get_if<ValueName>(&e))
    return importer_.read(importer_.value(name->name, span()));
  if (const auto* i = std::get_if<int64_t>(&e)) return value_of(known_scalar(dim(*i)));
  if (const auto* b = std::get_if<bool>(&e)) return value_of(known_scalar(dim(*b), DType::Bool()));
  if (const auto* f = std::get_if<double>(&e)) {
    KnownValue k{DType::Float(64), {}, {}, {*f}};
    return value_of(std::move(k));
  }
  fail(codes::frontend_attribute, "a tensor or a number is needed");
}

ValuePtr NodeContext::known_tensor(std::string_view name) const {
  const Argument* a = find(name);
  if (a == nullptr) return nullptr;
  if (a->is_list || a->kind != Argument::Kind::value) bad_argument(name, "a tensor");
  return value_of_element(a->elements[0]);
}

Expr NodeContext::operand(const ValuePtr& v) const {
  Expr e = expr_of(v);
  const DType dtype = Builder::dtype_of(e);
  return row_.in_float32 && dtype.is_floating() && dtype.bits == 16 ? cast(e, DType::Float(32)) : e;
}

Expr NodeContext::tensor_or_null(std::string_view name) const {
  ValuePtr v = known_tensor(name);
  return v == nullptr ? nullptr : operand(v);
}

Expr NodeContext::tensor(std::string_view name) const {
  must(name);
  return tensor_or_null(name);
}

std::vector<Expr> NodeContext::optional_tensors(std::string_view name) const {
  const Argument& a = must(name);
  if (!a.is_list || a.kind != Argument::Kind::value) bad_argument(name, "a list of tensors");
  std::vector<Expr> out;
  for (const Element& e : a.elements) {
    const bool none = std::holds_alternative<std::monostate>(e);
    out.push_back(none ? nullptr : operand(value_of_element(e)));
  }
  return out;
}

std::vector<Expr> NodeContext::tensors(std::string_view name) const {
  std::vector<Expr> out = optional_tensors(name);
  if (std::ranges::find(out, nullptr) != out.end()) bad_argument(name, "a list without None");
  return out;
}

Dim NodeContext::size_of_element(const Element& e, std::string_view name) const {
  if (const auto* i = std::get_if<int64_t>(&e)) return dim(*i);
  if (const auto* value = std::get_if<ValueName>(&e)) {
    const ValuePtr v = importer_.read(importer_.value(value->name, span()));
    if (v->known && v->known->is_int() && v->known->size() == 1) return v->known->ints[0];
    return dim_any();
  }
  bad_argument(name, "integers");
}

std::vector<Dim> NodeContext::sizes(std::string_view name) const {
  const Argument& a = must(name);
  if (a.kind != Argument::Kind::value) bad_argument(name, "integers");
  std::vector<Dim> out;
  for (const Element& e : a.elements) out.push_back(size_of_element(e, name));
  return out;
}

Dim NodeContext::size(std::string_view name, std::optional<int64_t> otherwise) const {
  if (!has(name) && otherwise) return dim(*otherwise);
  std::vector<Dim> all = sizes(name);
  if (all.size() != 1) bad_argument(name, "an integer");
  return all[0];
}

std::vector<int64_t> NodeContext::ints(std::string_view name,
                                       std::optional<std::vector<int64_t>> otherwise) const {
  if (!has(name) && otherwise) return *otherwise;
  std::vector<int64_t> out;
  for (const Dim& d : sizes(name)) {
    auto n = as_const(d);
    if (!n) {
      fail(codes::frontend_dynamic, "argument '" + std::string(name) + "' depends on an open size",
           "a number", to_string(d), "give the input's shape, as in --input NAME=1x3x224x224");
    }
    out.push_back(*n);
  }
  return out;
}

int64_t NodeContext::integer(std::string_view name, std::optional<int64_t> otherwise) const {
  if (!has(name) && otherwise) return *otherwise;
  std::vector<int64_t> all = ints(name);
  if (all.size() != 1) bad_argument(name, "an integer");
  return all[0];
}

std::vector<int64_t> NodeContext::ints_for(std::string_view name, int64_t count,
                                           int64_t otherwise) const {
  std::vector<int64_t> out = ints(name, std::vector<int64_t>{});
  if (out.empty()) out.push_back(otherwise);
  if (out.size() == 1) out.assign(static_cast<size_t>(count), out[0]);
  if (static_cast<int64_t>(out.size()) != count) {
    fail(codes::frontend_attribute, "argument '" + std::string(name) + "' has the wrong length",
         std::to_string(count), std::to_string(out.size()));
  }
  return out;
}

std::optional<Number> NodeContext::number(std::string_view name) const {
  const Argument* a = find(name);
  if (a == nullptr) return std::nullopt;
  if (a->is_list || a->kind != Argument::Kind::value) bad_argument(name, "a number");
  const Element& e = a->elements[0];
  if (const auto* b = std::get_if<bool>(&e)) return Number{Number::truth, {}, *b ? 1 : 0, {}};
  if (const auto* i = std::get_if<int64_t>(&e)) return Number{Number::integer, {}, *i, {}};
  if (const auto* f = std::get_if<double>(&e)) return Number{Number::real, *f, {}, {}};
  if (!std::holds_alternative<ValueName>(e)) bad_argument(name, "a number");
  ValuePtr v = value_of_element(e);
  if (v->known && v->known->size() == 1 && v->known->is_constant()) {
    const DType dtype = v->known->dtype;
    if (v->known->is_int())
      return Number{dtype.is_bool() ? Number::truth : Number::integer, {}, v->known->int_at(0), {}};
    return Number{Number::real, v->known->float_at(0), {}, {}};
  }
  Expr expr = expr_of(v);
  const DType dtype = Builder::dtype_of(expr);
  return Number{dtype.is_floating() ? Number::real
                : dtype.is_bool()   ? Number::truth
                                    : Number::integer,
                {},
                {},
                expr};
}

Expr NodeContext::number_as(const Number& n, DType dtype) const {
  if (n.expr) return cast(n.expr, dtype);
  if (n.whole) return constant(Tensor::scalar(*n.whole, dtype));
  return scalar(*n.value, dtype);
}

double NodeContext::real(std::string_view name, std::optional<double> otherwise) const {
  auto n = number(name);
  if (!n && otherwise) return *otherwise;
  if (!n) must(name);
  if (!n->is_known()) {
    fail(codes::frontend_dynamic, "argument '" + std::string(name) + "' is known only in a run",
         "a number");
  }
  return n->as_double();
}

std::vector<double> NodeContext::reals(std::string_view name) const {
  const Argument& a = must(name);
  std::vector<double> out;
  for (const Element& e : a.elements) {
    if (const auto* f = std::get_if<double>(&e)) {
      out.push_back(*f);
    } else if (const auto* i = std::get_if<int64_t>(&e)) {
      out.push_back(static_cast<double>(*i));
    } else {
      bad_argument(name, "numbers");
    }
  }
  return out;
}

bool NodeContext::truth(std::string_view name, bool otherwise) const {
  auto n = number(name);
  if (!n) return otherwise;
  if (!n->whole) bad_argument(name, "True or False");
  return *n->whole != 0;
}

std::string NodeContext::text(std::string_view name, const std::string& otherwise) const {
  const Argument* a = find(name);
  if (a == nullptr) return otherwise;
  const auto* text = a->is_list ? nullptr : std::get_if<std::string>(&a->elements[0]);
  if (text == nullptr) bad_argument(name, "a string");
  return *text;
}

std::optional<DType> NodeContext::dtype(std::string_view name) const {
  const Argument* a = find(name);
  if (a == nullptr) return std::nullopt;
  const auto* number = std::get_if<int64_t>(&a->elements[0]);
  if (a->kind != Argument::Kind::scalar_type || number == nullptr)
    bad_argument(name, "an element type");
  auto out = torch::dtype_of(*number);
  if (!out) unsupported(std::string("the element type ") + name_of_scalar_type(*number));
  return out;
}

const Graph& NodeContext::part(size_t index) const {
  const Argument& a = at(index);
  if (a.kind != Argument::Kind::graph) {
    fail(codes::frontend_graph, "argument " + std::to_string(index) + " is no part of the program");
  }
  return *a.graph;
}

int64_t NodeContext::axis_of(std::string_view name, int64_t rank,
                             std::optional<int64_t> otherwise) const {
  return axis(integer(name, otherwise), std::max<int64_t>(rank, 1));
}

void NodeContext::check_all_read() const {
  for (size_t i = 0; i < node_.inputs.size(); ++i) {
    const auto& [name, a] = node_.inputs[i];
    if (read_[i] || a.is_none()) continue;
    if (std::ranges::find(kStorageArguments, name) != std::end(kStorageArguments)) continue;
    const auto* number = a.elements.size() == 1 ? std::get_if<int64_t>(&a.elements[0]) : nullptr;
    if (a.kind == Argument::Kind::layout && number != nullptr && *number == TensorMeta::kStrided)
      continue;
    unsupported("argument '" + shorten(name) + "'");
  }
}

// ---- Results -----------------------------------------------------------------------------------

DType NodeContext::out_dtype(size_t output) const {
  const TensorMeta* meta = output < outputs_.size() ? outputs_[output].meta : nullptr;
  if (meta == nullptr) {
    fail(codes::frontend_graph, "the graph does not say what the result is",
         "an entry in tensor_values");
  }
  auto out = torch::dtype_of(meta->dtype);
  if (!out) unsupported(std::string("the element type ") + name_of_scalar_type(meta->dtype));
  return *out;
}

std::vector<Dim> NodeContext::out_shape(size_t output) const {
  out_dtype(output);
  std::vector<Dim> out;
  for (const SizeText& s : outputs_[output].meta->sizes)
    out.push_back(torch::size_of(s, importer_.symbols(), span()));
  return out;
}

void NodeContext::write(std::string_view name, const Expr& elements) const {
  const std::string* value = must(name).name();
  if (value == nullptr) bad_argument(name, "a tensor");
  TensorValue& v = importer_.value(*value, span());
  Expr before = expr_of(importer_.read(v));
  importer_.write(v, broadcast_to(cast(elements, Builder::dtype_of(before)), shape_of(before)),
                  span());
}

bool NodeContext::is_contiguous(std::string_view name) const {
  const Argument* a = find(name);
  const std::string* value = a == nullptr ? nullptr : a->name();
  auto meta = value == nullptr ? graph_.tensors.end() : graph_.tensors.find(*value);
  if (meta == graph_.tensors.end()) return false;
  const std::vector<SizeText>&sizes = meta->second.sizes, &strides = meta->second.strides;
  if (strides.size() != sizes.size()) return strides.empty();
  Dim expected = dim(1);
  for (size_t i = sizes.size(); i-- > 0;) {
    const Dim size = torch::size_of(sizes[i], importer_.symbols(), span());
    const Dim stride = torch::size_of(strides[i], importer_.symbols(), span());
    if (as_const(size) != 1 && !dim_equal(stride, expected)) return false;
    expected = expected * size;
  }
  return true;
}

// ---- Promotion ---------------------------------------------------------------------------------

DType NodeContext::promoted(const std::vector<Expr>& tensors,
                            const std::vector<Number>& numbers) const {
  std::optional<DType> with_dims, without;
  auto join = [](std::optional<DType>& into, DType d) {
    into = into ? torch::promoted(*into, d) : d;
  };
  for (const Expr& e : tensors) join(rank_of(e) > 0 ? with_dims : without, Builder::dtype_of(e));
  // What is of a higher kind decides; among the same kind what has dimensions.
  auto over = [](std::optional<DType> first, std::optional<DType> second) {
    if (!first || !second) return first ? first : second;
    return std::optional(category(*first) >= category(*second) ? *first
                                                               : torch::promoted(*first, *second));
  };
  std::optional<DType> out = over(with_dims, without), of_numbers;
  for (const Number& n : numbers) {
    join(of_numbers, n.kind == Number::real    ? DType::Float(32)
                     : n.kind == Number::truth ? DType::Bool()
                                               : DType::Int(64));
  }
  out = over(out, of_numbers);
  return out.value_or(DType::Float(32));
}

NodeContext::Pair NodeContext::pair(std::string_view self, std::string_view other) const {
  // Either may be a tensor or a number.
  auto tensor_of = [&](std::string_view name) -> Expr {
    const Argument& a = must(name);
    const std::string* value = a.name();
    const bool is_tensor = value != nullptr && graph_.tensors.contains(*value);
    return is_tensor ? tensor(name) : nullptr;
  };
  Expr a = tensor_of(self), b = tensor_of(other);
  std::vector<Expr> tensors;
  std::vector<Number> numbers;
  if (a) tensors.push_back(a);
  if (b) tensors.push_back(b);
  if (!a) numbers.push_back(*number(self));
  if (!b) numbers.push_back(*number(other));
  const DType dtype = promoted(tensors, numbers);
  auto operand = [&](const Expr& e, const Number* n) {
    return e ? cast(e, dtype) : number_as(*n, dtype);
  };
  const Number* first = a ? nullptr : &numbers.front();
  const Number* second = b ? nullptr : &numbers.back();
  return {operand(a, first), operand(b, second), dtype};
}

}  // namespace relay::frontend::torch
