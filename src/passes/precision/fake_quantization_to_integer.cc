#include "passes/precision/fake_quantization_to_integer.h"

#include <algorithm>
#include <unordered_set>

#include "analysis/calls.h"
#include "ir/op.h"
#include "node/walk.h"

namespace relay {
namespace {

bool is_number(const Expr& e) {
  auto shape = static_shape(e);
  return shape && (shape->empty() || *shape == std::vector<int64_t>{1});
}

bool has_one_scale(const QuantizedTensor& x) { return is_number(x.scale) && is_number(x.zero); }

// The integers of a call of qnn.dequantize that gives float32.
std::optional<QuantizedTensor> dequantized(const Expr& e) {
  if (!is_call_to(e, "qnn.dequantize")) return std::nullopt;
  auto& c = *as<CallNode>(e);
  if (tensor_of(e)->dtype != DType::Float(32)) return std::nullopt;
  int64_t axis = int_attr(c, "axis");
  return QuantizedTensor{c.args[0], c.args[1], c.args[2],
                         axis < 0 ? axis + tensor_of(e)->rank() : axis};
}

// The real numbers. A single scale needs no axis, and a 0-d tensor has none.
Expr dequantize(const QuantizedTensor& x, const CallNode& at) {
  std::vector<std::pair<std::string, AttrValue>> attrs;
  if (!has_one_scale(x)) attrs.emplace_back("axis", AttrValue(x.axis));
  return make_call("qnn.dequantize", {x.data, x.scale, x.zero}, attrs, at);
}

// Larger integers represent larger numbers.
bool is_positive(const Expr& scale) {
  auto* c = as<ConstantNode>(scale);
  return c != nullptr && c->data.get_as_double(0) > 0;
}

bool same_quantization(const QuantizedTensor& a, const QuantizedTensor& b) {
  return same_value(a.scale, b.scale) && same_value(a.zero, b.zero);
}

// A call with its tensors: the fields of tuples in the tuple's place.
class Tensors {
 public:
  explicit Tensors(const CallNode& c) : call_(c) {
    for (size_t i = 0; i < c.args.size(); ++i) {
      auto* t = as<TupleNode>(c.args[i]);
      if (t == nullptr) add(c.args[i], i);
      for (size_t f = 0; t != nullptr && f < t->fields.size(); ++f) add(t->fields[f], i);
    }
  }

  QuantizedCall quantized() const { return {call_, operands_}; }
  bool any_quantized() const {
    return std::ranges::any_of(operands_, [](const auto& o) { return o.has_value(); });
  }
  size_t size() const { return tensors_.size(); }
  const Expr& operator[](size_t i) const { return tensors_[i]; }
  const std::optional<QuantizedTensor>& operand(size_t i) const { return operands_[i]; }
  size_t argument(size_t i) const { return argument_[i]; }

  // The arguments of the call with other tensors.
  std::vector<Expr> arguments(const std::vector<Expr>& tensors) const {
    std::vector<Expr> out;
    size_t next = 0;
    for (const Expr& a : call_.args) {
      auto* t = as<TupleNode>(a);
      if (t == nullptr) {
        out.push_back(tensors[next++]);
        continue;
      }
      auto first = tensors.begin() + static_cast<std::ptrdiff_t>(next);
      next += t->fields.size();
      auto last = tensors.begin() + static_cast<std::ptrdiff_t>(next);
      out.push_back(tuple(std::vector<Expr>(first, last), a->span));
    }
    return out;
  }

 private:
  void add(const Expr& e, size_t argument) {
    tensors_.push_back(e);
    operands_.push_back(dequantized(e));
    argument_.push_back(argument);
  }

  const CallNode& call_;
  std::vector<Expr> tensors_;
  std::vector<std::optional<QuantizedTensor>> operands_;
  std::vector<size_t> argument_;
};

// The tensors of a result that are floats represent real numbers as `x`; others (indices) are what they are.
std::vector<QuantizedTensor> results(const Expr& moved, const Type& type,
                                     const QuantizedTensor& x) {
  std::vector<QuantizedTensor> out;
  auto add = [&](const Expr& e, const Type& was) {
    auto* t = as<TensorTypeNode>(was);
    const bool real = t != nullptr && t->dtype == DType::Float(32);
    out.push_back(real ? QuantizedTensor{e, x.scale, x.zero} : QuantizedTensor{e});
  };
  auto* parts = as<TupleTypeNode>(type);
  if (parts == nullptr) add(moved, type);
  for (size_t i = 0; parts != nullptr && i < parts->fields.size(); ++i)
    add(tuple_get_item(moved, static_cast<int64_t>(i), moved->span), parts->fields[i]);
  return out;
}

// An operator whose result consists of elements of its arguments, applied to their integers. Arguments of other scales are
// brought to the one that is wanted.
std::vector<QuantizedTensor> by_moves(const OpInfo& row, const Tensors& tensors,
                                      const QuantizedCall& q) {
  if (!row.moves && !row.reshape_only) return {};
  const ElementMoves moves = row.moves.value_or(ElementMoves{});
  if (!moves.holds_for(q.call)) return {};
  std::vector<Expr> moved;
  std::optional<QuantizedTensor> common;
  if (q.wanted != nullptr) common = *q.wanted;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const bool moves_it = std::ranges::count(moves.of, tensors.argument(i)) > 0;
    if (!moves_it) {
      moved.push_back(tensors[i]);
      continue;
    }
    const auto& x = tensors.operand(i);
    if (!x || !has_one_scale(*x)) return {};
    if (!common) common = *x;
    if (moves.by_order && (!is_positive(x->scale) || !is_positive(common->scale))) return {};
    const DType dtype = q.wanted != nullptr ? q.wanted_dtype : tensor_of(common->data)->dtype;
    if (same_quantization(*x, *common) && tensor_of(x->data)->dtype == dtype) {
      moved.push_back(x->data);
    } else if (q.wanted != nullptr) {
      moved.push_back(make_call("qnn.quantize", {tensors[i], common->scale, common->zero},
                                {{"out_dtype", AttrValue(dtype.to_string())}}, q.call));
    } else {
      return {};
    }
  }
  if (!common) return {};
  try {
    Expr out = call(q.call.op, tensors.arguments(moved), q.call.attrs, q.call.span);
    return results(out, q.call.type, *common);
  } catch (const UserError&) {
    return {};  // the operator does not take these integers
  }
}

std::vector<QuantizedTensor> form_of(const OpInfo& row, const Tensors& tensors,
                                     const QuantizedCall& q) {
  if (!tensors.any_quantized()) return {};
  std::vector<QuantizedTensor> out;
  if (row.quantized != nullptr) out = row.quantized(q);
  return out.empty() ? by_moves(row, tensors, q) : out;
}

// The integers that qnn.quantize makes of integers, or of a call on integers; null where it makes them of floats.
Expr quantize(const CallNode& c) {
  const DType dtype = as<TensorTypeNode>(c.type)->dtype;
  const QuantizedTensor wanted{nullptr, c.args[1], c.args[2]};
  if (auto x = dequantized(c.args[0])) {
    if (tensor_of(x->data)->dtype != dtype || !same_quantization(*x, wanted)) return nullptr;
    int64_t axis = int_attr(c, "axis");
    if (axis < 0) axis += tensor_of(x->data)->rank();
    return !has_one_scale(*x) && x->axis != axis ? nullptr : x->data;
  }
  auto* read = as<CallNode>(c.args[0]);
  auto* op = read == nullptr ? nullptr : as<OpNode>(read->op);
  // The dialect rounds halves to the even neighbour.
  if (op == nullptr || !has_one_scale(wanted) || text_attr(c, "rounding") != "TONEAREST_EVEN")
    return nullptr;
  Tensors tensors(*read);
  QuantizedCall q = tensors.quantized();
  q.wanted = &wanted;
  q.wanted_dtype = dtype;
  auto out = form_of(*op->row, tensors, q);
  const bool fits = out.size() == 1 && out[0].scale && same_quantization(out[0], wanted) &&
                    tensor_of(out[0].data)->dtype == dtype;
  return fits ? out[0].data : nullptr;
}

Module run_fake_quantization_to_integer(const Module& mod, PassContext&) {
  return map_functions(mod, [](const GlobalVar&, const Function& f) {
    // Tuples in the place of calls: their fields are pure, so that a projection of one is the field.
    std::unordered_set<const Node*> made;
    std::vector<Expr> held;
    return cast<FunctionNode>(rewrite(
        f,
        [&](const NodeRef&, NodeRef rebuilt) -> NodeRef {
          if (auto* g = as<TupleGetItemNode>(rebuilt);
              g != nullptr && made.contains(g->tuple.get()))
            return as<TupleNode>(g->tuple)->fields[static_cast<size_t>(g->index)];
          auto* c = as<CallNode>(rebuilt);
          Expr integers = c == nullptr ? nullptr : in_integers(*c);
          if (!integers) return rebuilt;
          if (isa<TupleNode>(integers)) {
            made.insert(integers.get());
            held.push_back(integers);
          }
          return integers;
        },
        family::program));
  });
}

}  // namespace

Expr in_integers(const CallNode& c) {
  auto* op = as<OpNode>(c.op);
  if (op == nullptr) return nullptr;
  if (op->name == "qnn.quantize") return quantize(c);
  Tensors tensors(c);
  std::vector<QuantizedTensor> out = form_of(*op->row, tensors, tensors.quantized());
  std::vector<Expr> parts;
  for (const QuantizedTensor& x : out) parts.push_back(x.scale ? dequantize(x, c) : x.data);
  if (parts.empty()) return nullptr;
  return isa<TupleTypeNode>(c.type) ? tuple(std::move(parts), c.span) : parts[0];
}

const Pass kFakeQuantizationToInteger{
    "FakeQuantizationToInteger",
    2,
    Form::any,
    Form::any,
    "Computes on integers what operators do to dequantised numbers.",
    run_fake_quantization_to_integer};

}  // namespace relay
