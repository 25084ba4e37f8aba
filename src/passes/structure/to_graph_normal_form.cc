#include "passes/structure/to_graph_normal_form.h"

#include <utility>
#include <vector>

#include "analysis/purity.h"
#include "ir/scope.h"
#include "node/node_map.h"
#include "node/structural.h"
#include "node/walk.h"

namespace relay {
namespace {

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
          auto [let_of, fresh] = let_of_.emplace(l->var.get());
          if (!fresh) return;
          let_of = l;
          lets_.push_back(l);
        },
        family::program);
    if (lets_.empty()) return;
    scopes_ = analyze_scopes(*f.get());
    keep_those_used_near();
  }

  const std::vector<const LetNode*>& lets() const { return lets_; }
  bool contains(const Var& v) const { return near_.contains(v.get()); }

 private:
  int function_of(int scope) const { return scopes_.scopes[static_cast<size_t>(scope)].function; }

  int function_at(const Node* n) const {
    const int* scope = scopes_.scope_of.find(n);
    return scope == nullptr ? 0 : function_of(*scope);
  }

  // What stays near has a user that stays near, so no chain of moves ends in an inner function.
  void keep_those_used_near() {
    for (const ExprNode* e : scopes_.order) {
      int user = function_at(e);
      auto note = [&](const Node* operand, int at) {
        const LetNode* const* let_of = let_of_.find(operand);
        if (let_of != nullptr && at == function_at(*let_of)) near_.insert(operand);
      };
      auto* l = as<LetNode>(e);
      bool is_binder = l != nullptr;  // the first child of a Let; its body may be the same variable
      for_each_child(*e, [&](const NodeRef& child) {
        if (std::exchange(is_binder, false)) return;
        int opened = scopes_.opened(*e, child.get());
        note(child.get(), opened < 0 ? user : function_of(opened));
        if (auto* c = as<ClauseNode>(child)) note(c->rhs.get(), user);
      });
    }
    std::erase_if(lets_, [&](const LetNode* l) { return !contains(l->var); });
  }

  std::vector<const LetNode*> lets_;
  NodeMap<const LetNode*> let_of_;  // by variable
  NodeSet near_;                    // variables used in the function of their Let
  ScopeTree scopes_;
};

Function to_graph_normal_form(const Function& f, const Purity& purity) {
  Candidates candidates(f, purity);
  if (candidates.lets().empty()) return f;
  class Convert : public Rewriter {
   public:
    explicit Convert(const Candidates& candidates)
        : Rewriter(family::program), candidates_(candidates) {
      for (const LetNode* l : candidates.lets()) {
        const LetNode*& last = last_with_value_[l->value.get()];
        if (last != nullptr) before_[l] = last;
        last = l;
      }
    }
    // A Let's value is rewritten before its body, where the variable is met.
    NodeRef post(const NodeRef& original, NodeRef rebuilt) override {
      auto* l = as<LetNode>(original);
      NodeRef result = l != nullptr && candidates_.contains(l->var)
                           ? NodeRef(as<LetNode>(rebuilt)->body)
                           : rebuilt;
      assign(original.get(), result);
      return result;
    }

   private:
    // The variables bound to an expression stand for what it became, and so do those bound to them.
    void assign(const Node* value, const NodeRef& result) {
      work_.push_back(value);
      while (!work_.empty()) {
        const LetNode* const* last = last_with_value_.find(work_.back());
        work_.pop_back();
        while (last != nullptr) {
          set((*last)->var, result);
          work_.push_back((*last)->var.get());
          last = before_.find(*last);
        }
      }
    }

    const Candidates& candidates_;
    NodeMap<const LetNode*> last_with_value_;
    NodeMap<const LetNode*> before_;  // of two with one value
    std::vector<const Node*> work_;
  };
  return Convert(candidates).apply(f);
}

Module run_to_graph_normal_form(const Module& mod, PassContext&) {
  Purity purity(mod);
  return map_functions(mod, [&](const GlobalVar&, const Function& f) {
    return f->is_primitive() ? f : to_graph_normal_form(f, purity);
  });
}

}  // namespace

const Pass kToGraphNormalForm{
    "ToGraphNormalForm",     1, Form::any, Form::any, "Replaces names by sharing.",
    run_to_graph_normal_form};

}  // namespace relay
