#include "passes/partial/patterns.h"

#include "node/walk.h"

namespace relay::partial {

Fit fit(const Pattern& pattern, StaticValue* value, const std::function<void(StaticValue&)>& expand,
        std::vector<std::pair<const Node*, StaticValue*>>& bound) {
  bound.clear();
  Fit result = Fit::yes;
  std::vector<std::pair<const PatternNode*, StaticValue*>> stack{{pattern.get(), value}};
  while (!stack.empty()) {
    auto [p, v] = stack.back();
    stack.pop_back();
    auto push = [&stack, v = v](const std::vector<Pattern>& parts) {
      for (size_t i = parts.size(); i-- > 0;) stack.emplace_back(parts[i].get(), v->parts[i]);
    };
    if (auto* variable = as<PatternVarNode>(p)) {
      bound.emplace_back(variable->var.get(), v);
    } else if (auto* tuple = as<PatternTupleNode>(p)) {
      if (v->kind != StaticValue::tuple) expand(*v);
      push(tuple->patterns);
    } else if (auto* c = as<PatternConstructorNode>(p)) {
      if (v->kind != StaticValue::data) {
        result = Fit::maybe;
      } else if (as<ConstructorNode>(v->constructor)->tag != c->constructor->tag) {
        return Fit::no;
      } else {
        push(c->patterns);
      }
    }
  }
  return result;
}

std::vector<Var> variables_of(const Pattern& pattern) {
  std::vector<Var> out;
  post_order(
      pattern,
      [&](const Node& n) {
        if (auto* v = as<PatternVarNode>(&n)) out.push_back(v->var);
      },
      family::pattern);
  return out;
}

}  // namespace relay::partial
