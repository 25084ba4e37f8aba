#include "types/unify.h"
#include "base/quantities.h"

#include <set>
#include <utility>

#include "base/budget.h"
#include "ir/type_params.h"
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

// ---- The values of holes

Type Unifier::shallow(Type t) {
  std::vector<const Node*> path;
  while (isa<IncompleteTypeNode>(t)) {
    const Type* known = types_.find(t.get());
    if (known == nullptr) break;
    path.push_back(t.get());
    t = Type(*known);
  }
  // Later questions take one step.
  for (const Node* n : path) types_[n] = t;
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

Unifier::ShapeTerm Unifier::shape_of(const TensorTypeNode& t) const {
  ShapeTerm s{t.shape, t.shape_var};
  while (s.var) {
    auto it = shapes_.find(s.var.get());
    if (it == shapes_.end()) break;
    s = ShapeTerm(it->second);
  }
  return s;
}

Unifier::DTypeTerm Unifier::dtype_of(const TensorTypeNode& t) const {
  DTypeTerm d{t.dtype, t.dtype_var};
  while (d.var) {
    auto it = dtypes_.find(d.var.get());
    if (it == dtypes_.end()) break;
    d = DTypeTerm(it->second);
  }
  return d;
}

NodeRef Unifier::head(NodeRef n) {
  if (isa<IncompleteTypeNode>(n)) n = shallow(Type::unchecked(n));
  if (isa<DimVarNode>(n)) return shallow(Dim::unchecked(n));
  if (isa<TypeVarNode>(n) && is_flexible(n)) {
    // An argument of a data type.
    if (Dim d = dim_argument(Type::unchecked(n))) {
      d = shallow(d);
      auto* var = as<DimVarNode>(d);
      return var == nullptr ? NodeRef(d) : NodeRef(var->var);
    }
    if (shapes_.contains(n.get()) || dtypes_.contains(n.get()))
      n = tensor_argument(Type::unchecked(n));
  }
  auto* t = as<TensorTypeNode>(n);
  if (t == nullptr) return n;
  bool open = (t->shape_var && shapes_.contains(t->shape_var.get())) ||
              (t->dtype_var && dtypes_.contains(t->dtype_var.get()));
  if (!open) return n;
  ShapeTerm s = shape_of(*t);
  DTypeTerm d = dtype_of(*t);
  return make<TensorTypeNode>([&](TensorTypeNode& made) {
    made.shape = std::move(s.dims);
    made.shape_var = std::move(s.var);
    made.dtype = d.dtype;
    made.dtype_var = std::move(d.var);
  });
}

NodeRef Unifier::resolve_node(const NodeRef& root, bool& complete) {
  struct Frame {
    NodeRef original;
    NodeRef now;
    std::vector<NodeRef> children;
    size_t next = 0;
    bool complete = true;
  };
  // Nodes that still have holes are cached for this call only.
  NodeMap<NodeRef> incomplete;
  std::vector<Frame> stack;
  NodeRef result;
  auto known = [&](const Node* n) {
    if (const Resolved* whole = complete_.find(n)) {
      result = whole->value;
      complete = true;
      return true;
    }
    const NodeRef* open = incomplete.find(n);
    if (open == nullptr) return false;
    result = *open;
    complete = false;
    return true;
  };
  auto enter = [&](const NodeRef& n) {
    NodeRef now = head(n);
    std::vector<NodeRef> children = children_of(*now.get());
    bool whole = !isa<IncompleteTypeNode>(now) && !is_flexible(now);
    stack.push_back({n, std::move(now), std::move(children), 0, whole});
  };
  if (known(root.get())) return result;
  enter(root);
  while (!stack.empty()) {
    check_budget();
    Frame& f = stack.back();
    if (f.next < f.children.size()) {
      NodeRef child = f.children[f.next];
      if (!child) {
        ++f.next;
      } else if (known(child.get())) {
        f.complete &= complete;
        f.children[f.next++] = result;
      } else {
        enter(child);
      }
      continue;
    }
    // A filled hole may let the expression fold.
    auto* op = as<DimOpNode>(f.now);
    result =
        op == nullptr
            ? with_children(f.now, f.children)
            : NodeRef(dim_op(op->op, Dim::unchecked(f.children[0]), Dim::unchecked(f.children[1])));
    complete = f.complete;
    if (complete) {
      complete_[f.original.get()] = {f.original, result};
      complete_[result.get()] = {result, result};
    } else {
      incomplete[f.original.get()] = result;
    }
    stack.pop_back();
  }
  known(root.get());
  return result;
}

Type Unifier::resolve(const Type& t) {
  bool complete = false;
  return t ? Type::unchecked(resolve_node(t, complete)) : t;
}

bool Unifier::is_complete(const Type& t) {
  bool complete = false;
  resolve_node(t, complete);
  return complete;
}

std::vector<const Node*> Unifier::open_parts(const Type& t) {
  std::vector<const Node*> out;
  post_order(resolve(t), [&](const Node& n) {
    if (isa<IncompleteTypeNode>(&n) || flexible_.contains(&n)) out.push_back(&n);
  });
  return out;
}

Span Unifier::filled_at(const Type& hole) const {
  const Span* where = filled_at_.find(hole.get());
  return where == nullptr ? Span() : *where;
}

bool Unifier::occurs(const Node* hole, const NodeRef& in) {
  NodeSet seen;
  std::vector<NodeRef> keep;  // `seen` is keyed by address
  std::vector<NodeRef> stack{in};
  while (!stack.empty()) {
    check_budget();
    NodeRef n = head(std::move(stack.back()));
    stack.pop_back();
    if (n.get() == hole) return true;
    if (complete_.contains(n.get()) || !seen.insert(n.get())) continue;
    keep.push_back(n);
    for_each_child(*n.get(), [&](const NodeRef& child) { stack.push_back(child); });
  }
  return false;
}

// ---- Unification

bool Unifier::unify_dim(const Dim& left, const Dim& right) {
  Dim a = shallow(left), b = shallow(right);
  if (a == b) return true;
  auto solve = [&](const Dim& open, const Dim& value) {
    auto* v = as<DimVarNode>(open);
    if (v == nullptr || !is_flexible(v->var) || occurs(v->var.get(), value)) return false;
    dims_[v->var.get()] = value;
    filled_.push_back(v->var.get());
    return true;
  };
  if (solve(a, b) || solve(b, a) || is_any(a) || is_any(b)) return true;
  bool complete_a = false, complete_b = false;
  a = Dim::unchecked(resolve_node(a, complete_a));
  b = Dim::unchecked(resolve_node(b, complete_b));
  if (dim_equal(a, b)) return true;
  if (complete_a && complete_b) return false;
  // x + 1 = 4 has one answer.
  for (auto [open, value] : {std::pair(a, b), std::pair(b, a)}) {
    auto* op = as<DimOpNode>(open);
    if (op == nullptr) continue;
    bool sum = op->op == DimOpKind::Add, product = op->op == DimOpKind::Mul;
    bool second = as_const(op->b).has_value();
    auto constant = as_const(second ? op->b : op->a), total = as_const(value);
    if ((!sum && !product) || !constant || !total) continue;
    if (product && (*constant == 0 || *total % *constant != 0)) return false;
    Dim rest = sum ? value - dim(*constant) : dim(*total / *constant);
    return unify_dim(second ? op->a : op->b, rest);
  }
  // Expressions over dimensions that are still open are not known to differ.
  return !dim_differs(a, b);
}

bool Unifier::unify_tensor(const TensorTypeNode& a, const TensorTypeNode& b, Clash& clash) {
  auto name = [](const DTypeTerm& d) { return d.var ? d.var->name_hint : d.dtype.to_string(); };
  DTypeTerm x = dtype_of(a), y = dtype_of(b);
  bool same = x.var || y.var ? x.var == y.var : x.dtype == y.dtype;
  if (!same) {
    bool first = is_flexible(x.var);
    if (!first && !is_flexible(y.var)) {
      clash.why = "the dtypes differ: " + name(x) + " and " + name(y);
      return false;
    }
    const Node* open = first ? x.var.get() : y.var.get();
    dtypes_[open] = first ? y : x;
    filled_.push_back(open);
  }
  ShapeTerm s = shape_of(a), t = shape_of(b);
  if (s.var || t.var) {
    if (s.var == t.var) return true;
    bool first = is_flexible(s.var);
    if (!first && !is_flexible(t.var)) {
      clash.why = "a shape that the caller picks, " + (s.var ? s.var : t.var)->name_hint +
                  ", is not any other shape";
      return false;
    }
    const Node* open = first ? s.var.get() : t.var.get();
    shapes_[open] = first ? t : s;
    filled_.push_back(open);
    return true;
  }
  if (s.dims.size() != t.dims.size()) {
    clash.why = "the ranks differ: " + std::to_string(s.dims.size()) + " and " +
                std::to_string(t.dims.size());
    return false;
  }
  for (size_t i = 0; i < s.dims.size(); ++i) {
    if (!unify_dim(s.dims[i], t.dims[i])) {
      clash.why = "dimension " + std::to_string(i) + " differs: " + to_string(shallow(s.dims[i])) +
                  " and " + to_string(shallow(t.dims[i]));
      return false;
    }
  }
  return true;
}

bool Unifier::bind(const Type& hole, const Type& value, const Span& where, Clash& clash) {
  if (!is_complete(value) && occurs(hole.get(), value)) {
    clash.infinite = true;
    return false;
  }
  types_[hole.get()] = value;
  if (where) filled_at_[hole.get()] = where;
  filled_.push_back(hole.get());
  keep_.push_back(hole);
  return true;
}

bool Unifier::unify(const Type& left, const Type& right, const Span& where, Clash& clash) {
  std::vector<std::pair<Type, Type>> stack{{left, right}};
  // Shared parts are compared once.
  std::set<std::pair<Type, Type>, decltype([](const auto& p, const auto& q) {
             return std::pair(p.first.get(), p.second.get()) <
                    std::pair(q.first.get(), q.second.get());
           })>
      met;
  auto differ = [&](const Type& a, const Type& b) {
    auto *x = as<TypeVarNode>(a), *y = as<TypeVarNode>(b);
    clash.why = to_string(resolve(a)) + " is not " + to_string(resolve(b));
    if (x != nullptr || y != nullptr) {
      clash.why = "the caller picks " + (x != nullptr ? x : y)->name_hint + ", so " + clash.why;
    }
    return false;
  };
  while (!stack.empty()) {
    check_budget();
    Type a = shallow(stack.back().first), b = shallow(stack.back().second);
    stack.pop_back();
    if (a == b) continue;
    if (isa<IncompleteTypeNode>(a) || isa<IncompleteTypeNode>(b)) {
      bool first = isa<IncompleteTypeNode>(a);
      if (!bind(first ? a : b, first ? b : a, where, clash)) return false;
      continue;
    }
    if (dim_argument(a) && dim_argument(b)) {
      if (!unify_dim(dim_argument(a), dim_argument(b))) return differ(a, b);
      continue;
    }
    if (TensorType x = tensor_argument(a), y = tensor_argument(b); x && y) {
      if (!unify_tensor(*x.get(), *y.get(), clash)) return false;
      continue;
    }
    if (a->kind() != b->kind()) return differ(a, b);
    if (!met.emplace(a, b).second) continue;
    switch (a->kind()) {
      case TypeKind::TupleType: {
        auto &x = as<TupleTypeNode>(a)->fields, &y = as<TupleTypeNode>(b)->fields;
        if (x.size() != y.size()) {
          clash.why =
              "tuples of " + std::to_string(x.size()) + " and " + counted(y.size(), "field");
          return false;
        }
        for (size_t i = x.size(); i-- > 0;) stack.emplace_back(x[i], y[i]);
        break;
      }
      case TypeKind::FuncType: {
        auto *x = as<FuncTypeNode>(a), *y = as<FuncTypeNode>(b);
        if (x->arg_types.size() != y->arg_types.size()) {
          clash.why = "functions of " + std::to_string(x->arg_types.size()) + " and " +
                      counted(y->arg_types.size(), "argument");
          return false;
        }
        bool same_params = x->type_params.size() == y->type_params.size();
        std::unordered_map<const Node*, NodeRef> rename;
        for (size_t i = 0; same_params && i < x->type_params.size(); ++i) {
          same_params = x->type_params[i]->kind == y->type_params[i]->kind;
          rename[y->type_params[i].get()] = x->type_params[i];
        }
        if (!same_params) {
          clash.why = "the functions have different type parameters";
          return false;
        }
        auto renamed = [&](const Type& t) { return Type::unchecked(substitute(t, rename)); };
        stack.emplace_back(x->ret_type, renamed(y->ret_type));
        for (size_t i = x->arg_types.size(); i-- > 0;) {
          stack.emplace_back(x->arg_types[i], renamed(y->arg_types[i]));
        }
        break;
      }
      case TypeKind::RefType:
        stack.emplace_back(as<RefTypeNode>(a)->value, as<RefTypeNode>(b)->value);
        break;
      case TypeKind::TypeCall: {
        auto *x = as<TypeCallNode>(a), *y = as<TypeCallNode>(b);
        if (x->args.size() != y->args.size() || !structural_equal(x->func, y->func)) {
          return differ(a, b);
        }
        for (size_t i = x->args.size(); i-- > 0;) stack.emplace_back(x->args[i], y->args[i]);
        break;
      }
      default:
        if (!structural_equal(a, b)) return differ(a, b);
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
