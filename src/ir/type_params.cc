#include "ir/type_params.h"

#include <algorithm>
#include <unordered_set>

#include "base/budget.h"
#include "ir/attrs.h"
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
  explicit Substitution(const TypeParams& values, uint32_t families = kTypes)
      : Rewriter(families), values_(values) {}

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
    push({wanted, given, !params_.empty(), Use::kTaken, true});
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
    for (const NodeRef& part : met_again_) {
      if (has_unknown_size(part)) return false;
    }
    for (const auto& [wanted, given] : expressions_) {
      if (has_unknown_size(wanted)) return false;
      Dim d = wanted;
      for (const Node* open = unknown_in(d); open != nullptr; open = unknown_in(d)) {
        Dim value = solve(d, given);
        if (!value) break;
        values_[open] = value;
        d = applied(wanted);
      }
      d = applied(wanted);
      if (unknown_in(d) == nullptr && !agree(d, given, Use::kTaken)) return false;
    }
    return true;
  }

  TypeParams take() { return std::move(values_); }

 private:
  // How the given value is used where the wanted type stands: it is taken from there, as an argument
  // is; it is put there, as what a function that is given will take; or both, as with a reference.
  // A data type may do either with what its parameters stand for.
  enum class Use { kTaken, kPut, kBoth };

  // `open`: the parameters in `wanted` are those to be solved, and not a caller's own. `single`: one
  // value has the type, and not each element of a list or each result of a function.
  struct Pair {
    NodeRef wanted, given;
    bool open;
    Use use;
    bool single;
  };

  void push(Pair p) { stack_.push_back(std::move(p)); }

  bool is_param(const NodeRef& n, bool open) const {
    return open && n && params_.contains(n.get());
  }

  static bool has_any(const NodeRef& value) {
    if (Dim d = dim_argument(value)) return is_any(d);
    auto* t = as<TensorTypeNode>(value);
    return t != nullptr && std::any_of(t->shape.begin(), t->shape.end(), is_any);
  }

  // Binds a parameter, or compares with what it is bound to. A dimension, or a shape, is the same
  // wherever its name stands; a `?` is known to be that only where it is the one place of the name,
  // and there is one value.
  bool bind(const TypeVar& param, const NodeRef& value, const Pair& p) {
    auto [it, fresh] = values_.emplace(param.get(), value);
    bool size = param->kind == Kind::Dim || param->kind == Kind::Shape;
    if (fresh) {
      if (!size || !has_any(value)) return true;
      unknown_sizes_.insert(param.get());
      return p.single;
    }
    if (size && (has_any(it->second) || has_any(value))) return false;
    push({it->second, value, false, p.use, p.single});
    return true;
  }

  // Whether a parameter that stands for a size that only a run tells is in the type.
  bool has_unknown_size(const NodeRef& type) const {
    bool found = false;
    if (unknown_sizes_.empty()) return found;
    post_order(type, [&](const Node& n) { found |= unknown_sizes_.contains(&n); });
    return found;
  }

  // A known size may be given where `?` is wanted, not the other way. Of sizes that are not known to
  // be equal inference has decided where there are parameters.
  bool agree(const Dim& wanted, const Dim& given, Use use) const {
    if (is_any(wanted) && is_any(given)) return true;
    if (is_any(wanted)) return use == Use::kTaken;
    if (is_any(given)) return use == Use::kPut;
    return dim_equal(wanted, given) || (!params_.empty() && !dim_differs(wanted, given));
  }

  bool compare(const Pair& p) {
    const auto& [wanted, given, open, use, single] = p;
    if (wanted == given && !open) return true;
    if (Dim d = dim_argument(wanted), e = dim_argument(given); d && e) return dims(d, e, p);
    auto* var = as<TypeVarNode>(wanted);
    if (is_param(wanted, open) && var->kind == Kind::Type) return bind(TypeVar(var), given, p);
    if (TensorType t = tensor_argument(wanted), s = tensor_argument(given); t && s) {
      return tensors(*t.get(), *s.get(), p, var);
    }
    // Holes are for inference to fill.
    if (isa<IncompleteTypeNode>(wanted) || isa<IncompleteTypeNode>(given)) return true;
    // `?` forgets a size of a value, not of what a reference or a function takes.
    if (params_.empty() && !isa<TupleTypeNode>(wanted)) return structural_equal(wanted, given);
    if (wanted.get()->kind() != given.get()->kind()) return false;
    // Shared parts are compared once.
    if (!met_[open][static_cast<int>(use)].insert({wanted.get(), given.get()}).second) {
      if (open) met_again_.push_back(wanted);
      return true;
    }
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
      push({func_type(f->arg_types, f->ret_type),
            func_type(std::move(args), with_type_params(g->ret_type, renamed)), open, use, single});
      return true;
    }
    std::vector<NodeRef> parts = children_of(*wanted.get()), others = children_of(*given.get());
    if (parts.empty() || parts.size() != others.size()) return structural_equal(wanted, given);
    if (f != nullptr) {
      if (f->arg_types.size() != g->arg_types.size()) return false;
      Use turned = use == Use::kTaken ? Use::kPut : use == Use::kPut ? Use::kTaken : use;
      push({f->ret_type, g->ret_type, open, use, false});
      for (size_t i = f->arg_types.size(); i-- > 0;) {
        push({f->arg_types[i], g->arg_types[i], open, turned, false});
      }
      return true;
    }
    bool tuple = isa<TupleTypeNode>(wanted);
    for (size_t i = parts.size(); i-- > 0;) {
      // A size that is an argument of a data type is one for all that the value holds.
      auto* parameter = as<TypeVarNode>(parts[i]);
      bool size = isa<DimNode>(parts[i]) || (parameter != nullptr && parameter->kind != Kind::Type);
      push({parts[i], others[i], open, tuple ? use : Use::kBoth, single && (tuple || size)});
    }
    return true;
  }

  bool dims(const Dim& wanted, const Dim& given, const Pair& p) {
    auto* v = as<DimVarNode>(wanted);
    if (v != nullptr && is_param(v->var, p.open)) return bind(v->var, given, p);
    if (p.open && isa<DimOpNode>(wanted)) {
      expressions_.emplace_back(wanted, given);
      return true;
    }
    return agree(wanted, given, p.use);
  }

  // `var` is the type argument that stands for `wanted`, null for a tensor.
  bool tensors(const TensorTypeNode& wanted, const TensorTypeNode& given, const Pair& p,
               const TypeVarNode* var) {
    if (var == nullptr || var->kind == Kind::BaseType) {
      if (is_param(wanted.dtype_var, p.open)) {
        auto dtype = make<TensorTypeNode>([&](TensorTypeNode& n) {
          n.dtype = given.dtype;
          n.dtype_var = given.dtype_var;
        });
        if (!bind(wanted.dtype_var, dtype, p)) return false;
      } else if (!(wanted.dtype_var == given.dtype_var) ||
                 (!wanted.dtype_var && !(wanted.dtype == given.dtype))) {
        return false;
      }
    }
    if (var != nullptr && var->kind == Kind::BaseType) return true;
    if (is_param(wanted.shape_var, p.open)) {
      auto shape = make<TensorTypeNode>([&](TensorTypeNode& n) {
        n.shape = given.shape;
        n.shape_var = given.shape_var;
      });
      return bind(wanted.shape_var, shape, p);
    }
    if (wanted.shape_var || given.shape_var) return wanted.shape_var == given.shape_var;
    if (wanted.shape.size() != given.shape.size()) return false;
    for (size_t i = 0; i < wanted.shape.size(); ++i) {
      if (!dims(wanted.shape[i], given.shape[i], p)) return false;
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
  std::unordered_set<const Node*> unknown_sizes_;  // parameters that stand for `?`
  std::unordered_set<std::pair<const Node*, const Node*>, PairHash> met_[2][3];
  std::vector<NodeRef> keep_;  // `met_` goes by address
  std::vector<NodeRef> met_again_;
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

Attrs with_type_params(const Attrs& attrs, const TypeParams& values) {
  if (values.empty() || !has_symbolic_sizes(attrs)) return attrs;
  return Attrs::unchecked(Substitution(values, kTypes | family::attrs).run(attrs));
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
