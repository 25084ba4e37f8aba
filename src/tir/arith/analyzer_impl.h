// What an Analyzer knows and does, for the files that make it up:
//   analyzer.cc          whole expressions; one node for equal expressions
//   analyzer_sums.cc     linear forms, and quotients and remainders of them
//   analyzer_bounds.cc   bounds, modular sets and facts
//   analyzer_nodes.cc    products, comparisons and other nodes
//   analyzer_vectors.cc  ramps and broadcasts
#pragma once

#include <map>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tir/arith/analyzer.h"
#include "tir/arith/counting.h"

namespace relay::tir {

// constant + sum of coefficient * atom; atoms are interned, in the order of their first appearance. The atoms are numbers of
// int64; the sum is an integer of any size.
struct Linear {
  std::vector<std::pair<const PrimExprNode*, int64_t>> terms;
  int64_t constant = 0;
};

// a + k*b; empty when it overflows or grows too large.
std::optional<Linear> add_scaled(const Linear& a, const Linear& b, int64_t k,
                                 const std::unordered_map<const Node*, size_t>& order);

inline const BinaryNode* as_binary(const Node* n, BinaryOp op) {
  auto* b = as<BinaryNode>(n);
  return b != nullptr && b->op == op ? b : nullptr;
}

// An index is bounded by a few conditions, one for each of its loops that were split.
constexpr int kMaxFactsAtOnce = 3;
// The greatest value of what counts, where no bound of it is known.
constexpr int64_t kMostCount = int64_t{1} << 60;

struct Analyzer::Impl {
  // sum(terms) <= max, terms without a constant.
  struct Fact {
    Linear sum;
    int64_t max;
  };

  // What an expression became. A sum is built only where something other than a sum uses it: a
  // chain of additions is one linear form, not one expression for each of its parts.
  struct Simplified {
    PrimExpr original;  // keeps the key alive
    PrimExpr expr;      // null while only `sum` is known
    Linear sum;
  };

  std::unordered_map<const Node*, Bounds> ranges;
  std::map<std::pair<const Node*, int64_t>, Bounds> elements;  // of buffers
  std::vector<Fact> facts;
  std::unordered_map<const Node*, Simplified> simplified;
  std::unordered_multimap<uint64_t, PrimExpr> interned;
  std::unordered_map<const Node*, size_t> order;
  std::unordered_map<const Node*, Linear> linear_forms;
  std::unordered_map<const Node*, Linear> opaque_forms;
  std::unordered_map<const Node*, bool> known_fits;
  Counting counting;
  std::unordered_map<const Node*, Bounds> known_bounds;

  // What depends on ranges and facts.
  void forget();

  // ---- One node per expression

  static bool same_child(const NodeRef& a, const NodeRef& b);
  static uint64_t shallow_hash(const Node& n);
  static bool shallow_equal(const Node& a, const Node& b);
  PrimExpr intern(const PrimExpr& e);
  PrimExpr make_binary(BinaryOp op, const PrimExpr& a, const PrimExpr& b);

  // ---- Linear forms

  // `e` is simplified. Equal to it modulo 2^64.
  const Linear& linear(const PrimExpr& given);
  // Equal to it: of a sum that may wrap, the sum as an atom.
  const Linear& exact(const PrimExpr& given);
  // Whether the sum is a number of int64 for all values of its atoms.
  bool fits(const Linear& l);
  // The same of a product.
  bool fits(const BinaryNode& product);
  PrimExpr from_linear(const Linear& l);
  // Joins (x // c) * c*k + (x %% c) * k to x * k.
  Linear join_div_mod(Linear l);
  PrimExpr sum(const PrimExpr& a, const PrimExpr& b, int64_t k);

  // ---- Bounds

  Bounds atom_bounds(const PrimExprNode* n);
  Bounds cast_bounds(const CastNode& c);
  Bounds plain_bounds(const Linear& l);
  // The upper end, sharpened by at most `depth` of the facts from `first` on: l = facts + rest.
  int64_t sharper_max(const Linear& l, size_t first, int depth);
  // What remainders in the sum say together with what they are remainders of.
  Bounds rounded_bounds(const Linear& l);
  Bounds floored_bounds(const Linear& l);
  Bounds linear_bounds(const Linear& l);
  Bounds bounds(const PrimExpr& e);
  Bounds difference(const PrimExpr& a, const PrimExpr& b);

  // ---- Division

  // l = c*quotient + rest, where rest has the terms that c does not divide and 0 <= constant < c.
  struct Split {
    Linear quotient;
    Linear rest;
  };

  static Split split(const Linear& l, int64_t c);
  static int64_t gcd_of_terms(const Linear& l, int64_t c);
  static Linear divided(const Linear& l, int64_t g);
  PrimExpr floor_div_of(const PrimExpr& a, int64_t c);
  PrimExpr floor_mod_of(const PrimExpr& a, int64_t c);
  // (x*d + y) // d and its remainder for a symbolic d, which may be a sum, where 0 <= y < d.
  PrimExpr symbolic_div_mod(bool want_div, const PrimExpr& a, const PrimExpr& d);

  // ---- Nodes

  PrimExpr simplify_node(const PrimExpr& e);
  // What a builder made of simplified parts: itself a comparison, perhaps.
  PrimExpr simplify_folded(const PrimExpr& e);
  PrimExpr by_rules(const PrimExpr& e);
  PrimExpr simplify_binary(BinaryOp op, const PrimExpr& a, const PrimExpr& b);
  PrimExpr simplify_index(BinaryOp op, const PrimExpr& a, const PrimExpr& b);
  // Of two expressions that are no constants: distributed over a sum, so that strides combine.
  PrimExpr product(const PrimExpr& a, const PrimExpr& b);
  PrimExpr truth(bool v) { return intern(boolean(v)); }
  // Decided by bounds, or `terms op constant` with the terms' common factor taken out.
  PrimExpr compare(BinaryOp op, const PrimExpr& a, const PrimExpr& b);

  // ---- Vectors

  // A vector as base + lane*stride; a broadcast has stride 0.
  struct Lanes {
    PrimExpr base;
    PrimExpr stride;
  };

  std::optional<Lanes> lanes_of(const PrimExpr& e);
  PrimExpr make_ramp(const PrimExpr& base, const PrimExpr& stride, int lanes);
  PrimExpr simplify_vector(BinaryOp op, const PrimExpr& a, const PrimExpr& b);

  // ---- Modular sets

  Modular modular(const PrimExpr& e);
  Modular modular(const Linear& l);

  // ---- Facts

  // sum <= max, where the sum has a constant.
  void add_fact(Linear sum, int64_t max);
  void add_comparison(const BinaryNode& b);
  void add_comparison_of_quotient(BinaryOp op, const PrimExpr& quotient, const PrimExpr& e);

  // ---- Whole expressions

  PrimExpr simplify(const PrimExpr& root);
  static void push_children(const PrimExpr& e, std::vector<std::pair<PrimExpr, bool>>& stack);
  const PrimExpr& built(Simplified& s);
  const Linear& linear(Simplified& s) { return s.expr ? linear(s.expr) : s.sum; }
  // The children are simplified.
  Simplified simplify_parts(const PrimExpr& e);
  std::optional<Linear> linear_binary(BinaryOp op, Simplified& x, Simplified& y);
};

}  // namespace relay::tir
