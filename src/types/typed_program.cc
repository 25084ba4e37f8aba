// The program again, with the types found in its expressions.
#include "base/codes/types.h"
#include "ir/type_params.h"
#include "node/structural.h"
#include "types/eta_expansion.h"
#include "types/inference.h"

namespace relay {

Type Inference::final_type(const ExprNode& e) {
  // A program with errors is not built; searching each expression for open types takes long.
  if (diags_.has_errors()) return type_of(&e);
  Type t = unifier_.resolve(type_of(&e));
  if (t && !unifier_.is_complete(t) && unsolved_.insert(&e).second && !diags_.has_errors()) {
    report_unsolved(e, t);
  }
  return t;
}

void Inference::report_unsolved(const ExprNode& e, const Type& t) {
  auto* call = as<CallNode>(&e);
  auto* callee = call == nullptr ? nullptr : as<GlobalVarNode>(call->op);
  if (callee != nullptr && isa<IncompleteTypeNode>(t)) {
    diags_
        .error(codes::type_unsolved, e.span,
               "the result of @" + callee->name_hint + " cannot be inferred")
        .found(to_string(t))
        .help(
            "a function that calls itself before it gives a value, or that is polymorphic and "
            "calls itself, declares its result: def @" +
            callee->name_hint + "(...) -> " + example_of(t));
    return;
  }
  auto* v = as<VarNode>(&e);
  std::string name = v == nullptr ? "" : "%" + v->name_hint;
  diags_
      .error(codes::type_unsolved, e.span,
             (v == nullptr ? "this type" : "the type of " + name) + " cannot be inferred")
      .found(to_string(t))
      .help(v == nullptr ? "give it a name with a type: let %x: " + example_of(t) + " = ..."
                         : "annotate it, for example " + name + ": " + example_of(t));
}

// The type with something in its holes.
std::string Inference::example_of(const Type& t) {
  std::unordered_map<const Node*, NodeRef> filled;
  Type part = scalar_type(DType::Float(32));
  for (const Node* hole : unifier_.open_parts(t)) {
    if (isa<IncompleteTypeNode>(hole)) filled.emplace(hole, part);
  }
  return isa<IncompleteTypeNode>(t) ? "Tensor[(2, 3), float32]"
                                    : to_string(Type::unchecked(substitute(t, filled)));
}

GlobalVar Inference::typed_global(const GlobalVarNode& g) {
  GlobalVar& made = typed_globals_[g.name_hint];
  if (made) return made;
  auto known = global_types_.find(g.name_hint);
  Type t = known == global_types_.end() ? g.type : unifier_.resolve(known->second);
  if (g.type && t && structural_equal(g.type, t)) return made = ref(g);
  made = make<GlobalVarNode>([&](GlobalVarNode& n) {
    n.name_hint = g.name_hint;
    n.span = g.span;
    n.type = t;
  });
  return made;
}

// Operators and polymorphic functions that `original` uses as values become functions of the one
// type at which they are used.
NodeRef Inference::with_values(const Node& original, NodeRef rebuilt) {
  auto uses = value_uses_.find(&original);
  if (uses == value_uses_.end()) return rebuilt;
  std::vector<NodeRef> before = children_of(original), now = children_of(*rebuilt.get());
  auto use = uses->second.begin();
  for (size_t i = isa<CallNode>(&original) ? 1 : 0; i < now.size(); ++i) {
    if (use == uses->second.end()) break;
    if (before[i].get() != use->child) continue;
    if (use->instance) now[i] = value_of(Expr::unchecked(now[i]), *use);
    ++use;
  }
  return with_children(rebuilt, now);
}

Expr Inference::value_of(const Expr& child, const ValueUse& use) {
  Type type = unifier_.resolve(use.instance);
  if (!unifier_.is_complete(type)) {
    if (!diags_.has_errors()) {
      auto* op = as<OpNode>(child);
      diags_
          .error(codes::type_unsolved, use.span,
                 "the type at which " + (op == nullptr ? "this function" : op->name) +
                     " is used cannot be inferred")
          .found(to_string(type))
          .help("write a function with annotated parameters around it: fn (%x: ...) { ... }");
    }
    return child;
  }
  std::vector<Type> type_args;
  for (const Type& a : use.type_args) type_args.push_back(unifier_.resolve(a));
  return eta_expansion(child, cast<FuncTypeNode>(type), std::move(type_args));
}

// Unification accepts `?` for any size. The value's own type must be at least as precise as the
// declared one: a declared `?` forgets a size, but no declaration knows a data-dependent size.
bool Inference::says_enough(const Type& declared, const Type& found, const Span& span,
                            const std::string& what) {
  if (diags_.has_errors() || !declared || !found ||
      solve_type_params(*func_type({declared}, declared), {&found, 1})) {
    return true;
  }
  diags_.error(codes::type_mismatch, span, what)
      .expected(to_string(declared))
      .found(to_string(found))
      .help(
          "`?` is a data-dependent size: declare it as `?` here too, or leave the type "
          "out");
  return false;
}

// The function, with its body's type forgotten where the declared result is less precise.
NodeRef Inference::with_declared_result(const FunctionNode& original, const FunctionNode& typed) {
  const Type& declared = typed.ret_type;
  const Expr& body = typed.body;
  if (!declared || !body->type || body->type == declared ||
      structural_equal(body->type, declared) ||
      !says_enough(
          declared, body->type, place(original.body, original.span),
          "the body of a function is not of its result type: a size is not known before it runs")) {
    return ref(typed);
  }
  Var result = var("result", declared, body->span);
  auto* copy = new FunctionNode(typed);
  Function out(copy);
  copy->body = let(result, body, result, body->span);
  return out;
}

// Unification accepts `?` for any size; arguments of functions, and values that are written, must
// fit all the same.
void Inference::check_parts(const ExprNode& e) {
  auto* c = as<CallNode>(&e);
  if (c == nullptr ? e.kind() != ExprKind::RefWrite : isa<OpNode>(c->op)) return;
  if (diags_.has_errors()) return;
  try {
    deduce_type(e);
  } catch (const UserError& error) {
    for (const Diagnostic& d : error.diagnostics()) diags_.add(d);
  }
}

class Inference::Typed : public Rewriter {
 public:
  explicit Typed(Inference& inference) : Rewriter(kPrograms), inference_(inference) {}

  NodeRef pre(const NodeRef& node) override {
    if (auto* g = as<GlobalVarNode>(node)) return inference_.typed_global(*g);
    if (isa<OpNode>(node) || isa<ConstructorNode>(node)) return node;
    return nullptr;
  }

  NodeRef post(const NodeRef& original, NodeRef rebuilt) override {
    rebuilt = inference_.with_values(*original.get(), std::move(rebuilt));
    if (!isa<ExprNode>(rebuilt)) return rebuilt;
    auto& before = *static_cast<const ExprNode*>(original.get());
    Type t = inference_.final_type(before);
    auto& now = *static_cast<const ExprNode*>(rebuilt.get());
    bool same = now.type && t && (now.type == t || structural_equal(now.type, t));
    auto args = inference_.type_args_.find(original.get());
    if (auto* l = as<LetNode>(rebuilt)) {
      inference_.says_enough(
          l->var->type, l->value->type, place(as<LetNode>(original)->value, before.span),
          "the value is not of its variable's type: a size is not known before it runs");
    }
    if (same && (args == inference_.type_args_.end() ||
                 static_cast<const CallNode&>(now).type_args.size() == args->second.size())) {
      inference_.check_parts(now);
      auto* f = as<FunctionNode>(rebuilt);
      return f == nullptr ? rebuilt
                          : inference_.with_declared_result(*as<FunctionNode>(original), *f);
    }
    Node* copy = now.info().clone(now);
    NodeRef owner(copy);
    static_cast<ExprNode*>(copy)->type = t;
    if (copy->kind() == ExprKind::Var) static_cast<VarNode*>(copy)->type_annotation = t;
    if (copy->kind() == ExprKind::Function) {
      static_cast<FunctionNode*>(copy)->ret_type = as<FuncTypeNode>(t)->ret_type;
      return inference_.with_declared_result(*as<FunctionNode>(original), *as<FunctionNode>(copy));
    }
    if (args != inference_.type_args_.end()) {
      std::vector<Type>& out = static_cast<CallNode*>(copy)->type_args;
      out.clear();
      for (const Type& a : args->second) out.push_back(inference_.unifier_.resolve(a));
    }
    inference_.check_parts(*static_cast<const ExprNode*>(copy));
    return owner;
  }

 private:
  Inference& inference_;
};

NodeRef Inference::with_types(const NodeRef& root) { return Typed(*this).run(root); }

}  // namespace relay
