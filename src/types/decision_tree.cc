#include "types/decision_tree.h"

#include <algorithm>
#include <map>

#include "base/budget.h"
#include "ir/type_params.h"
#include "node/walk.h"

namespace relay {
namespace {

// Nodes that a tree may have for each pattern of its match, beside a few for small ones: trees of
// usual matches have about one.
constexpr size_t kMaxGrowth = 8, kSmall = 64;

// A pattern of the matrix; null matches every value.
using Cell = const PatternNode*;

struct Row {
  int clause;
  std::vector<Cell> cells;
  int bindings;  // the last of a linked list, negative when empty
};

// Values that these clauses may still match, and the position of their node.
struct Case {
  std::vector<Row> rows;
  std::vector<int> places;  // of the columns
  int parent = -1;          // the node that leads here
  int branch = -1;          // its branch; negative: otherwise
};

const std::vector<Pattern>& parts_of(Cell p) {
  if (auto* c = as<PatternConstructorNode>(p)) return c->patterns;
  return as<PatternTupleNode>(p)->patterns;
}

const ConstructorNode* constructor_of(Cell p) {
  auto* c = as<PatternConstructorNode>(p);
  return c == nullptr ? nullptr : c->constructor.get();
}

// A constructor's index among its siblings; a tuple is the only constructor of its type.
int64_t tag_of(Cell p) {
  auto* c = constructor_of(p);
  return c == nullptr ? 0 : c->tag;
}

class Builder {
 public:
  Builder(const MatchNode& m, const Module& mod) : mod_(mod) {
    Case all;
    all.places = {0};
    tree_.places.push_back({});
    for (size_t i = 0; i < m.clauses.size(); ++i) {
      post_order(
          m.clauses[i]->lhs, [&](const relay::Node&) { ++limit_; }, family::pattern);
      Row row{static_cast<int>(i), {}, -1};
      row.cells.push_back(cell(m.clauses[i]->lhs, 0, row));
      all.rows.push_back(std::move(row));
    }
    limit_ = limit_ * kMaxGrowth + kSmall;
    if (!all.rows.empty()) waiting_.push_back(std::move(all));
  }

  std::optional<DecisionTree> run() {
    while (!waiting_.empty()) {
      check_budget();
      if (tree_.nodes.size() > limit_) return std::nullopt;
      Case c = std::move(waiting_.back());
      waiting_.pop_back();
      if (!c.rows.empty()) add(std::move(c));
    }
    return std::move(tree_);
  }

 private:
  struct Link {
    Var var;
    int place;
    int before;
  };

  // The rest of a pattern at a place after its name is noted.
  Cell cell(const Pattern& p, int place, Row& row) {
    if (isa<PatternWildcardNode>(p)) return nullptr;
    auto* v = as<PatternVarNode>(p);
    if (v == nullptr) return p.get();
    links_.push_back({v->var, place, row.bindings});
    row.bindings = static_cast<int>(links_.size()) - 1;
    return nullptr;
  }

  void add(Case c) {
    auto index = static_cast<int>(tree_.nodes.size());
    if (c.parent >= 0) {
      DecisionTree::Node& parent = tree_.nodes[static_cast<size_t>(c.parent)];
      int& link =
          c.branch < 0 ? parent.otherwise : parent.branches[static_cast<size_t>(c.branch)].next;
      link = index;
    }
    tree_.nodes.emplace_back();
    // Behind a clause that takes everything no clause is reached.
    for (size_t i = 0; i < c.rows.size(); ++i) {
      if (std::ranges::all_of(c.rows[i].cells, [](Cell p) { return p == nullptr; })) {
        c.rows.resize(i + 1);
        break;
      }
    }
    int column = best_column(c);
    if (column >= 0) return split(c, static_cast<size_t>(column), index);
    DecisionTree::Node& leaf = tree_.nodes.back();
    leaf.clause = c.rows[0].clause;
    for (int b = c.rows[0].bindings; b >= 0; b = links_[static_cast<size_t>(b)].before) {
      leaf.bindings.push_back(
          {links_[static_cast<size_t>(b)].var, links_[static_cast<size_t>(b)].place});
    }
    std::ranges::reverse(leaf.bindings);
  }

  // The column that most clauses from the first on look at (the heuristic "needed prefix"), of
  // these the one with the fewest constructors. Negative when the first clause looks at none.
  static int best_column(const Case& c) {
    int best = -1;
    size_t best_prefix = 0, best_heads = 0;
    for (size_t column = 0; column < c.places.size(); ++column) {
      size_t prefix = 0;
      while (prefix < c.rows.size() && c.rows[prefix].cells[column] != nullptr) ++prefix;
      if (prefix == 0 || prefix < best_prefix) continue;
      std::map<int64_t, bool> heads;
      for (const Row& r : c.rows) {
        if (r.cells[column] != nullptr) heads[tag_of(r.cells[column])] = true;
      }
      if (prefix == best_prefix && heads.size() >= best_heads) continue;
      best = static_cast<int>(column);
      best_prefix = prefix;
      best_heads = heads.size();
    }
    return best;
  }

  // One case for each constructor in the column, and one for all others.
  void split(const Case& c, size_t column, int index) {
    std::map<int64_t, size_t> order;  // of the branch of a tag
    std::vector<Case> cases;
    DecisionTree::Node& node = tree_.nodes[static_cast<size_t>(index)];
    node.place = c.places[column];
    for (const Row& r : c.rows) {
      Cell head = r.cells[column];
      if (head == nullptr || !order.emplace(tag_of(head), cases.size()).second) continue;
      int first = static_cast<int>(tree_.places.size());
      int parts = static_cast<int>(parts_of(head).size());
      for (int i = 0; i < parts; ++i) {
        tree_.places.push_back({c.places[column], constructor_of(head), i});
      }
      node.branches.push_back({constructor_of(head), first, parts, -1});
      cases.push_back({{}, {}, index, static_cast<int>(cases.size())});
    }
    node.open = has_others(node.branches);
    Case others{{}, {}, index, -1};
    for (const Row& r : c.rows) {
      if (Cell p = r.cells[column]) {
        size_t i = order.at(tag_of(p));
        cases[i].rows.push_back(narrowed(r, column, p, node.branches[i]));
        continue;
      }
      for (size_t i = 0; i < cases.size(); ++i) {
        cases[i].rows.push_back(narrowed(r, column, nullptr, node.branches[i]));
      }
      if (node.open) others.rows.push_back(narrowed(r, column, nullptr, {}));
    }
    if (node.open) push(std::move(others), c, column, {});
    for (size_t i = cases.size(); i-- > 0;) push(std::move(cases[i]), c, column, node.branches[i]);
  }

  // The row with the parts of `p` after the other columns.
  Row narrowed(const Row& r, size_t column, Cell p, const DecisionTree::Branch& branch) {
    Row out{r.clause, {}, r.bindings};
    out.cells.reserve(r.cells.size() + static_cast<size_t>(branch.num_parts));
    for (size_t i = 0; i < r.cells.size(); ++i) {
      if (i != column) out.cells.push_back(r.cells[i]);
    }
    for (int i = 0; i < branch.num_parts; ++i) {
      out.cells.push_back(
          p == nullptr ? nullptr
                       : cell(parts_of(p)[static_cast<size_t>(i)], branch.first_part + i, out));
    }
    return out;
  }

  // Queues a case with the columns that some clause still looks at.
  void push(Case c, const Case& from, size_t column, const DecisionTree::Branch& branch) {
    std::vector<int> places;
    for (size_t i = 0; i < from.places.size(); ++i) {
      if (i != column) places.push_back(from.places[i]);
    }
    for (int i = 0; i < branch.num_parts; ++i) places.push_back(branch.first_part + i);
    std::vector<size_t> kept;
    for (size_t i = 0; i < places.size(); ++i) {
      bool wanted =
          std::ranges::any_of(c.rows, [&](const Row& r) { return r.cells[i] != nullptr; });
      if (wanted) kept.push_back(i);
    }
    for (size_t i : kept) c.places.push_back(places[i]);
    for (Row& r : c.rows) {
      for (size_t i = 0; i < kept.size(); ++i) r.cells[i] = r.cells[kept[i]];
      r.cells.resize(kept.size());
    }
    waiting_.push_back(std::move(c));
  }

  // Whether the type has constructors beside those of the branches.
  bool has_others(const std::vector<DecisionTree::Branch>& branches) const {
    const ConstructorNode* one = branches.front().constructor;
    TypeData type = one == nullptr || !mod_ ? nullptr : mod_->find_type(one->belong_to->name_hint);
    return type && type->constructors.size() > branches.size();
  }

  const Module& mod_;
  size_t limit_ = 0;
  DecisionTree tree_;
  std::vector<Case> waiting_;
  std::vector<Link> links_;
};

}  // namespace

std::optional<DecisionTree> decision_tree(const MatchNode& m, const Module& mod) {
  return Builder(m, mod).run();
}

Type part_type(const Type& whole, const ConstructorNode* constructor, int part) {
  auto i = static_cast<size_t>(part);
  if (constructor == nullptr) return as<TupleTypeNode>(whole)->fields[i];
  auto* type = as<FuncTypeNode>(constructor->type);
  auto* applied = as<TypeCallNode>(whole);
  const Type& input = constructor->inputs[i];
  if (type == nullptr || applied == nullptr) return input;
  TypeParams args;
  for (size_t k = 0; k < type->type_params.size() && k < applied->args.size(); ++k) {
    args[type->type_params[k].get()] = applied->args[k];
  }
  return with_type_params(input, args);
}

}  // namespace relay
