#include "passes/fusion/define_where_called.h"

#include <algorithm>
#include <ranges>
#include <unordered_set>

#include "base/ancestors.h"
#include "node/walk.h"

namespace relay::outline {
namespace {

// The expressions in the tail position of one: the branches of an If, and what follows a definition.
std::vector<Expr> tails_of(const ExprNode& e) {
  if (auto* i = as<IfNode>(&e)) return {i->true_branch, i->false_branch};
  auto* l = as<LetNode>(&e);
  if (l == nullptr) return {};
  if (l->body == l->var) return {l->value};
  auto* f = as<FunctionNode>(l->value);
  // What a function gives whose calls are in tail position is given there, too.
  return f == nullptr || f->is_primitive() ? std::vector{l->body} : std::vector{l->body, f->body};
}

// The expressions of a function as a forest: above each stands the one in whose tail position it is. What has other uses, too,
// is a root; what is in the tail position of several stands below the innermost that is above all of them.
class TailTree {
 public:
  explicit TailTree(const Function& f) {
    std::vector<const Node*> order;
    post_order(
        f->body, [&](const Node& n) { order.push_back(&n); }, family::program);
    std::unordered_map<const Node*, int> above;
    for (const Node* n : std::views::reverse(order)) {
      auto* e = as<ExprNode>(n);
      if (e != nullptr && is_leaf(*e)) continue;
      const int mine = e == nullptr ? -1 : add(*e, above);
      const std::vector<Expr> tails = e == nullptr ? std::vector<Expr>{} : tails_of(*e);
      // The definition of a function tells where its result goes.
      const bool is_function = isa<FunctionNode>(n);
      for_each_child(*n, [&](const NodeRef& child) {
        const bool is_tail = std::ranges::find(tails, child.get(), &Expr::get) != tails.end();
        if (!is_function && !is_tail) above[child.get()] = -1;
      });
      for (const Expr& t : tails) {
        auto [use, fresh] = above.emplace(t.get(), mine);
        if (!fresh && use->second >= 0) use->second = common(use->second, mine);
      }
    }
  }

  // The number of an expression; -1 for variables and the like, and for what is not in the function.
  int find(const ExprNode& e) const {
    auto at = numbers_.find(&e);
    return at == numbers_.end() ? -1 : at->second;
  }
  const ExprNode& at(int i) const { return *expressions_[static_cast<size_t>(i)]; }
  int parent(int i) const { return steps_[static_cast<size_t>(i)].parent; }
  // The innermost that is above both, or one of them; -1 when there is none.
  int common(int a, int b) const {
    return common_ancestor(a, b, [&](int i) { return steps_[static_cast<size_t>(i)]; });
  }
  bool is_above(int a, int b) const { return a >= 0 && b >= 0 && common(a, b) == a; }

 private:
  int add(const ExprNode& e, const std::unordered_map<const Node*, int>& above) {
    const int mine = static_cast<int>(steps_.size());
    auto use = above.find(&e);
    auto step = [&](int i) { return steps_[static_cast<size_t>(i)]; };
    steps_.push_back(use == above.end() || use->second < 0 ? TreeStep{-1, 0, mine}
                                                           : step_below(use->second, step));
    expressions_.push_back(&e);
    numbers_.emplace(&e, mine);
    return mine;
  }

  std::vector<TreeStep> steps_;
  std::vector<const ExprNode*> expressions_;
  std::unordered_map<const Node*, int> numbers_;
};

class DefineWhereCalled : public Rewriter {
 public:
  DefineWhereCalled() : Rewriter(family::program) {}

  Function run_on(const Function& f) {
    const ScopeTree scopes = analyze_scopes(*f.get());
    const std::unordered_map<const Node*, Uses> functions = uses_of_functions(scopes);
    if (functions.empty()) return f;
    const TailTree tails(f);
    for (const ExprNode* e : scopes.order) {
      auto* l = as<LetNode>(e);
      auto found = l == nullptr ? functions.end() : functions.find(l->var.get());
      if (found == functions.end() || found->second.let != l) continue;
      const auto& [var, uses] = *found;
      const ExprNode* place =
          uses.inside ? call_of_loop(var, uses) : place_of_join(tails, var, uses);
      // A definition that is a place does not move itself.
      if (place == nullptr || calls_.contains(l) || definitions_.contains(place)) continue;
      calls_[place].push_back(l);
      definitions_.insert(l);
    }
    return calls_.empty() ? f : apply(f);
  }

  // The function stands before what is behind its definition, and is rewritten before it.
  NodeRef post(const NodeRef& original, NodeRef rebuilt) override {
    if (definitions_.contains(original.get())) return as<LetNode>(rebuilt)->body;
    auto called = calls_.find(original.get());
    if (called == calls_.end()) return rebuilt;
    for (const LetNode* l : called->second) {
      NodeRef value = lookup(l->value.get());
      rebuilt =
          let(l->var, value ? cast<ExprNode>(value) : l->value, cast<ExprNode>(rebuilt), l->span);
    }
    return rebuilt;
  }

 private:
  static const ExprNode* call_of_loop(const Node* var, const Uses& uses) {
    auto* c = uses.users.size() == 1 ? as<CallNode>(uses.users[0]) : nullptr;
    return c == nullptr || c->op.get() != var || uses.let->body.get() == c ? nullptr : c;
  }

  // The innermost expression in whose tail positions all calls of a function are, where what follows the definition is none.
  static const ExprNode* place_of_join(const TailTree& tails, const Node* var, const Uses& uses) {
    int at = -1;
    for (const ExprNode* user : uses.users) {
      auto* c = as<CallNode>(user);
      if (c == nullptr || c->op.get() != var) return nullptr;
      at = user == uses.users[0] ? tails.find(*c) : tails.common(at, tails.find(*c));
      if (at < 0) return nullptr;
    }
    if (at < 0 || tails.is_above(tails.find(*uses.let->body.get()), at)) return nullptr;
    auto moves = [&](const ExprNode& e) {
      auto* l = as<LetNode>(&e);
      return l == nullptr || isa<FunctionNode>(l->value);
    };
    while (at >= 0 && !moves(tails.at(at))) at = tails.parent(at);
    return at < 0 || tails.is_above(at, tails.find(*uses.let)) ? nullptr : &tails.at(at);
  }

  std::unordered_set<const Node*> definitions_;
  // What is defined in front of an expression. None of these functions calls another.
  std::unordered_map<const Node*, std::vector<const LetNode*>> calls_;
};
}  // namespace

std::unordered_map<const Node*, Uses> uses_of_functions(const ScopeTree& scopes) {
  std::unordered_map<const Node*, Uses> out;
  std::unordered_map<const Node*, int> bodies;
  for (const ExprNode* e : scopes.order) {
    auto* l = as<LetNode>(e);
    auto* f = l == nullptr ? nullptr : as<FunctionNode>(l->value);
    const int* scope = scopes.scope_of.find(e);
    const bool in_kernel = scope != nullptr && scopes.scopes[static_cast<size_t>(*scope)].primitive;
    if (f == nullptr || f->is_primitive() || in_kernel) continue;
    if (int body = scopes.opened(*f, f->body.get()); body >= 0) {
      bodies.emplace(l->var.get(), body);
      out[l->var.get()].let = l;
    }
  }
  if (bodies.empty()) return out;
  for (const ExprNode* e : scopes.order) {
    const int* scope = scopes.scope_of.find(e);
    if (scope == nullptr) continue;
    for_each_operand(*e, [&](const Expr& operand, bool) {
      auto body = bodies.find(operand.get());
      if (body == bodies.end()) return;
      Uses& uses = out[operand.get()];
      if (scopes.common(*scope, body->second) == body->second) {
        uses.inside = true;
      } else {
        if (uses.users.empty() || uses.users.back() != e) uses.users.push_back(e);
        const int* defined = scopes.scope_of.find(uses.let);
        auto function = [&](int of) { return scopes.scopes[static_cast<size_t>(of)].function; };
        uses.in_functions |= defined != nullptr && function(*scope) != function(*defined);
      }
    });
  }
  return out;
}
Function define_where_called(const Function& given) {
  Function f = given;
  // A definition may move to where another has moved.
  for (Function next = DefineWhereCalled().run_on(f); next != f;
       next = DefineWhereCalled().run_on(f))
    f = next;
  return f;
}

}  // namespace relay::outline
