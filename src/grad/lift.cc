#include "grad/lift.h"

#include <algorithm>

#include "base/codes/gradients.h"
#include "grad/call_gradient.h"
#include "grad/dataflow.h"
#include "ir/scope.h"
#include "ir/type_params.h"
#include "node/structural.h"
#include "node/walk.h"
#include "types/eta_expansion.h"

namespace relay {

// ---- Pieces of programs

Var Bindings::bind(const std::string& name, Expr value) {
  Var v = var(name, value->type, value->span);
  list_.emplace_back(v, std::move(value));
  return v;
}

Expr Bindings::leaf(Expr value) { return is_leaf(*value.get()) ? value : bind("v", value); }

Expr Bindings::in(Expr result) const {
  for (size_t i = list_.size(); i-- > 0;)
    result = let(list_[i].first, list_[i].second, std::move(result));
  return result;
}

Pattern constructor_pattern(const Constructor& c, const std::vector<Var>& parts) {
  return make<PatternConstructorNode>([&](PatternConstructorNode& n) {
    n.constructor = c;
    for (const Var& v : parts)
      n.patterns.push_back(make<PatternVarNode>([&](PatternVarNode& p) { p.var = v; }));
  });
}

Lifting::Lifting(Module mod, std::string suffix)
    : mod_(std::move(mod)),
      names_(mod_),
      suffix_(std::move(suffix)),
      data_(
          mod_, names_, suffix_, [](const TensorTypeNode& t) { return is_floating(Type(&t)); },
          [this](const TensorType& t) -> Type {
            if (t->dtype_var) {
              throw UserError(Diagnostic(codes::grad_function, {},
                                         "a function for any dtype cannot be differentiated")
                                  .expected("floating or integer tensors")
                                  .found(to_string(Type(t)))
                                  .help("write the function for the dtype that it is called with"));
            }
            return is_floating(t) ? lifted_tensor(t) : nullptr;
          }) {}

// ---- Functions

// One function: values follow their types, calls of operators are the mode's.
class Lifting::Rewrite : public Retyper {
 public:
  explicit Rewrite(Lifting& lifting) : lifting_(lifting) {}

  std::vector<Var> params(const Function& f) { return rewritten(f->params); }
  Expr body(const Function& f) { return rewrite_body(f); }

 private:
  Type retype(const Type& t) override { return lifting_.lifted(t); }
  Expr retype_constant(const Constant& c) override {
    return is_floating(c->type) ? lifting_.lifted_constant(c) : Expr(c);
  }
  Expr retype_constructor(const Constructor& c) override { return lifting_.lifted(c); }

  Expr retype_use(const Expr& value, const Type& from, const Type& to) override {
    return lifting_.fitted(value, from, to);
  }

  Expr retype_call(const CallNode& c, std::vector<Expr> args) override {
    if (called_op(Expr(&c)) != nullptr) return lifting_.lifted_call(c, args);
    if (Expr made = lifting_.lifted_prepared(c, args)) return made;
    if (auto* g = as<GlobalVarNode>(c.op)) {
      Function f = lifting_.mod_->find(g->name_hint);
      if (f->has_attr(kCustomGradient)) return lifting_.lifted_custom_call(c, f, args);
      if (f->has_attr(kCheckpoint)) {
        if (Expr made = lifting_.lifted_checkpoint(c, args)) return made;
      }
    }
    if (Expr made = lifting_.named_call(c, args)) return made;
    std::vector<Type> type_args;
    auto* callee = as<FuncTypeNode>(c.op->type);
    if (callee != nullptr && callee->type_params.empty()) {
      for (size_t i = 0; i < args.size(); ++i)
        args[i] = lifting_.fitted(args[i], c.args[i]->type, callee->arg_types[i]);
    }
    for (size_t i = 0; i < c.type_args.size(); ++i) {
      // A shape or a size carries nothing.
      bool is_type = callee == nullptr || i >= callee->type_params.size() ||
                     callee->type_params[i]->kind == Kind::Type;
      type_args.push_back(is_type ? type(c.type_args[i]) : c.type_args[i]);
    }
    Expr op;
    if (auto* g = as<GlobalVarNode>(c.op)) {
      op = lifting_.global(g->name_hint).name;
      if (Var context = lifting_.context()) args.insert(args.begin(), context);
    } else {
      op = rewritten(c.op);
    }
    return call(op, std::move(args), nullptr, c.span, std::move(type_args));
  }
  Expr retype_global(const GlobalVar& g) override {
    // Functions of the module are called where they stand: others are expanded before.
    return g;
  }

  Lifting& lifting_;
};

Function Lifting::lift(const Function& f) {
  Rewrite rewrite(*this);
  Function ready = prepared(f);
  std::vector<Var> params = rewrite.params(ready);
  Expr body = rewrite.body(ready);
  return function(std::move(params), body, body->type, f->type_params, {}, f->span);
}

Expr Lifting::fitted(const Expr& value, const Type& from, const Type& to) {
  if (from == to || structural_equal(from, to)) return value;
  if (is_floating(from)) return lifted_use(value, tensor_argument(to), nullptr);
  auto *have = as<TupleTypeNode>(from), *want = as<TupleTypeNode>(to);
  if (have == nullptr || want == nullptr) return value;
  Bindings b;
  Expr whole = b.leaf(value);
  std::vector<Expr> fields;
  for (size_t i = 0; i < want->fields.size(); ++i) {
    fields.push_back(
        fitted(tuple_get_item(whole, static_cast<int64_t>(i)), have->fields[i], want->fields[i]));
  }
  return b.in(tuple(std::move(fields)));
}

namespace {

// The type without any size but those that are numbers.
Type without_names(const Type& type) {
  return Type::unchecked(rewrite(
      type,
      [](const NodeRef&, NodeRef rebuilt) -> NodeRef {
        auto* t = as<TensorTypeNode>(rebuilt);
        if (t == nullptr) return rebuilt;
        std::vector<Dim> shape = t->shape;
        for (Dim& d : shape) {
          if (!as_const(d)) d = dim_any();
        }
        return tensor_type(std::move(shape), t->dtype);
      },
      family::type));
}

bool has_open_size(const Type& type) {
  auto* t = as<TensorTypeNode>(type);
  return t != nullptr && is_floating(type) && std::ranges::any_of(t->shape, is_any);
}

}  // namespace

// A name for a `?` is given by the parameter of a function, and a lifted tensor is of one type with what
// it carries. So a function of its own takes the tensor twice: once to name its sizes, once as it is.
//
//   @g(%x)   @g: fn [n: Dim](Tensor[(n), float32]) -> Tensor[(n), float32], %x: Tensor[(?), float32]
//
//   def @g_named[n: Dim](%s: Tensor[(n), float32], %x: (Tensor[(?), float32], ..)) {
//     @g_grad((%s, ..)) }   with what it gives as a tensor of `?`
//
// Null where no floating tensor of `?` goes to a parameter with names.
Expr Lifting::named_call(const CallNode& c, std::vector<Expr> args) {
  auto* g = as<GlobalVarNode>(c.op);
  auto* callee = as<FuncTypeNode>(c.op->type);
  if (g == nullptr || callee == nullptr || callee->type_params.empty()) return nullptr;
  std::vector<bool> open;
  std::string key = g->name_hint;
  for (size_t i = 0; i < args.size(); ++i) {
    open.push_back(has_open_size(c.args[i]->type) && !has_open_size(callee->arg_types[i]));
    key += open.back() ? " " + to_string(without_names(c.args[i]->type)) : " _";
  }
  if (std::ranges::find(open, true) == open.end()) return nullptr;
  std::vector<bool> nameless;
  for (size_t i = 0; i < callee->type_params.size(); ++i) {
    Dim d = i < c.type_args.size() ? dim_argument(c.type_args[i]) : nullptr;
    nameless.push_back(d && is_any(d));
    key += nameless.back() ? " ?" : " n";
  }
  Bindings outside;
  std::vector<Expr> given;
  for (size_t i = 0; i < args.size(); ++i) {
    if (open[i]) {
      Type as_it_is = without_names(c.args[i]->type);
      args[i] = outside.leaf(fitted(args[i], c.args[i]->type, as_it_is));
      given.push_back(outside.bind("s", tuple_get_item(args[i], 0)));
    }
    given.push_back(args[i]);
  }
  auto& [name, made] = naming_[key];
  if (!name) {
    TypeParams own, outside_of_it;
    std::vector<TypeVar> type_params;
    for (size_t i = 0; i < callee->type_params.size(); ++i) {
      const TypeVar& v = callee->type_params[i];
      type_params.push_back(type_var(v->name_hint, v->kind));
      own[v.get()] = type_params.back();
      outside_of_it[v.get()] = nameless[i] ? NodeRef(dim_any()) : NodeRef(type_params.back());
    }
    Var around = context();
    std::vector<Var> params;
    std::vector<Expr> passed;
    if (around) {
      params.push_back(var(around->name_hint, around->type));
      passed.push_back(params.back());
      enter(params.back());
    }
    Bindings b;
    for (size_t i = 0; i < args.size(); ++i) {
      Type wanted = with_type_params(callee->arg_types[i], own);
      if (!open[i]) {
        params.push_back(var("x", lifted(wanted)));
        passed.push_back(params.back());
        continue;
      }
      Var named = var("s", wanted), whole = var("x", args[i]->type);
      params.push_back(named);
      params.push_back(whole);
      passed.push_back(b.leaf(lifted_use(whole, cast<TensorTypeNode>(wanted), named)));
    }
    Expr result = b.leaf(call(global(g->name_hint).name, passed, nullptr, c.span));
    const Type from = with_type_params(callee->ret_type, own),
               to = with_type_params(callee->ret_type, outside_of_it);
    result = b.in(b.leaf(fitted(result, from, to)));
    if (around) enter(around);
    made = function(params, result, lifted(to), type_params, {}, c.span);
    name = global_var(names_.fresh(g->name_hint + "_named" + suffix_), made->type);
  }
  if (Var around = context()) given.insert(given.begin(), around);
  return outside.in(call(name, std::move(given), nullptr, c.span));
}

const Lifting::Global& Lifting::global(const std::string& name) {
  Global& g = globals_[name];
  if (g.name) return g;
  Function f = mod_->find(name);
  g.original = fresh_copy(f);
  Var around = context();
  std::vector<Type> params;
  if (around) {
    g.context = var(around->name_hint, around->type);
    params.push_back(around->type);
  }
  for (const Var& p : g.original->params) params.push_back(lifted(p->type));
  g.name = global_var(
      names_.fresh(name + suffix_),
      func_type(std::move(params), lifted(g.original->body->type), g.original->type_params));
  waiting_.push_back(name);
  return g;
}

Module Lifting::finish() {
  std::vector<GlobalVar> names = mod_->global_vars;
  std::vector<Function> functions = mod_->functions;
  while (!waiting_.empty()) {
    std::string name = waiting_.front();
    waiting_.pop_front();
    const Global& g = globals_[name];
    if (g.context) enter(g.context);
    Function f = lift(g.original);
    if (g.context) {
      std::vector<Var> params = f->params;
      params.insert(params.begin(), g.context);
      f = function(std::move(params), f->body, f->ret_type, f->type_params, {}, f->span);
    }
    names.push_back(g.name);
    functions.push_back(f);
  }
  for (const auto& [key, made] : naming_) {
    names.push_back(made.first);
    functions.push_back(made.second);
  }
  std::vector<TypeData> types = mod_->type_definitions;
  types.insert(types.end(), made_types_.begin(), made_types_.end());
  types.insert(types.end(), data_.made().begin(), data_.made().end());
  return make_module(std::move(names), std::move(functions), std::move(types), mod_->attrs);
}

void Lifting::take_apart(const Type& type, const Expr& e, Bindings& b, Expr& value,
                         std::vector<Part>& parts) {
  if (auto* t = as<TupleTypeNode>(type)) {
    auto* literal = as<TupleNode>(e);
    Expr whole = literal != nullptr ? e : b.leaf(e);
    std::vector<Expr> fields;
    for (size_t i = 0; i < t->fields.size(); ++i) {
      Expr field = literal != nullptr ? literal->fields[i]
                                      : Expr(tuple_get_item(whole, static_cast<int64_t>(i)));
      take_apart(t->fields[i], field, b, fields.emplace_back(), parts);
    }
    value = tuple(std::move(fields));
    return;
  }
  if (!is_floating(type)) {
    value = b.leaf(e);
    parts.push_back({type, value, nullptr});
    return;
  }
  auto* literal = as<TupleNode>(e);
  if (literal != nullptr) {
    value = b.leaf(literal->fields[0]);
    parts.push_back({type, value, b.leaf(literal->fields[1])});
    return;
  }
  Expr whole = b.leaf(e);
  value = b.bind("x", tuple_get_item(whole, 0));
  parts.push_back({type, value, b.bind("a", tuple_get_item(whole, 1))});
}

}  // namespace relay
