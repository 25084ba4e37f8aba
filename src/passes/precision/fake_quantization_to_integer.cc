#include "passes/precision/fake_quantization_to_integer.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "analysis/calls.h"
#include "ir/layout.h"
#include "node/walk.h"

namespace relay {
namespace {

using Ints = std::vector<int64_t>;
using AttrList = std::vector<std::pair<std::string, AttrValue>>;

// A call of qnn.dequantize that gives float32.
struct Dequantized {
  Expr data, scale, zero;
  int64_t axis;  // of scale and zero where they are vectors, from the front

  bool is_byte() const {
    DType d = tensor_of(data)->dtype;
    return d.is_integer() && d.bits == 8;
  }
  bool by_channel() const { return !is_number(scale) || !is_number(zero); }
  static bool is_number(const Expr& e) {
    auto shape = static_shape(e);
    return shape && (shape->empty() || *shape == Ints{1});
  }
};

std::optional<Dequantized> dequantized(const Expr& e) {
  if (!is_call_to(e, "qnn.dequantize")) return std::nullopt;
  auto& c = *as<CallNode>(e);
  if (tensor_of(e)->dtype != DType::Float(32)) return std::nullopt;
  int64_t axis = int_attr(c, "axis");
  return Dequantized{c.args[0], c.args[1], c.args[2],
                     axis < 0 ? axis + tensor_of(e)->rank() : axis};
}

// What all elements of a constant are; nullopt when they differ or it is none.
std::optional<double> only_number(const Expr& e) {
  auto* c = as<ConstantNode>(e);
  if (c == nullptr || c->data.num_elements() == 0) return std::nullopt;
  double first = c->data.get_as_double(0);
  for (int64_t i = 1; i < c->data.num_elements(); ++i) {
    if (c->data.get_as_double(i) != first) return std::nullopt;
  }
  return first;
}

Expr dequantize(const Expr& data, const Expr& scale, const Expr& zero, int64_t axis,
                const CallNode& at) {
  return make_call("qnn.dequantize", {data, scale, zero}, {{"axis", AttrValue(axis)}}, at);
}

// ---- Moves of elements

constexpr std::string_view kMoves[] = {
    "reshape",
    "squeeze",
    "expand_dims",
    "transpose",
    "nn.batch_flatten",
    "strided_slice",
    "reverse",
    "repeat",
    "tile",
    "broadcast_to",
    "take",
    "nn.depth_to_space",
    "nn.space_to_depth",
};
constexpr std::string_view kMaxPools[] = {"nn.max_pool1d", "nn.max_pool2d", "nn.max_pool3d"};

// Every window has an element of the data, and a greater number stays greater.
bool pools_integers(const CallNode& c, const Dequantized& x) {
  auto* scale = as<ConstantNode>(x.scale);
  if (scale == nullptr || !(scale->data.get_as_double(0) > 0) || bool_attr(c, "ceil_mode"))
    return false;
  auto padding = ints_attr(c, "padding"), size = ints_attr(c, "pool_size");
  return padding && size &&
         std::ranges::all_of(*padding, [&](int64_t p) { return p < std::ranges::min(*size); });
}

Expr move(const CallNode& c) {
  auto x = dequantized(c.args[0]);
  if (!x) return nullptr;
  bool transposes = is_call_to(Expr(ref(c)), "transpose");
  int64_t axis = x->axis;
  if (x->by_channel()) {
    if (!transposes) return nullptr;
    Ints axes(static_cast<size_t>(tensor_of(c.args[0])->rank()));
    std::iota(axes.rbegin(), axes.rend(), 0);
    if (auto given = ints_attr(c, "axes"); given && !given->empty()) axes = *given;
    auto at = std::ranges::find_if(axes, [&](int64_t a) {
      return (a < 0 ? a + static_cast<int64_t>(axes.size()) : a) == x->axis;
    });
    axis = at - axes.begin();
  } else {
    axis = -1;
  }
  std::vector<Expr> args = c.args;
  args[0] = x->data;
  Expr moved = call(c.op, std::move(args), c.attrs, c.span);
  // A number needs no axis, and a 0-d tensor has none.
  return axis < 0 ? make_call("qnn.dequantize", {moved, x->scale, x->zero}, {}, c)
                  : dequantize(moved, x->scale, x->zero, axis, c);
}

// A border of zeros is one of zero points.
Expr pad(const CallNode& c) {
  auto x = dequantized(c.args[0]);
  if (!x || x->by_channel() || only_number(c.args[1]) != 0 ||
      text_attr(c, "pad_mode") != "constant")
    return nullptr;
  Expr zero = make_call("cast", {x->zero}, {{"dtype", tensor_of(x->data)->dtype.to_string()}}, c);
  if (tensor_of(zero)->rank() != 0)
    zero = make_call("reshape", {zero}, {{"newshape", to_value(Ints{})}}, c);
  return make_call("qnn.dequantize",
                   {call(c.op, {x->data, zero}, c.attrs, c.span), x->scale, x->zero}, {}, c);
}

Expr concatenate(const CallNode& c) {
  auto* parts = as<TupleNode>(c.args[0]);
  if (parts == nullptr || parts->fields.empty()) return nullptr;
  auto first = dequantized(parts->fields[0]);
  if (!first || first->by_channel()) return nullptr;
  std::vector<Expr> data;
  for (const Expr& e : parts->fields) {
    auto x = dequantized(e);
    if (!x || !same_value(x->scale, first->scale) || !same_value(x->zero, first->zero) ||
        tensor_of(x->data)->dtype != tensor_of(first->data)->dtype)
      return nullptr;
    data.push_back(x->data);
  }
  return make_call(
      "qnn.dequantize",
      {call(c.op, {tuple(std::move(data), c.span)}, c.attrs, c.span), first->scale, first->zero},
      {}, c);
}

// ---- Sums of products

// The sum in integers, as what it stands for: its scales are along `axis`.
Expr sum(const CallNode& c, const char* op, const Dequantized& x, const Dequantized& w,
         const Expr& weight, const AttrList& attrs, int64_t axis) {
  Expr integers = make_call(op, {x.data, weight, x.zero, w.zero, x.scale, w.scale}, attrs, c);
  auto number = [&](const Expr& e) {
    return tensor_of(e)->rank() == 0 || !Dequantized::is_number(e)
               ? e
               : make_call("reshape", {e}, {{"newshape", to_value(Ints{})}}, c);
  };
  Expr scale = make_call("multiply", {number(x.scale), number(w.scale)}, {}, c);
  Expr zero = constant(0, DType::Int(32), c.span);
  return Dequantized::is_number(w.scale)
             ? make_call("qnn.dequantize", {integers, scale, zero}, {}, c)
             : dequantize(integers, scale, zero, axis, c);
}

struct Factors {
  Dequantized x, w;
};
// The arguments of a product; nullopt when they are not bytes, or scaled along other axes than the
// weight's `channels`.
std::optional<Factors> factors(const CallNode& c, int64_t channels) {
  auto x = dequantized(c.args[0]), w = dequantized(c.args[1]);
  if (!x || !w || !x->is_byte() || !w->is_byte() || x->by_channel()) return std::nullopt;
  if (w->by_channel() && w->axis != channels) return std::nullopt;
  return Factors{*x, *w};
}

AttrList integer_attrs(const CallNode& c) {
  AttrList out = attr_values(c.attrs, true);
  std::erase_if(out, [](auto& v) { return v.first == "out_dtype"; });
  out.emplace_back("out_dtype", std::string("int32"));
  return out;
}

Expr transposed_matrix(const Expr& e, const CallNode& at) {
  Ints axes(static_cast<size_t>(tensor_of(e)->rank()));
  std::iota(axes.begin(), axes.end(), 0);
  std::swap(axes[axes.size() - 1], axes[axes.size() - 2]);
  return make_call("transpose", {e}, {{"axes", to_value(axes)}}, at);
}

Expr conv2d(const CallNode& c) {
  auto data = Layout::parse(text_attr(c, "data_layout")),
       kernel = Layout::parse(text_attr(c, "kernel_layout"));
  std::string out = text_attr(c, "out_layout");
  auto result = out.empty() ? data : Layout::parse(out);
  if (!data || !kernel || !result || data->rank() != 4 || kernel->rank() != 4) return nullptr;
  auto f = factors(c, kernel->index_of('O'));
  if (!f) return nullptr;
  return sum(c, "qnn.conv2d", f->x, f->w, f->w.data, integer_attrs(c), result->index_of('C'));
}

Expr dense(const CallNode& c) {
  auto f = factors(c, 0);
  if (!f) return nullptr;
  return sum(c, "qnn.dense", f->x, f->w, f->w.data, integer_attrs(c),
             tensor_of(c.args[0])->rank() - 1);
}

Expr matmul(const CallNode& c) {
  bool transposed = bool_attr(c, "transpose_b");
  auto f = factors(c, transposed ? 0 : 1);
  if (!f || bool_attr(c, "transpose_a")) return nullptr;
  Expr w = transposed ? f->w.data : transposed_matrix(f->w.data, c);
  return sum(c, "qnn.dense", f->x, f->w, w, {{"out_dtype", std::string("int32")}},
             tensor_of(c.args[0])->rank() - 1);
}

Expr batch_matmul(const CallNode& c) {
  auto f = factors(c, -1);
  if (!f) return nullptr;
  Dequantized x = f->x;
  if (bool_attr(c, "transpose_a")) x.data = transposed_matrix(x.data, c);
  Expr w = bool_attr(c, "transpose_b") ? f->w.data : transposed_matrix(f->w.data, c);
  return sum(c, "qnn.batch_matmul", x, f->w, w, {}, -1);
}

Expr quantize(const CallNode& c) {
  auto x = dequantized(c.args[0]);
  if (!x || tensor_of(x->data)->dtype != as<TensorTypeNode>(c.type)->dtype ||
      !same_value(x->scale, c.args[1]) || !same_value(x->zero, c.args[2]))
    return nullptr;
  int64_t axis = int_attr(c, "axis");
  if (axis < 0) axis += tensor_of(x->data)->rank();
  return x->by_channel() && x->axis != axis ? nullptr : x->data;
}

using Rule = Expr (*)(const CallNode&);
const std::map<std::string, Rule, std::less<>>& rules() {
  static const auto* out = [] {
    auto* rules = new std::map<std::string, Rule, std::less<>>{
        {"nn.conv2d", conv2d},
        {"nn.dense", dense},
        {"nn.matmul", matmul},
        {"nn.batch_matmul", batch_matmul},
        {"nn.pad", pad},
        {"concatenate", concatenate},
        {"qnn.quantize", quantize},
    };
    for (std::string_view name : kMoves) rules->emplace(name, move);
    for (std::string_view name : kMaxPools) {
      rules->emplace(name, [](const CallNode& c) -> Expr {
        auto x = dequantized(c.args[0]);
        return x && !x->by_channel() && pools_integers(c, *x) ? move(c) : nullptr;
      });
    }
    return rules;
  }();
  return *out;
}

Module run(const Module& mod, PassContext&) {
  return map_functions(mod, [](const GlobalVar&, const Function& f) {
    return cast<FunctionNode>(rewrite(
        f,
        [](const NodeRef&, NodeRef rebuilt) -> NodeRef {
          auto* c = as<CallNode>(rebuilt);
          Expr integers = c == nullptr ? nullptr : in_integers(*c);
          return integers ? NodeRef(integers) : rebuilt;
        },
        family::expr | family::pattern));
  });
}

}  // namespace

Expr in_integers(const CallNode& c) {
  auto* op = as<OpNode>(c.op);
  if (op == nullptr) return nullptr;
  auto rule = rules().find(op->name);
  return rule == rules().end() ? nullptr : rule->second(c);
}

const Pass kFakeQuantizationToInteger{"FakeQuantizationToInteger",
                                      2,
                                      Form::any,
                                      Form::any,
                                      "Computes sums of products of quantised numbers in integers.",
                                      run};

}  // namespace relay
