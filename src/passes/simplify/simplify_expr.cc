#include "passes/simplify/simplify_expr.h"

#include <map>
#include <optional>
#include <string>

#include "analysis/primitives.h"
#include "analysis/purity.h"
#include "node/structural.h"
#include "node/walk.h"
#include "passes/simplify/rules/rule.h"

namespace relay {
namespace {

using simplify::Rule;

// Each rule takes something away, so rules end by themselves; this is for the day one does not.
constexpr int kMaxRewritesOfOneCall = 64;

class RuleTable {
 public:
  static const RuleTable& get() {
    static const RuleTable table;
    return table;
  }

  const std::vector<Rule>& rules() const { return rules_; }

  // The rules that may match a call of that operator.
  const std::vector<const Rule*>& for_op(const std::string& name) const {
    auto it = by_op_.find(name);
    return it == by_op_.end() ? for_any_ : it->second;
  }

 private:
  RuleTable() : rules_(simplify::arithmetic_rules()) {
    for (Rule& r : simplify::product_rules()) rules_.push_back(std::move(r));
    for (Rule& r : simplify::shape_rules()) rules_.push_back(std::move(r));
    for (Rule& r : simplify::part_rules()) rules_.push_back(std::move(r));
    for (Rule& r : simplify::order_rules()) rules_.push_back(std::move(r));
    for (const Rule& r : rules_) {
      for (const std::string& op : r.pattern.root_operators()) by_op_[op];
    }
    for (const Rule& r : rules_) {
      std::vector<std::string> ops = r.pattern.root_operators();
      if (!ops.empty()) {
        for (const std::string& op : ops) by_op_[op].push_back(&r);
        continue;
      }
      for_any_.push_back(&r);
      for (auto& [op, list] : by_op_) list.push_back(&r);
    }
  }

  std::vector<Rule> rules_;
  std::map<std::string, std::vector<const Rule*>> by_op_;
  std::vector<const Rule*> for_any_;
};

class Simplifier : public RewriterOutsidePrimitives {
 public:
  Simplifier(const Function& f, LazyPurity& purity) : f_(f), purity_(purity) {}

  NodeRef post(const NodeRef&, NodeRef rebuilt) override {
    for (int i = 0; i < kMaxRewritesOfOneCall; ++i) {
      Expr next = step(rebuilt);
      if (!next) break;
      rebuilt = next;
    }
    return rebuilt;
  }

 private:
  // The expression after the first rule that applies; null when none does.
  Expr step(const NodeRef& node) {
    auto* c = as<CallNode>(node);
    auto* op = c == nullptr ? nullptr : as<OpNode>(c->op);
    if (op == nullptr) return nullptr;
    Expr e = Expr::unchecked(node);
    for (const Rule* rule : RuleTable::get().for_op(op->name)) {
      if (!match_.matches(rule->pattern, e)) continue;
      if (rule->drops_operands && !without_effects()) continue;
      Expr result = rule->rewrite(match_, *c);
      if (result && (result->type == e->type || structural_equal(result->type, e->type))) {
        return result;
      }
    }
    return nullptr;
  }

  // Whether everything in the function may be left out; found out when it is first asked.
  bool without_effects() {
    if (!without_effects_) {
      bool all = true;
      post_order(
          f_,
          [&](const Node& n) {
            if (n.info().family == family::expr) {
              all = all && purity_.of_node(Expr(static_cast<const ExprNode*>(&n))).droppable();
            }
          },
          family::program);
      without_effects_ = all;
    }
    return *without_effects_;
  }

  const Function& f_;
  LazyPurity& purity_;
  DFMatch match_;
  std::optional<bool> without_effects_;
};

Module run_simplify_expr(const Module& mod, PassContext&) {
  LazyPurity purity(mod);
  return map_functions(
      mod, [&](const GlobalVar&, const Function& f) { return Simplifier(f, purity).apply(f); });
}

}  // namespace

std::vector<std::string_view> simplify_expr_rules() {
  std::vector<std::string_view> names;
  for (const Rule& r : RuleTable::get().rules()) names.push_back(r.name);
  return names;
}

const Pass kSimplifyExpr{
    "SimplifyExpr",   0, Form::any, Form::any, "Rewrites by a table of small rules.",
    run_simplify_expr};

}  // namespace relay
