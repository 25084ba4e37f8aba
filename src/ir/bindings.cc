#include "ir/bindings.h"

#include <string>
#include <unordered_set>

#include "base/codes/text.h"
#include "node/node_map.h"
#include "node/walk.h"

namespace relay {
namespace {

// The tree of immediate dominators of a program's graph: whatever is an ancestor of a node in it
// stands on every path from the root to the node. Parents are added before children.
class Dominators {
 public:
  static constexpr size_t kNone = SIZE_MAX;

  // Adds a node below `parent`; kNone for a root. `jump` goes up in steps of growing powers of two,
  // so that searches take logarithmic time.
  size_t add(size_t parent) {
    size_t self = nodes_.size();
    if (parent == kNone) {
      nodes_.push_back({self, self, 0});
      return self;
    }
    const Entry& p = nodes_[parent];
    const Entry& j = nodes_[p.jump];
    bool equal = p.depth - j.depth == j.depth - nodes_[j.jump].depth;
    nodes_.push_back({parent, equal ? j.jump : parent, p.depth + 1});
    return self;
  }
  // The deepest common ancestor.
  size_t meet(size_t a, size_t b) const {
    if (nodes_[a].depth < nodes_[b].depth) std::swap(a, b);
    while (nodes_[a].depth > nodes_[b].depth) {
      a = nodes_[nodes_[a].jump].depth >= nodes_[b].depth ? nodes_[a].jump : nodes_[a].parent;
    }
    while (a != b) {
      bool far = nodes_[a].jump != nodes_[b].jump;
      a = far ? nodes_[a].jump : nodes_[a].parent;
      b = far ? nodes_[b].jump : nodes_[b].parent;
    }
    return a;
  }

 private:
  struct Entry {
    size_t parent;
    size_t jump;
    size_t depth;
  };
  std::vector<Entry> nodes_;
};

// Where variables are bound and used.
class Bindings {
 public:
  explicit Bindings(const Expr& root) {
    post_order(
        root, [&](const Node& n) { order_.push_back(&n); }, family::program);
    used_below(root.get(), Dominators::kNone);
    for (size_t i = order_.size(); i-- > 0;) enter(*order_[i]);
  }

  std::vector<Var> free() const {
    std::vector<Var> out;
    for (const Node* n : order_) {
      const State* s = states_.find(n);
      if (n->kind() != ExprKind::Var || s == nullptr || !s->used) continue;
      bool bound = s->scope != Dominators::kNone && s->above != Dominators::kNone &&
                   dominators_.meet(s->scope, s->above) == s->scope;
      if (!bound) out.push_back(Var(static_cast<const VarNode*>(n)));
    }
    return out;
  }
  // A variable that two places bind; null when there is none.
  const VarNode* bound_twice() const { return bound_twice_; }

 private:
  struct State {
    bool used = false;
    size_t above = Dominators::kNone;  // what all uses are below
    size_t scope = Dominators::kNone;  // of a variable: below what it may be used
  };

  void used_below(const Node* n, size_t parent) {
    auto [state, fresh] = states_.emplace(n);
    state.above = state.used && parent != Dominators::kNone && state.above != Dominators::kNone
                      ? dominators_.meet(state.above, parent)
                      : parent;
    state.used = true;
  }
  void bind(const Node* v, size_t scope) {
    auto [state, fresh] = states_.emplace(v);
    if (state.scope != Dominators::kNone) bound_twice_ = static_cast<const VarNode*>(v);
    state.scope = scope;
  }

  // All parents of the node were entered before.
  void enter(const Node& n) {
    const State* state = states_.find(&n);
    if (state == nullptr || !state->used) return;  // only bound
    size_t self = dominators_.add(state->above);
    if (auto* l = as<LetNode>(&n)) {
      // Only a function may use its own name.
      size_t body = dominators_.add(self);
      bind(l->var.get(), isa<FunctionNode>(l->value) ? self : body);
      used_below(l->value.get(), self);
      used_below(l->body.get(), body);
      return;
    }
    if (auto* c = as<ClauseNode>(&n)) {
      post_order(
          c->lhs,
          [&](const Node& p) {
            if (auto* v = as<PatternVarNode>(&p)) bind(v->var.get(), self);
          },
          family::pattern);
      used_below(c->rhs.get(), self);
      return;
    }
    for (const Field& f : n.info().fields) {
      const void* at = f.in(n);
      if (f.ops->get_child == nullptr) continue;
      for (size_t i = 0; i < f.ops->count(at); ++i) {
        NodeRef child = f.ops->get_child(at, i);
        if (!child || (child.get()->info().family & family::program) == 0) continue;
        if (f.role == Role::binder) {
          bind(child.get(), self);
        } else {
          used_below(child.get(), self);
        }
      }
    }
  }

  std::vector<const Node*> order_;
  Dominators dominators_;
  NodeMap<State> states_;
  const VarNode* bound_twice_ = nullptr;
};

}  // namespace

std::vector<Var> free_vars(const Expr& expr) { return Bindings(expr).free(); }

void check_bindings(const Expr& expr) {
  Bindings bindings(expr);
  if (const VarNode* v = bindings.bound_twice()) {
    throw UserError(Diagnostic(codes::text_duplicate_name, v->span,
                               "two places bind the variable %" + v->name_hint)
                        .expected("a variable of its own for each parameter and let")
                        .help("make another with relay.var"));
  }
  if (std::vector<Var> free = bindings.free(); !free.empty()) {
    const Var& v = free.front();
    throw UserError(Diagnostic(codes::text_unbound_name, v->span,
                               "variable %" + v->name_hint + " is used where nothing binds it")
                        .expected("a parameter of the function, or a let around every use")
                        .help("add it to the parameters: relay.Function([...], body)"));
  }
}

void check_calls(const Module& mod) {
  std::unordered_set<std::string> known;
  for (const GlobalVar& g : mod->global_vars) known.insert(g->name_hint);
  for (size_t i = 0; i < mod->functions.size(); ++i) {
    post_order(
        mod->functions[i],
        [&](const Node& n) {
          auto* g = as<GlobalVarNode>(&n);
          if (g == nullptr || known.contains(g->name_hint)) return;
          throw UserError(
              Diagnostic(codes::text_unbound_name, g->span, "there is no function @" + g->name_hint)
                  .found("@" + mod->global_vars[i]->name_hint + " refers to it")
                  .help("add it: mod.with_function(\"" + g->name_hint + "\", function)"));
        },
        family::program);
  }
}

}  // namespace relay
