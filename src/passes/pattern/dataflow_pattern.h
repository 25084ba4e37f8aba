// Dataflow patterns: what an expression looks like, as a value.
//
//   DFPattern x = wildcard(), c = is_constant();
//   DFPattern scaled = is_op("multiply")(x, c) | is_op("multiply")(c, x);
//   DFMatch m;
//   if (m.matches(is_op("nn.relu")(scaled), e)) use(m[x], m[c]);
//
// A pattern that occurs twice stands for one expression: `is_op("add")(x, x)` matches the sum of an
// expression with itself (the same node, not an equal one). Alternatives are tried from left to
// right and the first that matches is kept; there is no way back into an alternative once it has
// matched. Patterns see calls and operands, not through `let`. The names are those of Relay's
// dataflow_pattern module.
//
// A pattern may contain itself: `is_op("exp")(self) | is_var()` is a variable under any number of
// exponentials. Its parts stand for other expressions each time, and so do those of the path of
// `dominates`.
//
// A match takes time in the size of the pattern, not of the program; what `dominates` and patterns
// that contain themselves find is kept in the DFMatch, so that matching every expression of a
// program with one DFMatch is linear too. Nothing recurses over the program.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/ancestors.h"
#include "ir/expr.h"

namespace relay {

struct OpInfo;

class DFPattern {
 public:
  struct Node;
  explicit DFPattern(std::shared_ptr<const Node> node) : node_(std::move(node)) {}

  // A call of what this pattern matches.
  DFPattern operator()(std::vector<DFPattern> args) const;
  template <class... Rest>
  DFPattern operator()(const DFPattern& first, const Rest&... rest) const {
    return (*this)(std::vector<DFPattern>{first, rest...});
  }
  // A call with any arguments.
  DFPattern with_any_args() const;
  // This or the other.
  DFPattern operator|(const DFPattern& other) const;
  // A call or function whose attribute has the value; an operator whose fusion class is the value of
  // "TOpPattern".
  DFPattern has_attr(std::string name, AttrValue value) const;
  // A tensor of the dtype.
  DFPattern has_dtype(DType dtype) const;
  // A tensor of exactly this shape.
  DFPattern has_shape(std::vector<int64_t> shape) const;
  // An expression of this type, compared by structure.
  DFPattern has_type(Type type) const;
  // An expression for which the function says so.
  DFPattern with(std::function<bool(const Expr&)> condition) const;

  // The operators that an expression must be a call of to match, or none when it may be anything.
  std::vector<std::string> root_operators() const;

  const Node* get() const { return node_.get(); }

 private:
  std::shared_ptr<const Node> node_;
};

// Anything.
DFPattern wildcard();
DFPattern is_constant();
// A variable, of that name unless it is empty.
DFPattern is_var(std::string name = {});
// This very expression; a constant, operator or function of the module also an equal one.
DFPattern is_expr(Expr expr);
// An operator by name, or by any of several.
DFPattern is_op(std::string name);
DFPattern is_any_op(std::vector<std::string> names);
// An operator whose row fulfils the condition.
DFPattern is_op_where(std::function<bool(const OpInfo&)> condition);
DFPattern is_tuple(std::vector<DFPattern> fields);
// A tuple with any fields.
DFPattern is_any_tuple();
// A field of a tuple; any field when the index is negative.
DFPattern is_tuple_get_item(DFPattern tuple, int64_t index = -1);
DFPattern is_if(DFPattern cond, DFPattern true_branch, DFPattern false_branch);
DFPattern is_let(DFPattern var, DFPattern value, DFPattern body);
DFPattern is_function(std::vector<DFPattern> params, DFPattern body);
// A function with any parameters.
DFPattern is_any_function(DFPattern body);
// The two orders of a commutative operator's operands.
DFPattern either_order(const DFPattern& op, const DFPattern& a, const DFPattern& b);
// What matches `child` and is computed from one expression that matches `parent` and from nothing
// else: every path from child's operands up ends at it and passes only what matches `path`. A variable,
// a constant or another call without operands is another end. Of several such expressions it is the
// one next to `child`.
DFPattern dominates(DFPattern parent, DFPattern path, DFPattern child);
// The pattern that `body` makes of itself. Throws UserError E0316, when it is matched, if it asks
// whether an expression matches in order to tell whether it does: `self | x`.
DFPattern recursive(const std::function<DFPattern(const DFPattern& self)>& body);

// What the parts of a pattern stand for.
class DFMatch {
 public:
  // Whether the expression matches; forgets what was matched before, but not what was found out
  // about paths and recursion.
  bool matches(const DFPattern& pattern, const Expr& e);
  // The expression that a part of the pattern stands for; it is a defect of Relay to ask for a part
  // that took no part.
  const Expr& operator[](const DFPattern& part) const;
  // Null instead, if the part took no part.
  Expr find(const DFPattern& part) const;
  // All that a part stands for: of what is on a path or within a recursion many expressions.
  std::vector<Expr> find_all(const DFPattern& part) const;
  // Each expression that took part, with the part, once; of a path and a recursion too.
  void for_each(const std::function<void(const DFPattern::Node&, const Expr&)>& visit) const;

 private:
  using Bound = std::vector<std::pair<const DFPattern::Node*, Expr>>;
  // What is asked again and again: whether a recursive pattern matches an expression, or where the
  // ways from an expression up a dominator's path end.
  struct Question {
    const DFPattern::Node* pattern;
    Expr expr;
    friend bool operator==(const Question& a, const Question& b) {
      return a.pattern == b.pattern && a.expr == b.expr;
    }
  };
  struct QuestionHash {
    size_t operator()(const Question& q) const {
      return std::hash<const void*>()(q.pattern) * 31 + std::hash<const void*>()(q.expr.get());
    }
  };
  struct Answer {
    bool ok = false;
    int place = 0;  // of a path: where the expression is in the pattern's tree
    Bound bound;    // what the parts stand for here
  };
  // The expressions that were looked at for a pattern `dominates`, as a tree: above each is the
  // expression that all ways up from its operands meet; the root, place 0, is above what is not on
  // the path and where the ways have nothing in common.
  struct Place {
    TreeStep step;
    Expr expr;
    int parent = 0;  // the next place from here up that matches the pattern's parent; 0: none
  };
  using Places = std::vector<Place>;

  // Answers a question; false when others must be answered before (`open_` has them).
  bool try_answer(const Question& q, Answer& out);
  bool try_path(const Question& q, Answer& out);
  void answer_all(const Question& first);
  const Answer* known(const DFPattern::Node& p, const Expr& e);

  bool match(const DFPattern::Node& p, const Expr& e);
  bool match_dominated(const DFPattern::Node& p, const Expr& child);
  Places& places_of(const DFPattern::Node& p);
  // Where the ways up from an expression's operands meet: 0 where they do not, or where their places
  // are not known yet.
  int meeting_place(const DFPattern::Node& p, const Expr& e);

  Bound bound_;
  std::vector<DFPattern> kept_;  // patterns that answers speak of
  std::unordered_map<Question, Answer, QuestionHash> answers_;
  std::unordered_map<const DFPattern::Node*, Places> places_;
  std::unordered_map<Question, Expr, QuestionHash> parents_;  // of what `dominates` has matched
  std::vector<Question> open_;
};

// Whether a part is a shape of its own (a call, tuple, ...), rather than something that may be anything.
bool is_composite(const DFPattern::Node& part);
// Whether the part is is_constant() or an is_expr of a constant.
bool is_constant_part(const DFPattern::Node& part);

}  // namespace relay
