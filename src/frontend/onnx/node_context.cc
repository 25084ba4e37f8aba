#include <onnx/onnx-ml.pb.h>

#include <algorithm>

#include "base/codes/frontend.h"
#include "frontend/onnx/graph_importer.h"
#include "frontend/onnx/importer.h"

namespace relay::frontend::onnx {

using ::onnx::AttributeProto;

NodeContext::NodeContext(Importer& importer, const ::onnx::NodeProto& node, Values inputs,
                         int64_t opset, Span span)
    : Operands(importer, node.op_type(), std::move(inputs), std::move(span)),
      importer_(importer),
      node_(node),
      opset_(opset) {}

const std::string& NodeContext::op_type() const { return node_.op_type(); }
size_t NodeContext::num_outputs() const { return static_cast<size_t>(node_.output_size()); }
bool NodeContext::output_used(size_t i) const {
  return i < num_outputs() && !node_.output(static_cast<int>(i)).empty();
}

// ---- Attributes --------------------------------------------------------------------------------

const AttributeProto* NodeContext::find_attr(const char* name) const {
  for (const auto& a : node_.attribute()) {
    if (a.name() != name) continue;
    return a.ref_attr_name().empty() ? &a : importer_.function_attr(a.ref_attr_name());
  }
  return nullptr;
}
bool NodeContext::has_attr(const char* name) const { return find_attr(name) != nullptr; }

namespace {

// Old writers leave the type out; then the field that is set tells.
bool has_type(const AttributeProto& a, AttributeProto::AttributeType type) {
  return a.type() == type || a.type() == AttributeProto::UNDEFINED;
}

void check_type(const NodeContext& ctx, const AttributeProto& a, AttributeProto::AttributeType type,
                const char* expected) {
  if (has_type(a, type)) return;
  std::string found = AttributeProto::AttributeType_IsValid(a.type())
                          ? AttributeProto::AttributeType_Name(a.type())
                          : "type " + std::to_string(a.type());
  ctx.fail(codes::frontend_attribute, "attribute '" + a.name() + "' has the wrong type", expected,
           found);
}

constexpr int kMaxAttributeElements = 1 << 25;

void check_count(const NodeContext& ctx, const AttributeProto& a, int count) {
  if (count > kMaxAttributeElements) {
    ctx.fail(codes::frontend_limit, "attribute '" + a.name() + "' has too many elements",
             "at most " + std::to_string(kMaxAttributeElements), std::to_string(count));
  }
}

}  // namespace

int64_t NodeContext::attr(const char* name, int64_t otherwise) const {
  const AttributeProto* a = find_attr(name);
  if (a == nullptr) return otherwise;
  check_type(*this, *a, AttributeProto::INT, "an integer");
  return a->i();
}
double NodeContext::attr_float(const char* name, double otherwise) const {
  const AttributeProto* a = find_attr(name);
  if (a == nullptr) return otherwise;
  check_type(*this, *a, AttributeProto::FLOAT, "a float");
  return a->f();
}
std::string NodeContext::attr_string(const char* name, const std::string& otherwise) const {
  const AttributeProto* a = find_attr(name);
  if (a == nullptr) return otherwise;
  check_type(*this, *a, AttributeProto::STRING, "a string");
  return a->s();
}
std::span<const int64_t> NodeContext::attr_int_span(const char* name) const {
  const AttributeProto* a = find_attr(name);
  if (a == nullptr) return {};
  check_type(*this, *a, AttributeProto::INTS, "a list of integers");
  check_count(*this, *a, a->ints_size());
  return {a->ints().data(), static_cast<size_t>(a->ints_size())};
}
std::span<const float> NodeContext::attr_float_span(const char* name) const {
  const AttributeProto* a = find_attr(name);
  if (a == nullptr) return {};
  check_type(*this, *a, AttributeProto::FLOATS, "a list of floats");
  check_count(*this, *a, a->floats_size());
  return {a->floats().data(), static_cast<size_t>(a->floats_size())};
}
std::span<const std::string* const> NodeContext::attr_string_span(const char* name) const {
  const AttributeProto* a = find_attr(name);
  if (a == nullptr) return {};
  check_type(*this, *a, AttributeProto::STRINGS, "a list of strings");
  check_count(*this, *a, a->strings_size());
  return {a->strings().data(), static_cast<size_t>(a->strings_size())};
}
std::vector<int64_t> NodeContext::attr_ints(const char* name,
                                            std::vector<int64_t> otherwise) const {
  if (!has_attr(name)) return otherwise;
  auto all = attr_int_span(name);
  return {all.begin(), all.end()};
}
std::vector<int64_t> NodeContext::attr_list(const char* name, size_t size,
                                            int64_t otherwise) const {
  std::vector<int64_t> v = attr_ints(name);
  if (v.empty()) v.assign(size, otherwise);
  if (v.size() != size) {
    fail(codes::frontend_attribute, std::string("attribute '") + name + "' has the wrong length",
         std::to_string(size), std::to_string(v.size()));
  }
  return v;
}

std::vector<int64_t> NodeContext::attr_axes(int64_t rank) const {
  return has_attr("axes") ? axes(attr_ints("axes"), rank) : all_axes(rank);
}

std::vector<double> NodeContext::attr_floats(const char* name,
                                             std::vector<double> otherwise) const {
  if (!has_attr(name)) return otherwise;
  auto all = attr_float_span(name);
  return {all.begin(), all.end()};
}
std::vector<std::string> NodeContext::attr_strings(const char* name,
                                                   std::vector<std::string> otherwise) const {
  if (!has_attr(name)) return otherwise;
  std::vector<std::string> out;
  for (const std::string* s : attr_string_span(name)) out.push_back(*s);
  return out;
}
Tensor NodeContext::attr_tensor(const char* name) const {
  const AttributeProto* a = find_attr(name);
  if (a == nullptr) return nullptr;
  check_type(*this, *a, AttributeProto::TENSOR, "a tensor");
  return read_tensor(a->t(), importer_.tensors(), span());
}
DType NodeContext::attr_dtype(const char* name, DType otherwise) const {
  if (!has_attr(name)) return otherwise;
  auto type = attr(name, 0);
  auto dtype = onnx::dtype_of(type > 0 && type < 1000 ? static_cast<int>(type) : 0);
  if (!dtype) {
    fail(codes::frontend_attribute,
         std::string("attribute '") + name + "' names a type that Relay lacks",
         "a float, integer or bool type of at most 64 bits",
         onnx_type_name(static_cast<int>(std::clamp<int64_t>(type, -1, 1000))));
  }
  return *dtype;
}
const ::onnx::GraphProto& NodeContext::attr_graph(const char* name) const {
  const AttributeProto* a = find_attr(name);
  if (a == nullptr || !a->has_g()) {
    fail(codes::frontend_graph, std::string("the subgraph '") + name + "' is missing");
  }
  return a->g();
}

Values NodeContext::import_graph(const ::onnx::GraphProto& graph, const Values& inputs) const {
  // The loop or branch around it would have to have the one rank or the other.
  return with_one_rank([&] { return importer_.import_graph(graph, inputs, span()); });
}

}  // namespace relay::frontend::onnx
