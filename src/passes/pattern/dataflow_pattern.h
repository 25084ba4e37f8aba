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
// matched. The names are those of Relay's dataflow_pattern module.
//
// Matching takes time in the size of the pattern, not of the program, but for `dominates`.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

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
  // This or the other.
  DFPattern operator|(const DFPattern& other) const;
  // A call whose attribute has the value.
  DFPattern has_attr(std::string name, AttrValue value) const;
  // A tensor of the dtype.
  DFPattern has_dtype(DType dtype) const;
  // A tensor of exactly this shape.
  DFPattern has_shape(std::vector<int64_t> shape) const;
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
// This very expression.
DFPattern is_expr(Expr expr);
// An operator by name, or by any of several.
DFPattern is_op(std::string name);
DFPattern is_any_op(std::vector<std::string> names);
// An operator whose row fulfils the condition.
DFPattern is_op_where(std::function<bool(const OpInfo&)> condition);
DFPattern is_tuple(std::vector<DFPattern> fields);
// A field of a tuple; any field when the index is negative.
DFPattern is_tuple_get_item(DFPattern tuple, int64_t index = -1);
// The two orders of a commutative operator's operands.
DFPattern either_order(const DFPattern& op, const DFPattern& a, const DFPattern& b);
// What matches `child` and is computed from one expression that matches `parent`: every way from
// child's operands up ends at it or at a leaf and passes only what matches `path`.
DFPattern dominates(DFPattern parent, DFPattern path, DFPattern child);

// What the parts of a pattern stand for.
class DFMatch {
 public:
  // Whether the expression matches; forgets what was matched before.
  bool matches(const DFPattern& pattern, const Expr& e);
  // The expression that a part of the pattern stands for; it is a defect of Relay to ask for a part
  // that took no part.
  const Expr& operator[](const DFPattern& part) const;
  // Null instead, if the part took no part.
  Expr find(const DFPattern& part) const;

 private:
  bool match(const DFPattern::Node& p, const Expr& e);
  bool match_dominated(const DFPattern::Node& p, const Expr& child);

  std::vector<std::pair<const DFPattern::Node*, Expr>> bound_;
};

}  // namespace relay
