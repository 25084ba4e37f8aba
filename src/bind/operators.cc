// Operators whose columns are written in Python: relay.register_op.
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "base/codes/python.h"
#include "bind/python_code.h"
#include "bind/tensor_expressions.h"
#include "grad/dataflow.h"
#include "ir/op.h"
#include "ir/text/text.h"
#include "lower/interface/compute_rule.h"
#include "node/walk.h"
#include "tir/arith/analyzer.h"
#include "types/infer.h"

namespace relay::bind {
namespace {

// What Python said about an operator; functions that it did not give are empty.
struct PythonOperator {
  std::string name;
  Held relation;
  Held definition;
  Held compute;
  Held gradient;
};

[[noreturn]] void refuse_result(const PythonOperator& op, const std::string& what, const Span& span,
                                const std::string& expected, const std::string& found) {
  throw UserError(Diagnostic(codes::python_operator_result, span,
                             op.name + ": " + what + " is not what it must be")
                      .expected(expected)
                      .found(found));
}

std::string described(nb::handle object) { return class_name(object) + " " + python_text(object); }

nb::dict attrs_dict(const Attrs& attrs) {
  nb::dict out;
  if (!attrs) return out;
  for (const auto& [name, value] : attr_values(attrs)) out[name.c_str()] = from_value(value);
  return out;
}

// The place of the call that a relation is asked about.
Span place_of(const RelationContext& ctx) {
  RelationContext probe = ctx;
  probe.fail(codes::python_operator, "");
  return probe.failure()->span;
}

bool is_known(const Type& type) {
  bool known = static_cast<bool>(type);
  if (known) {
    post_order(
        type, [&](const Node& n) { known &= n.kind() != TypeKind::IncompleteType; }, family::type);
  }
  return known;
}

// ---- By a definition

// A definition that uses its own operator would go on for ever, and through the machine's stack.
constexpr int kMaxNesting = 40;
thread_local int nesting = 0;
struct Nested {
  Nested() { ++nesting; }
  ~Nested() { --nesting; }
  Nested(const Nested&) = delete;
  Nested& operator=(const Nested&) = delete;
};

Expr define(const PythonOperator& op, const std::vector<Expr>& args, const Attrs& attrs,
            const Span& span) {
  Nested deeper;
  if (nesting > kMaxNesting) {
    refuse_result(op, "the definition", span, "an expression of other operators",
                  "operators that are defined by one another, without an end");
  }
  Expr out = in_python(codes::python_operator, span, op.name + ", definition", [&] {
    nb::list given;
    for (const Expr& a : args) given.append(wrap(a));
    nb::object result = op.definition.get()(*nb::tuple(given), **attrs_dict(attrs));
    if (!nb::isinstance<PyExpr>(result))
      refuse_result(op, "what the definition gives", span, "a relay.Expr", described(result));
    return nb::cast<const PyExpr&>(result).expr();
  });
  return out->type ? out : infer_type(out);
}

Type type_by_definition(const PythonOperator& op, RelationContext& ctx) {
  std::vector<Expr> args;
  for (size_t i = 0; i < ctx.size(); ++i) args.push_back(var("x" + std::to_string(i), ctx.arg(i)));
  return define(op, args, ctx.attrs_ref(), place_of(ctx))->type;
}

// Whether two types are the same, but for sizes that only a run can compare.
bool same_but_for_open_sizes(const Type& a, const Type& b) {
  auto left = flatten_tensor_types(a), right = flatten_tensor_types(b);
  if (!left || !right || left->size() != right->size()) return false;
  for (size_t i = 0; i < left->size(); ++i) {
    const TensorType &x = (*left)[i], &y = (*right)[i];
    if (x->dtype != y->dtype || x->rank() != y->rank()) return false;
    for (size_t d = 0; d < x->shape.size(); ++d) {
      if (dim_differs(x->shape[d], y->shape[d])) return false;
    }
  }
  return true;
}

Expr expand(const PythonOperator& op, const CallNode& call) {
  Expr out = define(op, call.args, call.attrs, call.span);
  if (!same_but_for_open_sizes(out->type, call.type)) {
    refuse_result(op, "the type of the definition", call.span, to_string(call.type),
                  to_string(out->type));
  }
  return out;
}

// ---- By a tensor expression

std::vector<tir::Tensor> run_compute(const PythonOperator& op,
                                     const std::vector<tir::Tensor>& inputs, const Attrs& attrs,
                                     const Span& span) {
  return in_python(codes::python_operator, span, op.name + ", compute", [&] {
    nb::list given;
    for (const tir::Tensor& t : inputs) given.append(nb::cast(PyTensor{t}));
    nb::object result = op.compute.get()(*nb::tuple(given), **attrs_dict(attrs));
    std::vector<tir::Tensor> out;
    auto add = [&](nb::handle h) {
      if (!nb::isinstance<PyTensor>(h))
        refuse_result(op, "what the compute function gives", span, "a te.Tensor, or a list of them",
                      described(h));
      out.push_back(nb::cast<const PyTensor&>(h).tensor);
    };
    if (PyTuple_Check(result.ptr()) || PyList_Check(result.ptr())) {
      for (nb::handle h : nb::iter(result)) add(h);
    } else {
      add(result);
    }
    return out;
  });
}

// Sizes of the tensor IR as those of types: numbers, and names as they were lowered.
class Sizes {
 public:
  tir::PrimExpr lower(const Dim& d) {
    if (!is_any(d)) return scope_.lower(d);
    unknown_.push_back(type_var("any", Kind::Dim));
    return scope_.lower(dim(unknown_.back()));
  }

  Dim raise(const PythonOperator& op, const tir::PrimExpr& e, const Span& span) const {
    std::unordered_map<const Node*, Dim> done;
    post_order(
        e,
        [&](const Node& n) {
          if (auto* i = as<tir::IntImmNode>(&n)) {
            done[&n] = dim(i->value);
          } else if (isa<tir::VarNode>(&n)) {
            done[&n] = named(n);
          } else if (auto* c = as<tir::CastNode>(&n)) {
            done[&n] = done[c->value.get()];
          } else if (auto* b = as<tir::BinaryNode>(&n)) {
            done[&n] = combined(b->op, done[b->a.get()], done[b->b.get()]);
          }
        },
        family::tir_expr);
    Dim out = done[e.get()];
    if (!out) {
      refuse_result(op, "a size of the result", span,
                    "a number, or arithmetic on the sizes of the arguments", tir::to_string(e));
    }
    return out;
  }

 private:
  Dim named(const Node& n) const {
    for (const auto& [d, v] : scope_.dims()) {
      if (v.get() != &n) continue;
      for (const TypeVar& u : unknown_) {
        if (dim_equal(d, dim(u))) return dim_any();
      }
      return d;
    }
    return nullptr;
  }
  static Dim combined(tir::BinaryOp op, const Dim& a, const Dim& b) {
    if (!a || !b) return nullptr;
    if (is_any(a) || is_any(b)) return dim_any();
    switch (op) {
      case tir::BinaryOp::Add:
        return a + b;
      case tir::BinaryOp::Sub:
        return a - b;
      case tir::BinaryOp::Mul:
        return a * b;
      case tir::BinaryOp::FloorDiv:
        return floor_div(a, b);
      case tir::BinaryOp::FloorMod:
        return mod(a, b);
      case tir::BinaryOp::Min:
        return min(a, b);
      case tir::BinaryOp::Max:
        return max(a, b);
      default:
        return nullptr;
    }
  }

  DimScope scope_;
  std::vector<TypeVar> unknown_;
};

struct Computed {
  std::vector<tir::Tensor> inputs;
  std::vector<tir::Tensor> outputs;
  Type type;
};

Computed compute_for(const PythonOperator& op, const std::vector<Type>& args, const Attrs& attrs,
                     const Span& span) {
  Sizes sizes;
  Computed out;
  for (const Type& arg : args) {
    auto tensors = flatten_tensor_types(arg);
    if (!tensors)
      refuse_result(op, "an argument", span, "a tensor or a tuple of tensors", to_string(arg));
    for (const TensorType& t : *tensors) {
      std::vector<tir::PrimExpr> shape;
      for (const Dim& d : t->shape) shape.push_back(sizes.lower(d));
      out.inputs.push_back(tir::placeholder("x" + std::to_string(out.inputs.size()),
                                            t->dtype.storage(), std::move(shape)));
    }
  }
  out.outputs = run_compute(op, out.inputs, attrs, span);
  std::vector<Type> types;
  for (const tir::Tensor& t : out.outputs) {
    std::vector<Dim> shape;
    for (const tir::PrimExpr& e : t->shape()) shape.push_back(sizes.raise(op, e, span));
    types.push_back(tensor_type(std::move(shape), t->dtype));
  }
  out.type = types.size() == 1 ? types[0] : Type(tuple_type(types));
  return out;
}

// How the result may be fused, as its expression shows.
FusionClass class_of(const std::vector<tir::Tensor>& inputs,
                     const std::vector<tir::Tensor>& outputs) {
  if (outputs.size() != 1) return FusionClass::Opaque;
  const tir::Tensor& t = outputs[0];
  auto is_input = [&](const tir::Tensor& in) {
    return std::any_of(inputs.begin(), inputs.end(), [&](const tir::Tensor& i) { return i == in; });
  };
  bool one_step = !t->imperative && t->bodies.size() == 1 &&
                  std::all_of(t->inputs.begin(), t->inputs.end(), is_input);
  if (!one_step) return FusionClass::Opaque;
  if (isa<tir::ReduceNode>(t->bodies[0])) {
    auto combiner = as<tir::ReduceNode>(t->bodies[0])->combiner;
    return combiner < tir::Combiner::ArgMin ? FusionClass::CommReduce : FusionClass::Opaque;
  }
  FusionClass out = FusionClass::ElemWise;
  post_order(
      t->bodies[0],
      [&](const Node& n) {
        auto* l = as<tir::LoadNode>(&n);
        if (l == nullptr) return;
        size_t rank = l->indices.size(), all = t->axes.size();
        bool aligned = rank <= all, same = rank == all;
        for (size_t d = 0; d < rank && aligned; ++d) {
          bool on_axis = l->indices[d] == t->axes[all - rank + d]->var;
          bool at_zero = tir::as_int(l->indices[d]) == 0;
          aligned = on_axis || at_zero;
          same &= on_axis;
        }
        FusionClass needs = same      ? FusionClass::ElemWise
                            : aligned ? FusionClass::Broadcast
                                      : FusionClass::Injective;
        out = std::max(out, needs);
      },
      family::tir_expr);
  return out;
}

std::vector<tir::Tensor> compute_checked(const PythonOperator& op, FusionClass declared,
                                         const ComputeContext& ctx) {
  std::vector<tir::Tensor> out = run_compute(op, ctx.inputs, ctx.attrs_ref, {});
  if (out.size() != ctx.outputs.size()) {
    refuse_result(op, "the number of tensors that the compute function gives", {},
                  std::to_string(ctx.outputs.size()), std::to_string(out.size()));
  }
  tir::Analyzer analyzer;
  for (size_t i = 0; i < out.size(); ++i) {
    const std::vector<tir::PrimExpr>&have = out[i]->shape(), &want = ctx.outputs[i].shape;
    bool fits = out[i]->dtype == ctx.outputs[i].dtype && have.size() == want.size();
    for (size_t d = 0; d < have.size() && fits; ++d)
      fits = analyzer.can_prove(tir::eq(have[d], want[d]));
    if (!fits) {
      std::string found = out[i]->dtype.to_string() + " of shape (";
      for (const tir::PrimExpr& e : have) found += tir::to_string(e) + ", ";
      refuse_result(op, "the tensor that the compute function gives", {},
                    "the type of the relation, " + to_string(ctx.out_type), found + ")");
    }
  }
  FusionClass actual = class_of(ctx.inputs, out);
  if (actual > declared) {
    refuse_result(op, "the fusion class", {},
                  std::string(to_string(actual)) + ", as the compute function shows",
                  std::string(to_string(declared)));
  }
  return out;
}

// ---- Columns

Type relate(const PythonOperator& op, RelationContext& ctx) {
  for (size_t i = 0; i < ctx.size(); ++i) {
    if (!is_known(ctx.arg(i))) return nullptr;
  }
  std::vector<Type> args;
  for (size_t i = 0; i < ctx.size(); ++i) args.push_back(ctx.arg(i));
  if (op.relation) {
    Span span = place_of(ctx);
    return in_python(codes::python_operator, span, op.name + ", type relation", [&] {
      nb::list types;
      for (const Type& t : args) types.append(wrap(t));
      nb::object result = op.relation.get()(*nb::tuple(types), **attrs_dict(ctx.attrs_ref()));
      if (!nb::isinstance<PyType>(result))
        refuse_result(op, "what the type relation gives", span, "a relay.Type", described(result));
      return nb::cast<const PyType&>(result).type();
    });
  }
  if (op.definition) return type_by_definition(op, ctx);
  return compute_for(op, args, ctx.attrs_ref(), place_of(ctx)).type;
}

std::vector<Expr> differentiate(const PythonOperator& op, const GradientContext& ctx) {
  Expr call(&ctx.call);
  std::vector<Expr> out =
      in_python(codes::python_operator, call->span, op.name + ", gradient", [&] {
        nb::object adjoint = ctx.adjoints.size() == 1 ? wrap(ctx.adjoints[0]) : nb::object();
        if (ctx.adjoints.size() != 1) {
          nb::list all;
          for (const Expr& a : ctx.adjoints) all.append(wrap(a));
          adjoint = all;
        }
        nb::object result = op.gradient.get()(wrap(call), adjoint, wrap(ctx.result));
        if (!PyTuple_Check(result.ptr()) && !PyList_Check(result.ptr()))
          refuse_result(op, "what the gradient gives", call->span,
                        "a list, of an expression or None for each tensor of the arguments",
                        described(result));
        std::vector<Expr> exprs;
        for (nb::handle h : nb::iter(result)) {
          if (h.is_none()) {
            exprs.push_back(nullptr);
          } else if (nb::isinstance<PyExpr>(h)) {
            exprs.push_back(nb::cast<const PyExpr&>(h).expr());
          } else {
            refuse_result(op, "what the gradient gives", call->span, "a relay.Expr or None",
                          described(h));
          }
        }
        return exprs;
      });
  std::vector<TensorType> tensors;
  for (const Expr& a : ctx.call.args) {
    auto more = flatten_tensor_types(a->type);
    tensors.insert(tensors.end(), more->begin(), more->end());
  }
  if (out.size() > tensors.size()) {
    refuse_result(op, "the number of gradients", call->span, std::to_string(tensors.size()),
                  std::to_string(out.size()));
  }
  for (size_t i = 0; i < out.size(); ++i) {
    if (out[i] && !same_but_for_open_sizes(out[i]->type, Type(tensors[i]))) {
      refuse_result(op, "the gradient of argument " + std::to_string(i), call->span,
                    to_string(Type(tensors[i])),
                    out[i]->type ? to_string(out[i]->type) : "an expression without a type");
    }
  }
  return out;
}

FusionClass fusion_of(const std::string& name) {
  for (FusionClass c :
       {FusionClass::ElemWise, FusionClass::Broadcast, FusionClass::Injective,
        FusionClass::CommReduce, FusionClass::OutEWiseFusable, FusionClass::Opaque}) {
    if (to_string(c) == name) return c;
  }
  throw nb::value_error(("fusion is 'ElemWise', 'Broadcast', 'Injective', 'CommReduce', "
                         "'OutEWiseFusable' or 'Opaque', not '" +
                         name + "'")
                            .c_str());
}

Held held_or_empty(nb::handle object) { return object.is_none() ? Held() : Held(object); }

using Arguments = std::vector<std::pair<std::string, std::string>>;

void register_operator(const std::string& name, const std::string& doc, const Arguments& args,
                       nb::handle attrs, const std::string& fusion,
                       const std::vector<std::vector<std::string>>& examples, nb::handle relation,
                       nb::handle definition, nb::handle compute, nb::handle gradient) {
  auto op = std::make_shared<PythonOperator>(
      PythonOperator{name, held_or_empty(relation), held_or_empty(definition),
                     held_or_empty(compute), held_or_empty(gradient)});
  OpInfo row;
  row.name = name;
  row.doc = doc;
  for (const auto& [arg, sentence] : args) row.args.push_back({arg, sentence});
  std::vector<AttrSpec> specs;
  for (nb::handle a : nb::iter(attrs)) {
    specs.push_back({to_text(a[0], "the name of an attribute"), to_text(a[1], "a type"),
                     to_value(a[2]), to_text(a[3], "a sentence")});
  }
  if (!specs.empty()) row.attrs = describe_attrs(name + ".Attrs", std::move(specs));
  row.effect = Effect::Pure;
  row.relation = TypeRelation([op](RelationContext& ctx) { return relate(*op, ctx); });
  row.layout = Absent::AxesAsWritten;
  row.memory = Absent::OnePiece;
  row.precision = Precision::Follow;
  row.cost = Absent::DataDecides;
  row.gradient = Absent::Pending;
  if (op->gradient)
    row.gradient =
        GradientRule([op](const GradientContext& ctx) { return differentiate(*op, ctx); });
  for (const std::vector<std::string>& e : examples)
    row.examples.push_back({.args = e, .attrs = ""});
  row.expected = Absent::ByNumPy;
  FusionClass declared = fusion.empty() ? FusionClass::Opaque : fusion_of(fusion);
  if (op->definition) {
    row.compute = Absent::Defined;
    row.definition = [op](const CallNode& call) { return expand(*op, call); };
  } else {
    if (fusion.empty() && !examples.empty()) {
      std::vector<Type> types;
      for (const std::string& text : examples[0]) types.push_back(parse_type(text));
      Attrs defaults = default_attrs(row);
      Computed c = compute_for(*op, types, defaults, {});
      declared = class_of(c.inputs, c.outputs);
    }
    row.batching = Absent::LaneByLane;
    row.compute = compute_rule_multi(
        [op, declared](const ComputeContext& ctx) { return compute_checked(*op, declared, ctx); });
  }
  row.fusion = declared;
  if (declared == FusionClass::OutEWiseFusable) row.contraction = Absent::NotOneSum;
  // Without an example the least that a call may look like; nothing is run of it.
  if (row.examples.empty()) {
    row.examples.push_back(
        {.args = std::vector<std::string>(args.size(), "Tensor[(4,), float32]"), .attrs = ""});
  }
  OpRegistry::global().add(std::move(row));
}

// The body of a function for arguments, with variables of its own.
nb::object apply_function(const PyExprOf<FunctionNode>& f, const std::vector<PyExpr>& args) {
  Function copy = fresh_copy(f.get());
  if (copy->params.size() != args.size()) {
    throw nb::type_error(("the function takes " + std::to_string(copy->params.size()) +
                          " arguments, not " + std::to_string(args.size()))
                             .c_str());
  }
  std::unordered_map<const Node*, NodeRef> values;
  for (size_t i = 0; i < args.size(); ++i) values[copy->params[i].get()] = args[i].ref;
  return wrap(substitute(copy->body, values, family::expr | family::pattern));
}

}  // namespace

void bind_operators(nb::module_& m) {
  m.def("register_op", &register_operator, nb::arg("name"), nb::arg("doc"), nb::arg("args"),
        nb::arg("attrs"), nb::arg("fusion"), nb::arg("examples"), nb::arg("relation").none(),
        nb::arg("definition").none(), nb::arg("compute").none(), nb::arg("gradient").none());
  m.def("unregister_op", [](const std::string& name) { OpRegistry::global().remove(name); });
  m.def("apply_function", &apply_function, nb::arg("function"), nb::arg("args"),
        "The body of a function with expressions in the place of its parameters.");
}

}  // namespace relay::bind
