#include "passes/structure/dead_code_elimination.h"

#include <vector>

#include "analysis/purity.h"
#include "ir/scope.h"
#include "node/node_map.h"
#include "node/walk.h"

namespace relay {
namespace {

// What a projection of a known tuple stands for; null when it must stay.
class Projections {
 public:
  Projections(const Function& f, const Purity& purity) : purity_(purity) {
    post_order(
        f,
        [&](const Node& n) {
          auto* l = as<LetNode>(&n);
          if (l == nullptr) return;
          if (auto* t = as<TupleNode>(l->value)) bound_[l->var.get()] = t;
        },
        family::program);
  }

  Expr field_of(const TupleGetItemNode& g) const {
    auto index = static_cast<size_t>(g.index);
    if (auto* t = as<TupleNode>(g.tuple)) {
      for (size_t i = 0; i < t->fields.size(); ++i) {
        if (i != index && !purity_.of(t->fields[i]).droppable()) return nullptr;
      }
      return t->fields[index];
    }
    const TupleNode* const* bound = bound_.find(g.tuple.get());
    if (bound == nullptr || !is_leaf(*(*bound)->fields[index])) return nullptr;
    return (*bound)->fields[index];
  }

 private:
  const Purity& purity_;
  NodeMap<const TupleNode*> bound_;
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
    return waiting_.contains(l.var.get()) && !used_.contains(l.var.get());
  }

 private:
  void reach(const Node* n) {
    if (n->info().family & family::program && seen_.insert(n)) work_.push_back(n);
  }

  void step(const Node& n) {
    if (isa<VarNode>(&n)) return use(n);
    if (auto* l = as<LetNode>(&n)) {
      if (!purity_.of(l->value).droppable() || used_.contains(l->var.get())) {
        reach(l->value.get());
      } else {
        waiting_[l->var.get()] = l;
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
    if (!used_.insert(&variable)) return;
    const LetNode* const* waiting = waiting_.find(&variable);
    if (waiting != nullptr) reach((*waiting)->value.get());
  }

  const Purity& purity_;
  const Projections& projections_;
  std::vector<const Node*> work_;
  NodeSet seen_;
  NodeSet used_;                     // variables
  NodeMap<const LetNode*> waiting_;  // Lets whose value may be left out, by variable
};

Function eliminate(const Function& f, const Purity& purity) {
  Projections projections(f, purity);
  Marker marker(purity, projections);
  marker.run(f);
  class Eliminate : public Rewriter {
   public:
    Eliminate(const Marker& marker, const Projections& projections)
        : Rewriter(family::program), marker_(marker), projections_(projections) {}
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

Module run_dead_code_elimination(const Module& mod, PassContext&) {
  Purity purity(mod);
  return map_functions(mod,
                       [&](const GlobalVar&, const Function& f) { return eliminate(f, purity); });
}

}  // namespace

const Pass kDeadCodeElimination{
    "DeadCodeElimination",    1, Form::any, Form::any, "Drops what is computed and never used.",
    run_dead_code_elimination};

}  // namespace relay
