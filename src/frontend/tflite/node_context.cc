#include "frontend/tflite/node_context.h"

#include <cmath>

#include "base/codes/frontend.h"
#include "base/codes/types.h"

namespace relay::frontend::tflite {

namespace {

// Whether elements of a type may stand for real numbers by a scale.
bool holds_levels(schema::ElementType type) {
  const auto dtype = tflite::dtype_of(type);
  return dtype && dtype->is_integer() && dtype->bits <= 16;
}

}  // namespace

NodeContext::NodeContext(Importer& importer, size_t graph, const schema::Operator& op,
                         const Row* row, Values inputs, Span span)
    : Operands(importer, importer.model().kind(op).name, std::move(inputs), std::move(span)),
      importer_(importer),
      graph_(graph),
      op_(op),
      row_(row) {}

const flatbuffers::Table* NodeContext::options_table() const {
  // The options of a member of a union, which must be the row's.
  auto table = [&](auto found, auto own, const void* options, auto name) {
    if (found != own)
      fail(codes::frontend_attribute, "the options are those of another operator", name(own),
           name(found));
    return static_cast<const flatbuffers::Table*>(options);
  };
  if (row_->options_2 != schema::Options2::NONE) {
    if (op_.options_2_type() == schema::Options2::NONE || op_.options_2() == nullptr)
      return empty_table();
    return table(op_.options_2_type(), row_->options_2, op_.options_2(), schema::EnumNameOptions2);
  }
  if (op_.options_type() == schema::Options::NONE || op_.options() == nullptr) return empty_table();
  return table(op_.options_type(), row_->options, op_.options(), schema::EnumNameOptions);
}

std::string_view NodeContext::custom_options() const {
  const auto* data = op_.custom_options();
  if (data == nullptr) return {};
  return {reinterpret_cast<const char*>(data->data()), data->size()};
}

size_t NodeContext::num_outputs() const {
  return op_.outputs() == nullptr ? 0 : op_.outputs()->size();
}

int32_t NodeContext::input_index(size_t i) const {
  return op_.inputs()->Get(static_cast<flatbuffers::uoffset_t>(i));
}

const schema::Tensor& NodeContext::input_tensor(size_t i) const {
  value(i);
  return importer_.model().tensor(graph_, input_index(i));
}

const schema::Tensor& NodeContext::output_tensor(size_t i) const {
  const int32_t t =
      i < num_outputs() ? op_.outputs()->Get(static_cast<flatbuffers::uoffset_t>(i)) : -1;
  if (t < 0) fail(codes::frontend_graph, "output " + std::to_string(i) + " is missing");
  return importer_.model().tensor(graph_, t);
}

const schema::Tensor& NodeContext::intermediate(size_t i) const {
  const auto* list = op_.intermediates();
  const int32_t t =
      list != nullptr && i < list->size() ? list->Get(static_cast<flatbuffers::uoffset_t>(i)) : -1;
  if (t < 0) {
    fail(codes::frontend_graph, "intermediate tensor " + std::to_string(i) + " is missing",
         "the scales of what the operator computes within");
  }
  return importer_.model().tensor(graph_, t);
}

DType NodeContext::out_dtype(size_t i) const {
  const schema::ElementType type = output_tensor(i).type();
  const auto dtype = tflite::dtype_of(type);
  if (!dtype) unsupported("a result of type " + name_of(type));
  return *dtype;
}

bool NodeContext::is_quantized(size_t i) const {
  const schema::Tensor& t = input_tensor(i);
  return holds_levels(t.type()) && t.quantization() != nullptr &&
         t.quantization()->scale() != nullptr && t.quantization()->scale()->size() > 0;
}

Quantization NodeContext::quantization(const schema::Tensor& t, bool words) const {
  const std::string name = quoted_tensor(name_of(t));
  if (!holds_levels(t.type()) && !(words && t.type() == schema::ElementType::int32))
    unsupported("a scale of " + name + ", whose elements are " + name_of(t.type()));
  const schema::Quantization* q = t.quantization();
  if (q == nullptr || q->scale() == nullptr || q->scale()->size() == 0)
    bad_tensor(span(), name + " has no scale, which the operator needs");
  if (q->details_type() != schema::QuantizationDetails::NONE)
    unsupported("quantisation of another kind than by scale and zero point");
  Quantization out;
  out.scale.assign(q->scale()->begin(), q->scale()->end());
  if (q->zero_point() != nullptr) out.zero.assign(q->zero_point()->begin(), q->zero_point()->end());
  if (out.zero.empty()) out.zero.assign(out.scale.size(), 0);
  if (out.zero.size() != out.scale.size()) {
    bad_tensor(span(), name + " has not as many zero points as scales",
               std::to_string(out.scale.size()), std::to_string(out.zero.size()));
  }
  for (float s : out.scale) {
    if (!(s > 0) || !std::isfinite(s))
      bad_tensor(span(), "a scale of " + name + " is out of range", "a finite number above 0",
                 std::to_string(s));
  }
  for (int64_t z : out.zero) {
    if (z < INT16_MIN || z > INT16_MAX)
      bad_tensor(span(), "a zero point of " + name + " is out of range", "a value of its type",
                 std::to_string(z));
  }
  out.axis = q->quantized_dimension();
  return out;
}

Expr NodeContext::activated(Expr y, schema::FusedActivation activation) const {
  using F = schema::FusedActivation;
  switch (activation) {
    case F::none:
      return y;
    case F::relu:
      return call("nn.relu", {std::move(y)});
    case F::relu_n1_to_1:
      return clip(std::move(y), -1, 1);
    case F::relu6:
      return clip(std::move(y), 0, 6);
    case F::tanh:
      return call("tanh", {std::move(y)});
    default:
      unsupported("a fused activation other than relu, relu6, relu_n1_to_1 and tanh");
  }
}

Expr NodeContext::scalar_of(size_t i, DType dtype) const {
  Expr e = cast(in(i), dtype);
  return rank_of(e) == 0 ? e : reshape(e, std::vector<int64_t>{});
}

Expr NodeContext::in_of_rank(size_t i, int64_t least) const {
  Expr e = in(i);
  if (rank_of(e) < least) {
    fail(codes::type_rank, "input " + std::to_string(i) + " has too few axes",
         "rank " + std::to_string(least) + " or more", to_string(e->type));
  }
  return e;
}

std::pair<Expr, Expr> NodeContext::complex_in(size_t i) const {
  const ValuePtr& z = value(i);
  if (!is_complex(z))
    fail(codes::frontend_attribute, "the input is not complex", "a tensor of complex numbers");
  return {expr_of(z->list[0]), expr_of(z->list[1])};
}

void NodeContext::unsupported_dtype(DType dtype) const {
  unsupported("the dtype " + dtype.to_string());
}

std::vector<int64_t> NodeContext::axes_of(size_t i, int64_t rank) const {
  return axes(const_ints(i, "the list of axes"), rank);
}

bool is_complex(const ValuePtr& value) { return value->is_list && value->list.size() == 2; }

Values values_of(const std::vector<Expr>& parts) {
  Values out;
  for (const Expr& part : parts) out.push_back(value_of(part));
  return out;
}

}  // namespace relay::frontend::tflite
