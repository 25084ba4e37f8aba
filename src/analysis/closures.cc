#include "analysis/closures.h"

#include <algorithm>

#include "node/walk.h"

namespace relay {
namespace {

// Functions that stay where they are and refer to nothing outside.
bool stays(const FunctionNode& f) {
  return f.is_primitive() || f.has_attr(attr::kCompiler) || f.has_attr(attr::kComposite);
}

using Names = std::unordered_set<const Node*>;

void add_names(const Attrs& attrs, Names& names) {
  if (!has_symbolic_sizes(attrs)) return;
  post_order(attrs, [&](const Node& n) {
    if (isa<TypeVarNode>(&n)) names.insert(&n);
  });
}

// Whether a value of the type, a tensor or a tuple of tensors, tells one of the sizes, which are taken out.
bool tells(const Type& type, Names& names) {
  size_t before = names.size();
  auto tensors = flatten_tensor_types(type);
  for (const TensorType& t : tensors.value_or(std::vector<TensorType>())) {
    for (const Dim& d : t->shape) {
      if (auto* name = as<DimVarNode>(d)) names.erase(name->var.get());
    }
  }
  return names.size() < before;
}

// Sizes that the types of an operator's call compute with, as in Tensor[(n - 1,)], and that its operands do not tell: the
// kernel is given them.
void add_computed_names(const CallNode& c, Names& names) {
  auto* kernel = as<FunctionNode>(c.op);
  if (!isa<OpNode>(c.op) && (kernel == nullptr || !kernel->is_primitive())) return;
  Names computed;
  auto add = [&](const Type& type) {
    if (!type) return;
    post_order(
        type,
        [&](const Node& n) {
          auto* o = as<DimOpNode>(&n);
          if (o == nullptr) return;
          for (const Dim* d : {&o->a, &o->b}) {
            if (auto* name = as<DimVarNode>(*d)) computed.insert(name->var.get());
          }
        },
        family::type | family::dim);
  };
  add(c.type);
  for (const Expr& arg : c.args) add(arg->type);
  if (computed.empty()) return;
  for (const Expr& arg : c.args) tells(arg->type, computed);
  names.insert(computed.begin(), computed.end());
}

}  // namespace

std::vector<Var> size_sources(const FunctionNode& f, const std::vector<Var>& around) {
  Names names;
  post_order(
      f.body,
      [&](const Node& n) {
        auto* c = as<CallNode>(&n);
        if (c == nullptr) return;
        add_computed_names(*c, names);
        add_names(c->attrs, names);
      },
      family::program);
  std::vector<Var> out;
  for (const Var& p : f.params) tells(p->type, names);
  for (const Var& v : around) {
    if (!names.empty() && tells(v->type, names)) out.push_back(v);
  }
  return out;
}

InnerFunctions::InnerFunctions(const Function& f) : f_(f), scopes_(analyze_scopes(*f.get())) {
  collect();
  if (all_.empty()) return;
  find_uses();
  for (size_t i = 0; i < all_.size(); ++i) {
    const Uses& u = uses_[i];
    all_[i].only_called = u.other == 0 && u.named <= 1 && (u.named == 0 || u.called == 0);
    if (all_[i].name) binder_.emplace(all_[i].name.get(), -1);
  }
  find_type_params();
  find_captures();
}

int InnerFunctions::find(const Node* function_or_name) const {
  auto it = index_.find(function_or_name);
  return it == index_.end() ? -1 : it->second;
}

// Scopes are opened from the outside in, so outer functions get lower numbers.
void InnerFunctions::collect() {
  bool closure = f_->has_attr(attr::kClosure);
  number_[0] = -1;
  for (size_t i = 1; i < scopes_.scopes.size(); ++i) {
    const ScopeTree::Scope& s = scopes_.scopes[i];
    if (s.function != static_cast<int>(i)) continue;
    auto* f = static_cast<const FunctionNode*>(s.opener);
    int parent = function_at(s.parent);
    if (stays(*f) || s.primitive || (closure && f == f_->body.get())) {
      number_[s.function] = parent;
      continue;
    }
    number_[s.function] = static_cast<int>(all_.size());
    index_[f] = static_cast<int>(all_.size());
    all_.push_back({f, parent, nullptr, false, false, {}, {}});
  }
  uses_.resize(all_.size());
}

void InnerFunctions::find_uses() {
  auto scope_of = [&](const ExprNode* e) {
    const int* scope = scopes_.scope_of.find(e);
    bool inside = scope != nullptr && !scopes_.scopes[static_cast<size_t>(*scope)].primitive;
    return inside ? *scope : -1;
  };
  // What is bound where comes first: a variable may be used before its Let is met.
  for (const Var& p : f_->params) binder_[p.get()] = -1;
  for (const ExprNode* e : scopes_.order) {
    int scope = scope_of(e);
    if (scope < 0) continue;
    int here = function_at(scope);
    if (auto* inner = as<FunctionNode>(e)) {
      int self = find(e);
      for (const Var& p : inner->params) binder_[p.get()] = self >= 0 ? self : here;
    } else if (auto* l = as<LetNode>(e)) {
      binder_[l->var.get()] = here;
      int value = find(l->value.get());
      if (value >= 0 && uses_[static_cast<size_t>(value)].named++ == 0) {
        at(value).name = l->var;
        index_[l->var.get()] = value;
      }
    } else if (auto* m = as<MatchNode>(e)) {
      for (const Clause& c : m->clauses) {
        post_order(
            c->lhs,
            [&](const Node& n) {
              if (auto* v = as<PatternVarNode>(&n)) binder_[v->var.get()] = here;
            },
            family::pattern);
      }
    }
  }
  for (const ExprNode* e : scopes_.order) {
    int scope = scope_of(e);
    if (scope < 0) continue;
    auto* c = as<CallNode>(e);
    auto* l = as<LetNode>(e);
    bool first = true;
    for_each_operand(*e, [&](const Expr& operand, bool opens) {
      int at = opens ? scopes_.opened(*e, operand.get()) : scope;
      use(operand, function_at(at), c != nullptr && first, l != nullptr && first);
      first = false;
    });
  }
  use(f_->body, -1, false, false);
  for (const ExprNode* e : scopes_.order) {
    auto* c = as<CallNode>(e);
    const int* scope = scopes_.scope_of.find(e);
    if (c != nullptr && scope != nullptr) use_sizes(*c, function_at(*scope));
  }
}

// A size that an operator's attributes name, or that types compute with, is read off a parameter: that of a function
// further outside is used inside.
void InnerFunctions::use_sizes(const CallNode& c, int function) {
  if (function < 0) return;
  Names names;
  add_computed_names(c, names);
  if (!names.empty()) {
    for (const Var& v : uses_[static_cast<size_t>(function)].free) tells(v->type, names);
  }
  add_names(c.attrs, names);
  for (int at = function; !names.empty(); at = all_[static_cast<size_t>(at)].parent) {
    const std::vector<Var>& params =
        at < 0 ? f_->params : all_[static_cast<size_t>(at)].function->params;
    for (const Var& p : params) {
      if (tells(p->type, names)) use(p, function, false, false);
    }
    if (at < 0) return;
  }
}

void InnerFunctions::use(const Expr& e, int function, bool called, bool named) {
  int target = find(e.get());
  if (target >= 0) {
    Uses& u = uses_[static_cast<size_t>(target)];
    if (isa<FunctionNode>(e)) {
      if (!named) ++(called ? u.called : u.other);
    } else if (!called) {
      ++u.other;
    }
    u.callers.push_back(function);
  }
  if (!isa<VarNode>(e)) return;
  auto binder = binder_.find(e.get());
  int bound = binder == binder_.end() ? -1 : binder->second;
  for (int at = function; at != bound && at >= 0; at = all_[static_cast<size_t>(at)].parent) {
    Uses& u = uses_[static_cast<size_t>(at)];
    if (!u.seen.insert(e.get()).second) break;
    u.free.push_back(cast<VarNode>(e));
  }
}

// Least sets such that a function mentions what is in the types of its expressions, and what a
// function mentions that it names or contains.
void InnerFunctions::find_type_params() {
  std::unordered_map<const Node*, int> owner;
  for (const TypeVar& t : f_->type_params) owner[t.get()] = -1;
  for (size_t i = 0; i < all_.size(); ++i) {
    for (const TypeVar& t : all_[i].function->type_params) owner[t.get()] = static_cast<int>(i);
  }
  if (owner.empty()) return;
  std::vector<std::unordered_set<const Node*>> has(all_.size());
  std::vector<std::pair<int, const TypeVarNode*>> work;
  auto add = [&](int function, const TypeVarNode* t) {
    auto it = owner.find(t);
    if (function < 0 || it == owner.end() || it->second >= function) return;
    if (!has[static_cast<size_t>(function)].insert(t).second) return;
    all_[static_cast<size_t>(function)].type_params.push_back(ref(*t));
    work.emplace_back(function, t);
  };
  auto add_type = [&](int function, const NodeRef& type) {
    if (function < 0 || !type) return;
    post_order(
        type,
        [&](const Node& n) {
          if (auto* t = as<TypeVarNode>(&n)) add(function, t);
        },
        family::type | family::dim | family::attrs);
  };
  for (const ExprNode* e : scopes_.order) {
    const int* scope = scopes_.scope_of.find(e);
    if (scope == nullptr) continue;
    int here = function_at(*scope);
    add_type(here, e->type);
    if (auto* c = as<CallNode>(e)) {
      for (const Type& t : c->type_args) add_type(here, t);
      if (has_symbolic_sizes(c->attrs)) add_type(here, c->attrs);
    }
  }
  for (size_t i = 0; i < all_.size(); ++i) {
    int function = static_cast<int>(i);
    uses_[i].callers.push_back(all_[i].parent);
    for (const Var& v : uses_[i].free) add_type(function, v->type);
    for (const Var& p : all_[i].function->params) add_type(function, p->type);
    add_type(function, all_[i].function->body->type);
  }
  while (!work.empty()) {
    auto [function, t] = work.back();
    work.pop_back();
    for (int caller : uses_[static_cast<size_t>(function)].callers) add(caller, t);
  }
}

// A function that is only called is replaced by what it captures. What it needs is bound further
// outside than its name, so the search ends.
void InnerFunctions::find_captures() {
  std::vector<bool> done(all_.size(), false);
  std::vector<int> stack;
  for (size_t i = 0; i < all_.size(); ++i) {
    stack.push_back(static_cast<int>(i));
    while (!stack.empty()) {
      int now = stack.back();
      auto n = static_cast<size_t>(now);
      size_t before = stack.size();
      if (!done[n]) {
        for (const Var& v : uses_[n].free) {
          int named = find(v.get());
          if (named >= 0 && named != now && !done[static_cast<size_t>(named)]) {
            stack.push_back(named);
          }
        }
      }
      if (stack.size() > before) continue;
      stack.pop_back();
      if (done[n]) continue;
      done[n] = true;
      std::unordered_set<const Node*> seen;
      auto capture = [&](const Var& v) {
        if (seen.insert(v.get()).second) all_[n].captures.push_back(v);
      };
      for (const Var& v : uses_[n].free) {
        int named = find(v.get());
        if (named == now) {
          all_[n].recursive = true;
          continue;
        }
        if (named < 0) {
          capture(v);
          continue;
        }
        const InnerFunction& other = at(named);
        if (other.only_called) {
          for (const Var& c : other.captures) capture(c);
        } else if (!other.captures.empty() || !other.type_params.empty()) {
          capture(v);
        }
      }
    }
  }
}

}  // namespace relay
