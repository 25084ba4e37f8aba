#include "grad/value_conversion.h"

#include "base/codes/gradients.h"
#include "grad/call_gradient.h"
#include "ir/op.h"
#include "node/walk.h"

namespace relay {
namespace {

// A type that contains itself with ever larger arguments has no end.
constexpr size_t kMaxOpenTypes = 64;

// Whether a data type occurs in a type, whose definition may hold tensors, or a function.
bool may_hold(const Type& type) {
  bool found = false;
  post_order(
      type, [&](const Node& n) { found |= isa<GlobalTypeVarNode>(&n) || isa<FuncTypeNode>(&n); },
      family::type);
  return found;
}

TypeData definition(const Module& mod, const Type& type) {
  auto* c = as<TypeCallNode>(type);
  auto* header = as<GlobalTypeVarNode>(c != nullptr ? c->func : type);
  TypeData data = header == nullptr ? nullptr : mod->find_type(header->name_hint);
  RELAY_CHECK(data, "a data type is defined");
  return data;
}

std::vector<Type> arguments(const Type& type) {
  auto* c = as<TypeCallNode>(type);
  return c != nullptr ? c->args : std::vector<Type>();
}

void check_definition(const Module& mod, const GlobalTypeVarNode& header, const Type& type,
                      const Span& span) {
  for (const Constructor& c : mod->find_type(header.name_hint)->constructors) {
    for (const Type& input : c->inputs) {
      post_order(
          input,
          [&](const Node& n) {
            auto* t = as<TensorTypeNode>(&n);
            bool other = t != nullptr && !is_floating(Type(t));
            if (other || isa<RefTypeNode>(&n) || isa<FuncTypeNode>(&n)) {
              refuse_value(span,
                           "the data type " + header.name_hint +
                               " holds more than floats, so its gradient is no value of it",
                           type, "give the data type a parameter for what is no float");
            }
          },
          family::type);
    }
  }
}

std::vector<Var> vars_of(const std::vector<Type>& types) {
  std::vector<Var> out;
  for (const Type& t : types) out.push_back(var("p", t));
  return out;
}

}  // namespace

void refuse_value(const Span& span, const std::string& what, const Type& type,
                  const std::string& help) {
  throw UserError(Diagnostic(codes::grad_function, span, what)
                      .expected("tensors, tuples, data and references of them")
                      .found(to_string(type))
                      .help(help));
}

Type Conversion::gradient_type(const Module& mod, const Type& type, const Span& span) {
  return Type::unchecked(rewrite(
      type,
      [&](const NodeRef&, NodeRef rebuilt) -> NodeRef {
        auto* t = as<TensorTypeNode>(rebuilt);
        if (t != nullptr && !is_floating(Type(t))) return tuple_type({});
        if (isa<FuncTypeNode>(rebuilt)) return tuple_type({});
        if (auto* r = as<RefTypeNode>(rebuilt)) return r->value;
        auto* g = as<GlobalTypeVarNode>(rebuilt);
        if (g != nullptr) check_definition(mod, *g, type, span);
        return rebuilt;
      },
      family::type));
}

Type Conversion::side(Side which, const Type& type, const Span& span) const {
  return which == Side::Lifted     ? lifting_.lifted(type)
         : which == Side::Gradient ? gradient_type(mod_, type, span)
                                   : type;
}

Expr Conversion::operator()(const Type& type, const Expr& value, const Expr& with,
                            Bindings& b) const {
  const bool gives_gradient = form_.to == Side::Gradient;
  if (!gives_gradient && !has_floats(type) && !may_hold(type)) return value;
  if (auto* t = as<TupleTypeNode>(type)) {
    Expr whole = b.leaf(value), beside = with ? b.leaf(with) : with;
    std::vector<Expr> fields;
    for (size_t i = 0; i < t->fields.size(); ++i) {
      auto at = static_cast<int64_t>(i);
      fields.push_back((*this)(t->fields[i], tuple_get_item(whole, at),
                               beside ? Expr(tuple_get_item(beside, at)) : beside, b));
    }
    return tuple(std::move(fields));
  }
  if (isa<TensorTypeNode>(type)) {
    if (!is_floating(type)) return gives_gradient ? Expr(tuple({})) : value;
    return rule_({type, form_.from == Side::Lifted ? b.leaf(value) : value, with, b});
  }
  if (auto* r = as<RefTypeNode>(type)) {
    Expr beside = form_.with == Side::Plain ? Expr(b.bind("r", ref_read(with))) : with;
    Expr content = (*this)(r->value, b.bind("r", ref_read(value)), beside, b);
    return gives_gradient ? content : Expr(ref_create(content));
  }
  if (isa<TypeCallNode>(type) || isa<GlobalTypeVarNode>(type)) return data(type, value, with, b);
  if (gives_gradient) return tuple({});
  refuse_value(value->span, "a function cannot go into a gradient, or come out of it", type,
               "put the function into the program that is differentiated");
}

Expr Conversion::data(const Type& type, const Expr& value, const Expr& with, Bindings& b) const {
  const std::string key = to_string(type);
  auto walked_by = [&](const Var& f) {
    std::vector<Expr> args{b.leaf(value)};
    if (with) args.push_back(b.leaf(with));
    return call(f, std::move(args));
  };
  for (const Open& o : open_) {
    if (o.type == key) return walked_by(o.function);
  }
  if (open_.size() > kMaxOpenTypes)
    refuse_value(value->span, "a data type contains itself with ever larger types", type, "");
  const TypeData original = definition(mod_, type);
  std::vector<Type> params{side(form_.from, type, value->span)};
  if (with) params.push_back(side(form_.with, type, value->span));
  const Type to = side(form_.to, type, value->span);
  Var self = var("convert", func_type(params, to));
  open_.push_back({key, self});
  Var x = var("x", params[0]), d = with ? var("d", params[1]) : nullptr;
  std::vector<Clause> clauses;
  auto constructor = [&](Side which, const Constructor& k) {
    return which == Side::Lifted ? lifting_.lifted(k) : k;
  };
  for (const Constructor& k : original->constructors) {
    const std::vector<Type> inputs = constructor_inputs(original, k, arguments(type));
    auto parts_of = [&](Side which) {
      std::vector<Type> types;
      for (const Type& input : inputs) types.push_back(side(which, input, value->span));
      return vars_of(types);
    };
    std::vector<Var> parts = parts_of(form_.from), beside;
    if (with) beside = parts_of(form_.with);
    Bindings inner;
    std::vector<Expr> now;
    for (size_t i = 0; i < inputs.size(); ++i) {
      Expr other = with ? Expr(beside[i]) : Expr();
      now.push_back(inner.leaf((*this)(inputs[i], parts[i], other, inner)));
    }
    Expr made = inner.in(call(constructor(form_.to, k), now, nullptr, {}, arguments(to)));
    if (with) {
      std::vector<Clause> same{
          clause(constructor_pattern(constructor(form_.with, k), beside), std::move(made))};
      made = match(d, std::move(same), original->constructors.size() == 1);
    }
    clauses.push_back(
        clause(constructor_pattern(constructor(form_.from, k), parts), std::move(made)));
  }
  open_.pop_back();
  std::vector<Var> own{x};
  if (with) own.push_back(d);
  Function f = function(std::move(own), match(x, std::move(clauses)), to);
  return let(self, f, walked_by(self));
}

}  // namespace relay
