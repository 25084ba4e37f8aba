// Matches, and operators' calls.
#include <algorithm>

#include "fuzz/generator.h"
#include "fuzz/values.h"
#include "node/structural.h"

namespace relay::fuzz {
namespace {

Pattern wildcard() {
  return make<PatternWildcardNode>([](PatternWildcardNode&) {});
}

Pattern constructor_pattern(const Constructor& c, std::vector<Pattern> inner) {
  return make<PatternConstructorNode>([&](PatternConstructorNode& n) {
    n.constructor = c;
    n.patterns = std::move(inner);
  });
}

const TypeDataNode* applied_data(const std::vector<TypeData>& all, const Type& type) {
  auto* applied = as<TypeCallNode>(type);
  if (applied == nullptr) return nullptr;
  for (const TypeData& d : all) {
    if (structural_equal(d->header, applied->func)) return d.get();
  }
  return nullptr;
}

ValueList sizes_of(const TensorTypeNode& type) {
  std::vector<int64_t> shape = type.const_shape().value();
  return ValueList(shape.begin(), shape.end());
}

}  // namespace

// ---- Matches -----------------------------------------------------------------------------------

// A pattern for values of the type. One that is not refutable fits all of them, a refutable one
// only some, where the type has any such pattern.
Pattern ExpressionSource::pattern(const Type& type, bool refutable) {
  const TypeDataNode* data = applied_data(data_, type);
  if (refutable && data != nullptr && data->constructors.size() > 1) {
    const Constructor& c = random_.pick(data->constructors);
    std::vector<Pattern> inner;
    for (const Type& input : constructor_inputs(*data, c, type)) {
      inner.push_back(pattern(input, random_.percent(20)));
    }
    return constructor_pattern(c, std::move(inner));
  }
  if (auto* t = as<TupleTypeNode>(type); t != nullptr && random_.percent(70)) {
    std::vector<Pattern> inner;
    for (const Type& f : t->fields) inner.push_back(pattern(f, refutable));
    return make<PatternTupleNode>([&](PatternTupleNode& n) { n.patterns = std::move(inner); });
  }
  if (random_.percent(25)) return wildcard();
  Var v = var(fresh("m"), type);
  bind(v);
  return make<PatternVarNode>([&](PatternVarNode& n) { n.var = v; });
}

std::vector<Clause> ExpressionSource::clauses(const Type& data, const Type& result, int budget) {
  const TypeDataNode* definition = applied_data(data_, data);
  std::vector<Clause> out;
  auto add = [&](auto&& make_pattern, int count) {
    Scope scope(*this);
    Pattern lhs = make_pattern();
    out.push_back(clause(lhs, draw(result, budget / count)));
  };
  if (definition == nullptr) {
    add([&] { return pattern(data, false); }, 1);
    return out;
  }
  int count = static_cast<int>(definition->constructors.size());
  bool rest = count > 1 && random_.percent(30);
  for (int i = 0; i < count - (rest ? 1 : 0); ++i) {
    const Constructor& c = definition->constructors[static_cast<size_t>(i)];
    std::vector<Type> inputs = constructor_inputs(*definition, c, data);
    // First a clause for some of the values, then one for all of them.
    auto nested = std::ranges::find_if(inputs, [&](const Type& t) {
      const TypeDataNode* inner = applied_data(data_, t);
      return inner != nullptr && inner->constructors.size() > 1;
    });
    if (nested != inputs.end() && random_.percent(40)) {
      add(
          [&] {
            std::vector<Pattern> inner;
            for (const Type& t : inputs) inner.push_back(pattern(t, &t == &*nested));
            return constructor_pattern(c, std::move(inner));
          },
          count + 1);
    }
    add(
        [&] {
          std::vector<Pattern> inner;
          for (const Type& t : inputs) inner.push_back(pattern(t, false));
          return constructor_pattern(c, std::move(inner));
        },
        count + 1);
  }
  if (rest) {
    add([&] { return random_.percent(50) ? wildcard() : pattern(data, false); }, count + 1);
  }
  return out;
}

Expr ExpressionSource::draw_match(const Type& type, int budget) {
  Type matched;
  for (const Expr& e : scope_) {
    bool fits = isa<TupleTypeNode>(e->type) || applied_data(data_, e->type) != nullptr;
    if (fits && random_.percent(40)) matched = e->type;
  }
  if (!matched) matched = random_.percent(75) ? types_.data(1) : types_.first_order(2);
  if (!matched || isa<TensorTypeNode>(matched)) return nullptr;
  Expr value = draw(matched, budget / 3);
  std::vector<Clause> arms = clauses(matched, type, budget - budget / 3);
  // Now and then a value may be without a clause, which is an error at run time.
  bool complete = arms.size() < 2 || !random_.percent(4);
  if (!complete) arms.pop_back();
  return match(value, std::move(arms), complete);
}

// ---- Operators ---------------------------------------------------------------------------------

Expr ExpressionSource::in_range(Expr e, double low, double high) {
  auto* t = as<TensorTypeNode>(e->type);
  if (t == nullptr || t->dtype.is_bool()) return e;
  return call("clip", {std::move(e)}, attrs_of("clip", {{"a_min", low}, {"a_max", high}}));
}

Expr ExpressionSource::apply(const OperatorUse& use, int budget) {
  std::vector<Expr> args;
  int share = budget / std::max<int>(1, static_cast<int>(use.args.size()));
  auto one = [&](const Type& t, int part) {
    Expr e = draw(t, part);
    return use.ranged ? in_range(std::move(e), use.low, use.high) : e;
  };
  for (const Type& t : use.args) {
    auto* fields = as<TupleTypeNode>(t);
    if (fields == nullptr) {
      args.push_back(one(t, share));
    } else if (!use.ranged && random_.percent(30)) {
      args.push_back(draw(t, share));
    } else {
      std::vector<Expr> values;
      for (const Type& f : fields->fields) {
        values.push_back(one(f, share / std::max<int>(1, static_cast<int>(fields->fields.size()))));
      }
      args.push_back(tuple(std::move(values)));
    }
  }
  return call(use.op, std::move(args), use.attrs);
}

Expr ExpressionSource::adapt(Expr e, const TensorTypeNode& wanted) {
  while (auto* fields = as<TupleTypeNode>(e->type)) {
    if (fields->fields.empty()) return nullptr;
    e = tuple_get_item(e, static_cast<int64_t>(random_.below(fields->fields.size())));
  }
  auto* have = as<TensorTypeNode>(e->type);
  if (have == nullptr) return nullptr;
  auto from = have->const_shape(), to = wanted.const_shape();
  if (!from || !to) return nullptr;
  auto count = [](const std::vector<int64_t>& shape) {
    int64_t n = 1;
    for (int64_t d : shape) n *= d;
    return n;
  };
  if (!(have->dtype == wanted.dtype)) {
    e = call("cast", {e}, attrs_of("cast", {{"dtype", wanted.dtype.to_string()}}));
  }
  if (*from == *to) return e;
  // In a new shape, a zero stands for the old size.
  if (count(*from) == count(*to) && count(*to) > 0) {
    return call("reshape", {e}, attrs_of("reshape", {{"newshape", sizes_of(wanted)}}));
  }
  // A sum or an extremum does not tell whether elements changed places: each gets a weight.
  if (!wanted.dtype.is_bool()) {
    e = call("multiply", {e, leaf_constant(tensor_type(*from, wanted.dtype))});
  }
  // An extremum of nothing has no value.
  bool empty = count(*from) == 0 || wanted.dtype.is_bool();
  const char* reduce = wanted.dtype.is_bool()         ? "any"
                       : empty || random_.percent(50) ? "sum"
                                                      : "max";
  return call("broadcast_to", {call(reduce, {e})},
              attrs_of("broadcast_to", {{"shape", sizes_of(wanted)}}));
}

// A tensor of sizes that are arguments, and elements of it: sizes are `?` in between.
Expr ExpressionSource::draw_sizes(const Type& type, int budget) {
  auto* wanted = as<TensorTypeNode>(type);
  if (wanted == nullptr || !wanted->const_shape() || budget < 4) return nullptr;
  const DType dtype = wanted->dtype, index = DType::Int(64);
  const int64_t rows = random_.between(2, 4), columns = random_.between(1, 4);
  // Known sizes, or those of a branch.
  auto sizes = [&](const std::vector<int64_t>& list) -> Expr {
    Tensor t = Tensor::empty(index, {static_cast<int64_t>(list.size())});
    for (size_t i = 0; i < list.size(); ++i) t.set_from_int(static_cast<int64_t>(i), list[i]);
    if (random_.percent(75)) return constant(t);
    return if_(draw(scalar_type(DType::Bool()), budget / 4), constant(t), constant(t));
  };
  Expr x = draw(tensor_type({rows, columns}, dtype), budget / 2), e;
  switch (random_.below(5)) {
    case 0:
      e = call("dyn.reshape", {x, sizes({columns, rows})});
      break;
    case 1:
      e = call("dyn.tile", {x, sizes({random_.between(1, 2), random_.between(1, 2)})});
      break;
    case 2:
      e = call("dyn.broadcast_to", {x, sizes({random_.between(1, 3), rows, columns})});
      break;
    default: {
      const int64_t begin = random_.between(0, rows - 1);
      e = call("dyn.strided_slice",
               {x, sizes({begin, 0}), sizes({random_.between(begin + 1, rows), columns}),
                sizes({1, 1})});
    }
  }
  if (random_.percent(50)) e = call("add", {e, e});
  Tensor places = Tensor::empty(index, {random_.between(1, 4)});
  fill(places, 0, 16, random_);
  return adapt(
      call("take", {e, constant(places)}, attrs_of("take", {{"mode", std::string("wrap")}})),
      *wanted);
}

Expr ExpressionSource::draw_operator(const Type& type, int budget) {
  auto* wanted = as<TensorTypeNode>(type);
  if (wanted == nullptr) return nullptr;
  bool is_static = wanted->const_shape().has_value();
  if (is_static && random_.percent(25)) {
    // An operator for its own sake: its result is made to fit.
    return adapt(apply(Operators::all().example(random_), budget - 2), *wanted);
  }
  auto use = Operators::all().for_result(*wanted, random_);
  if (!use) return nullptr;
  if (!std::ranges::all_of(use->args, [&](const Type& t) { return reachable(t); })) return nullptr;
  return apply(*use, budget);
}

}  // namespace relay::fuzz
