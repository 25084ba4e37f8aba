#include "types/kinds.h"

#include <unordered_map>

#include "base/codes/types.h"
#include "node/node_map.h"
#include "node/walk.h"

namespace relay {
namespace {

const char* described(Kind kind) {
  switch (kind) {
    case Kind::Type:
      return "a type";
    case Kind::BaseType:
      return "a base type";
    case Kind::Shape:
      return "a shape";
    case Kind::Dim:
      return "a dimension";
    default:
      return "something else";
  }
}

const char* advice(Kind found) {
  switch (found) {
    case Kind::Dim:
      return "a dimension belongs into a shape: Tensor[(n, 4), float32]";
    case Kind::Shape:
      return "a shape belongs into a tensor: Tensor[s, float32]";
    case Kind::BaseType:
      return "a base type belongs into a tensor: Tensor[(2, 3), t]";
    default:
      return "declare the variable with its kind: [n: Dim], [s: Shape], [t: BaseType]";
  }
}

class KindChecker {
 public:
  KindChecker(const Module& mod, Diagnostics& diags) : mod_(mod), diags_(diags) {}

  void definitions() {
    for (const TypeData& t : mod_->type_definitions) {
      for (const TypeVar& v : t->type_vars) declared_.emplace(v.get(), t->span);
      for (const Constructor& c : t->constructors) {
        for (const Type& input : c->inputs) check(input, c->span, "a field of " + c->name_hint);
      }
    }
  }

  void program(const Expr& e) {
    post_order(
        e,
        [&](const Node& n) {
          if (auto* f = as<FunctionNode>(&n)) {
            for (const TypeVar& v : f->type_params) declared_.emplace(v.get(), f->span);
          }
        },
        family::program);
    post_order(
        e,
        [&](const Node& n) {
          if (auto* v = as<VarNode>(&n)) {
            if (v->type_annotation) check(v->type_annotation, v->span, "%" + v->name_hint);
          } else if (auto* f = as<FunctionNode>(&n)) {
            if (f->ret_type) check(f->ret_type, f->span, "the result");
          }
        },
        family::program);
  }

 private:
  void check(const Type& type, const Span& span, const std::string& whose) {
    std::vector<std::pair<const Node*, Kind>> stack{{type.get(), Kind::Type}};
    while (!stack.empty()) {
      auto [n, expected] = stack.back();
      stack.pop_back();
      if (n == nullptr || (expected == Kind::Type && !checked_.insert(n))) continue;
      if (auto* v = as<TypeVarNode>(n)) {
        if (v->kind != expected) wrong_kind(*v, expected, span, whose);
      } else if (auto* d = as<DimVarNode>(n)) {
        if (d->var->kind != Kind::Dim) wrong_kind(*d->var.get(), Kind::Dim, span, whose);
      } else if (auto* t = as<TensorTypeNode>(n)) {
        tensor(*t, expected, span, whose, stack);
      } else if (auto* c = as<TypeCallNode>(n)) {
        if (expected != Kind::Type) not_a_type_argument(*c, expected, span, whose);
        data_type(*c, span, whose, stack);
      } else if (!isa<DimNode>(n) || expected != Kind::Dim) {
        if (expected != Kind::Type && !isa<IncompleteTypeNode>(n)) {
          not_a_type_argument(*n, expected, span, whose);
        }
        for_each_child(*n, [&](const NodeRef& child) {
          if (!isa<TypeVarNode>(child) || !is_binder(*n, child.get())) {
            stack.emplace_back(child.get(), Kind::Type);
          }
        });
      }
    }
  }

  static bool is_binder(const Node& n, const Node* child) {
    auto* f = as<FuncTypeNode>(&n);
    if (f == nullptr) return false;
    for (const TypeVar& v : f->type_params) {
      if (v.get() == child) return true;
    }
    return false;
  }

  void tensor(const TensorTypeNode& t, Kind expected, const Span& span, const std::string& whose,
              std::vector<std::pair<const Node*, Kind>>& stack) {
    // As an argument of a data type a base type is the scalar of that type, a shape a tensor
    // without a base type.
    bool scalar = t.shape.empty() && !t.shape_var;
    bool shape = t.dtype == DType() && !t.dtype_var;
    if (expected != Kind::Type && !(expected == Kind::BaseType && scalar) &&
        !(expected == Kind::Shape && shape)) {
      not_a_type_argument(t, expected, span, whose);
      return;
    }
    for (const Dim& d : t.shape) {
      post_order(d, [&](const Node& part) {
        if (isa<DimVarNode>(&part)) stack.emplace_back(&part, Kind::Dim);
      });
    }
    if (t.shape_var) stack.emplace_back(t.shape_var.get(), Kind::Shape);
    if (t.dtype_var) stack.emplace_back(t.dtype_var.get(), Kind::BaseType);
  }

  void data_type(const TypeCallNode& c, const Span& span, const std::string& whose,
                 std::vector<std::pair<const Node*, Kind>>& stack) {
    auto* name = as<GlobalTypeVarNode>(c.func);
    TypeData type = name == nullptr || !mod_ ? nullptr : mod_->find_type(name->name_hint);
    if (!type) return;
    if (type->type_vars.size() != c.args.size()) {
      std::string pattern = name->name_hint;
      for (const TypeVar& v : type->type_vars) {
        pattern += (v == type->type_vars.front() ? "[" : ", ") + v->name_hint;
      }
      if (!type->type_vars.empty()) pattern += "]";
      Diagnostic& d = error(span, whose, name->name_hint + " takes " + count(*type));
      d.expected(pattern).found(to_string(Type(&c)));
      d.note(type->span, name->name_hint + " is defined here");
      return;
    }
    for (size_t i = 0; i < c.args.size(); ++i) {
      stack.emplace_back(c.args[i].get(), type->type_vars[i]->kind);
    }
  }

  static std::string count(const TypeDataNode& type) {
    size_t n = type.type_vars.size();
    return n == 0 ? "no type arguments"
                  : std::to_string(n) + (n == 1 ? " type argument" : " type arguments");
  }

  Diagnostic& error(const Span& span, const std::string& whose, const std::string& message) {
    return diags_.error(codes::type_kind, span, "in the type of " + whose + ": " + message);
  }

  void wrong_kind(const TypeVarNode& v, Kind expected, const Span& span, const std::string& whose) {
    Diagnostic& d = error(
        span, whose,
        v.name_hint + " stands for " + described(v.kind) + ", not for " + described(expected));
    d.expected(described(expected)).found(v.name_hint + ": " + std::string(to_string(v.kind)));
    d.help(advice(v.kind));
    auto it = declared_.find(&v);
    if (it != declared_.end()) d.note(it->second, v.name_hint + " is declared here");
  }

  void not_a_type_argument(const Node& found, Kind expected, const Span& span,
                           const std::string& whose) {
    error(span, whose, std::string("a type argument must be ") + described(expected))
        .expected(described(expected))
        .found(to_string(Type::unchecked(NodeRef(&found))));
  }

  const Module& mod_;
  Diagnostics& diags_;
  std::unordered_map<const Node*, Span> declared_;
  NodeSet checked_;
};

}  // namespace

void check_kinds(const Module& mod, Diagnostics& diags) {
  KindChecker checker(mod, diags);
  checker.definitions();
  for (const Function& f : mod->functions) checker.program(f);
}

void check_kinds(const Expr& expr, const Module& mod, Diagnostics& diags) {
  KindChecker(mod, diags).program(expr);
}

}  // namespace relay
