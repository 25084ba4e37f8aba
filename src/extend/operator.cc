#include "extend/operator.h"

#include <algorithm>
#include <set>

#include "base/codes/python.h"
#include "base/quantities.h"
#include "extend/host_kernel.h"
#include "grad/dataflow.h"
#include "ir/bindings.h"
#include "ir/text/text.h"
#include "lower/interface/compute_rule.h"
#include "lower/interface/kernel_end.h"
#include "node/walk.h"
#include "tir/arith/analyzer.h"
#include "types/infer.h"

namespace relay::extend {

void refuse_result(const std::string& op, const std::string& what, const Span& span,
                   const std::string& expected, const std::string& found) {
  throw UserError(
      Diagnostic(codes::python_operator_result, span, op + ": " + what + " is not what it must be")
          .expected(expected)
          .found(found));
}

namespace {

// The place of the call that a relation is asked about.
Span place_of(const RelationContext& ctx) {
  RelationContext probe = ctx;
  probe.fail(codes::python_operator_result, "");
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

// Refuses variables in an expression that neither it nor one of `given` binds or uses: what a call
// is replaced by may have no others than the call.
void refuse_free_variables(const OutsideOperator& op, const std::string& what, const Expr& e,
                           const std::vector<Expr>& given, const Span& span) {
  // Stand-ins keep the search out of the expressions that surround the call.
  std::unordered_map<const Node*, NodeRef> stand_ins;
  std::set<const Node*> known;
  for (const Expr& g : given) {
    if (!g || stand_ins.contains(g.get())) continue;
    Var v = var("given", g->type);
    known.insert(v.get());
    stand_ins.emplace(g.get(), v);
  }
  const Expr own = Expr::unchecked(substitute(e, stand_ins, family::program));
  std::vector<Var> free = free_vars(own);
  std::erase_if(free, [&](const Var& v) { return known.contains(v.get()); });
  if (free.empty()) return;
  for (const Expr& g : given) {
    if (!g) continue;
    for (const Var& v : free_vars(g)) known.insert(v.get());
  }
  std::erase_if(free, [&](const Var& v) { return known.contains(v.get()); });
  if (free.empty()) return;
  std::string names;
  for (const ArgInfo& a : op.args) names += (names.empty() ? "" : ", ") + a.name;
  refuse_result(op.name, what, span, "an expression of the operator's arguments (" + names + ")",
                "the variable '" + free[0]->name_hint + "', which nothing binds");
}

Expr define(const OutsideOperator& op, const std::vector<Expr>& args, const Attrs& attrs,
            const Span& span) {
  Nested deeper;
  if (nesting > kMaxNesting) {
    refuse_result(op.name, "the definition", span, "an expression of other operators",
                  "operators that are defined by one another, without an end");
  }
  Expr out = op.definition(args, attrs, span);
  refuse_free_variables(op, "the definition", out, args, span);
  return out->type ? out : infer_type(out);
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

Expr expand(const OutsideOperator& op, const CallNode& call) {
  Expr out = define(op, call.args, call.attrs, call.span);
  if (!same_but_for_open_sizes(out->type, call.type)) {
    refuse_result(op.name, "the type of the definition", call.span, to_string(call.type),
                  to_string(out->type));
  }
  return out;
}

// ---- By a tensor expression

// Sizes of the tensor IR as those of types: numbers, and names as they were lowered.
class Sizes {
 public:
  tir::PrimExpr lower(const Dim& d) {
    if (!is_any(d)) return scope_.lower(d);
    unknown_.push_back(type_var("any", Kind::Dim));
    return scope_.lower(dim(unknown_.back()));
  }

  Dim raise(const OutsideOperator& op, const tir::PrimExpr& e, const Span& span) const {
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
      refuse_result(op.name, "a size of the result", span,
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

Computed compute_for(const OutsideOperator& op, const std::vector<Type>& args, const Attrs& attrs,
                     const Span& span) {
  Sizes sizes;
  Computed out;
  for (const Type& arg : args) {
    auto tensors = flatten_tensor_types(arg);
    if (!tensors)
      refuse_result(op.name, "an argument", span, "a tensor or a tuple of tensors", to_string(arg));
    for (const TensorType& t : *tensors) {
      std::vector<tir::PrimExpr> shape;
      for (const Dim& d : t->shape) shape.push_back(sizes.lower(d));
      out.inputs.push_back(tir::placeholder("x" + std::to_string(out.inputs.size()),
                                            t->dtype.storage(), std::move(shape)));
    }
  }
  out.outputs = op.compute(out.inputs, attrs, span);
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

std::vector<tir::Tensor> compute_checked(const OutsideOperator& op, FusionClass declared,
                                         const ComputeContext& ctx) {
  std::vector<tir::Tensor> out = op.compute(ctx.inputs, ctx.attrs_ref, {});
  if (out.size() != ctx.outputs.size()) {
    refuse_result(op.name, "the number of tensors that the compute function gives", {},
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
      refuse_result(op.name, "the tensor that the compute function gives", {},
                    "the type of the relation, " + to_string(ctx.out_type), found + ")");
    }
  }
  FusionClass actual = class_of(ctx.inputs, out);
  if (actual > declared) {
    refuse_result(op.name, "the fusion class", {},
                  std::string(to_string(actual)) + ", as the compute function shows",
                  std::string(to_string(declared)));
  }
  return out;
}

// ---- Columns

Type relate(const OutsideOperator& op, RelationContext& ctx) {
  std::vector<Type> types;
  for (size_t i = 0; i < ctx.size(); ++i) {
    if (!is_known(ctx.arg(i))) return nullptr;
    types.push_back(ctx.arg(i));
  }
  Span span = place_of(ctx);
  if (op.relation) return op.relation(types, ctx.attrs_ref(), span);
  if (op.compute) return compute_for(op, types, ctx.attrs_ref(), span).type;
  std::vector<Expr> args;
  for (const Type& t : types) args.push_back(var("x" + std::to_string(args.size()), t));
  return define(op, args, ctx.attrs_ref(), span)->type;
}

size_t num_tensors(const CallNode& call) {
  size_t out = 0;
  for (const Expr& a : call.args) {
    auto more = flatten_tensor_types(a->type);
    out += more ? more->size() : 0;
  }
  return out;
}

std::vector<Expr> differentiate(const OutsideOperator& op, const GradientContext& ctx) {
  std::vector<Expr> out = op.gradient(ctx);
  std::vector<TensorType> tensors;
  std::vector<std::string> names;  // "x", and "x.1" for a field of a tuple
  for (size_t a = 0; a < ctx.call.args.size(); ++a) {
    auto more = flatten_tensor_types(ctx.call.args[a]->type);
    const std::string name = a < op.args.size() ? op.args[a].name : std::to_string(a);
    const bool one = isa<TensorTypeNode>(ctx.call.args[a]->type);
    for (size_t i = 0; i < more->size(); ++i) {
      tensors.push_back((*more)[i]);
      names.push_back(one ? name : name + "." + std::to_string(i));
    }
  }
  if (out.size() != tensors.size()) {
    std::string all;
    for (const std::string& n : names) all += (all.empty() ? "" : ", ") + n;
    refuse_result(
        op.name, "the number of gradients", ctx.call.span,
        std::to_string(tensors.size()) + ", one for each of " + all + "; None where there is none",
        std::to_string(out.size()));
  }
  std::vector<Expr> given = ctx.call.args;
  given.insert(given.end(), ctx.adjoints.begin(), ctx.adjoints.end());
  given.push_back(ctx.result);
  given.emplace_back(&ctx.call);
  for (size_t i = 0; i < out.size(); ++i) {
    if (out[i]) {
      refuse_free_variables(op, "the gradient of '" + names[i] + "'", out[i], given, ctx.call.span);
    }
    if (out[i] && !same_but_for_open_sizes(out[i]->type, Type(tensors[i]))) {
      refuse_result(op.name, "the gradient of '" + names[i] + "'", ctx.call.span,
                    to_string(Type(tensors[i])),
                    out[i]->type ? to_string(out[i]->type) : "an expression without a type");
    }
  }
  return out;
}

std::optional<LayoutDecision> lay_out(const OutsideOperator& op, const CallNode& call,
                                      std::span<const Layout> offered, const Layout& desired) {
  auto out = op.layout(call, offered, desired);
  size_t inputs = num_tensors(call);
  if (out && (out->inputs.size() != inputs || out->outputs.size() != 1)) {
    refuse_result(
        op.name, "what the layout rule gives", call.span,
        std::to_string(inputs) + " layouts of arguments and one of the result",
        std::to_string(out->inputs.size()) + " and " + std::to_string(out->outputs.size()));
  }
  return out;
}

// Integers of a call, as many as its result has tensors.
std::vector<QuantizedTensor> integers_of(const OutsideOperator& op, const QuantizedCall& q) {
  auto out = op.quantized(q);
  auto tensors = flatten_tensor_types(q.call.type);
  const size_t count = tensors ? tensors->size() : 1;
  if (!out.empty() && out.size() != count) {
    refuse_result(op.name, "what the quantised form gives", q.call.span,
                  counted(count, "tensor") + ", or nothing", counted(out.size(), "tensor"));
  }
  std::vector<Expr> given = q.call.args;
  given.emplace_back(&q.call);
  auto add = [&](const QuantizedTensor& x) {
    for (const Expr& e : {x.data, x.scale, x.zero}) {
      if (e) given.push_back(e);
    }
  };
  for (const auto& x : q.operands) {
    if (x) add(*x);
  }
  if (q.wanted != nullptr) add(*q.wanted);
  const std::string what = "what the quantised form gives";
  for (size_t i = 0; i < out.size(); ++i) {
    const QuantizedTensor& x = out[i];
    const bool one_of_two = static_cast<bool>(x.scale) != static_cast<bool>(x.zero);
    if (!x.data || one_of_two) {
      refuse_result(op.name, what, q.call.span,
                    "integers with a scale and a zero point, or a tensor without both",
                    x.data ? "one without the other" : "no integers");
    }
    for (const Expr& e : {x.data, x.scale, x.zero}) {
      if (e) refuse_free_variables(op, what, e, given, q.call.span);
    }
    // Integers have a dtype of their own.
    auto* data = as<TensorTypeNode>(x.data->type);
    const Type wanted = data != nullptr && x.scale
                            ? Type(tensor_type((*tensors)[i]->shape, data->dtype))
                            : Type((*tensors)[i]);
    if (!same_but_for_open_sizes(x.data->type, wanted)) {
      refuse_result(op.name, what, q.call.span, to_string(wanted),
                    x.data->type ? to_string(x.data->type) : "an expression without a type");
    }
  }
  return out;
}

}  // namespace

Expr applied(const Function& f, const std::vector<Expr>& args) {
  Function copy = fresh_copy(f);
  std::unordered_map<const Node*, NodeRef> values;
  for (size_t i = 0; i < args.size(); ++i) values[copy->params[i].get()] = args[i];
  return Expr::unchecked(substitute(copy->body, values, family::program));
}

std::optional<FusionClass> fusion_class(std::string_view name) {
  for (FusionClass c :
       {FusionClass::ElemWise, FusionClass::Broadcast, FusionClass::Injective,
        FusionClass::CommReduce, FusionClass::OutEWiseFusable, FusionClass::Opaque}) {
    if (to_string(c) == name) return c;
  }
  return std::nullopt;
}

Op register_operator(OutsideOperator given) {
  for (const OpExample& e : given.examples) {
    if (e.args.size() != given.args.size())
      refuse_result(given.name, "an example", {}, std::to_string(given.args.size()) + " types",
                    std::to_string(e.args.size()));
    for (const std::string& type : e.args) parse_type(type);
  }
  OpInfo row;
  row.name = given.name;
  row.doc = given.doc;
  row.args = given.args;
  row.examples = given.examples;
  if (!given.attrs.empty()) row.attrs = describe_attrs(given.name + ".Attrs", given.attrs);
  auto op = std::make_shared<const OutsideOperator>(std::move(given));
  row.effect = Effect::Pure;
  row.relation = TypeRelation([op](RelationContext& ctx) { return relate(*op, ctx); });
  row.layout = Absent::AxesAsWritten;
  if (op->layout) {
    row.layout =
        LayoutRule([op](const CallNode& call, std::span<const Layout> offered,
                        const Layout& desired) { return lay_out(*op, call, offered, desired); });
  }
  row.memory = Absent::OnePiece;
  row.precision = Precision::Follow;
  row.cost = Absent::DataDecides;
  row.gradient = Absent::Pending;
  if (op->gradient)
    row.gradient =
        GradientRule([op](const GradientContext& ctx) { return differentiate(*op, ctx); });
  row.moves = op->moves;
  if (op->quantized) row.quantized = [op](const QuantizedCall& q) { return integers_of(*op, q); };
  row.approximation = op->approximation;
  row.expected = Absent::ByNumPy;
  FusionClass declared = op->fusion.value_or(FusionClass::Opaque);
  if (op->definition) {
    row.compute = Absent::Defined;
    row.definition = [op](const CallNode& call) { return expand(*op, call); };
  } else {
    if (!op->fusion && op->host_kernel.empty() && !row.examples.empty()) {
      std::vector<Type> types;
      for (const std::string& text : row.examples[0].args) types.push_back(parse_type(text));
      Computed c = compute_for(*op, types, default_attrs(row), {});
      declared = class_of(c.inputs, c.outputs);
    }
    row.batching = Absent::LaneByLane;
    row.may_end_run = kernel_may_end_run;
    row.compute = compute_rule_multi(
        [op, declared](const ComputeContext& ctx) { return compute_checked(*op, declared, ctx); });
  }
  RELAY_CHECK(op->host_kernel.empty() || (op->compute && declared == FusionClass::Opaque),
              "a host function computes an opaque operator that is a tensor expression");
  row.fusion = declared;
  if (declared == FusionClass::OutEWiseFusable) row.contraction = Absent::NotOneSum;
  // Without an example the least that a call may look like; nothing is run of it.
  if (row.examples.empty()) {
    row.examples.push_back(
        {.args = std::vector<std::string>(row.args.size(), "Tensor[(4,), float32]"), .attrs = ""});
  }
  Op out = OpRegistry::global().add(std::move(row));
  if (!op->host_kernel.empty()) compute_by_host_function(out, op->host_kernel);
  return out;
}

}  // namespace relay::extend
