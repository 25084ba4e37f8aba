#include "frontend/torch/complex_writer.h"

#include <algorithm>

#include "frontend/torch/complex.h"

namespace relay::frontend::torch {
namespace {

bool same_sizes(const TensorMeta& a, const TensorMeta& b) { return a.sizes == b.sizes; }

// Tensors that are computed lie in row-major order.
TensorMeta computed(TensorMeta meta) {
  meta.strides.clear();
  meta.offset = int64_t{0};
  return meta;
}

}  // namespace

Argument argument_of(std::string value) {
  Argument out;
  out.elements.emplace_back(ValueName{std::move(value)});
  return out;
}
Argument argument_of(const RealValue& value) { return argument_of(value.name); }
Argument argument_of(int64_t number) {
  Argument out;
  out.elements.emplace_back(number);
  return out;
}
Argument argument_of(const std::vector<RealValue>& list) {
  Argument out;
  out.is_list = true;
  for (const RealValue& v : list) out.elements.emplace_back(ValueName{v.name});
  return out;
}

ComplexWriter::ComplexWriter(const Graph& from, Graph& to, const ComplexValues& values,
                             const Node& node)
    : from_(from), to_(to), values_(values), node_(node) {
  std::optional<int64_t> of_result, of_operand;
  auto look = [&](const std::vector<Element>& elements, std::optional<int64_t>& found) {
    for (const Element& e : elements) {
      const auto* name = std::get_if<ValueName>(&e);
      auto meta = name == nullptr ? from.tensors.end() : from.tensors.find(name->name);
      if (meta != from.tensors.end() && !found) found = type_of_parts(meta->second.dtype);
    }
  };
  for (const Argument& a : node.outputs) look(a.elements, of_result);
  for (const auto& [name, a] : node.inputs) look(a.elements, of_operand);
  if (of_result || !of_operand) {
    part_type_ = of_result.value_or(0);
    return;
  }
  // 0-d tensors decide only where there are no others.
  std::optional<int64_t> widest;
  for (const auto& [name, a] : node.inputs) {
    for (const Element& e : a.elements) {
      const auto* value = std::get_if<ValueName>(&e);
      auto meta = value == nullptr ? from.tensors.end() : from.tensors.find(value->name);
      if (meta == from.tensors.end() || meta->second.sizes.empty()) continue;
      const int64_t type = type_of_parts(meta->second.dtype).value_or(meta->second.dtype);
      if (type >= kHalf && type <= kDouble) widest = std::max(widest.value_or(type), type);
    }
  }
  part_type_ = widest.value_or(*of_operand);
}

const Argument* ComplexWriter::find(std::string_view name) const {
  for (const auto& [own, a] : node_.inputs)
    if (own == name && !a.is_none()) return &a;
  return nullptr;
}

TensorMeta ComplexWriter::result() const {
  for (const Argument& a : node_.outputs) {
    for (const Element& e : a.elements) {
      const auto* name = std::get_if<ValueName>(&e);
      auto meta = name == nullptr ? from_.tensors.end() : from_.tensors.find(name->name);
      if (meta == from_.tensors.end()) continue;
      TensorMeta out = computed(meta->second);
      out.dtype = type_of_parts(out.dtype).value_or(out.dtype);
      return out;
    }
  }
  throw Unwritable{"the graph does not say what the result is"};
}

ComplexValue ComplexWriter::operand(std::string_view name) {
  const Argument* a = find(name);
  if (a == nullptr) throw Unwritable{"argument '" + std::string(name) + "' is missing"};
  if (part_type_ == 0) throw Unwritable{"a complex number among real tensors"};
  if (a->kind == Argument::Kind::complex)
    return {number(std::get<double>(a->elements[0])), number(std::get<double>(a->elements[1]))};
  if (a->kind == Argument::Kind::value && !a->is_list) {
    const Element& e = a->elements[0];
    if (const auto* n = std::get_if<double>(&e)) return {number(*n), {}};
    if (const auto* n = std::get_if<int64_t>(&e)) return {number(static_cast<double>(*n)), {}};
    if (const auto* n = std::get_if<bool>(&e)) return {number(*n ? 1 : 0), {}};
    if (const std::string* value = a->name()) {
      if (auto it = values_.find(*value); it != values_.end()) {
        ComplexValue z{in_part_type(it->second.re), {}};
        if (it->second.im) z.im = in_part_type(*it->second.im);
        return z;
      }
      if (auto it = from_.tensors.find(*value); it != from_.tensors.end())
        return {in_part_type({*value, it->second}), {}};
    }
  }
  throw Unwritable{"argument '" + std::string(name) + "' of an operator of complex numbers is " +
                   "neither a tensor nor a number"};
}

RealValue ComplexWriter::in_part_type(const RealValue& x) {
  if (x.meta.dtype == part_type_) return x;
  Argument type = argument_of(part_type_);
  type.kind = Argument::Kind::scalar_type;
  TensorMeta meta = computed(x.meta);
  meta.dtype = part_type_;
  return emit("aten._to_copy.default", {{"self", argument_of(x)}, {"dtype", type}}, meta);
}

std::string ComplexWriter::fresh_name() {
  std::string base = node_.name;
  for (const Argument& a : node_.outputs)
    if (base.empty() && a.name() != nullptr) base = *a.name();
  // Names of PyTorch have no dots.
  std::string name;
  do name = base + "." + std::to_string(fresh_++);
  while (to_.tensors.contains(name));
  return name;
}

std::vector<RealValue> ComplexWriter::emit_all(std::string_view target, NamedArguments arguments,
                                               const std::vector<TensorMeta>& results) {
  Node& out = to_.nodes.emplace_back();
  out.target = target;
  out.name = node_.name;
  out.stack_trace = node_.stack_trace;
  out.source = node_.source;
  out.inputs = std::move(arguments);
  std::vector<RealValue> values;
  for (const TensorMeta& meta : results) {
    RealValue& v = values.emplace_back(RealValue{fresh_name(), meta});
    to_.tensors.emplace(v.name, v.meta);
    out.outputs.push_back(argument_of(v));
  }
  return values;
}

RealValue ComplexWriter::emit(std::string_view target, NamedArguments arguments,
                              const TensorMeta& result) {
  return emit_all(target, std::move(arguments), {result})[0];
}

RealValue ComplexWriter::unary(std::string_view target, const RealValue& x) {
  return emit(target, {{"self", argument_of(x)}}, computed(x.meta));
}

RealValue ComplexWriter::binary(std::string_view target, const RealValue& a, const RealValue& b,
                                std::optional<int64_t> type) {
  TensorMeta meta = same_sizes(a.meta, b.meta) || b.meta.sizes.empty() ? computed(a.meta)
                    : a.meta.sizes.empty()                             ? computed(b.meta)
                                                                       : result();
  meta.dtype = type.value_or(part_type_);
  return emit(target, {{"self", argument_of(a)}, {"other", argument_of(b)}}, meta);
}

RealValue ComplexWriter::where(const RealValue& condition, const RealValue& a, const RealValue& b) {
  TensorMeta meta = computed(condition.meta);
  meta.dtype = part_type_;
  return emit(
      "aten.where.self",
      {{"condition", argument_of(condition)}, {"self", argument_of(a)}, {"other", argument_of(b)}},
      meta);
}

RealValue ComplexWriter::number(double value) {
  TensorMeta meta;
  meta.dtype = part_type_;
  Argument of;
  of.elements.emplace_back(value);
  return emit("aten.scalar_tensor.default", {{"s", of}}, meta);
}

RealValue ComplexWriter::zeros_like(const RealValue& x) {
  return unary("aten.zeros_like.default", x);
}

RealValue ComplexWriter::joined(const ComplexValue& z, std::string name) {
  const RealValue im = z.im ? *z.im : zeros_like(z.re);
  RealValue out{name.empty() ? fresh_name() : std::move(name), computed(z.re.meta)};
  out.meta.sizes.emplace_back(int64_t{2});
  to_.tensors.emplace(out.name, out.meta);
  Node& stack = to_.nodes.emplace_back();
  stack.target = "aten.stack.default";
  stack.name = node_.name;
  stack.stack_trace = node_.stack_trace;
  stack.source = node_.source;
  stack.inputs = {{"tensors", argument_of(std::vector{z.re, im})}, {"dim", argument_of(-1)}};
  stack.outputs = {argument_of(out)};
  return out;
}

}  // namespace relay::frontend::torch
