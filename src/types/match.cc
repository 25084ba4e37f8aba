#include "types/match.h"

#include <algorithm>
#include <map>

#include "base/budget.h"
#include "base/codes/types.h"
#include "node/walk.h"
#include "types/decision_tree.h"

namespace relay {
namespace {

// Examples of uncovered values that a message shows.
constexpr size_t kMaxExamples = 3;

class MatchChecker {
 public:
  MatchChecker(const MatchNode& m, const Module& mod) : match_(m), mod_(mod) {}

  void run(std::vector<Diagnostic>& out) {
    std::optional<DecisionTree> tree = decision_tree(match_, mod_);
    if (!tree) {
      bool total = !match_.complete || takes_all(match_.clauses.back()->lhs);
      if (total) return;
      out.push_back(
          Diagnostic(codes::type_match, match_.span,
                     "the patterns of this match are too intricate to check")
              .help("match one part of the value at a time, with a match inside a match"));
      return;
    }
    tree_ = std::move(*tree);
    look();
    if (!examples_.empty() && match_.complete) report_uncovered(out);
    for (size_t i = 0; i < match_.clauses.size(); ++i) {
      if (!used_[i]) report_redundant(i, out);
    }
  }

 private:
  using Node = DecisionTree::Node;
  using Branch = DecisionTree::Branch;

  // On the path to a node: the previous node and its branch (null: none).
  struct Step {
    int node = -1;
    const Branch* branch = nullptr;
  };

  // Notes the clauses that have a leaf and the paths that end without one.
  void look() {
    used_.assign(match_.clauses.size(), false);
    way_.resize(tree_.nodes.size());
    for (size_t i = 0; i < tree_.nodes.size(); ++i) {
      const Node& n = tree_.nodes[i];
      if (n.clause >= 0) used_[static_cast<size_t>(n.clause)] = true;
      for (const Branch& b : n.branches) take({static_cast<int>(i), &b}, b.next);
      if (n.open) take({static_cast<int>(i), nullptr}, n.otherwise);
    }
  }

  void take(const Step& step, int next) {
    if (next >= 0) {
      way_[static_cast<size_t>(next)] = step;
    } else if (examples_.size() < kMaxExamples) {
      examples_.push_back(example(step));
    }
  }

  // The constructor that none of a node's branches is for; null when the type is not known.
  const ConstructorNode* missing(const Node& n) const {
    TypeData type = mod_->find_type(n.branches.front().constructor->belong_to->name_hint);
    for (const Constructor& c : type->constructors) {
      auto same = [&](const Branch& b) { return b.constructor->tag == c->tag; };
      if (std::ranges::none_of(n.branches, same)) return c.get();
    }
    return nullptr;
  }

  // A value on that path, in the notation of patterns.
  std::string example(Step step) const {
    std::map<int, Branch> at;  // by place
    while (step.node >= 0) {
      const Node& n = tree_.nodes[static_cast<size_t>(step.node)];
      Branch other;
      if (step.branch == nullptr) {
        other.constructor = missing(n);
        other.num_parts = static_cast<int>(other.constructor->inputs.size());
        other.first_part = -other.num_parts;  // places about which nothing is known
      }
      at.emplace(n.place, step.branch == nullptr ? other : *step.branch);
      step = way_[static_cast<size_t>(step.node)];
    }
    // Text to be written, or a place whose value is to be written.
    struct Due {
      int place = 0;
      const char* text = nullptr;
    };
    std::vector<Due> due{{0, nullptr}};
    std::string out;
    while (!due.empty()) {
      check_budget();
      Due d = due.back();
      due.pop_back();
      auto known = d.text != nullptr ? at.end() : at.find(d.place);
      if (known == at.end()) {
        out += d.text != nullptr ? d.text : "_";
        continue;
      }
      const Branch& b = known->second;
      bool is_tuple = b.constructor == nullptr;
      if (!is_tuple) out += b.constructor->name_hint;
      if (b.num_parts == 0 && !is_tuple) continue;
      out += "(";
      due.push_back({0, is_tuple && b.num_parts == 1 ? ",)" : ")"});
      for (int i = b.num_parts; i-- > 0;) {
        due.push_back({b.first_part + i, nullptr});
        if (i > 0) due.push_back({0, ", "});
      }
    }
    return out;
  }

  void report_uncovered(std::vector<Diagnostic>& out) const {
    std::string list;
    for (const std::string& e : examples_) list += (list.empty() ? "" : ", ") + e;
    out.push_back(
        Diagnostic(codes::type_match, match_.span, "this match does not cover every value")
            .expected("a clause for each value of the matched type")
            .found("no clause for " + list)
            .help("add `" + examples_[0] +
                  " => ...,`, or write `match?` if such a value is to stop the run"));
  }

  void report_redundant(size_t clause, std::vector<Diagnostic>& out) const {
    Diagnostic d(codes::type_match, match_.clauses[clause]->lhs->span,
                 "no value reaches this clause");
    d.severity = Severity::warning;
    d.help("remove it, or move it in front of the clauses that take its values");
    for (size_t i = 0; i < clause; ++i) {
      if (!takes_all_of(match_.clauses[i]->lhs, match_.clauses[clause]->lhs)) continue;
      d.note(match_.clauses[i]->lhs->span, "this clause takes all of its values");
      break;
    }
    out.push_back(std::move(d));
  }

  // Whether the pattern takes every value by itself: names and tuples of them.
  static bool takes_all(const Pattern& pattern) {
    bool all = true;
    post_order(
        pattern, [&](const relay::Node& n) { all &= !isa<PatternConstructorNode>(&n); },
        family::pattern);
    return all;
  }

  // Whether the one pattern takes every value that the other takes.
  static bool takes_all_of(const Pattern& one, const Pattern& other) {
    std::vector<std::pair<Pattern, Pattern>> stack{{one, other}};
    while (!stack.empty()) {
      auto [a, b] = stack.back();
      stack.pop_back();
      if (takes_all(a)) continue;
      if (a->kind() != b->kind()) return false;
      auto *x = as<PatternConstructorNode>(a), *y = as<PatternConstructorNode>(b);
      if (x != nullptr && x->constructor->tag != y->constructor->tag) return false;
      auto& p = x != nullptr ? x->patterns : as<PatternTupleNode>(a)->patterns;
      auto& q = y != nullptr ? y->patterns : as<PatternTupleNode>(b)->patterns;
      for (size_t i = 0; i < p.size(); ++i) stack.emplace_back(p[i], q[i]);
    }
    return true;
  }

  const MatchNode& match_;
  const Module& mod_;
  DecisionTree tree_;
  std::vector<Step> way_;  // how each node is reached
  std::vector<bool> used_;
  std::vector<std::string> examples_;
};

}  // namespace

std::vector<Diagnostic> check_matches(const Expr& expr, const Module& mod) {
  std::vector<Diagnostic> out;
  post_order(
      expr,
      [&](const Node& n) {
        if (auto* m = as<MatchNode>(&n)) MatchChecker(*m, mod).run(out);
      },
      family::program);
  return out;
}

std::vector<Diagnostic> check_matches(const Module& mod) {
  std::vector<Diagnostic> out;
  for (const Function& f : mod->functions) {
    std::vector<Diagnostic> more = check_matches(f, mod);
    out.insert(out.end(), more.begin(), more.end());
  }
  return out;
}

std::string constructors_text(const Type& type, const Module& mod) {
  auto header = [](const Type& t) {
    auto* call = as<TypeCallNode>(t);
    return as<GlobalTypeVarNode>(call != nullptr ? call->func : t);
  };
  auto* own = header(type);
  const TypeData data = mod && own != nullptr ? mod->find_type(own->name_hint) : nullptr;
  std::string out;
  for (size_t i = 0; data && i < data->constructors.size(); ++i) {
    const ConstructorNode& c = *data->constructors[i];
    out += (i > 0 ? ";" : "") + c.name_hint;
    for (size_t field = 0; field < c.inputs.size(); ++field) {
      auto* other = header(c.inputs[field]);
      const bool same = other != nullptr && other->name_hint == own->name_hint;
      out += std::string(field > 0 ? "," : "(") + (same ? "*" : "_");
    }
    if (!c.inputs.empty()) out += ")";
  }
  return out;
}

}  // namespace relay
