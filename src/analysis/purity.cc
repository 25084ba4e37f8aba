#include "analysis/purity.h"

#include <algorithm>
#include <unordered_map>
#include <vector>

#include "analysis/components.h"
#include "ir/op.h"
#include "node/node_map.h"
#include "node/walk.h"

namespace relay {

bool is_pure_op_call(const CallNode& call) {
  auto* op = as<OpNode>(call.op);
  return op != nullptr && op->row->effect == Effect::Pure;
}

namespace {

bool takes_functions(const FunctionNode& f) {
  for (const Var& p : f.params) {
    if (isa<FuncTypeNode>(p->type)) return true;
  }
  return false;
}

// Expressions as vertices; an edge to everything that an evaluation evaluates. Only calls close
// cycles, so a cycle is a recursion.
//
// A function with functions among its parameters is there twice: as it is, where a call of a
// parameter may do everything, and as a known caller sees it, who answers for the arguments itself.
class EvaluationGraph {
 public:
  explicit EvaluationGraph(const Module& mod) : mod_(mod) {
    for (const Function& f : mod->functions) collect(f);
    num_expressions_ = nodes_.size();
    // The list grows by the second copies.
    for (size_t i = 0; i < num_expressions_; ++i) add_copy(*nodes_[i]);
    for (size_t i = 0; i < nodes_.size(); ++i) connect(i);
  }

  void solve() {
    total_.resize(nodes_.size());
    own_alone_ = own_;
    NumberLists groups = strong_components(edges_);
    for (size_t i = 0; i < groups.size(); ++i) join(groups[i]);
  }

  size_t num_expressions() const { return num_expressions_; }
  const Node* node(size_t i) const { return nodes_[i]; }
  Effects own(size_t i) const { return own_alone_[i]; }
  Effects total(size_t i) const { return total_[i]; }
  Effects body(const FunctionNode& f) const { return total_[seen_by_caller(f)]; }

 private:
  // The second copy of a function's own expressions, those of functions inside it left out.
  struct Copy {
    const FunctionNode* function;
    NodeMap<size_t> index;
  };

  void collect(const Function& f) {
    post_order(
        f,
        [&](const Node& n) {
          if (n.info().family != family::expr) return;
          auto [at, fresh] = index_.emplace(&n);
          if (!fresh) return;
          at = nodes_.size();
          nodes_.push_back(&n);
          copy_of_.push_back(nullptr);
          auto* l = as<LetNode>(&n);
          if (l == nullptr) return;
          if (auto* bound = as<FunctionNode>(l->value)) known_functions_[l->var.get()] = bound;
        },
        family::program);
  }

  void add_copy(const Node& n) {
    auto* f = as<FunctionNode>(&n);
    if (f == nullptr || !takes_functions(*f)) return;
    Copy& copy = copies_[f];
    copy.function = f;
    post_order_if(
        f->body, [](const Node& inner) { return !isa<FunctionNode>(&inner); },
        [&](const Node& inner) {
          if (inner.info().family != family::expr) return;
          copy.index[&inner] = nodes_.size();
          nodes_.push_back(&inner);
          copy_of_.push_back(&copy);
        },
        family::program);
  }

  // The vertex of a function's body for callers that answer for the arguments.
  size_t seen_by_caller(const FunctionNode& f) const {
    auto copy = copies_.find(&f);
    if (copy != copies_.end()) {
      const size_t* found = copy->second.index.find(f.body.get());
      if (found != nullptr) return *found;
    }
    return index_.at(f.body.get());
  }

  // The function that a callee is known to be.
  const FunctionNode* target(const Expr& callee) const {
    if (auto* f = as<FunctionNode>(callee)) return f;
    if (auto* g = as<GlobalVarNode>(callee)) return mod_->find(g->name_hint).get();
    const FunctionNode* const* known = known_functions_.find(callee.get());
    return known == nullptr ? nullptr : *known;
  }

  static bool is_own_parameter(const Copy* copy, const Expr& e) {
    if (copy == nullptr) return false;
    const std::vector<Var>& params = copy->function->params;
    return std::any_of(params.begin(), params.end(), [&](const Var& p) { return p == e; });
  }

  // What a call does besides evaluating its operands.
  void connect_call(const CallNode& c, const Copy* copy, Effects& own) {
    auto calls = [&](size_t callee) {
      edges_.add(callee);
      callees_.add(callee);
    };
    if (auto* op = as<OpNode>(c.op)) {
      if (op->row->effect == Effect::Random) own = Effects::random();
      if (op->row->effect == Effect::Io) own = Effects::io();
      return;
    }
    if (isa<ConstructorNode>(c.op) || is_own_parameter(copy, c.op)) return;
    const FunctionNode* f = target(c.op);
    if (f == nullptr) {
      own = Effects::all();
      return;
    }
    calls(seen_by_caller(*f));
    for (size_t i = 0; i < f->params.size() && i < c.args.size(); ++i) {
      if (!isa<FuncTypeNode>(f->params[i]->type) || is_own_parameter(copy, c.args[i])) continue;
      if (isa<ConstructorNode>(c.args[i])) continue;
      if (auto* passed = target(c.args[i])) {
        // Its own parameters are whatever the callee has.
        calls(index_.at(passed->body.get()));
      } else {
        own = Effects::all();
      }
    }
  }

  void connect(size_t v) {
    const Node& n = *nodes_[v];
    const Copy* copy = copy_of_[v];
    Effects own;
    auto add = [&](const Node* to) {
      const size_t* found = copy == nullptr ? nullptr : copy->index.find(to);
      if (found == nullptr) found = index_.find(to);
      if (found != nullptr) edges_.add(*found);
    };
    switch (n.kind()) {
      case ExprKind::Function:
        break;
      case ExprKind::Match: {
        auto& m = static_cast<const MatchNode&>(n);
        if (!m.complete) own = Effects::partial();
        add(m.data.get());
        for (const Clause& c : m.clauses) add(c->rhs.get());
        break;
      }
      default:
        if (auto* c = as<CallNode>(&n)) connect_call(*c, copy, own);
        if (isa<RefCreateNode>(&n)) own = Effects::alloc();
        if (isa<RefReadNode>(&n)) own = Effects::read();
        if (isa<RefWriteNode>(&n)) own = Effects::write();
        for_each_child(n, [&](const NodeRef& child) { add(child.get()); });
    }
    edges_.close();
    callees_.close();
    own_.push_back(own);
  }

  // What is recursive may not end.
  void join(std::span<const size_t> group) {
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
      for (size_t callee : callees_[v]) own_alone_[v] = own_alone_[v] | total_[callee];
    }
  }

  const Module& mod_;
  std::vector<const Node*> nodes_;
  NodeMap<size_t> index_;
  NodeMap<const FunctionNode*> known_functions_;
  std::vector<const Copy*> copy_of_;  // null for the first copy
  std::unordered_map<const Node*, Copy> copies_;
  size_t num_expressions_ = 0;
  NumberLists edges_;
  NumberLists callees_;  // those of calls among them
  std::vector<Effects> own_;
  std::vector<Effects> own_alone_;
  std::vector<Effects> total_;
};

}  // namespace

Purity::Purity(const Module& mod) : mod_(mod) {
  EvaluationGraph graph(mod_);
  graph.solve();
  entries_.reserve(graph.num_expressions());
  for (size_t i = 0; i < graph.num_expressions(); ++i) {
    const Node* n = graph.node(i);
    entries_[n] = Entry{graph.own(i), graph.total(i)};
    if (auto* f = as<FunctionNode>(n)) bodies_[n] = graph.body(*f);
  }
}

const Purity::Entry& Purity::entry(const Expr& e) const {
  const Entry* found = entries_.find(e.get());
  RELAY_CHECK(found != nullptr, "the effects of an expression of another module were asked");
  return *found;
}

Effects Purity::of(const Expr& e) const { return entry(e).total; }
Effects Purity::of_node(const Expr& e) const { return entry(e).own; }

Effects Purity::of_body(const Function& f) const {
  const Effects* found = bodies_.find(f.get());
  RELAY_CHECK(found != nullptr, "the effects of a function of another module were asked");
  return *found;
}

}  // namespace relay
