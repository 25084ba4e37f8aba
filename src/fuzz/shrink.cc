#include "fuzz/shrink.h"

#include <algorithm>
#include <unordered_set>

#include "base/diagnostic.h"
#include "ir/op.h"
#include "node/structural.h"
#include "node/walk.h"
#include "types/infer.h"
#include "types/verify.h"

namespace relay::fuzz {
namespace {

// Parts of an expression that are tried in its place.
constexpr size_t kMaxParts = 24;

using VarSet = std::unordered_set<const Node*>;

// Variables used below an expression and not bound there.
VarSet free_variables(const NodeRef& root) {
  VarSet used, bound;
  post_order(
      root,
      [&](const Node& n) {
        if (isa<VarNode>(&n)) used.insert(&n);
        for (const Field& field : n.info().fields) {
          if (field.role != Role::binder) continue;
          const void* at = field.in(n);
          for (size_t i = 0; i < field.ops->count(at); ++i) {
            bound.insert(field.ops->get_child(at, i).get());
          }
        }
      },
      family::program);
  std::erase_if(used, [&](const Node* v) { return bound.contains(v); });
  return used;
}

int64_t elements(const Type& type) {
  int64_t out = 0;
  post_order(
      type,
      [&](const Node& n) {
        ++out;
        if (auto* d = as<DimConstNode>(&n)) out += d->value;
      },
      family::type | family::dim);
  return out;
}

// What every step makes less.
int64_t size_of(const Module& mod) {
  int64_t out = static_cast<int64_t>(mod->functions.size() + mod->type_definitions.size()) * 20;
  for (const Function& f : mod->functions) {
    post_order(
        f,
        [&](const Node& n) {
          out += n.kind() == PatternKind::Wildcard || isa<ConstantNode>(&n) ? 5 : 10;
          if (auto* c = as<ConstantNode>(&n)) {
            for (int64_t d : c->data.shape()) out += d;
            for (int64_t i = 0; i < c->data.num_elements(); ++i) {
              out += c->data.get_as_double(i) != 1;
            }
          } else if (auto* v = as<VarNode>(&n)) {
            out += elements(v->type);
          }
        },
        family::program);
  }
  return out;
}

Tensor ones(DType dtype, runtime::Shape shape) {
  Tensor t = Tensor::empty(dtype, shape);
  for (int64_t i = 0; i < t.num_elements(); ++i) t.set_from_int(i, 1);
  return t;
}

// A small expression of the type; null where there is none without variables.
Expr simplest(const Type& type) {
  if (auto* t = as<TensorTypeNode>(type)) {
    auto shape = t->const_shape();
    return shape ? Expr(constant(ones(t->dtype, *shape))) : nullptr;
  }
  if (auto* t = as<TupleTypeNode>(type)) {
    std::vector<Expr> fields;
    for (const Type& f : t->fields) {
      fields.push_back(simplest(f));
      if (!fields.back()) return nullptr;
    }
    return tuple(std::move(fields));
  }
  return nullptr;
}

class Shrinker {
 public:
  Shrinker(Module mod, const StillFails& still_fails, const ShrinkOptions& options)
      : mod_(std::move(mod)),
        size_(size_of(mod_)),
        still_fails_(still_fails),
        tries_left_(options.max_tries) {}

  Module run() {
    while (drop_definitions() || narrow_functions() || reduce_expressions() || drop_parameters() ||
           reduce_sizes()) {
      if (tries_left_ <= 0) break;
    }
    return mod_;
  }

 private:
  // Keeps the candidate when it is smaller, well-formed and fails alike.
  bool accept(const std::function<Module()>& candidate) {
    if (tries_left_ <= 0) return false;
    Module mod;
    try {
      mod = infer_types(candidate());
    } catch (const Error&) {
      return false;
    }
    int64_t size = size_of(mod);
    if (size >= size_ || find_ill_formed(mod)) return false;
    --tries_left_;
    if (!still_fails_(mod)) return false;
    mod_ = mod;
    size_ = size;
    return true;
  }

  Module with(const std::string& name, const Function& f) const {
    return with_function(mod_, mod_->find_global_var(name), f);
  }

  bool drop_definitions() {
    bool any = false;
    for (size_t i = mod_->functions.size(); i-- > 0;) {
      if (mod_->global_vars[i]->name_hint == "main") continue;
      any |= accept([&] {
        auto names = mod_->global_vars;
        auto functions = mod_->functions;
        names.erase(names.begin() + static_cast<int64_t>(i));
        functions.erase(functions.begin() + static_cast<int64_t>(i));
        return make_module(names, functions, mod_->type_definitions, mod_->attrs);
      });
    }
    for (size_t i = mod_->type_definitions.size(); i-- > 0;) {
      const TypeData dropped = mod_->type_definitions[i];
      bool used = false;
      auto look = [&](const NodeRef& root) {
        post_order(root, [&](const Node& n) {
          auto* name = as<GlobalTypeVarNode>(&n);
          used |= name != nullptr && name->name_hint == dropped->header->name_hint;
        });
      };
      for (const Function& f : mod_->functions) look(f);
      for (const TypeData& d : mod_->type_definitions) {
        if (d != dropped) look(d);
      }
      if (used) continue;
      any |= accept([&] {
        auto types = mod_->type_definitions;
        types.erase(types.begin() + static_cast<int64_t>(i));
        return make_module(mod_->global_vars, mod_->functions, types, mod_->attrs);
      });
    }
    return any;
  }

  // @main, or a function that nothing calls, becomes one of its parts, small ones first.
  bool narrow_functions() {
    bool any = false;
    for (size_t i = 0; i < mod_->functions.size(); ++i) {
      any |= narrow(mod_->global_vars[i]->name_hint, mod_->functions[i]);
    }
    return any;
  }

  bool narrow(const std::string& name, const Function& f) {
    VarSet params;
    for (const Var& p : f->params) params.insert(p.get());
    std::vector<Expr> parts;
    post_order(
        f->body,
        [&](const Node& n) {
          if (n.info().family != family::expr || n.kind() == ExprKind::Op) return;
          Expr e(static_cast<const ExprNode*>(&n));
          if (e == f->body || isa<FunctionNode>(e) || !e->type) return;
          if (isa<FuncTypeNode>(e->type) || isa<ConstantNode>(e) || isa<VarNode>(e)) return;
          parts.push_back(e);
        },
        family::program);
    for (const Expr& part : parts) {
      if (!std::ranges::all_of(free_variables(part),
                               [&](const Node* v) { return params.contains(v); })) {
        continue;
      }
      if (accept([&] {
            return with_new_type(name,
                                 function(f->params, part, part->type, f->type_params, f->attrs));
          })) {
        return true;
      }
    }
    return false;
  }

  // The function, whose type is another than before; no other function may refer to it.
  Module with_new_type(const std::string& name, const Function& f) const {
    auto names = mod_->global_vars;
    auto functions = mod_->functions;
    for (size_t i = 0; i < names.size(); ++i) {
      if (names[i]->name_hint != name) continue;
      names[i] = global_var(name, f->type);
      functions[i] = f;
    }
    return make_module(names, functions, mod_->type_definitions, mod_->attrs);
  }

  bool reduce_expressions() {
    for (size_t i = 0; i < mod_->functions.size(); ++i) {
      std::vector<Expr> expressions;
      post_order(
          mod_->functions[i]->body,
          [&](const Node& n) {
            if (n.info().family == family::expr) {
              expressions.emplace_back(static_cast<const ExprNode*>(&n));
            }
          },
          family::program);
      for (size_t k = expressions.size(); k-- > 0;) {
        if (reduce(i, expressions[k])) return true;
        if (tries_left_ <= 0) return false;
      }
    }
    return false;
  }

  bool replace(size_t function, const Expr& what, const Expr& by) {
    return accept([&] {
      const Function& f = mod_->functions[function];
      Function g = cast<FunctionNode>(substitute(f, {{what.get(), by}}, family::program));
      return with(mod_->global_vars[function]->name_hint, g);
    });
  }

  bool reduce(size_t function, const Expr& e) {
    if (isa<VarNode>(e) || isa<GlobalVarNode>(e) || isa<OpNode>(e) || isa<ConstructorNode>(e)) {
      return false;
    }
    if (Expr small = simplest(e->type); small && replace(function, e, small)) return true;
    if (reduce_to_part(function, e)) return true;
    if (auto* l = as<LetNode>(e)) {
      if (replace(function, e, l->body)) return true;
      return replace(
          function, e,
          cast<ExprNode>(substitute(l->body, {{l->var.get(), l->value}}, family::program)));
    }
    if (auto* m = as<MatchNode>(e)) {
      for (size_t i = 0; m->clauses.size() > 1 && i < m->clauses.size(); ++i) {
        auto clauses = m->clauses;
        clauses.erase(clauses.begin() + static_cast<int64_t>(i));
        if (replace(function, e, match(m->data, std::move(clauses), false))) return true;
      }
    }
    if (auto* c = as<CallNode>(e)) {
      auto* callee = as<FunctionNode>(c->op);
      if (callee != nullptr && callee->type_params.empty()) {
        Expr body = callee->body;
        for (size_t i = c->args.size(); i-- > 0;) body = let(callee->params[i], c->args[i], body);
        return replace(function, e, body);
      }
    }
    return false;
  }

  // The expression becomes a part of itself, or a parameter of its function.
  bool reduce_to_part(size_t function, const Expr& e) {
    VarSet allowed = free_variables(e);
    std::vector<Expr> parts;
    for (const Var& p : mod_->functions[function]->params) {
      if (structural_equal(p->type, e->type)) parts.push_back(p);
      allowed.insert(p.get());
    }
    post_order(
        e,
        [&](const Node& n) {
          if (&n == e.get() || n.info().family != family::expr) return;
          Expr part(static_cast<const ExprNode*>(&n));
          if (part->type && structural_equal(part->type, e->type)) parts.push_back(part);
        },
        family::program);
    if (parts.size() > kMaxParts) parts.erase(parts.begin(), parts.end() - kMaxParts);
    for (const Expr& part : parts) {
      bool in_scope = std::ranges::all_of(free_variables(part),
                                          [&](const Node* v) { return allowed.contains(v); });
      if (in_scope && replace(function, e, part)) return true;
    }
    return false;
  }

  // Parameters of @main that can be constants, or are not used.
  bool drop_parameters() {
    Function main = mod_->find("main");
    for (size_t i = 0; i < main->params.size(); ++i) {
      const Var& p = main->params[i];
      Expr body = main->body;
      if (free_variables(body).contains(p.get())) {
        Expr small = simplest(p->type);
        if (!small) continue;
        body = cast<ExprNode>(substitute(body, {{p.get(), small}}, family::program));
      }
      auto params = main->params;
      params.erase(params.begin() + static_cast<int64_t>(i));
      if (accept([&] {
            return with_new_type(
                "main", relay::function(params, body, body->type, main->type_params, main->attrs));
          })) {
        return true;
      }
    }
    return false;
  }

  // A size of the program becomes a smaller one, in types and constants alike.
  bool reduce_sizes() {
    std::vector<int64_t> sizes;
    for (const Function& f : mod_->functions) {
      post_order(f, [&](const Node& n) {
        if (auto* c = as<ConstantNode>(&n)) {
          sizes.insert(sizes.end(), c->data.shape().begin(), c->data.shape().end());
        } else if (auto* d = as<DimConstNode>(&n)) {
          sizes.push_back(d->value);
        }
      });
    }
    std::ranges::sort(sizes);
    sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
    for (int64_t from : sizes) {
      for (int64_t to : {int64_t{1}, from - 1}) {
        if (to < 1 || to >= from) continue;
        if (accept([&] { return with_size(from, to); })) return true;
      }
    }
    return false;
  }

  Module with_size(int64_t from, int64_t to) const {
    auto resized = [&](const NodeRef&, NodeRef rebuilt) -> NodeRef {
      if (auto* d = as<DimConstNode>(rebuilt)) return d->value == from ? NodeRef(dim(to)) : rebuilt;
      auto* c = as<ConstantNode>(rebuilt);
      if (c == nullptr) return rebuilt;
      std::vector<int64_t> shape(c->data.shape().begin(), c->data.shape().end());
      if (!std::ranges::count(shape, from)) return rebuilt;
      std::ranges::replace(shape, from, to);
      return constant(ones(c->data.dtype(), shape));
    };
    return cast<ModuleNode>(rewrite(mod_, resized));
  }

  Module mod_;
  int64_t size_;
  const StillFails& still_fails_;
  int tries_left_;
};

}  // namespace

Module shrink(const Module& mod, const StillFails& still_fails, const ShrinkOptions& options) {
  return Shrinker(mod, still_fails, options).run();
}

}  // namespace relay::fuzz
