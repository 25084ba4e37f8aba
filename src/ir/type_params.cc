#include "ir/type_params.h"

#include <unordered_set>

#include "base/budget.h"
#include "node/structural.h"
#include "node/walk.h"

namespace relay {
namespace {

constexpr uint32_t kTypes = family::type | family::dim;

const NodeRef* find(const TypeParams& values, const NodeRef& var) {
  auto it = var ? values.find(var.get()) : values.end();
  return it == values.end() ? nullptr : &it->second;
}

// What stands for a shape or base type, as an argument of a data type.
NodeRef as_argument(const NodeRef& value) {
  auto* t = as<TensorTypeNode>(value);
  if (t == nullptr) return value;
  if (t->shape_var) return t->shape_var;
  return t->dtype_var ? NodeRef(t->dtype_var) : value;
}

class Substitution : public Rewriter {
 public:
  explicit Substitution(const TypeParams& values) : Rewriter(kTypes), values_(values) {}

  NodeRef pre(const NodeRef& n) override {
    if (auto* d = as<DimVarNode>(n)) {
      const NodeRef* value = find(values_, d->var);
      return value == nullptr ? n : NodeRef(dim_argument(*value));
    }
    // Inside a tensor a shape or base type is no child that a tensor type can replace.
    auto* v = as<TypeVarNode>(n);
    if (v == nullptr) return nullptr;
    const NodeRef* value = find(values_, n);
    return value == nullptr || v->kind == Kind::Shape || v->kind == Kind::BaseType ? n : *value;
  }

  NodeRef post(const NodeRef& original, NodeRef rebuilt) override {
    if (auto* op = as<DimOpNode>(rebuilt)) {
      return rebuilt == original ? rebuilt : NodeRef(dim_op(op->op, op->a, op->b));
    }
    if (auto* call = as<TypeCallNode>(rebuilt)) {
      std::vector<NodeRef> parts = children_of(*call);
      for (NodeRef& part : parts) {
        if (const NodeRef* value = find(values_, part)) part = as_argument(*value);
      }
      return with_children(rebuilt, parts);
    }
    auto* t = as<TensorTypeNode>(rebuilt);
    if (t == nullptr) return rebuilt;
    const NodeRef *shape = find(values_, t->shape_var), *dtype = find(values_, t->dtype_var);
    if (shape == nullptr && dtype == nullptr) return rebuilt;
    return make<TensorTypeNode>([&](TensorTypeNode& made) {
      TensorType s = shape == nullptr ? TensorType(t) : tensor_argument(*shape);
      TensorType d = dtype == nullptr ? TensorType(t) : tensor_argument(*dtype);
      made.shape = s->shape;
      made.shape_var = s->shape_var;
      made.dtype = d->dtype;
      made.dtype_var = d->dtype_var;
    });
  }

 private:
  const TypeParams& values_;
};

class Solver {
 public:
  explicit Solver(const FuncTypeNode& f) {
    for (const TypeVar& p : f.type_params) params_.insert(p.get());
  }

  bool match(const Type& wanted, const Type& given) {
    push(wanted, given, !params_.empty());
    while (!stack_.empty()) {
      check_budget();
      Pair p = std::move(stack_.back());
      stack_.pop_back();
      if (!compare(p)) return false;
    }
    return true;
  }

  // Expressions over dimensions, once the dimensions that stand by themselves are known.
  bool finish() {
    for (const auto& [wanted, given] : expressions_) {
      Dim d = wanted;
      for (const Node* open = unknown_in(d); open != nullptr; open = unknown_in(d)) {
        Dim value = solve(d, given);
        if (!value) break;
        values_[open] = value;
        d = applied(wanted);
      }
      d = applied(wanted);
      if (unknown_in(d) == nullptr && !agree(d, given)) return false;
    }
    return true;
  }

  TypeParams take() { return std::move(values_); }

 private:
  // `open`: the parameters in `wanted` are those to be solved, and not a caller's own.
  struct Pair {
    NodeRef wanted, given;
    bool open;
  };

  void push(const NodeRef& wanted, const NodeRef& given, bool open) {
    stack_.push_back({wanted, given, open});
  }

  bool is_param(const NodeRef& n, bool open) const {
    return open && n && params_.contains(n.get());
  }

  // Binds a parameter, or compares with what it is bound to.
  void bind(const NodeRef& param, const NodeRef& value) {
    auto [it, fresh] = values_.emplace(param.get(), value);
    if (!fresh) push(it->second, value, false);
  }

  // A known size may be given where `?` is wanted. The other way, and for sizes that are not known
  // to be equal, inference has decided where there are parameters.
  bool agree(const Dim& wanted, const Dim& given) const {
    if (is_any(wanted) || dim_equal(wanted, given)) return true;
    return !params_.empty() && !dim_differs(wanted, given);
  }

  bool compare(const Pair& p) {
    const auto& [wanted, given, open] = p;
    if (wanted == given && !open) return true;
    if (Dim d = dim_argument(wanted), e = dim_argument(given); d && e) return dims(d, e, open);
    auto* var = as<TypeVarNode>(wanted);
    if (is_param(wanted, open) && var->kind == Kind::Type) {
      bind(wanted, given);
      return true;
    }
    if (TensorType t = tensor_argument(wanted), s = tensor_argument(given); t && s) {
      return tensors(*t.get(), *s.get(), open, var);
    }
    // `?` forgets a size of a value, not of what a reference or a function takes.
    if (params_.empty() && !isa<TupleTypeNode>(wanted)) return structural_equal(wanted, given);
    // Holes are for inference to fill.
    if (isa<IncompleteTypeNode>(wanted) || isa<IncompleteTypeNode>(given)) return true;
    if (wanted.get()->kind() != given.get()->kind()) return false;
    // Shared parts are compared once.
    if (!met_[open].insert({wanted.get(), given.get()}).second) return true;
    keep_.push_back(wanted);
    keep_.push_back(given);
    auto *f = as<FuncTypeNode>(wanted), *g = as<FuncTypeNode>(given);
    if (f != nullptr && !f->type_params.empty()) {
      if (f->type_params.size() != g->type_params.size()) return false;
      TypeParams renamed;
      for (size_t i = 0; i < f->type_params.size(); ++i) {
        if (f->type_params[i]->kind != g->type_params[i]->kind) return false;
        renamed[g->type_params[i].get()] = f->type_params[i];
      }
      std::vector<Type> args;
      for (const Type& a : g->arg_types) args.push_back(with_type_params(a, renamed));
      push(func_type(f->arg_types, f->ret_type),
           func_type(std::move(args), with_type_params(g->ret_type, renamed)), open);
      return true;
    }
    std::vector<NodeRef> parts = children_of(*wanted.get()), others = children_of(*given.get());
    if (parts.empty() || parts.size() != others.size()) return structural_equal(wanted, given);
    if (f != nullptr && f->arg_types.size() != g->arg_types.size()) return false;
    for (size_t i = parts.size(); i-- > 0;) push(parts[i], others[i], open);
    return true;
  }

  bool dims(const Dim& wanted, const Dim& given, bool open) {
    auto* v = as<DimVarNode>(wanted);
    if (v != nullptr && is_param(v->var, open)) {
      bind(v->var, given);
      return true;
    }
    if (open && isa<DimOpNode>(wanted)) {
      expressions_.emplace_back(wanted, given);
      return true;
    }
    return agree(wanted, given);
  }

  // `var` is the type argument that stands for `wanted`, null for a tensor.
  bool tensors(const TensorTypeNode& wanted, const TensorTypeNode& given, bool open,
               const TypeVarNode* var) {
    if (var == nullptr || var->kind == Kind::BaseType) {
      if (is_param(wanted.dtype_var, open)) {
        bind(wanted.dtype_var, make<TensorTypeNode>([&](TensorTypeNode& n) {
               n.dtype = given.dtype;
               n.dtype_var = given.dtype_var;
             }));
      } else if (!(wanted.dtype_var == given.dtype_var) ||
                 (!wanted.dtype_var && !(wanted.dtype == given.dtype))) {
        return false;
      }
    }
    if (var != nullptr && var->kind == Kind::BaseType) return true;
    if (is_param(wanted.shape_var, open)) {
      bind(wanted.shape_var, make<TensorTypeNode>([&](TensorTypeNode& n) {
             n.shape = given.shape;
             n.shape_var = given.shape_var;
           }));
      return true;
    }
    if (wanted.shape_var || given.shape_var) return wanted.shape_var == given.shape_var;
    if (wanted.shape.size() != given.shape.size()) return false;
    for (size_t i = 0; i < wanted.shape.size(); ++i) {
      if (!dims(wanted.shape[i], given.shape[i], open)) return false;
    }
    return true;
  }

  Dim applied(const Dim& d) const {
    return dim_argument(with_type_params(Type::unchecked(d), values_));
  }

  const Node* unknown_in(const Dim& d) const {
    const Node* found = nullptr;
    post_order(d, [&](const Node& n) {
      if (params_.contains(&n) && !values_.contains(&n)) found = &n;
    });
    return found;
  }

  // `wanted` has one answer when it is a parameter plus, or times, a constant; null otherwise.
  static Dim solve(const Dim& wanted, const Dim& given) {
    if (isa<DimVarNode>(wanted)) return given;
    auto* op = as<DimOpNode>(wanted);
    if (op == nullptr) return nullptr;
    if (op->op == DimOpKind::Add && isa<DimVarNode>(op->a) && as_const(op->b)) return given - op->b;
    auto factor = as_const(op->a), total = as_const(given);
    bool whole = op->op == DimOpKind::Mul && factor && total && *factor != 0;
    return whole && isa<DimVarNode>(op->b) && *total % *factor == 0 ? dim(*total / *factor)
                                                                    : nullptr;
  }

  struct PairHash {
    size_t operator()(const std::pair<const Node*, const Node*>& p) const {
      return hash_combine(reinterpret_cast<uintptr_t>(p.first),
                          reinterpret_cast<uintptr_t>(p.second));
    }
  };

  std::unordered_set<const Node*> params_;
  TypeParams values_;
  std::vector<Pair> stack_;
  std::vector<std::pair<Dim, Dim>> expressions_;
  std::unordered_set<std::pair<const Node*, const Node*>, PairHash> met_[2];
  std::vector<NodeRef> keep_;  // `met_` goes by address
};

}  // namespace

Dim dim_argument(const NodeRef& t) {
  if (isa<DimNode>(t)) return Dim::unchecked(t);
  auto* v = as<TypeVarNode>(t);
  return v != nullptr && v->kind == Kind::Dim ? dim(TypeVar(v)) : nullptr;
}

TensorType tensor_argument(const NodeRef& t) {
  if (auto* tensor = as<TensorTypeNode>(t)) return TensorType(tensor);
  auto* v = as<TypeVarNode>(t);
  if (v == nullptr || (v->kind != Kind::Shape && v->kind != Kind::BaseType)) return nullptr;
  return make<TensorTypeNode>([&](TensorTypeNode& made) {
    (v->kind == Kind::Shape ? made.shape_var : made.dtype_var) = TypeVar(v);
  });
}

Type with_type_params(const Type& type, const TypeParams& values) {
  return values.empty() ? type : Type::unchecked(Substitution(values).run(type));
}

std::optional<TypeParams> solve_type_params(const FuncTypeNode& f, std::span<const Type> given,
                                            size_t* misfit) {
  Solver solver(f);
  for (size_t i = 0; i < given.size(); ++i) {
    if (misfit != nullptr) *misfit = i;
    if (!solver.match(f.arg_types[i], given[i])) return std::nullopt;
  }
  if (!solver.finish()) return std::nullopt;
  return solver.take();
}

}  // namespace relay
