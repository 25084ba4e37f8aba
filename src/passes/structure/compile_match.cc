#include "passes/structure/compile_match.h"

#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "ir/scope.h"
#include "node/structural.h"
#include "node/walk.h"
#include "passes/structure/to_basic_block_normal_form.h"
#include "types/decision_tree.h"

namespace relay {
namespace {

bool is_plain(const Pattern& p) { return isa<PatternWildcardNode>(p) || isa<PatternVarNode>(p); }

// Whether the match asks one question, each answer in one clause.
bool is_flat(const MatchNode& m) {
  std::unordered_set<const Node*> seen;
  for (const Clause& c : m.clauses) {
    if (is_plain(c->lhs)) return c == m.clauses.back();
    auto* k = as<PatternConstructorNode>(c->lhs);
    for (const Pattern& p : k != nullptr ? k->patterns : as<PatternTupleNode>(c->lhs)->patterns) {
      if (!is_plain(p)) return false;
    }
    if (k == nullptr) return m.clauses.size() == 1;
    if (!seen.insert(k->constructor.get()).second) return false;
  }
  return true;
}

Pattern wildcard() { return make<PatternWildcardNode>(); }
Pattern pattern_var(const Var& v) {
  return make<PatternVarNode>([&](PatternVarNode& n) { n.var = v; });
}

// One match on its way to a decision tree: first its parts get variables, which stand for the
// patterns' own in the right sides; then, when these are rewritten, the tree is written.
class TreeWriter {
 public:
  TreeWriter(const MatchNode& m, DecisionTree tree, const Expr& data)
      : match_(m), tree_(std::move(tree)), ways_(m.clauses.size()), joins_(m.clauses.size()) {
    name_places(data);
    for (const DecisionTree::Node& n : tree_.nodes) {
      if (n.clause >= 0) ++ways_[static_cast<size_t>(n.clause)];
    }
    for (const DecisionTree::Node& n : tree_.nodes) {
      if (n.clause >= 0) choose(n);
    }
  }

  // What stands for the variables of the patterns, where one variable does.
  const std::vector<std::pair<Var, Var>>& renamed() const { return renamed_; }

  Expr write(const MatchNode& rewritten) {
    rewritten_ = &rewritten;
    std::vector<Expr> written(tree_.nodes.size());
    // Children before parents.
    for (size_t i = tree_.nodes.size(); i-- > 0;) {
      const DecisionTree::Node& n = tree_.nodes[i];
      written[i] = n.clause >= 0 ? leaf(n) : test(n, written);
    }
    return enter(written);
  }

 private:
  struct Join {
    std::vector<Var> params, names;  // a pattern's variable for each parameter
    Var function;
  };

  const Span& span() const { return match_.span; }
  Var& var_at(int place) { return vars_[static_cast<size_t>(place)]; }

  void name_places(const Expr& data) {
    std::vector<std::string> hints(tree_.places.size(), "m");
    for (const DecisionTree::Node& n : tree_.nodes) {
      for (const DecisionTree::Binding& b : n.bindings) {
        hints[static_cast<size_t>(b.place)] = b.var->name_hint;
      }
    }
    vars_.resize(tree_.places.size());
    vars_[0] = isa<VarNode>(data) ? cast<VarNode>(data) : var(hints[0], match_.data->type, span());
    for (size_t i = 1; i < vars_.size(); ++i) {
      const DecisionTree::Place& p = tree_.places[i];
      vars_[i] = var(hints[i], part_type(var_at(p.parent)->type, p.constructor, p.part), span());
    }
    used_.assign(vars_.size(), false);
  }

  // A clause with one way to it takes the variables of that way; one with several takes parameters.
  void choose(const DecisionTree::Node& n) {
    auto c = static_cast<size_t>(n.clause);
    bool copied = is_leaf(*match_.clauses[c]->rhs);
    Join& join = joins_[c];
    if (ways_[c] > 1 && (copied || join.function)) return;
    std::vector<Type> types;
    for (const DecisionTree::Binding& b : n.bindings) {
      Var to = var_at(b.place);
      if (ways_[c] > 1) {
        to = var(b.var->name_hint, to->type, b.var->span);
        join.params.push_back(to);
        join.names.push_back(b.var);
        types.push_back(to->type);
      }
      if (structural_equal(to->type, b.var->type)) {
        renamed_.emplace_back(b.var, to);
      } else {
        kept_.insert(b.var.get());
      }
    }
    if (ways_[c] == 1) return;
    Type result = match_.clauses[c]->rhs->type;
    join.function = var("join", func_type(std::move(types), result), span());
  }

  // The right side where its variables' values are available.
  Expr bound(Expr body, const Var& name, const Expr& value) {
    return kept_.contains(name.get()) ? Expr(let(name, value, body, span())) : body;
  }

  Expr at_place(int place) {
    used_[static_cast<size_t>(place)] = true;
    return var_at(place);
  }

  Expr leaf(const DecisionTree::Node& n) {
    auto c = static_cast<size_t>(n.clause);
    Expr body = rewritten_->clauses[c]->rhs;
    if (ways_[c] == 1) {
      for (const DecisionTree::Binding& b : n.bindings)
        body = bound(body, b.var, at_place(b.place));
      return body;
    }
    const Join& join = joins_[c];
    if (!join.function) {
      for (const DecisionTree::Binding& b : n.bindings) {
        if (b.var == body) return at_place(b.place);
      }
      return body;
    }
    std::vector<Expr> args;
    for (const Var& name : join.names) {
      for (const DecisionTree::Binding& b : n.bindings) {
        if (b.var == name) args.push_back(at_place(b.place));
      }
    }
    return call(join.function, std::move(args), nullptr, body->span);
  }

  Expr test(const DecisionTree::Node& n, const std::vector<Expr>& written) {
    bool complete = !n.open || n.otherwise >= 0;
    std::vector<Clause> clauses;
    for (const DecisionTree::Branch& b : n.branches) {
      complete &= b.next >= 0;
      if (b.next < 0) continue;
      std::vector<Pattern> parts;
      for (int i = 0; i < b.num_parts; ++i) {
        bool used = used_[static_cast<size_t>(b.first_part + i)];
        parts.push_back(used ? pattern_var(var_at(b.first_part + i)) : wildcard());
      }
      clauses.push_back(
          clause(pattern(b.constructor, std::move(parts)), written[static_cast<size_t>(b.next)]));
    }
    if (n.otherwise >= 0) {
      clauses.push_back(clause(wildcard(), written[static_cast<size_t>(n.otherwise)]));
    }
    return match(at_place(n.place), std::move(clauses), complete, span());
  }

  static Pattern pattern(const ConstructorNode* constructor, std::vector<Pattern> parts) {
    if (constructor == nullptr) {
      return make<PatternTupleNode>([&](PatternTupleNode& n) { n.patterns = std::move(parts); });
    }
    return make<PatternConstructorNode>([&](PatternConstructorNode& n) {
      n.constructor = ref(*constructor);
      n.patterns = std::move(parts);
    });
  }

  // The tree with what comes before it: the value, unless it has a name, and the functions for
  // right sides.
  Expr enter(const std::vector<Expr>& written) {
    const Expr& data = rewritten_->data;
    const DecisionTree::Node& root = tree_.nodes[0];
    bool in_parts = false;
    if (auto* t = as<TupleNode>(data); t != nullptr && root.clause < 0) {
      in_parts = true;
      for (const DecisionTree::Node& n : tree_.nodes) {
        for (const DecisionTree::Binding& b : n.bindings) in_parts &= b.place != 0;
      }
    }
    Expr out = written[in_parts ? static_cast<size_t>(root.branches[0].next) : 0];
    for (size_t c = joins_.size(); c-- > 0;) {
      Join& join = joins_[c];
      if (!join.function) continue;
      Expr body = rewritten_->clauses[c]->rhs;
      for (size_t i = 0; i < join.names.size(); ++i)
        body = bound(body, join.names[i], join.params[i]);
      out = let(join.function, function(join.params, body, body->type, {}, {}, body->span), out,
                span());
    }
    if (in_parts) {
      auto* t = as<TupleNode>(data);
      for (size_t i = t->fields.size(); i-- > 0;) {
        out = let(var_at(root.branches[0].first_part + static_cast<int>(i)), t->fields[i], out,
                  span());
      }
      return out;
    }
    return vars_[0] == data ? out : Expr(let(vars_[0], data, out, span()));
  }

  const MatchNode& match_;
  const MatchNode* rewritten_ = nullptr;
  DecisionTree tree_;
  std::vector<Var> vars_;   // by place
  std::vector<bool> used_;  // places that something written so far names
  std::vector<int> ways_;   // leaves of each clause
  std::vector<Join> joins_;
  std::vector<std::pair<Var, Var>> renamed_;
  std::unordered_set<const Node*> kept_;  // variables that name a value of a less exact type
};

class Compiler : public Rewriter {
 public:
  explicit Compiler(const Module& mod) : Rewriter(family::program), mod_(mod) {}

  NodeRef pre(const NodeRef& n) override {
    auto* m = as<MatchNode>(n);
    if (m == nullptr || is_flat(*m)) return nullptr;
    std::optional<DecisionTree> tree = decision_tree(*m, mod_);
    if (!tree) return nullptr;
    NodeRef data = lookup(m->data.get());
    TreeWriter writer(*m, std::move(*tree), data ? Expr::unchecked(data) : m->data);
    for (const auto& [from, to] : writer.renamed()) set(from, to);
    writers_.emplace(m, std::move(writer));
    return nullptr;
  }

  NodeRef post(const NodeRef& original, NodeRef rebuilt) override {
    auto it = writers_.find(original.get());
    if (it == writers_.end()) return rebuilt;
    Expr out = it->second.write(*as<MatchNode>(rebuilt));
    writers_.erase(it);
    return out;
  }

 private:
  const Module& mod_;
  std::unordered_map<const Node*, TreeWriter> writers_;
};

bool has_deep_match(const Function& f) {
  bool any = false;
  post_order(
      f,
      [&](const Node& n) {
        auto* m = as<MatchNode>(&n);
        any |= m != nullptr && !is_flat(*m);
      },
      family::program);
  return any;
}

Module run_compile_match(const Module& mod, PassContext&) {
  std::optional<Purity> purity;
  return map_functions(mod, [&](const GlobalVar&, const Function& f) {
    if (!has_deep_match(f)) return f;
    if (!purity) purity.emplace(mod);
    // Right sides move: what they share with others is named where it is computed.
    return Compiler(mod).apply(to_basic_block_normal_form(f, *purity));
  });
}

}  // namespace

const Pass kCompileMatch{"CompileMatch",
                         0,
                         Form::any,
                         Form::any,
                         "Makes decision trees of matches with nested patterns.",
                         run_compile_match};

}  // namespace relay
