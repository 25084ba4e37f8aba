#include "passes/dead_code_elimination.h"

#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "node/walk.h"
#include "passes/purity.h"

namespace relay {
namespace {

constexpr uint32_t kFamilies = family::expr | family::pattern;

bool is_leaf(const Expr& e) {
  return isa<VarNode>(e) || isa<ConstantNode>(e) || isa<GlobalVarNode>(e) || isa<OpNode>(e) ||
         isa<ConstructorNode>(e);
}

// What a projection of a tuple that is at hand stands for; null when it must stay.
class Projections {
 public:
  Projections(const Function& f, const Purity& purity) : purity_(purity) {
    post_order(
        f,
        [&](const Node& n) {
          auto* l = as<LetNode>(&n);
          if (l == nullptr) return;
          if (auto* t = as<TupleNode>(l->value)) bound_.emplace(l->var.get(), t);
        },
        kFamilies);
  }

  Expr field_of(const TupleGetItemNode& g) const {
    auto index = static_cast<size_t>(g.index);
    if (auto* t = as<TupleNode>(g.tuple)) {
      for (size_t i = 0; i < t->fields.size(); ++i) {
        if (i != index && !purity_.of(t->fields[i]).droppable()) return nullptr;
      }
      return t->fields[index];
    }
    auto it = bound_.find(g.tuple.get());
    if (it == bound_.end() || !is_leaf(it->second->fields[index])) return nullptr;
    return it->second->fields[index];
  }

 private:
  const Purity& purity_;
  std::unordered_map<const Node*, const TupleNode*> bound_;
};

// Marks what stays, from the function's body on. The value of a Let that may be left out is
// reached only through its variable.
class Marker {
 public:
  Marker(const Purity& purity, const Projections& projections)
      : purity_(purity), projections_(projections) {}

  void run(const Function& f) {
    reach(f.get());
    while (!work_.empty()) {
      const Node* n = work_.back();
      work_.pop_back();
      step(*n);
    }
  }

  bool is_dead(const LetNode& l) const {
    return dropped_.contains(&l) && !used_.contains(l.var.get());
  }

 private:
  void reach(const Node* n) {
    if (n->info().family & kFamilies && seen_.insert(n).second) work_.push_back(n);
  }

  void step(const Node& n) {
    if (isa<VarNode>(&n)) return use(n);
    if (auto* l = as<LetNode>(&n)) {
      if (!purity_.of(l->value).droppable() || used_.contains(l->var.get())) {
        reach(l->value.get());
      } else {
        waiting_[l->var.get()].push_back(l);
        dropped_.insert(l);
      }
      return reach(l->body.get());
    }
    if (auto* f = as<FunctionNode>(&n)) return reach(f->body.get());
    if (auto* g = as<TupleGetItemNode>(&n)) {
      if (Expr field = projections_.field_of(*g)) return reach(field.get());
    }
    for_each_child(n, [&](const NodeRef& child) { reach(child.get()); });
  }

  void use(const Node& variable) {
    if (!used_.insert(&variable).second) return;
    auto it = waiting_.find(&variable);
    if (it == waiting_.end()) return;
    for (const LetNode* l : it->second) reach(l->value.get());
  }

  const Purity& purity_;
  const Projections& projections_;
  std::vector<const Node*> work_;
  std::unordered_set<const Node*> seen_;
  std::unordered_set<const Node*> used_;     // variables
  std::unordered_set<const Node*> dropped_;  // Lets whose value may be left out
  std::unordered_map<const Node*, std::vector<const LetNode*>> waiting_;
};

Function eliminate(const Function& f, const Purity& purity) {
  Projections projections(f, purity);
  Marker marker(purity, projections);
  marker.run(f);
  class Eliminate : public Rewriter {
   public:
    Eliminate(const Marker& marker, const Projections& projections)
        : Rewriter(kFamilies), marker_(marker), projections_(projections) {}
    NodeRef post(const NodeRef& original, NodeRef rebuilt) override {
      if (auto* l = as<LetNode>(original)) {
        return marker_.is_dead(*l) ? NodeRef(as<LetNode>(rebuilt)->body) : rebuilt;
      }
      auto* g = as<TupleGetItemNode>(original);
      if (g == nullptr) return rebuilt;
      Expr field = projections_.field_of(*g);
      if (!field) return rebuilt;
      NodeRef now = lookup(field.get());
      return now ? now : NodeRef(field);
    }

   private:
    const Marker& marker_;
    const Projections& projections_;
  };
  return Eliminate(marker, projections).apply(f);
}

Module run(const Module& mod, PassContext&) {
  Purity purity(mod);
  return map_functions(mod,
                       [&](const GlobalVar&, const Function& f) { return eliminate(f, purity); });
}

}  // namespace

const Pass kDeadCodeElimination{
    "DeadCodeElimination", 1, Form::any, Form::any, "Drops what is computed and never used.", run};

}  // namespace relay
