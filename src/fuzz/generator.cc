#include "fuzz/generator.h"

#include <algorithm>
#include <span>
#include <unordered_map>

#include "fuzz/values.h"
#include "ir/type_params.h"
#include "node/structural.h"
#include "node/walk.h"

namespace relay::fuzz {
namespace {

Type int32() { return scalar_type(DType::Int(32)); }
Type boolean() { return scalar_type(DType::Bool()); }

Expr int32_constant(int64_t value) { return constant(static_cast<double>(value), DType::Int(32)); }

// Rows and columns of a matrix of 4 KiB, which HoistLayouts takes.
constexpr int64_t kMatrix = 32;

const TypeDataNode* data_of(const std::vector<TypeData>& all, const Type& type) {
  auto* applied = as<TypeCallNode>(type);
  const Type& name = applied != nullptr ? applied->func : type;
  for (const TypeData& d : all) {
    if (structural_equal(d->header, name)) return d.get();
  }
  return nullptr;
}

bool mentions_data(const Type& type) {
  bool found = false;
  post_order(
      type, [&](const Node& n) { found |= n.kind() == TypeKind::GlobalTypeVar; }, family::type);
  return found;
}

}  // namespace

Attrs attrs_of(const char* op, std::vector<std::pair<std::string, AttrValue>> values) {
  return make_attrs(*OpRegistry::global().get(op)->row->attrs, values, op, {});
}

std::vector<Type> constructor_inputs(const TypeDataNode& data, const Constructor& c,
                                     const Type& applied) {
  std::unordered_map<const Node*, NodeRef> arguments;
  if (auto* t = as<TypeCallNode>(applied)) {
    for (size_t i = 0; i < data.type_vars.size(); ++i) {
      arguments[data.type_vars[i].get()] = t->args[i];
    }
  }
  std::vector<Type> out;
  for (const Type& input : c->inputs) out.push_back(cast<TypeNode>(substitute(input, arguments)));
  return out;
}

// ---- Types -------------------------------------------------------------------------------------

TensorType TypeSource::tensor() {
  std::vector<int64_t> shape;
  static const std::vector<int> ranks{0, 0, 1, 1, 2, 2, 2, 3, 4};
  for (int i = random_.pick(ranks); i > 0; --i) shape.push_back(random_.pick(sizes_));
  return tensor_type(shape, dtype());
}

std::vector<Type> TypeSource::several(int64_t count, const std::function<Type()>& draw) {
  std::vector<Type> out;
  while (static_cast<int64_t>(out.size()) < count) {
    out.push_back(pitfalls_ && !out.empty() && random_.percent(40) ? out.back() : draw());
  }
  return out;
}

Type TypeSource::data(int depth) {
  if (data_.empty()) return nullptr;
  const TypeData& d = random_.pick(data_);
  std::vector<Type> args;
  for (size_t i = 0; i < d->type_vars.size(); ++i) args.push_back(first_order(depth - 1));
  return type_call(d->header, std::move(args));
}

Type TypeSource::first_order(int depth) {
  if (depth > 0) {
    if (random_.percent(15)) {
      return tuple_type(several(random_.between(0, 3), [&] { return first_order(depth - 1); }));
    }
    if (random_.percent(15)) {
      if (Type t = data(depth)) return t;
    }
  }
  return tensor();
}

Type TypeSource::any(int depth) {
  if (depth > 0 && random_.percent(8)) return ref_type(any(depth - 1));
  if (depth > 0 && random_.percent(10)) {
    std::vector<Type> args = several(random_.between(0, 2), [&] { return any(depth - 1); });
    return func_type(std::move(args), any(depth - 1));
  }
  return first_order(depth);
}

// ---- Expressions -------------------------------------------------------------------------------

bool ExpressionSource::reachable(const Type& type) {
  if (auto* t = as<TensorTypeNode>(type)) {
    if (t->const_shape()) return true;
    return std::ranges::any_of(scope_, [&](const Expr& e) {
      auto* s = as<TensorTypeNode>(e->type);
      return s != nullptr && s->rank() == t->rank() &&
             std::ranges::equal(s->shape, t->shape, dim_equal);
    });
  }
  if (auto* t = as<TupleTypeNode>(type)) {
    return std::ranges::all_of(t->fields, [&](const Type& f) { return reachable(f); });
  }
  if (auto* t = as<RefTypeNode>(type)) return reachable(t->value);
  if (auto* t = as<FuncTypeNode>(type)) return t->type_params.empty() && reachable(t->ret_type);
  if (auto* t = as<TypeCallNode>(type)) {
    return std::ranges::all_of(t->args, [&](const Type& a) { return reachable(a); });
  }
  return std::ranges::any_of(scope_,
                             [&](const Expr& e) { return structural_equal(e->type, type); });
}

Type ExpressionSource::some_type(int depth) {
  if (!scope_.empty() && random_.percent(50)) {
    const Type& t = random_.pick(scope_)->type;
    if (t && reachable(t)) return t;
  }
  return types_.any(depth);
}

Expr ExpressionSource::draw(const Type& type, int budget) {
  if (budget <= 1) return leaf(type);
  using Way = Expr (ExpressionSource::*)(const Type&, int);
  static const std::vector<std::pair<int, Way>> ways{
      {14, &ExpressionSource::draw_let},        {7, &ExpressionSource::draw_if},
      {5, &ExpressionSource::draw_projection},  {8, &ExpressionSource::draw_match},
      {4, &ExpressionSource::draw_reference},   {6, &ExpressionSource::draw_call},
      {7, &ExpressionSource::draw_global_call}, {3, &ExpressionSource::draw_loop},
      {4, &ExpressionSource::draw_fold},        {42, &ExpressionSource::draw_operator},
      {20, &ExpressionSource::build},           {4, &ExpressionSource::draw_network},
      {3, &ExpressionSource::draw_sizes},       {7, &ExpressionSource::draw_twin},
      {3, &ExpressionSource::draw_counter}};
  int total = 0;
  // The last two are pitfalls.
  const std::span allowed(ways.data(), ways.size() - (types_.pitfalls() ? 0 : 2));
  for (const auto& [weight, way] : allowed) total += weight;
  Expr out;
  while (!out) {
    int at = static_cast<int>(random_.below(static_cast<size_t>(total)));
    for (const auto& [weight, way] : allowed) {
      at -= weight;
      if (at >= 0) continue;
      out = (this->*way)(type, budget - 1);
      break;
    }
  }
  // In graph form a later expression may refer to this one.
  if (random_.percent(25) && !isa<FunctionNode>(out)) scope_.push_back(out);
  return out;
}

Expr ExpressionSource::leaf(const Type& type) {
  std::vector<Expr> known;
  for (const Expr& e : scope_) {
    if (e->type && structural_equal(e->type, type)) known.push_back(e);
  }
  if (!known.empty() && random_.percent(85)) return random_.pick(known);
  if (auto* t = as<TensorTypeNode>(type)) return leaf_tensor(*t);
  if (isa<TypeCallNode>(type)) {
    // The constructor with the fewest fields of data types ends the value.
    const TypeDataNode* data = data_of(data_, type);
    auto nested = [](const Constructor& c) {
      return std::ranges::count_if(c->inputs, mentions_data);
    };
    const Constructor& c = *std::ranges::min_element(data->constructors, {}, nested);
    std::vector<Expr> args;
    for (const Type& input : constructor_inputs(*data, c, type)) args.push_back(leaf(input));
    return construct(*data, c, std::move(args), type);
  }
  if (isa<TypeVarNode>(type)) return known.at(0);
  return build(type, 1);
}

Expr ExpressionSource::leaf_tensor(const TensorTypeNode& type) {
  if (types_.floats() && type.dtype.is_floating() && type.const_shape() && random_.percent(70)) {
    std::vector<Expr> floats;
    for (const Expr& e : scope_) {
      auto* t = as<TensorTypeNode>(e->type);
      if (t != nullptr && t->dtype.is_floating() && t->const_shape()) floats.push_back(e);
    }
    if (!floats.empty()) return adapt(random_.pick(floats), type);
  }
  if (type.const_shape()) return leaf_constant(TensorType(&type));
  // Made of its sizes, which a value in scope tells.
  if (!type.shape_var && std::ranges::none_of(type.shape, is_any) && random_.percent(30)) {
    return call("full", {leaf_constant(scalar_type(type.dtype))},
                attrs_of("full", {{"shape", to_value(Dims(type.shape.begin(), type.shape.end()))},
                                  {"dtype", type.dtype.to_string()}}));
  }
  for (const Expr& e : scope_) {
    auto* s = as<TensorTypeNode>(e->type);
    if (s == nullptr || s->rank() != type.rank() ||
        !std::ranges::equal(s->shape, type.shape, dim_equal)) {
      continue;
    }
    if (s->dtype == type.dtype) return e;
    return call("cast", {e}, attrs_of("cast", {{"dtype", type.dtype.to_string()}}));
  }
  RELAY_CHECK(false, "a tensor of named dimensions that are not in scope");
  return nullptr;
}

Expr ExpressionSource::leaf_constant(const TensorType& type) {
  Tensor t = Tensor::empty(type->dtype, *type->const_shape());
  fill(t, -2, 2, random_);
  if (type->dtype.is_floating() && random_.percent(15)) {
    // Numbers that arithmetic knows more of than of others.
    static const std::vector<double> round{1, 1, -1, 0, 2, 0.5, -0.5, 4};
    const double all = random_.pick(round);
    const bool alike = random_.percent(50);
    for (int64_t i = 0; i < t.num_elements(); ++i) {
      t.set_from_double(i, alike ? all : random_.pick(round));
    }
  }
  return constant(t);
}

Expr ExpressionSource::build(const Type& type, int budget) {
  if (isa<TensorTypeNode>(type)) return budget > 1 ? draw_operator(type, budget) : leaf(type);
  if (auto* t = as<TupleTypeNode>(type)) {
    std::vector<Expr> fields;
    int share = budget / std::max<int>(1, static_cast<int>(t->fields.size()));
    for (const Type& f : t->fields) fields.push_back(draw(f, share));
    return tuple(std::move(fields));
  }
  if (auto* t = as<RefTypeNode>(type)) return ref_create(draw(t->value, budget - 1));
  if (auto* t = as<FuncTypeNode>(type)) return build_function(*t, budget);
  if (isa<TypeCallNode>(type)) {
    const TypeDataNode* data = data_of(data_, type);
    const Constructor& c = random_.pick(data->constructors);
    std::vector<Type> inputs = constructor_inputs(*data, c, type);
    std::vector<Expr> args;
    int share = budget / std::max<int>(1, static_cast<int>(inputs.size()));
    for (const Type& input : inputs) args.push_back(draw(input, share));
    return construct(*data, c, std::move(args), type);
  }
  return leaf(type);
}

// Where the fields do not tell all type arguments, a binding with its type does.
Expr ExpressionSource::construct(const TypeDataNode& data, const Constructor& c,
                                 std::vector<Expr> args, const Type& type) {
  Expr value = call(c, std::move(args), nullptr, {}, as<TypeCallNode>(type)->args);
  bool told = std::ranges::all_of(data.type_vars, [&](const TypeVar& v) {
    bool found = false;
    for (const Type& input : c->inputs) {
      post_order(
          input, [&](const Node& n) { found |= &n == v.get(); }, family::type);
    }
    return found;
  });
  if (told) return value;
  Var v = var(fresh("d"), type);
  return let(v, value, v);
}

Expr ExpressionSource::build_function(const FuncTypeNode& type, int budget) {
  for (const Callable& g : globals_) {
    if (structural_equal(g.type, Type(&type)) && random_.percent(30)) return g.name;
  }
  Scope scope(*this);
  std::vector<Var> params;
  for (const Type& t : type.arg_types) {
    params.push_back(var(fresh("p"), t));
    bind(params.back());
  }
  Expr body = draw(type.ret_type, budget - 1);
  return function(std::move(params), body, type.ret_type);
}

Expr ExpressionSource::draw_let(const Type& type, int budget) {
  Type bound = some_type(2);
  Expr value = draw(bound, budget / 2);
  Scope scope(*this);
  Var v = var(fresh("v"), bound);
  bind(v);
  return let(v, value, draw(type, budget - budget / 2));
}

Expr ExpressionSource::draw_if(const Type& type, int budget) {
  Expr condition = draw(boolean(), budget / 3);
  auto branch = [&] {
    Scope scope(*this);
    return draw(type, budget / 3);
  };
  Expr then = branch();
  return if_(condition, then, branch());
}

Expr ExpressionSource::draw_projection(const Type& type, int budget) {
  std::vector<Type> fields;
  for (int64_t i = random_.between(0, 2); i > 0; --i) fields.push_back(some_type(1));
  size_t at = random_.below(fields.size() + 1);
  fields.insert(fields.begin() + static_cast<int64_t>(at), type);
  return tuple_get_item(draw(tuple_type(std::move(fields)), budget), static_cast<int64_t>(at));
}

Expr ExpressionSource::draw_reference(const Type& type, int budget) {
  Var r = var(fresh("r"), ref_type(type));
  Expr first = draw(type, budget / 3);
  Scope scope(*this);
  bind(r);
  Expr second = draw(type, budget / 3);
  Expr rest = random_.percent(50) ? Expr(ref_read(r)) : draw(type, budget / 3);
  return let(r, ref_create(first),
             let(var(fresh("u"), tuple_type({})), ref_write(r, second), rest));
}

Expr ExpressionSource::draw_call(const Type& type, int budget) {
  std::vector<Type> args = types_.several(random_.between(0, 2), [&] { return some_type(1); });
  Expr callee;
  for (const Expr& e : scope_) {
    auto* f = as<FuncTypeNode>(e->type);
    if (f == nullptr || !f->type_params.empty() || !structural_equal(f->ret_type, type)) continue;
    if (!std::ranges::all_of(f->arg_types, [&](const Type& t) { return reachable(t); })) continue;
    callee = e;
    args = f->arg_types;
    if (random_.percent(50)) break;
  }
  int share = budget / (static_cast<int>(args.size()) + 2);
  if (!callee) callee = draw(func_type(args, type), budget - share * static_cast<int>(args.size()));
  std::vector<Expr> values;
  for (const Type& t : args) values.push_back(draw(t, share));
  return call(callee, std::move(values));
}

Expr ExpressionSource::draw_global_call(const Type& type, int budget) {
  // What the type parameters stand for where the result has just the type.
  auto solved = [&](const FuncType& f) {
    auto out =
        solve_type_params(*func_type({f->ret_type}, f->ret_type, f->type_params), {&type, 1});
    if (out && !structural_equal(with_type_params(f->ret_type, *out), type)) out.reset();
    return out;
  };
  std::vector<const Callable*> fitting;
  for (const Callable& g : globals_) {
    if (solved(g.type)) fitting.push_back(&g);
  }
  if (fitting.empty()) return nullptr;
  const Callable& g = *random_.pick(fitting);
  TypeParams arguments = *solved(g.type);
  std::vector<Type> type_args, actual;
  bool named_sizes = false;
  for (const TypeVar& v : g.type->type_params) {
    NodeRef& argument = arguments[v.get()];
    const bool size = v->kind == Kind::Dim;
    if (!argument) argument = size ? NodeRef(dim(random_.between(1, 4))) : some_type(1);
    if (!size) type_args.push_back(cast<TypeNode>(argument));
    named_sizes |= size;
  }
  for (const Type& t : g.type->arg_types) {
    actual.push_back(with_type_params(t, arguments));
    if (!reachable(actual.back())) return nullptr;
  }
  if (named_sizes) {
    // Sizes are not written at a call: the arguments tell them.
    auto told = solve_type_params(*g.type, actual);
    if (!told || told->size() < g.type->type_params.size()) return nullptr;
    type_args.clear();
  }
  std::vector<Expr> args;
  for (const Type& t : actual) {
    args.push_back(draw(t, budget / static_cast<int>(actual.size())));
  }
  return call(g.name, std::move(args), nullptr, {}, std::move(type_args));
}

// A local function that counts down and carries a value: as a loop, or with work after the call. Some loops of floats pass
// a matrix on, and add an element of its transpose.
Expr ExpressionSource::draw_loop(const Type& type, int budget) {
  auto* tensor = as<TensorTypeNode>(type);
  const bool with_matrix = tensor != nullptr && tensor->dtype.is_float(32) && budget % 2 == 0;
  std::vector<Var> params{var(fresh("i"), int32()), var(fresh("acc"), type)};
  if (with_matrix)
    params.push_back(var(fresh("matrix"), tensor_type({kMatrix, kMatrix}, DType::Float(32))));
  std::vector<Type> types;
  for (const Var& p : params) types.push_back(p->type);
  Var loop = var(fresh("loop"), func_type(types, type));
  const Var &i = params[0], &carried = params[1];
  Expr initial = draw(type, budget / 3);
  Expr body, result;
  {
    Scope scope(*this);
    bind(i);
    bind(carried);
    auto again = [&](Expr value) {
      std::vector<Expr> args{call("subtract", {i, int32_constant(1)}), std::move(value)};
      if (with_matrix) {
        args[1] = call("add", {args[1], call("take", {call("transpose", {params[2]}), i})});
        args.emplace_back(params[2]);
      }
      return call(loop, std::move(args));
    };
    if (random_.percent(60)) {
      body = again(draw(type, budget / 3));
    } else {
      Var below = var(fresh("below"), type);
      Expr value = again(carried);
      bind(below);
      body = let(below, value, draw(type, budget / 3));
    }
    body = if_(call("less_equal", {i, int32_constant(0)}), carried, body);
  }
  Expr f = function(params, body, type);
  Expr count = random_.percent(70) ? int32_constant(random_.between(0, 4))
                                   : in_range(draw(int32(), budget / 4), 0, 3);
  std::vector<Expr> args{count, initial};
  if (with_matrix) {
    Tensor matrix = Tensor::empty(DType::Float(32), {kMatrix, kMatrix});
    for (int64_t at = 0; at < matrix.num_elements(); ++at)
      matrix.set_from_double(at, static_cast<double>(at % 7) / 4);
    args.push_back(constant(matrix));
  }
  return let(loop, f, call(loop, std::move(args)));
}

// A local function along a value of a data type whose constructors hold the type itself.
Expr ExpressionSource::draw_fold(const Type& type, int budget) {
  Type folded = types_.data(1);
  if (!folded) return nullptr;
  const TypeDataNode* data = data_of(data_, folded);
  Var fold = var(fresh("fold"), func_type({folded}, type));
  Var x = var(fresh("x"), folded);
  std::vector<Clause> arms;
  for (const Constructor& c : data->constructors) {
    Scope scope(*this);
    std::vector<Pattern> patterns;
    std::vector<std::pair<Var, Expr>> calls;
    for (const Type& input : constructor_inputs(*data, c, folded)) {
      Var v = var(fresh("m"), input);
      patterns.push_back(make<PatternVarNode>([&](PatternVarNode& n) { n.var = v; }));
      bind(v);
      if (!structural_equal(input, folded)) continue;
      calls.emplace_back(var(fresh("s"), type), call(fold, {v}));
      bind(calls.back().first);
    }
    Expr rhs = draw(type, budget / static_cast<int>(data->constructors.size() + 1));
    while (!calls.empty()) {
      rhs = let(calls.back().first, calls.back().second, rhs);
      calls.pop_back();
    }
    arms.push_back(clause(make<PatternConstructorNode>([&](PatternConstructorNode& n) {
                            n.constructor = c;
                            n.patterns = patterns;
                          }),
                          rhs));
  }
  Expr f = function({x}, match(x, std::move(arms)), type);
  return let(fold, f, call(fold, {draw(folded, budget / 2)}));
}

}  // namespace relay::fuzz
