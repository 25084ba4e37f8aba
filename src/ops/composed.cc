#include "ops/composed.h"

#include <algorithm>

#include "base/codes/operators.h"
#include "base/codes/types.h"
#include "base/quantities.h"
#include "node/walk.h"

namespace relay::ops {
namespace {

// The type that the definition has for arguments of the types that are known.
Type type_of_definition(RelationContext& ctx, const DefinitionRule& definition) {
  std::vector<Expr> args;
  for (size_t i = 0; i < ctx.size(); ++i) {
    if (!ctx.arg(i)) return nullptr;
    if (!isa<TensorTypeNode>(ctx.arg(i)))
      return ctx.fail(codes::type_mismatch, "takes tensors", "a tensor", to_string(ctx.arg(i)));
    args.push_back(var("x" + std::to_string(i), ctx.arg(i)));
  }
  Call call = make<CallNode>([&](CallNode& c) {
    c.op = OpRegistry::global().get(ctx.op().name);
    c.args = std::move(args);
    c.attrs = ctx.attrs_ref();
  });
  try {
    return definition(*call.get())->type;
  } catch (const UserError& e) {
    const Diagnostic& d = e.diagnostics().front();
    return ctx.fail(DiagnosticCode{d.code, ""}, d.message, d.expected_text, d.found_text,
                    d.help_text);
  }
}

// What the operators do that an expression is made of, its operands not counted.
double cost_of_parts(const Expr& definition) {
  double total = 0;
  post_order(
      definition,
      [&](const Node& n) {
        auto* c = as<CallNode>(&n);
        auto* op = c == nullptr ? nullptr : as<OpNode>(c->op);
        if (op != nullptr && op->row->cost) total += op->row->cost(*c);
      },
      family::expr);
  return total;
}

bool is_half(const Type& t) {
  auto* tensor = as<TensorTypeNode>(t);
  return tensor != nullptr && tensor->dtype.is_floating() && tensor->dtype.bits == 16;
}

// Operators of the definition, apart from those of the arguments, that compute numbers of 16-bit floats.
int roundings(const Expr& definition, const std::vector<Expr>& args) {
  auto is_argument = [&](const Node& n) {
    return std::ranges::any_of(args, [&](const Expr& e) { return e.get() == &n; });
  };
  int count = 0;
  post_order_if(
      definition, [&](const Node& n) { return !is_argument(n); },
      [&](const Node& n) {
        auto* c = as<CallNode>(&n);
        auto* op = c == nullptr ? nullptr : as<OpNode>(c->op);
        count += op != nullptr && op->row->cost && is_half(c->type);
      },
      family::expr);
  return count;
}

bool has_open_size(const Expr& e) {
  auto* t = as<TensorTypeNode>(e->type);
  return t != nullptr && std::ranges::any_of(t->shape, is_any);
}

// The definition for arguments whose sizes are `?`, where it takes numbers or names alone: in a function whose
// parameters have a name for each `?`. Null where names do not help.
Expr defined_by_names(const DefinitionRule& definition, const CallNode& call) {
  auto* named = new CallNode(call);
  const Call kept(named);
  std::vector<TypeVar> names;
  std::vector<Var> params;
  std::vector<Expr> args;
  for (Expr& e : named->args) {
    if (isa<ConstantNode>(e)) continue;
    Type type = e->type;
    if (has_open_size(e)) {
      const auto& t = *as<TensorTypeNode>(type);
      std::vector<Dim> shape = t.shape;
      for (Dim& d : shape) {
        if (!is_any(d)) continue;
        names.push_back(type_var("size" + std::to_string(names.size()), Kind::Dim));
        d = dim(names.back());
      }
      type = tensor_type(std::move(shape), t.dtype);
    }
    args.push_back(e);
    params.push_back(var("x" + std::to_string(params.size()), std::move(type)));
    e = params.back();
  }
  try {
    Expr body = definition(*named);
    Function f = function(std::move(params), body, body->type, std::move(names));
    return relay::call(std::move(f), std::move(args), nullptr, call.span);
  } catch (const UserError&) {
    return nullptr;
  }
}

DefinitionRule for_open_sizes(DefinitionRule definition) {
  return [definition = std::move(definition)](const CallNode& call) -> Expr {
    try {
      return definition(call);
    } catch (const UserError&) {
      if (std::ranges::none_of(call.args, has_open_size)) throw;
      Expr e = defined_by_names(definition, call);
      if (!e) throw;
      return e;
    }
  };
}

}  // namespace

DefinitionRule in_float32(DefinitionRule definition) {
  return [definition = std::move(definition)](const CallNode& call) -> Expr {
    Expr plain = definition(call);
    if (std::ranges::none_of(call.args, [](const Expr& e) { return is_half(e->type); }) ||
        roundings(plain, call.args) < 2) {
      return plain;
    }
    auto* wide = new CallNode(call);
    Call kept(wide);
    for (Expr& e : wide->args) {
      if (is_half(e->type)) e = cast_to(e, DType::Float(32));
    }
    Expr result = definition(*wide);
    auto as_before = [](const Expr& e, const Type& type) -> Expr {
      auto* t = as<TensorTypeNode>(type);
      return t == nullptr ? e : cast_to(e, t->dtype);
    };
    auto* types = as<TupleTypeNode>(plain->type);
    if (types == nullptr) return as_before(result, plain->type);
    std::vector<Expr> fields;
    for (size_t i = 0; i < types->fields.size(); ++i) {
      fields.push_back(as_before(tuple_get_item(result, i), types->fields[i]));
    }
    return tuple(std::move(fields));
  };
}

OpInfo composed_row(std::string name, std::string doc, std::vector<ArgInfo> args, AttrsInfo attrs,
                    DefinitionRule definition, std::vector<OpExample> examples) {
  definition = for_open_sizes(in_float32(std::move(definition)));
  return {
      .name = std::move(name),
      .doc = std::move(doc),
      .args = std::move(args),
      .attrs = std::move(attrs),
      .support_level = 10,
      .fusion = FusionClass::Opaque,
      .effect = Effect::Pure,
      .relation = [definition](RelationContext& c) { return type_of_definition(c, definition); },
      .compute = Absent::Defined,
      .definition = definition,
      .layout = Absent::AxesAsWritten,
      .memory = Absent::OnePiece,
      .precision = Precision::Follow,
      .cost = [definition](const CallNode& c) { return cost_of_parts(definition(c)); },
      .gradient = Absent::Pending,
      .examples = std::move(examples),
      .expected = Absent::ByNumPy,
  };
}

void misused(const CallNode& call, const std::string& message, const std::string& expected,
             const std::string& found) {
  throw UserError(
      Diagnostic(codes::op_bad_attribute, call.span, message).expected(expected).found(found));
}
void demand(const CallNode& call, bool condition, const std::string& message,
            const std::string& expected, const std::string& found) {
  if (!condition) misused(call, message, expected, found);
}

void demand_rank(const CallNode& call, size_t argument, int64_t least, int64_t most) {
  const int64_t rank = rank_of(call.args[argument]);
  std::string wanted = least == most     ? std::to_string(least)
                       : most < kAnyRank ? std::to_string(least) + " to " + std::to_string(most)
                                         : std::to_string(least) + " or more";
  auto& op = *as<OpNode>(call.op);
  demand(call, rank >= least && rank <= most,
         "argument '" + op.row->args[argument].name + "' has another number of axes",
         std::move(wanted), std::to_string(rank));
}
void demand_few(const CallNode& call, double parts, double most, const std::string& what) {
  demand(call, parts <= most, "there are too many " + what + " to be written out",
         format_number(most, 0) + " at the most", format_number(parts, 0));
}
double element_count(const Ints& sizes) {
  double count = 1;
  for (int64_t n : sizes) count *= static_cast<double>(n);
  return count;
}

int64_t number_of(const CallNode& call, const Dim& size, const std::string& what) {
  auto known = as_const(size);
  demand(call, known.has_value(), what + " has to be known", "a number", to_string(size));
  return *known;
}
std::vector<int64_t> numbers_of(const CallNode& call, const std::vector<Dim>& shape,
                                const std::string& what) {
  std::vector<int64_t> out;
  for (const Dim& d : shape) out.push_back(number_of(call, d, what));
  return out;
}
int64_t axis_in(const CallNode& call, int64_t axis, int64_t rank) {
  demand(call, axis >= -rank && axis < rank, "the axis is out of range",
         "an axis of " + std::to_string(rank), std::to_string(axis));
  return from_front(axis, rank);
}

Expr indices_constant(const Ints& values, const Ints& shape) {
  Tensor t = Tensor::empty(DType::Int(64), runtime::Shape(shape.begin(), shape.end()));
  std::ranges::copy(values, t.data<int64_t>());
  return constant(std::move(t));
}
Expr mask_constant(const std::vector<bool>& values, const Ints& shape) {
  Tensor t = Tensor::empty(DType::Bool(), runtime::Shape(shape.begin(), shape.end()));
  std::ranges::copy(values, static_cast<uint8_t*>(t.data()));
  return constant(std::move(t));
}
Expr taken(const Expr& e, const Expr& indices, int64_t axis) {
  return apply("take", {e, indices}, {{"axis", axis}});
}
Expr sliced(const Expr& e, const Ints& axes, const Ints& begin, const Ints& end,
            const Ints& strides) {
  return apply("strided_slice", {e},
               {{"begin", to_value(begin)},
                {"end", to_value(end)},
                {"strides", to_value(strides)},
                {"axes", to_value(axes)}});
}
Expr padded(const Expr& e, const std::vector<Ints>& widths, const Expr& value) {
  ValueList list;
  for (const Ints& pair : widths) list.push_back(to_value(pair));
  return apply("nn.pad", {e, value}, {{"pad_width", AttrValue(std::move(list))}});
}
Expr expanded(const Expr& e, int64_t axis, int64_t count) {
  return apply("expand_dims", {e}, {{"axis", axis}, {"num_newaxis", count}});
}
Expr reshaped(const Expr& e, const Ints& shape) {
  return apply("reshape", {e}, {{"newshape", to_value(shape)}, {"allowzero", true}});
}
Expr joined(std::vector<Expr> parts, int64_t axis) {
  return apply("concatenate", {tuple(std::move(parts))}, {{"axis", axis}});
}
Expr stacked(std::vector<Expr> parts, int64_t axis) {
  return apply("stack", {tuple(std::move(parts))}, {{"axis", axis}});
}
Expr order_of(const Expr& e, int64_t axis) {
  return apply("argsort", {e}, {{"axis", axis}, {"is_ascend", true}, {"dtype", "int64"}});
}
Expr filled(double value, const std::vector<Dim>& shape, DType dtype) {
  return apply("full", {constant(value, dtype)},
               {{"shape", shape_value(shape)}, {"dtype", dtype.to_string()}});
}
Expr as_index(const Expr& e) { return cast_to(e, DType::Int(64)); }

}  // namespace relay::ops
