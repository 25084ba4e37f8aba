#include "passes/purity.h"

#include <vector>

#include "ir/op.h"
#include "node/walk.h"
#include "passes/components.h"

namespace relay {

bool is_pure_op_call(const CallNode& call) {
  auto* op = as<OpNode>(call.op);
  return op != nullptr && op->row->effect == Effect::Pure;
}

namespace {

// Expressions as vertices; an edge to everything that an evaluation evaluates. Only calls close
// cycles, so a cycle is a recursion.
class EvaluationGraph {
 public:
  explicit EvaluationGraph(const Module& mod) : mod_(mod) {
    for (const Function& f : mod->functions) collect(f);
    for (const Node* n : nodes_) connect(*n);
  }

  void solve() {
    total_.resize(nodes_.size());
    own_alone_ = own_;
    for (const std::vector<size_t>& group : strong_components(edges_)) join(group);
  }

  size_t size() const { return nodes_.size(); }
  const Node* node(size_t i) const { return nodes_[i]; }
  Effects own(size_t i) const { return own_alone_[i]; }
  Effects total(size_t i) const { return total_[i]; }

 private:
  void collect(const Function& f) {
    post_order(
        f,
        [&](const Node& n) {
          if (n.info().family != family::expr) return;
          if (!index_.emplace(&n, nodes_.size()).second) return;
          nodes_.push_back(&n);
          auto* l = as<LetNode>(&n);
          if (l == nullptr) return;
          if (auto* bound = as<FunctionNode>(l->value))
            known_functions_.emplace(l->var.get(), bound);
        },
        family::expr | family::pattern);
  }

  // The function that a callee is known to be.
  const FunctionNode* target(const Expr& callee) const {
    if (auto* f = as<FunctionNode>(callee)) return f;
    if (auto* g = as<GlobalVarNode>(callee)) return mod_->find(g->name_hint).get();
    auto it = known_functions_.find(callee.get());
    return it == known_functions_.end() ? nullptr : it->second;
  }

  void connect(const Node& n) {
    std::vector<size_t> edges;
    Effects own;
    auto add = [&](const Node* to) {
      auto it = index_.find(to);
      if (it != index_.end()) edges.push_back(it->second);
    };
    switch (n.kind()) {
      case ExprKind::Function:
        break;
      case ExprKind::Call: {
        auto& c = static_cast<const CallNode&>(n);
        if (auto* op = as<OpNode>(c.op)) {
          if (op->row->effect != Effect::Pure) own = Effects::write();
        } else if (auto* f = target(c.op)) {
          add(f->body.get());
        } else if (!isa<ConstructorNode>(c.op)) {
          own = Effects::all();
        }
        for_each_child(n, [&](const NodeRef& child) { add(child.get()); });
        break;
      }
      case ExprKind::Match: {
        auto& m = static_cast<const MatchNode&>(n);
        if (!m.complete) own = Effects::partial();
        add(m.data.get());
        for (const Clause& c : m.clauses) add(c->rhs.get());
        break;
      }
      case ExprKind::RefCreate:
        own = Effects::alloc();
        break;
      case ExprKind::RefRead:
        own = Effects::read();
        break;
      case ExprKind::RefWrite:
        own = Effects::write();
        break;
      default:
        break;
    }
    if (n.kind() != ExprKind::Function && n.kind() != ExprKind::Call &&
        n.kind() != ExprKind::Match) {
      for_each_child(n, [&](const NodeRef& child) { add(child.get()); });
    }
    edges_.push_back(std::move(edges));
    own_.push_back(own);
  }

  // What is recursive may not end.
  void join(const std::vector<size_t>& group) {
    Effects joined = group.size() > 1 ? Effects::partial() : Effects::none();
    for (size_t v : group) {
      joined = joined | own_[v];
      for (size_t to : edges_[v]) {
        joined = joined | (to == v ? Effects::partial() : total_[to]);
      }
    }
    for (size_t v : group) total_[v] = joined;
    // What a call adds besides its arguments is what its callee does.
    for (size_t v : group) {
      auto* c = as<CallNode>(nodes_[v]);
      auto* f = c == nullptr ? nullptr : target(c->op);
      if (f != nullptr) own_alone_[v] = own_[v] | total_[index_.at(f->body.get())];
    }
  }

  const Module& mod_;
  std::vector<const Node*> nodes_;
  std::unordered_map<const Node*, size_t> index_;
  std::unordered_map<const Node*, const FunctionNode*> known_functions_;
  std::vector<std::vector<size_t>> edges_;
  std::vector<Effects> own_;
  std::vector<Effects> own_alone_;
  std::vector<Effects> total_;
};

}  // namespace

Purity::Purity(const Module& mod) : mod_(mod) {
  EvaluationGraph graph(mod_);
  graph.solve();
  entries_.reserve(graph.size());
  for (size_t i = 0; i < graph.size(); ++i) {
    entries_.emplace(graph.node(i), Entry{graph.own(i), graph.total(i)});
  }
}

const Purity::Entry& Purity::entry(const Expr& e) const {
  auto it = entries_.find(e.get());
  RELAY_CHECK(it != entries_.end(), "the effects of an expression of another module were asked");
  return it->second;
}

Effects Purity::of(const Expr& e) const { return entry(e).total; }
Effects Purity::of_node(const Expr& e) const { return entry(e).own; }

}  // namespace relay
