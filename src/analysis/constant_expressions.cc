#include "analysis/constant_expressions.h"

#include <algorithm>
#include <cmath>

#include "analysis/purity.h"
#include "ir/prepack.h"
#include "node/walk.h"

namespace relay {
namespace {

bool is_finite(const Tensor& t) {
  if (!t.dtype().is_floating()) return true;
  int64_t n = t.num_elements();
  if (t.dtype().is_float(32)) {
    auto* from = t.data<float>();
    return std::all_of(from, from + n, [](float v) { return std::isfinite(v); });
  }
  for (int64_t i = 0; i < n; ++i) {
    if (!std::isfinite(t.get_as_double(i))) return false;
  }
  return true;
}

}  // namespace

ConstantExpressions::ConstantExpressions(const Function& f) {
  for (const Var& p : prepacked_params(*f.get())) known_[p.get()] = true;
}

bool ConstantExpressions::contains(const Expr& e) {
  if (const bool* known = known_.find(e.get())) return *known;
  post_order_if(
      e, [&](const Node& n) { return !known_.contains(&n); },
      [&](const Node& n) {
        bool constant = isa<ConstantNode>(&n);
        if (auto* c = as<CallNode>(&n)) {
          constant = is_pure_op_call(*c) && !has_symbolic_sizes(c->attrs);
          for (const Expr& a : c->args) constant = constant && known_[a.get()];
        }
        if (auto* t = as<TupleNode>(&n)) {
          constant = true;
          for (const Expr& f : t->fields) constant = constant && known_[f.get()];
        }
        known_[&n] = constant;
      },
      family::expr);
  return known_[e.get()];
}

bool ConstantExpressions::contains_finite(const Expr& e) {
  if (!contains(e)) return false;
  bool finite = true;
  post_order_if(
      e, [&](const Node&) { return finite; },
      [&](const Node& n) {
        if (auto* c = as<ConstantNode>(&n)) finite = finite && is_finite(c->data);
        if (isa<VarNode>(&n)) finite = false;
      },
      family::expr);
  return finite;
}

}  // namespace relay
