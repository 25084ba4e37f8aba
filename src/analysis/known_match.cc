#include "analysis/known_match.h"

#include <utility>
#include <vector>

namespace relay {
namespace {

enum class Fit { yes, no, maybe };

using Bindings = std::vector<std::pair<Var, Expr>>;

Fit fit(const Pattern& pattern, const Expr& data, Bindings& bound) {
  bound.clear();
  Fit result = Fit::yes;
  std::vector<std::pair<Pattern, Expr>> stack{{pattern, data}};
  while (!stack.empty()) {
    auto [p, e] = std::move(stack.back());
    stack.pop_back();
    auto push = [&stack](const std::vector<Pattern>& patterns, const std::vector<Expr>& parts) {
      for (size_t i = parts.size(); i-- > 0;) stack.emplace_back(patterns[i], parts[i]);
    };
    if (auto* v = as<PatternVarNode>(p)) {
      bound.emplace_back(v->var, e);
    } else if (isa<PatternWildcardNode>(p)) {
      // Unused values are evaluated as well.
      bound.emplace_back(var("_", e->type), e);
    } else if (auto* t = as<PatternTupleNode>(p)) {
      if (auto* parts = as<TupleNode>(e)) {
        push(t->patterns, parts->fields);
      } else {
        result = Fit::maybe;
      }
    } else {
      auto* c = as<PatternConstructorNode>(p);
      auto* made = as<CallNode>(e);
      auto* constructor = made == nullptr ? nullptr : as<ConstructorNode>(made->op);
      if (constructor == nullptr) {
        result = Fit::maybe;
      } else if (constructor->tag != c->constructor->tag) {
        return Fit::no;
      } else {
        push(c->patterns, made->args);
      }
    }
  }
  return result;
}

}  // namespace

Expr known_clause(const MatchNode& match, const Expr& data) {
  auto* made = as<CallNode>(data);
  if (!isa<TupleNode>(data) && (made == nullptr || !isa<ConstructorNode>(made->op))) return nullptr;
  Bindings bound;
  for (const Clause& c : match.clauses) {
    Fit f = fit(c->lhs, data, bound);
    if (f == Fit::maybe) return nullptr;
    if (f == Fit::no) continue;
    Expr body = c->rhs;
    for (size_t i = bound.size(); i-- > 0;) {
      body = let(bound[i].first, bound[i].second, body, match.span);
    }
    return body;
  }
  return nullptr;
}

}  // namespace relay
