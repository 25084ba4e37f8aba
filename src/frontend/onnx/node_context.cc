#include <onnx/onnx-ml.pb.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "analysis/calls.h"
#include "base/codes/frontend.h"
#include "base/codes/types.h"
#include "base/quantities.h"
#include "frontend/onnx/graph_importer.h"
#include "frontend/onnx/importer.h"
#include "frontend/onnx/open_args.h"
#include "ir/op.h"
#include "runtime/core/strings.h"

namespace relay::importer {

using ::onnx::AttributeProto;

AttrValue to_value(const std::vector<int64_t>& v) {
  ValueList out;
  out.reserve(v.size());
  for (int64_t x : v) out.emplace_back(x);
  return AttrValue(std::move(out));
}
AttrValue to_value(DType dtype) { return AttrValue(dtype.to_string()); }

NodeContext::NodeContext(Importer& importer, const ::onnx::NodeProto& node, Values inputs,
                         int64_t opset, Span span)
    : importer_(importer),
      node_(node),
      inputs_(std::move(inputs)),
      opset_(opset),
      span_(std::move(span)) {}

const std::string& NodeContext::op_type() const { return node_.op_type(); }

void NodeContext::fail(const DiagnosticCode& code, std::string message, std::string expected,
                       std::string found, std::string help) const {
  throw UserError(Diagnostic(code, span_, op_type() + ": " + std::move(message))
                      .expected(std::move(expected))
                      .found(std::move(found))
                      .help(std::move(help)));
}

void NodeContext::unsupported(const std::string& what, std::string help) const {
  fail(codes::frontend_attribute, what + " is not supported", {}, {}, std::move(help));
}

// ---- Inputs ------------------------------------------------------------------------------------

const ValuePtr& NodeContext::value(size_t i) const {
  if (!has(i)) {
    fail(codes::frontend_graph, "input " + std::to_string(i) + " is missing",
         "at least " + counted(i + 1, "input"), std::to_string(inputs_.size()));
  }
  return inputs_[i];
}
Expr NodeContext::in(size_t i) const {
  const ValuePtr& v = value(i);
  if (v->is_list) fail(codes::frontend_attribute, "a sequence is given for a tensor");
  return importer_.expr_of(v);
}
std::vector<Expr> NodeContext::all() const {
  std::vector<Expr> out;
  for (size_t i = 0; i < inputs_.size(); ++i) out.push_back(in(i));
  if (out.empty()) value(0);
  return out;
}
size_t NodeContext::num_outputs() const { return static_cast<size_t>(node_.output_size()); }
bool NodeContext::output_used(size_t i) const {
  return i < num_outputs() && !node_.output(static_cast<int>(i)).empty();
}
std::optional<KnownValue> NodeContext::known(size_t i) const {
  return has(i) ? inputs_[i]->known : std::nullopt;
}
KnownValue NodeContext::must_know(size_t i, const char* what) const {
  const ValuePtr& v = value(i);
  if (v->known) return *v->known;
  if (v->data) {
    fail(codes::frontend_limit, std::string(what) + " has too many elements",
         "at most " + std::to_string(kMaxKnownElements), std::to_string(v->data.num_elements()));
  }
  fail(codes::frontend_dynamic, std::string(what) + " is known only when the model runs",
       std::string(what) + " computed from constants and input shapes",
       "the value '" + v->name.substr(0, 200) + "'",
       "give fixed input shapes, or simplify the model so that this becomes a constant");
}
std::vector<int64_t> NodeContext::const_ints(size_t i, const char* what) const {
  KnownValue k = must_know(i, what);
  std::vector<int64_t> out;
  for (int64_t e = 0; e < k.size(); ++e) {
    if (k.is_int() && !as_const(k.ints[static_cast<size_t>(e)])) {
      fail(codes::frontend_dynamic, std::string(what) + " depends on an input's open dimension",
           "a number", to_string(k.ints[static_cast<size_t>(e)]),
           "give the input's shape, as in --input NAME=1x3x224x224");
    }
    if (!k.is_int()) {
      fail(codes::frontend_attribute, std::string(what) + " must hold integers", "integers",
           k.dtype.to_string());
    }
    out.push_back(k.int_at(e));
  }
  return out;
}
int64_t NodeContext::const_int(size_t i, const char* what) const {
  std::vector<int64_t> v = const_ints(i, what);
  if (v.size() != 1) {
    fail(codes::frontend_attribute, std::string(what) + " must be one number", "1 element",
         std::to_string(v.size()));
  }
  return v[0];
}
Tensor NodeContext::constant_data(size_t i) const {
  if (!has(i)) return nullptr;
  ModelValue& v = *inputs_[i];
  if (v.data) return v.data = aligned(v.data);
  if (v.known && v.known->is_constant()) return tensor_from(*v.known);
  return nullptr;
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
  return read_tensor(a->t(), importer_.tensors(), span_);
}
DType NodeContext::attr_dtype(const char* name, DType otherwise) const {
  if (!has_attr(name)) return otherwise;
  auto type = attr(name, 0);
  auto dtype = importer::dtype_of(type > 0 && type < 1000 ? static_cast<int>(type) : 0);
  if (!dtype) {
    fail(codes::frontend_attribute,
         std::string("attribute '") + name + "' names a type that Relay lacks",
         "a float, integer or bool type of at most 64 bits",
         onnx_type_name(static_cast<int>(std::clamp<int64_t>(type, -1, 1000))));
  }
  return *dtype;
}
Tensor string_vector(const std::vector<std::string>& strings) {
  const int64_t size = static_cast<int64_t>(strings.size());
  return runtime::make_strings(runtime::Shape(&size, 1),
                               std::vector<std::string_view>(strings.begin(), strings.end()));
}
const ::onnx::GraphProto& NodeContext::attr_graph(const char* name) const {
  const AttributeProto* a = find_attr(name);
  if (a == nullptr || !a->has_g()) {
    fail(codes::frontend_graph, std::string("the subgraph '") + name + "' is missing");
  }
  return a->g();
}

// ---- Types -------------------------------------------------------------------------------------

const TensorTypeNode& NodeContext::type_of(const Expr& e) {
  auto* t = as<TensorTypeNode>(e->type);
  if (t == nullptr) {
    throw UserError(Diagnostic(codes::type_mismatch, e->span, "a tensor is needed here")
                        .expected("a tensor")
                        .found(e->type ? to_string(e->type) : "a value of unknown type"));
  }
  return *t;
}

int64_t NodeContext::const_dim(const Expr& e, int64_t axis, const char* what) const {
  if (axis < 0 || axis >= rank_of(e)) {
    fail(codes::type_rank, "a tensor has too few dimensions for " + std::string(what),
         "rank " + std::to_string(axis + 1) + " or more", to_string(e->type));
  }
  const Dim& d = shape_of(e)[static_cast<size_t>(axis)];
  if (auto c = as_const(d)) return *c;
  fail(codes::frontend_dynamic, std::string(what) + " must be a fixed number", "a number",
       to_string(d), "give the input's shape, as in --input NAME=1x3x224x224");
}

int64_t NodeContext::axis(int64_t value, int64_t rank) const {
  if (value < -rank || value >= rank) {
    fail(codes::frontend_attribute, "an axis is out of range",
         "between " + std::to_string(-rank) + " and " + std::to_string(rank - 1),
         std::to_string(value));
  }
  return value < 0 ? value + rank : value;
}

std::vector<int64_t> NodeContext::axes(std::vector<int64_t> values, int64_t rank) const {
  for (int64_t& v : values) v = axis(v, rank);
  std::vector<int64_t> sorted = values;
  std::sort(sorted.begin(), sorted.end());
  if (std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end()) {
    fail(codes::frontend_attribute, "an axis is given twice");
  }
  return values;
}

// ---- Builders ----------------------------------------------------------------------------------

Expr NodeContext::call(std::string_view op, std::vector<Expr> args, const AttrList& attrs) const {
  return make_call(op, std::move(args), attrs, span_);
}

bool NodeContext::has_op(std::string_view op) { return OpRegistry::global().find(op) != nullptr; }

Expr NodeContext::scalar(double value, DType dtype) const {
  // The zero of strings is the empty one.
  if (dtype.is_string() && value == 0) return constant(runtime::make_strings({}, {""}));
  if (dtype.is_string()) unsupported("a number among strings");
  return relay::constant(value, dtype, span_);
}

Expr NodeContext::ints(const std::vector<int64_t>& values, DType dtype) const {
  return constant(tensor_from(known_ints(values, dtype)));
}

Expr NodeContext::cast(Expr e, DType dtype) const {
  if (dtype_of(e) == dtype) return e;
  return call("cast", {std::move(e)}, {{"dtype", to_value(dtype)}});
}

Expr NodeContext::transpose(Expr e, const std::vector<int64_t>& axes) const {
  if (std::is_sorted(axes.begin(), axes.end())) return e;
  return call("transpose", {std::move(e)}, {{"axes", to_value(axes)}});
}

Expr NodeContext::expand_dims(Expr e, int64_t axis, int64_t count) const {
  if (count == 0) return e;
  return call("expand_dims", {std::move(e)}, {{"axis", axis}, {"num_newaxis", count}});
}

Expr NodeContext::squeeze(Expr e, const std::vector<int64_t>& axes) const {
  if (axes.empty()) return e;
  return call("squeeze", {std::move(e)}, {{"axis", to_value(axes)}});
}

Expr NodeContext::reshape(Expr e, const std::vector<int64_t>& shape) const {
  std::vector<Dim> dims;
  for (int64_t d : shape) dims.push_back(dim(d));
  return reshape(std::move(e), dims);
}

Expr NodeContext::reshape(Expr e, const std::vector<Dim>& shape) const {
  const std::vector<Dim>& from = shape_of(e);
  bool same =
      from.size() == shape.size() && std::equal(from.begin(), from.end(), shape.begin(), dim_equal);
  if (same) return e;
  // One size may be what is left over.
  Dims sizes;
  bool inferred = false, has_zero = false;
  for (const Dim& d : shape) {
    has_zero = has_zero || as_const(d) == 0;
    if (is_any(d) && std::exchange(inferred, true)) {
      fail(codes::frontend_dynamic, "this reshape of unknown sizes cannot be expressed",
           to_string(tensor_type(shape, dtype_of(e))), to_string(e->type),
           "give fixed input shapes, as in --input NAME=1x3x224x224");
    }
    sizes.push_back(is_any(d) ? dim(-1) : d);
  }
  AttrList attrs{{"newshape", relay::to_value(sizes)}};
  if (has_zero) attrs.emplace_back("allowzero", true);
  return call("reshape", {e}, attrs);
}

Expr NodeContext::broadcast_to(Expr e, const std::vector<Dim>& shape) const {
  int64_t rank = static_cast<int64_t>(shape.size());
  auto refuse = [&](const char* why) {
    fail(codes::type_shape, why, to_string(tensor_type(shape, dtype_of(e))), to_string(e->type));
  };
  if (rank_of(e) > rank) refuse("a tensor does not broadcast to a smaller rank");
  e = expand_dims(std::move(e), 0, rank - rank_of(e));
  const std::vector<Dim> from = shape_of(e);
  bool same = true;
  for (size_t a = 0; a < shape.size(); ++a) {
    same = same && dim_equal(from[a], shape[a]);
    if (as_const(from[a]) != 1 && dim_differs(from[a], shape[a]))
      refuse("a tensor does not broadcast to this shape");
  }
  if (same) return e;
  if (std::none_of(shape.begin(), shape.end(), is_any)) {
    return call("broadcast_to", {std::move(e)},
                {{"shape", relay::to_value(Dims(shape.begin(), shape.end()))}});
  }
  // A size that is not known is the input's; the others are repetitions.
  Dims repeats;
  for (size_t a = 0; a < shape.size(); ++a) {
    bool own = as_const(from[a]) != 1;
    if (!own && is_any(shape[a])) {
      fail(codes::frontend_dynamic, "a tensor is expanded to a size that is not known",
           to_string(tensor_type(shape, dtype_of(e))), to_string(e->type));
    }
    repeats.push_back(own ? dim(1) : shape[a]);
  }
  return call("tile", {std::move(e)}, {{"reps", relay::to_value(repeats)}});
}

Expr NodeContext::slice(Expr e, int64_t axis, int64_t begin, int64_t end) const {
  if (axis >= rank_of(e)) {
    fail(codes::type_rank, "an operand has too few dimensions",
         std::to_string(axis + 1) + " or more", to_string(e->type));
  }
  auto size = as_const(shape_of(e)[static_cast<size_t>(axis)]);
  if (begin == 0 && size == end) return e;
  if (!size) {
    // Both demand that the elements are there: `take` the first, `split` all that it cuts.
    if (begin == 0 && end == 1) {
      return call("take", {std::move(e), ints(std::vector<int64_t>{0})}, {{"axis", axis}});
    }
    std::vector<int64_t> cuts{begin, std::max(begin, end)};
    Expr parts =
        call("split", {std::move(e)}, {{"indices_or_sections", to_value(cuts)}, {"axis", axis}});
    return item(parts, 1);
  }
  return call("strided_slice", {std::move(e)},
              {{"begin", to_value(std::vector<int64_t>{begin})},
               {"end", to_value(std::vector<int64_t>{end})},
               {"strides", to_value(std::vector<int64_t>{1})},
               {"axes", to_value(std::vector<int64_t>{axis})}});
}

Expr NodeContext::select(Expr e, int64_t axis, int64_t index) const {
  return squeeze(slice(std::move(e), axis, index, index + 1), {axis});
}

Expr NodeContext::concat(std::vector<Expr> parts, int64_t axis) const {
  if (parts.size() == 1) return parts[0];
  return call("concatenate", {tuple_of(std::move(parts))}, {{"axis", axis}});
}

std::vector<Expr> NodeContext::split(Expr e, int64_t axis, int64_t parts) const {
  if (parts == 1) return {e};
  Expr all = call("split", {std::move(e)}, {{"indices_or_sections", parts}, {"axis", axis}});
  std::vector<Expr> out;
  for (int64_t i = 0; i < parts; ++i) out.push_back(item(all, i));
  return out;
}

Expr NodeContext::reduce(const char* op, Expr e, std::vector<int64_t> axes, bool keepdims) const {
  if (axes.empty()) return e;
  AttrList attrs{{"axis", to_value(axes)}, {"keepdims", keepdims}};
  // ONNX has a greatest and a least of nothing.
  const std::string_view name = op;
  if (name == "max" || name == "min") attrs.emplace_back("identity_if_empty", true);
  return call(op, {std::move(e)}, attrs);
}

Expr NodeContext::full(double value, const std::vector<Dim>& shape, DType dtype) const {
  if (shape.empty()) return scalar(value, dtype);
  if (dtype.is_string()) return broadcast_to(scalar(value, dtype), shape);
  return call(
      "full", {scalar(value, dtype)},
      {{"shape", relay::to_value(Dims(shape.begin(), shape.end()))}, {"dtype", to_value(dtype)}});
}

Expr NodeContext::matmul_input(Expr a, size_t b) const {
  // A larger matrix is exchanged when the program is compiled, so that weights which are mapped stay so.
  constexpr size_t kLarge = size_t{1} << 20;
  const ValuePtr& v = value(b);
  const bool is_matrix = !v->failed && v->data && !v->is_parameter && v->data.shape().size() == 2;
  if (!is_matrix || rank_of(a) == 0 || dim_differs(shape_of(a).back(), dim(v->data.dim(0)))) {
    return matmul(std::move(a), in(b));
  }
  if (!v->transposed) {
    v->transposed = v->data.byte_size() > kLarge
                        ? transpose(in(b), {1, 0})
                        : relay::constant(transpose_matrix(v->data), v->span, v->name);
  }
  return call("nn.dense", {std::move(a), v->transposed});
}

Expr NodeContext::merge_axes(Expr e, size_t begin, size_t end) const {
  if (end == begin + 1) return e;
  if (end == begin) return expand_dims(std::move(e), static_cast<int64_t>(begin));
  const std::vector<Dim> from = shape_of(e);
  std::vector<Dim> to(from.begin(), from.begin() + static_cast<std::ptrdiff_t>(begin));
  Dim merged = dim(1);
  for (size_t a = begin; a < end; ++a) merged = merged * from[a];
  to.push_back(merged);
  to.insert(to.end(), from.begin() + static_cast<std::ptrdiff_t>(end), from.end());
  if (std::ranges::count_if(to, is_any) <= 1) return reshape(std::move(e), to);
  // Two axes at a time; the others are copied.
  for (size_t rank = from.size(); end > begin + 1; --end, --rank) {
    Dims codes(rank - 1, dim(0));
    codes[begin] = dim(-3);
    e = call("reshape", {std::move(e)}, {{"newshape", relay::to_value(codes)}});
  }
  return e;
}

Expr NodeContext::with_sizes(Expr e, const std::vector<Dim>& sizes) const {
  const std::vector<Dim>& own = shape_of(e);
  Dims codes;
  bool more = false;
  for (size_t a = 0; a < own.size(); ++a) {
    bool told = is_any(own[a]) && a < sizes.size() && least_value(sizes[a]).value_or(-1) >= 0 &&
                as_const(sizes[a]) != 0;
    more = more || told;
    codes.push_back(told ? sizes[a] : dim(0));
  }
  return more ? call("reshape", {std::move(e)}, {{"newshape", relay::to_value(codes)}}) : e;
}

std::optional<KnownValue> NodeContext::partly_known(const Expr& e) const {
  const KnownValue* known = importer_.known_of(e);
  return known == nullptr ? std::nullopt : std::optional(*known);
}

Expr NodeContext::matmul(Expr a, Expr b) const {
  // A vector is a matrix with one row (left) or column (right), which is dropped again.
  bool left_vector = rank_of(a) == 1;
  bool right_vector = rank_of(b) == 1;
  if (rank_of(a) == 0 || rank_of(b) == 0) {
    fail(codes::type_rank, "a matrix product needs at least one dimension", "rank 1 or more",
         to_string(a->type) + " and " + to_string(b->type));
  }
  if (left_vector) a = expand_dims(a, 0);
  if (right_vector) b = expand_dims(b, 1);
  const std::vector<Dim> sa = shape_of(a), sb = shape_of(b);
  size_t ra = sa.size(), rb = sb.size();
  if (dim_differs(sa[ra - 1], sb[rb - 2])) {
    fail(codes::type_shape, "the inner dimensions differ",
         to_string(sa[ra - 1]) + " rows in the second matrix", to_string(b->type),
         "the first operand is " + to_string(a->type));
  }
  Expr out;
  if (rb == 2) {
    // All leading dimensions of the left side are rows of one product.
    out = call("nn.matmul", {a, b});
  } else {
    size_t batch = std::max(ra, rb) - 2;
    std::vector<Dim> dims;
    bool open = false;
    for (size_t i = 0; i < batch; ++i) {
      auto at = [&](const std::vector<Dim>& s) {
        size_t lead = batch - (s.size() - 2);
        return i < lead ? dim(1) : s[i - lead];
      };
      Dim x = at(sa), y = at(sb);
      if (dim_differs(x, y) && as_const(x) != 1 && as_const(y) != 1) {
        fail(codes::type_shape, "the batch dimensions do not broadcast", to_string(a->type),
             to_string(b->type));
      }
      dims.push_back(broadcast(x, y));
      open = open || is_any(dims.back());
    }
    open = open || (is_any(sa[ra - 2]) && is_any(sb[rb - 1]));
    out = open && batch > 1 ? open_batch_matmul(a, b, dims) : batch_matmul(a, b, dims);
  }
  if (left_vector) out = squeeze(out, {rank_of(out) - 2});
  if (right_vector) out = squeeze(out, {rank_of(out) - 1});
  return out;
}

// The product of stacks of matrices whose common sizes are known as terms.
Expr NodeContext::batch_matmul(Expr a, Expr b, const std::vector<Dim>& batch) const {
  const std::vector<Dim> sa = shape_of(a), sb = shape_of(b);
  auto flat = [&](const Expr& e, const std::vector<Dim>& s) {
    std::vector<Dim> wide = batch;
    wide.insert(wide.end(), s.end() - 2, s.end());
    // A batch of one need not be repeated: batch_matmul broadcasts it.
    bool single =
        std::all_of(s.begin(), s.end() - 2, [](const Dim& d) { return as_const(d) == 1; });
    if (batch.size() == 1 && s.size() == 3) return e;
    if (single) return merge_axes(e, 0, s.size() - 2);
    return merge_axes(broadcast_to(e, wide), 0, batch.size());
  };
  Expr out = call("nn.batch_matmul", {flat(a, sa), flat(b, sb)},
                  {{"transpose_a", false}, {"transpose_b", false}});
  if (batch.size() == 1) return out;
  std::vector<Dim> result = batch;
  result.push_back(sa[sa.size() - 2]);
  result.push_back(sb[sb.size() - 1]);
  return reshape(out, result);
}

// The same where only a run knows how large the batch is, or even whether the operands have one batch or
// are repeated to it. Almost always they have.
Expr NodeContext::open_batch_matmul(const Expr& x, const Expr& y,
                                    const std::vector<Dim>& batch) const {
  NodeContext ctx = *this;
  const auto rank = static_cast<int64_t>(batch.size()) + 2, last = rank - 2;
  Expr a = expand_dims(x, 0, rank - rank_of(x)), b = expand_dims(y, 0, rank - rank_of(y));
  auto sizes = [&](const Expr& e, int64_t begin, int64_t end) {
    return entries(ctx, sizes_of(ctx, e), begin, end);
  };
  Expr left = sizes(a, 0, last), right = sizes(b, 0, last);
  std::vector<Dim> known = batch;
  known.push_back(shape_of(a)[static_cast<size_t>(last)]);
  known.push_back(shape_of(b).back());
  auto product = [&](const Expr& p, const Expr& q, const Expr& outer) {
    Expr out =
        call("nn.batch_matmul", {merge_axes(p, 0, batch.size()), merge_axes(q, 0, batch.size())},
             {{"transpose_a", false}, {"transpose_b", false}});
    Expr all = concat({outer, entries(ctx, sizes_of(ctx, out), 1, 3)}, 0);
    return with_sizes(open_reshape(ctx, out, all), known);
  };
  auto repeated = [&] {
    Expr wide = call("where", {call("equal", {left, scalar(1, DType::Int(64))}), right, left});
    auto all = [&](const Expr& e) {
      return call("dyn.broadcast_to", {e, concat({wide, sizes(e, last, rank)}, 0)});
    };
    return product(all(a), all(b), wide);
  };
  bool equal = true, may_be = true;
  for (size_t i = 0; i < batch.size(); ++i) {
    const Dim &p = shape_of(a)[i], &q = shape_of(b)[i];
    equal = equal && dim_equal(p, q);
    may_be = may_be && !dim_differs(p, q);
  }
  if (equal) return product(a, b, left);
  if (!may_be) return repeated();
  Expr alike = call("all", {call("equal", {left, right})});
  return if_(alike, product(a, b, left), repeated(), span_);
}

Expr NodeContext::matmul_along(Expr e, int64_t axis, const Tensor& matrix) const {
  int64_t rank = rank_of(e);
  std::vector<int64_t> to_last, back;
  for (int64_t i = 0; i < rank; ++i) {
    if (i != axis) to_last.push_back(i);
    back.push_back(i < axis ? i : i == axis ? rank - 1 : i - 1);
  }
  to_last.push_back(axis);
  return transpose(
      call("nn.dense", {transpose(std::move(e), to_last), constant(transpose_matrix(matrix))}),
      back);
}

Values NodeContext::import_graph(const ::onnx::GraphProto& graph, const Values& inputs) const {
  try {
    return importer_.import_graph(graph, inputs, span_);
  } catch (const BranchesDiffer& branches) {
    // The loop or branch around it would have to have the one rank or the other.
    throw UserError(rank_is_open(branches, span_));
  }
}

Expr NodeContext::expr_of(const ValuePtr& v) const { return importer_.expr_of(v); }

void NodeContext::charge_bytes(int64_t elements, DType dtype) const {
  auto width = static_cast<int64_t>(dtype.bytes());
  if (elements < 0 || elements > (int64_t{1} << 62) / width) elements = int64_t{1} << 40;
  importer_.charge_bytes(elements * width, span_);
}

}  // namespace relay::importer
