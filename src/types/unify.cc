#include "types/unify.h"

#include "node/structural.h"
#include "node/walk.h"

namespace relay {

Type Unifier::hole(const Span& span) { return incomplete_type(Kind::Type, span); }

NodeRef Unifier::flexible(const TypeVar& param, const Span& span) {
  if (param->kind == Kind::Type) return hole(span);
  TypeVar v = type_var(param->name_hint, param->kind);
  flexible_.insert(v.get());
  keep_.push_back(v);
  return v;
}

Type Unifier::shallow(Type t) const {
  while (isa<IncompleteTypeNode>(t)) {
    auto it = types_.find(t.get());
    if (it == types_.end()) break;
    t = it->second;
  }
  return t;
}

Dim Unifier::shallow(Dim d) const {
  while (auto* v = as<DimVarNode>(d)) {
    auto it = dims_.find(v->var.get());
    if (it == dims_.end()) break;
    d = it->second;
  }
  return d;
}

Type Unifier::resolve(const Type& t) {
  if (!t) return t;
  // What a hole stands for may hold further holes; each round fills one layer.
  Type at = t;
  while (true) {
    Type next = Type::unchecked(rewrite(at, [&](const NodeRef&, NodeRef rebuilt) -> NodeRef {
      if (isa<IncompleteTypeNode>(rebuilt)) return shallow(Type::unchecked(rebuilt));
      if (isa<DimVarNode>(rebuilt)) return shallow(Dim::unchecked(rebuilt));
      // A filled hole may let the expression fold.
      if (auto* op = as<DimOpNode>(rebuilt)) return dim_op(op->op, op->a, op->b);
      auto* tensor = as<TensorTypeNode>(rebuilt);
      if (tensor == nullptr) return rebuilt;
      auto shape = shapes_.find(tensor->shape_var.get());
      auto dtype = dtypes_.find(tensor->dtype_var.get());
      bool has_shape = tensor->shape_var && shape != shapes_.end();
      bool has_dtype = tensor->dtype_var && dtype != dtypes_.end();
      if (!has_shape && !has_dtype) return rebuilt;
      return make<TensorTypeNode>([&](TensorTypeNode& n) {
        n.shape = has_shape ? shape->second : tensor->shape;
        n.shape_var = has_shape ? nullptr : tensor->shape_var;
        n.dtype = has_dtype ? dtype->second : tensor->dtype;
        n.dtype_var = has_dtype ? nullptr : tensor->dtype_var;
      });
    }));
    if (next == at || structural_equal(next, at)) return at;
    at = next;
  }
}

bool Unifier::is_complete(const Type& t) {
  bool complete = true;
  post_order(t, [&](const Node& n) {
    complete &= !isa<IncompleteTypeNode>(&n) && !flexible_.contains(&n);
  });
  return complete;
}

bool Unifier::occurs(const Node* hole, const Type& t) {
  bool found = false;
  post_order(resolve(t), [&](const Node& n) { found |= &n == hole; });
  return found;
}

bool Unifier::unify_dim(const Dim& left, const Dim& right) {
  Dim a = shallow(left), b = shallow(right);
  if (a == b || is_any(a) || is_any(b)) return true;
  auto flexible_var = [&](const Dim& d) -> const Node* {
    auto* v = as<DimVarNode>(d);
    return v != nullptr && flexible_.contains(v->var.get()) ? v->var.get() : nullptr;
  };
  if (const Node* v = flexible_var(a)) {
    dims_[v] = b;
    return true;
  }
  if (const Node* v = flexible_var(b)) {
    dims_[v] = a;
    return true;
  }
  if (dim_equal(a, b)) return true;
  // Expressions over dimensions that are still open are not known to differ.
  bool open = false;
  for (const Dim& d : {a, b}) {
    post_order(d, [&](const Node& n) { open |= flexible_.contains(&n); });
  }
  return open;
}

bool Unifier::unify_tensor(const TensorTypeNode& a, const TensorTypeNode& b, std::string& why) {
  // dtypes
  auto dtype_of = [&](const TensorTypeNode& t) -> const Node* {
    if (!t.dtype_var || dtypes_.contains(t.dtype_var.get())) return nullptr;
    return t.dtype_var.get();
  };
  auto known_dtype = [&](const TensorTypeNode& t) {
    return t.dtype_var ? dtypes_.at(t.dtype_var.get()) : t.dtype;
  };
  const Node *x = dtype_of(a), *y = dtype_of(b);
  if (x != nullptr || y != nullptr) {
    if (x != y) {
      const Node* open = x != nullptr && flexible_.contains(x) ? x : y;
      const TensorTypeNode& other = open == x ? b : a;
      if (open == nullptr || !flexible_.contains(open) || dtype_of(other) != nullptr) {
        why = "the dtypes differ";
        return false;
      }
      dtypes_[open] = known_dtype(other);
    }
  } else if (!(known_dtype(a) == known_dtype(b))) {
    why = "the dtypes differ: " + known_dtype(a).to_string() + " and " + known_dtype(b).to_string();
    return false;
  }
  // shapes
  auto shape_hole = [&](const TensorTypeNode& t) -> const Node* {
    return t.shape_var && !shapes_.contains(t.shape_var.get()) ? t.shape_var.get() : nullptr;
  };
  auto shape_of = [&](const TensorTypeNode& t) -> const std::vector<Dim>& {
    return t.shape_var ? shapes_.at(t.shape_var.get()) : t.shape;
  };
  const Node *p = shape_hole(a), *q = shape_hole(b);
  if (p != nullptr || q != nullptr) {
    if (p == q) return true;
    const Node* open = p != nullptr && flexible_.contains(p) ? p : q;
    const TensorTypeNode& other = open == p ? b : a;
    if (open == nullptr || !flexible_.contains(open) || shape_hole(other) != nullptr) {
      why = "the shapes differ";
      return false;
    }
    shapes_[open] = shape_of(other);
    return true;
  }
  const std::vector<Dim>&s = shape_of(a), &t = shape_of(b);
  if (s.size() != t.size()) {
    why = "the ranks differ: " + std::to_string(s.size()) + " and " + std::to_string(t.size());
    return false;
  }
  for (size_t i = 0; i < s.size(); ++i) {
    if (!unify_dim(s[i], t[i])) {
      why = "dimension " + std::to_string(i) + " differs: " + to_string(shallow(s[i])) + " and " +
            to_string(shallow(t[i]));
      return false;
    }
  }
  return true;
}

bool Unifier::unify(const Type& left, const Type& right, std::string& why) {
  std::vector<std::pair<Type, Type>> stack{{left, right}};
  // Rigid variables of two function types that were matched with each other.
  std::unordered_map<const Node*, const Node*> rigid;
  while (!stack.empty()) {
    Type a = shallow(stack.back().first), b = shallow(stack.back().second);
    stack.pop_back();
    if (a == b) continue;
    auto bind = [&](const Type& hole, const Type& value) {
      if (occurs(hole.get(), value)) {
        why = "the type would contain itself";
        return false;
      }
      types_[hole.get()] = value;
      keep_.push_back(hole);
      return true;
    };
    if (isa<IncompleteTypeNode>(a) || isa<IncompleteTypeNode>(b)) {
      bool first = isa<IncompleteTypeNode>(a);
      if (!bind(first ? a : b, first ? b : a)) return false;
      continue;
    }
    if (a->kind() != b->kind()) {
      why = to_string(resolve(a)) + " is not " + to_string(resolve(b));
      return false;
    }
    switch (a->kind()) {
      case TypeKind::TensorType:
        if (!unify_tensor(*as<TensorTypeNode>(a), *as<TensorTypeNode>(b), why)) return false;
        break;
      case TypeKind::TupleType: {
        auto &x = as<TupleTypeNode>(a)->fields, &y = as<TupleTypeNode>(b)->fields;
        if (x.size() != y.size()) {
          why = "tuples of " + std::to_string(x.size()) + " and " + std::to_string(y.size()) +
                " fields";
          return false;
        }
        for (size_t i = 0; i < x.size(); ++i) stack.emplace_back(x[i], y[i]);
        break;
      }
      case TypeKind::FuncType: {
        auto *x = as<FuncTypeNode>(a), *y = as<FuncTypeNode>(b);
        if (x->arg_types.size() != y->arg_types.size() ||
            x->type_params.size() != y->type_params.size()) {
          why = "functions of " + std::to_string(x->arg_types.size()) + " and " +
                std::to_string(y->arg_types.size()) + " arguments";
          return false;
        }
        std::unordered_map<const Node*, NodeRef> rename;
        for (size_t i = 0; i < x->type_params.size(); ++i) {
          rename[y->type_params[i].get()] = x->type_params[i];
        }
        auto renamed = [&](const Type& t) { return Type::unchecked(substitute(t, rename)); };
        for (size_t i = 0; i < x->arg_types.size(); ++i) {
          stack.emplace_back(x->arg_types[i], renamed(y->arg_types[i]));
        }
        stack.emplace_back(x->ret_type, renamed(y->ret_type));
        break;
      }
      case TypeKind::RefType:
        stack.emplace_back(as<RefTypeNode>(a)->value, as<RefTypeNode>(b)->value);
        break;
      case TypeKind::TypeCall: {
        auto *x = as<TypeCallNode>(a), *y = as<TypeCallNode>(b);
        if (x->args.size() != y->args.size()) {
          why = to_string(resolve(a)) + " is not " + to_string(resolve(b));
          return false;
        }
        stack.emplace_back(x->func, y->func);
        for (size_t i = 0; i < x->args.size(); ++i) stack.emplace_back(x->args[i], y->args[i]);
        break;
      }
      default:
        if (!structural_equal(a, b)) {
          why = to_string(a) + " is not " + to_string(b);
          return false;
        }
    }
  }
  return true;
}

FuncType Unifier::instantiate(const FuncType& f, const Span& span, std::vector<Type>& args) {
  if (f->type_params.empty()) return f;
  std::unordered_map<const Node*, NodeRef> fresh;
  for (const TypeVar& p : f->type_params) {
    NodeRef v = flexible(p, span);
    args.push_back(Type::unchecked(v));
    fresh[p.get()] = v;
  }
  std::vector<Type> arg_types;
  for (const Type& a : f->arg_types) arg_types.push_back(Type::unchecked(substitute(a, fresh)));
  return func_type(std::move(arg_types), Type::unchecked(substitute(f->ret_type, fresh)));
}

}  // namespace relay
