#include "types/infer.h"

#include <algorithm>

#include "base/codes/text.h"
#include "base/codes/types.h"
#include "ir/donation.h"
#include "ir/interface_devices.h"
#include "ir/prepack.h"
#include "types/inference.h"
#include "types/kinds.h"
#include "types/match.h"

namespace relay {

namespace {

bool is_polymorphic(const Type& t) {
  auto* f = as<FuncTypeNode>(t);
  return f != nullptr && !f->type_params.empty();
}

}  // namespace

// The location of an expression: the span of a name is that of its definition, so the span of its
// user is more informative.
Span place(const Expr& e, const Span& user) {
  bool name = isa<VarNode>(e) || isa<GlobalVarNode>(e) || isa<OpNode>(e) || isa<ConstructorNode>(e);
  return e->span && !name ? e->span : user;
}

Module Inference::run() {
  check_kinds(mod_, diags_);
  diags_.throw_if_errors();
  declare_globals();
  for (const Function& f : mod_->functions) visit(f);
  diags_.throw_if_errors();
  std::vector<Function> functions;
  std::vector<GlobalVar> vars;
  for (size_t i = 0; i < mod_->functions.size(); ++i) {
    functions.push_back(cast<FunctionNode>(with_types(mod_->functions[i])));
    vars.push_back(typed_global(*mod_->global_vars[i].get()));
  }
  diags_.throw_if_errors();
  Module typed = mod_;
  if (functions != mod_->functions || vars != mod_->global_vars) {
    typed = make_module(std::move(vars), std::move(functions), mod_->type_definitions, mod_->attrs);
  }
  for (Diagnostic& d : check_matches(typed)) diags_.add(std::move(d));
  diags_.throw_if_errors();
  return typed;
}

Expr Inference::run(const Expr& e) {
  check_kinds(e, mod_, diags_);
  diags_.throw_if_errors();
  declare_globals();
  visit(e);
  diags_.throw_if_errors();
  Expr typed = cast<ExprNode>(with_types(e));
  for (Diagnostic& d : check_matches(typed, mod_)) diags_.add(std::move(d));
  diags_.throw_if_errors();
  return typed;
}

void Inference::declare_globals() {
  if (!mod_) return;
  for (size_t i = 0; i < mod_->functions.size(); ++i) {
    global_types_[mod_->global_vars[i]->name_hint] = declared_type(*mod_->functions[i].get());
  }
}

// A function's type as far as it is annotated.
Type Inference::declared_type(const FunctionNode& f) {
  std::vector<Type> args;
  for (const Var& p : f.params) args.push_back(type_of(p.get()));
  return func_type(std::move(args), f.ret_type ? f.ret_type : return_hole(f), f.type_params);
}

Type Inference::return_hole(const FunctionNode& f) {
  Type& t = return_holes_[&f];
  if (!t) t = unifier_.hole(f.span);
  return t;
}

Type Inference::type_of(const Node* n) {
  if (const Type* known = types_.find(n)) return *known;
  auto& e = *static_cast<const ExprNode*>(n);
  Type t;
  if (auto* v = as<VarNode>(n)) {
    t = v->type_annotation ? v->type_annotation : v->type;
  } else if (isa<OpNode>(n)) {
    return nullptr;
  } else if (auto* g = as<GlobalVarNode>(n)) {
    auto known = global_types_.find(g->name_hint);
    if (known != global_types_.end()) return known->second;
    t = g->type;
    if (!t) {
      diags_.error(codes::text_unbound_name, g->span, "there is no function @" + g->name_hint);
    }
  } else {
    t = e.type;
  }
  if (!t) t = unifier_.hole(e.span);
  types_[n] = t;
  return t;
}

Type Inference::type_of(const Expr& e) { return type_of(e.get()); }

// Requires that the two types are equal. `span` is the location of the found type, `reasons` the
// origins of both. Null, or the error that is reported, for further advice.
Diagnostic* Inference::unify(const Type& expected, const Type& found, const Span& span,
                             const std::string& what, std::vector<Reason> reasons) {
  Clash clash;
  if (unifier_.unify(expected, found, span, clash)) return nullptr;
  if (clash.infinite) {
    auto [a, b] = with_named_holes(expected, found);
    Diagnostic& d = diags_.error(codes::type_infinite, span, what + ": its type would be infinite");
    d.expected(a).found(b);
    d.help("a type cannot be a part of itself; a data type can: type T { C(fn (T) -> T), }");
    return &d;
  }
  Diagnostic& d = diags_.error(codes::type_mismatch, span, what + ": " + clash.why);
  d.expected(shown(expected)).found(shown(found));
  for (Reason& r : reasons) add_note(d, std::move(r));
  for (const Type& side : {expected, found}) {
    Span filled = unifier_.filled_at(side);
    if (!filled || filled == span) continue;
    d.note(filled, "it was found to be " + shown(side) + " here");
    break;
  }
  return &d;
}

// Both types in text, with a name for each hole that they share.
std::pair<std::string, std::string> Inference::with_named_holes(const Type& a, const Type& b) {
  std::unordered_map<const Node*, NodeRef> names;
  Type both = unifier_.resolve(tuple_type({a, b}));
  for (const Node* hole : unifier_.open_parts(both)) {
    std::string name(1, static_cast<char>('A' + names.size() % 26));
    if (isa<IncompleteTypeNode>(hole)) names.emplace(hole, type_var(name));
  }
  auto* named = as<TupleTypeNode>(both = Type::unchecked(substitute(both, names)));
  return {to_string(named->fields[0]), to_string(named->fields[1])};
}

// Where a value's type comes from, if it is a name.
Inference::Reason Inference::origin(const Expr& e) {
  auto* v = as<VarNode>(e);
  return v == nullptr ? Reason{} : Reason{v->span, {}, v};
}

void Inference::add_note(Diagnostic& d, Reason r) {
  bool said = std::ranges::any_of(d.notes, [&](const auto& n) { return n.first == r.span; });
  if (!r.span || r.span == d.span || said) return;
  if (r.variable != nullptr) {
    r.text = "%" + r.variable->name_hint + " is " + shown(type_of(r.variable));
  }
  d.note(r.span, std::move(r.text));
}

// The type in text, as far as it is known.
std::string Inference::shown(const Type& t) { return to_string(unifier_.resolve(t)); }

// The type of a child that is used as a value. Operators have the type that the use asks for; a
// polymorphic function has one of its instances, unless a polymorphic one is wanted.
Type Inference::value_type(const ExprNode& user, const Expr& child, const Type& wanted) {
  return value_type(user, user.span, child, wanted);
}

Type Inference::value_type(const Node& user, const Span& span, const Expr& child,
                           const Type& wanted) {
  if (auto* op = as<OpNode>(child)) {
    Pending p{span, op->row.get(), default_attrs(*op->row), nullptr, {}, unifier_.hole(span)};
    for (size_t i = 0; i < op->row->args.size(); ++i) p.args.push_back(unifier_.hole(span));
    Type instance = func_type(p.args, p.result);
    value_uses_[&user].push_back({op, instance, {}, span});
    demand(std::move(p));
    return instance;
  }
  Type t = unifier_.shallow(type_of(child));
  if (!is_polymorphic(t)) return t;
  ValueUse use{child.get(), nullptr, {}, place(child, span)};
  if (!wanted || !is_polymorphic(unifier_.shallow(wanted))) {
    FuncType f = cast<FuncTypeNode>(unifier_.resolve(t));
    if (unifier_.is_complete(f)) {
      t = use.instance = unifier_.instantiate(f, use.span, use.type_args);
      if (!all_types(*f.get())) use.type_args.clear();
    } else {
      t = use.instance = unifier_.hole(use.span);
      demand({use.span, nullptr, nullptr, nullptr, {f}, t});
    }
  }
  value_uses_[&user].push_back(std::move(use));
  return t;
}

// Type arguments are part of a call if they are types; inference finds dimensions, shapes and base
// types in the arguments.
bool Inference::all_types(const FuncTypeNode& f) {
  return std::ranges::all_of(f.type_params, [](const TypeVar& v) { return v->kind == Kind::Type; });
}

Module infer_types(const Module& mod) {
  Module typed = Inference(mod).run();
  check_donations(typed);
  check_prepacking(typed);
  check_interface_devices(typed);
  return typed;
}

Expr infer_type(const Expr& expr, const Module& context) { return Inference(context).run(expr); }

}  // namespace relay
