#include "types/match.h"

#include <algorithm>
#include <map>
#include <unordered_set>

#include "base/diagnostic_codes.h"
#include "node/walk.h"

namespace relay {
namespace {

// Cells of pattern matrices that one match may cost; a match of 1,000 ordinary clauses takes a few
// thousand.
constexpr size_t kMaxWork = 5'000'000;
// Examples of uncovered values that a message shows.
constexpr size_t kMaxExamples = 3;

// A pattern of the matrix; null is what every value fits.
using Cell = const PatternNode*;

Cell cell(const Pattern& p) {
  return isa<PatternWildcardNode>(p) || isa<PatternVarNode>(p) ? nullptr : p.get();
}

std::span<const Pattern> parts_of(Cell p) {
  if (auto* c = as<PatternConstructorNode>(p)) return c->patterns;
  return as<PatternTupleNode>(p)->patterns;
}

// A constructor's index among its siblings; a tuple is the only constructor of its type.
int64_t tag_of(Cell p) {
  auto* c = as<PatternConstructorNode>(p);
  return c == nullptr ? 0 : c->constructor->tag;
}

struct Row {
  size_t clause = 0;
  std::vector<Cell> cells;
};

// What is known about the value in a case: at `place` stands `constructor` (null for a tuple),
// whose parts are the places from `first_part` on. Steps are linked to the ones before them.
struct Step {
  size_t before = 0;
  size_t place = 0;
  const ConstructorNode* constructor = nullptr;
  size_t first_part = 0;
  size_t num_parts = 0;
};
constexpr size_t kNoStep = ~size_t{0};

// Values that fit what the steps say, and the clauses that may still take them.
struct Case {
  std::vector<Row> rows;
  std::vector<size_t> places;  // of the columns
  size_t step = kNoStep;
};

class MatchChecker {
 public:
  MatchChecker(const MatchNode& m, const Module& mod)
      : match_(m), mod_(mod), used_(m.clauses.size()) {}

  void run(std::vector<Diagnostic>& out) {
    Case all;
    all.places = {num_places_++};
    for (size_t i = 0; i < match_.clauses.size(); ++i) {
      all.rows.push_back({i, {cell(match_.clauses[i]->lhs)}});
    }
    waiting_.push_back(std::move(all));
    while (!waiting_.empty() && work_ <= kMaxWork) {
      Case c = std::move(waiting_.back());
      waiting_.pop_back();
      look_at(std::move(c));
    }
    if (work_ > kMaxWork) {
      out.push_back(
          Diagnostic(codes::type_match, match_.span,
                     "the patterns of this match are too intricate to check")
              .help("match one part of the value at a time, with a match inside a match"));
      return;
    }
    if (!examples_.empty() && match_.complete) report_uncovered(out);
    for (size_t i = 0; i < used_.size(); ++i) {
      if (!used_[i]) report_redundant(i, out);
    }
  }

 private:
  void look_at(Case c) {
    if (c.rows.empty()) {
      if (examples_.size() < kMaxExamples) examples_.push_back(example(c.step));
      return;
    }
    // Behind a clause that takes everything no clause is reached.
    for (size_t i = 0; i < c.rows.size(); ++i) {
      work_ += c.places.size() + 1;
      if (std::ranges::all_of(c.rows[i].cells, [](Cell p) { return p == nullptr; })) {
        c.rows.resize(i + 1);
        break;
      }
    }
    const std::vector<Cell>& first = c.rows[0].cells;
    auto refutable = std::ranges::find_if(first, [](Cell p) { return p != nullptr; });
    if (refutable == first.end()) {
      used_[c.rows[0].clause] = true;
      return;
    }
    if (!is_new(c)) return;
    split(c, static_cast<size_t>(refutable - first.begin()));
  }

  // A case with the same rows has the same outcome, whatever led to it.
  bool is_new(const Case& c) {
    std::vector<uintptr_t> key;
    for (const Row& r : c.rows) {
      key.push_back(r.clause);
      for (Cell p : r.cells) key.push_back(reinterpret_cast<uintptr_t>(p));
    }
    return seen_.insert(std::move(key)).second;
  }

  // One case for each constructor that stands in the column, and one for all others.
  void split(const Case& c, size_t column) {
    std::map<int64_t, Cell> heads;
    for (const Row& r : c.rows) {
      if (r.cells[column] != nullptr) heads.emplace(tag_of(r.cells[column]), r.cells[column]);
    }
    std::map<int64_t, Case> cases;
    for (const auto& [tag, head] : heads) {
      cases[tag] = narrowed(c, column, constructor_of(head), parts_of(head).size());
    }
    const ConstructorNode* missing = nullptr;
    bool open = has_others(heads, missing);
    Case others;
    if (open) {
      others = narrowed(c, column, missing, missing == nullptr ? 0 : missing->inputs.size());
      others.places.resize(c.places.size() - 1);  // nothing asks for the parts
    }
    for (const Row& r : c.rows) {
      if (Cell p = r.cells[column]) {
        cases[tag_of(p)].rows.push_back(without(r, column, p));
        continue;
      }
      for (auto& [tag, one] : cases) {
        one.rows.push_back(without(r, column, nullptr));
        one.rows.back().cells.resize(one.places.size());
      }
      if (open) others.rows.push_back(without(r, column, nullptr));
    }
    // Cases are taken from the back: those of the first constructors come first.
    if (open) waiting_.push_back(std::move(others));
    for (auto it = cases.rbegin(); it != cases.rend(); ++it) {
      waiting_.push_back(std::move(it->second));
    }
  }

  // The case without rows in which a constructor stands in the column; its parts are the last
  // columns.
  Case narrowed(const Case& c, size_t column, const ConstructorNode* constructor,
                size_t num_parts) {
    Case out;
    out.places = c.places;
    out.places.erase(out.places.begin() + static_cast<std::ptrdiff_t>(column));
    steps_.push_back({c.step, c.places[column], constructor, num_places_, num_parts});
    out.step = steps_.size() - 1;
    for (size_t i = 0; i < num_parts; ++i) out.places.push_back(num_places_++);
    return out;
  }

  // The row with the parts of `p` in place of the column.
  Row without(const Row& r, size_t column, Cell p) {
    Row out = r;
    out.cells.erase(out.cells.begin() + static_cast<std::ptrdiff_t>(column));
    work_ += out.cells.size() + 1;
    if (p == nullptr) return out;
    for (const Pattern& part : parts_of(p)) out.cells.push_back(cell(part));
    return out;
  }

  static const ConstructorNode* constructor_of(Cell p) {
    auto* c = as<PatternConstructorNode>(p);
    return c == nullptr ? nullptr : c->constructor.get();
  }

  // Whether the type has constructors beside `heads`; the first of them in `missing`.
  bool has_others(const std::map<int64_t, Cell>& heads, const ConstructorNode*& missing) const {
    const ConstructorNode* one = constructor_of(heads.begin()->second);
    TypeData type = one == nullptr || !mod_ ? nullptr : mod_->find_type(one->belong_to->name_hint);
    if (!type) return false;
    for (const Constructor& c : type->constructors) {
      if (heads.contains(c->tag)) continue;
      missing = c.get();
      return true;
    }
    return false;
  }

  // A value of the case, in the notation of patterns.
  std::string example(size_t step) const {
    std::map<size_t, const Step*> at;
    for (; step != kNoStep; step = steps_[step].before) at[steps_[step].place] = &steps_[step];
    // Text that is due, or a place to write.
    struct Due {
      size_t place = 0;
      const char* text = nullptr;
    };
    std::vector<Due> due{{0, nullptr}};
    std::string out;
    while (!due.empty()) {
      Due d = due.back();
      due.pop_back();
      if (d.text != nullptr) {
        out += d.text;
        continue;
      }
      auto known = at.find(d.place);
      if (known == at.end()) {
        out += "_";
        continue;
      }
      const Step& s = *known->second;
      bool is_tuple = s.constructor == nullptr;
      if (!is_tuple) out += s.constructor->name_hint;
      if (s.num_parts == 0 && !is_tuple) continue;
      out += "(";
      due.push_back({0, is_tuple && s.num_parts == 1 ? ",)" : ")"});
      for (size_t i = s.num_parts; i-- > 0;) {
        due.push_back({s.first_part + i, nullptr});
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

  // Whether the one pattern takes every value that the other takes.
  static bool takes_all_of(const Pattern& one, const Pattern& other) {
    std::vector<std::pair<Cell, Cell>> stack{{cell(one), cell(other)}};
    while (!stack.empty()) {
      auto [a, b] = stack.back();
      stack.pop_back();
      if (a == nullptr) continue;
      if (b == nullptr || tag_of(a) != tag_of(b)) return false;
      for (size_t i = 0; i < parts_of(a).size(); ++i) {
        stack.emplace_back(cell(parts_of(a)[i]), cell(parts_of(b)[i]));
      }
    }
    return true;
  }

  struct KeyHash {
    size_t operator()(const std::vector<uintptr_t>& key) const {
      size_t h = key.size();
      for (uintptr_t k : key) h = h * 0x9E3779B97F4A7C15u + k;
      return h;
    }
  };

  const MatchNode& match_;
  const Module& mod_;
  std::vector<bool> used_;
  std::vector<std::string> examples_;
  std::vector<Case> waiting_;
  std::vector<Step> steps_;
  std::unordered_set<std::vector<uintptr_t>, KeyHash> seen_;
  size_t num_places_ = 0;
  size_t work_ = 0;
};

}  // namespace

std::vector<Diagnostic> check_matches(const Expr& expr, const Module& mod) {
  std::vector<Diagnostic> out;
  post_order(
      expr,
      [&](const Node& n) {
        if (auto* m = as<MatchNode>(&n)) MatchChecker(*m, mod).run(out);
      },
      family::expr | family::pattern);
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

}  // namespace relay
