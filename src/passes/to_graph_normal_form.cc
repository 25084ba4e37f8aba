#include "passes/to_graph_normal_form.h"

#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "ir/scope.h"
#include "node/structural.h"
#include "node/walk.h"
#include "passes/purity.h"

namespace relay {
namespace {

constexpr uint32_t kFamilies = family::expr | family::pattern;

// The Lets of a function whose variables become their values.
class Candidates {
 public:
  Candidates(const Function& f, const Purity& purity) {
    post_order(
        f,
        [&](const Node& n) {
          auto* l = as<LetNode>(&n);
          if (l == nullptr || !purity.of(l->value).pure()) return;
          auto* value = as<FunctionNode>(l->value);
          if (value != nullptr && !value->is_primitive()) return;
          if (!structural_equal(l->var->type, l->value->type)) return;
          lets_.emplace(l->var.get(), l);
        },
        kFamilies);
    if (lets_.empty()) return;
    scopes_ = analyze_scopes(*f.get());
    keep_those_used_near();
  }

  bool empty() const { return lets_.empty(); }
  const std::unordered_map<const Node*, const LetNode*>& lets() const { return lets_; }

 private:
  int function_of(int scope) const { return scopes_.scopes[static_cast<size_t>(scope)].function; }

  int function_at(const Node* n) const {
    auto it = scopes_.scope_of.find(n);
    return it == scopes_.scope_of.end() ? 0 : function_of(it->second);
  }

  // What stays near has a user that stays near, so no chain of moves ends in an inner function.
  void keep_those_used_near() {
    std::unordered_set<const Node*> near;  // variables used in the function of their Let
    for (const ExprNode* e : scopes_.order) {
      int user = function_at(e);
      auto note = [&](const Node* operand, int at) {
        auto it = lets_.find(operand);
        if (it != lets_.end() && at == function_at(it->second)) near.insert(operand);
      };
      auto* l = as<LetNode>(e);
      for_each_child(*e, [&](const NodeRef& child) {
        if (l != nullptr && child == l->var) return;
        auto opened = scopes_.opened.find({e, child.get()});
        note(child.get(), opened == scopes_.opened.end() ? user : function_of(opened->second));
        if (auto* c = as<ClauseNode>(child)) note(c->rhs.get(), user);
      });
    }
    std::erase_if(lets_, [&](const auto& entry) { return !near.contains(entry.first); });
  }

  std::unordered_map<const Node*, const LetNode*> lets_;
  ScopeTree scopes_;
};

Function to_graph_normal_form(const Function& f, const Purity& purity) {
  Candidates candidates(f, purity);
  if (candidates.empty()) return f;
  class Convert : public Rewriter {
   public:
    explicit Convert(const Candidates& candidates) : Rewriter(kFamilies), lets_(candidates.lets()) {
      for (const auto& [var, l] : lets_) vars_of_[l->value.get()].push_back(l->var);
    }
    // A Let's value is rewritten before its body, where the variable is met.
    NodeRef post(const NodeRef& original, NodeRef rebuilt) override {
      auto* l = as<LetNode>(original);
      NodeRef result = l != nullptr && lets_.contains(l->var.get())
                           ? NodeRef(as<LetNode>(rebuilt)->body)
                           : rebuilt;
      assign(original.get(), result);
      return result;
    }

   private:
    // The variables bound to an expression stand for what it became, and so do those bound to them.
    void assign(const Node* value, const NodeRef& result) {
      std::vector<const Node*> work{value};
      while (!work.empty()) {
        auto it = vars_of_.find(work.back());
        work.pop_back();
        if (it == vars_of_.end()) continue;
        for (const Var& v : it->second) {
          set(v, result);
          work.push_back(v.get());
        }
      }
    }

    const std::unordered_map<const Node*, const LetNode*>& lets_;
    std::unordered_map<const Node*, std::vector<Var>> vars_of_;
  };
  return Convert(candidates).apply(f);
}

Module run(const Module& mod, PassContext&) {
  Purity purity(mod);
  return map_functions(mod, [&](const GlobalVar&, const Function& f) {
    return f->is_primitive() ? f : to_graph_normal_form(f, purity);
  });
}

}  // namespace

const Pass kToGraphNormalForm{"ToGraphNormalForm",          1,  Form::any, Form::any,
                              "Replaces names by sharing.", run};

}  // namespace relay
