#include "grad/slope.h"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <unordered_map>

#include "analysis/calls.h"
#include "base/diagnostic.h"
#include "grad/call_gradient.h"
#include "ir/op.h"
#include "node/walk.h"

namespace relay {
namespace {

// Whether an adjoint of 0 stays 0 when it is multiplied by it, or divided.
bool is_harmless(const Tensor& t) {
  for (int64_t i = 0; i < t.num_elements(); ++i) {
    const double v = t.get_as_double(i);
    if (v == 0 || !std::isfinite(v)) return false;
  }
  return true;
}

// Whether what an operator makes of an adjoint depends on its arguments or its result, and not only on
// their sizes: on numbers that may be infinite or NaN.
bool reads_values(const Expr& e, const std::vector<Expr>& adjoints, const std::vector<Expr>& args) {
  std::vector<Expr> todo{e};
  std::unordered_map<const Node*, bool> seen;
  while (!todo.empty()) {
    const Expr x = todo.back();
    todo.pop_back();
    if (std::ranges::find(adjoints, x) != adjoints.end() || !seen.emplace(x.get(), true).second)
      continue;
    if (isa<VarNode>(x) && is_floating(x->type)) return true;
    auto* k = as<ConstantNode>(x);
    const bool argument = k != nullptr && std::ranges::find(args, x) != args.end();
    if (argument && is_floating(k->type) && !is_harmless(k->data)) return true;
    auto* c = as<CallNode>(x);
    if (c == nullptr) {
      for_each_child(*x.get(), [&](const NodeRef& n) {
        if (n.get()->info().family == family::expr) todo.push_back(Expr::unchecked(n));
      });
      continue;
    }
    auto* op = as<OpNode>(c->op);
    const bool like = op != nullptr && std::string_view(op->name).ends_with("_like");
    for (size_t i = 0; i < c->args.size(); ++i) {
      if (!like || i + 2 == c->args.size()) todo.push_back(c->args[i]);
    }
  }
  return false;
}

}  // namespace

Slope slope(const CallNode& c, const Var& result, const std::vector<Expr>& operands,
            const std::vector<bool>& reached) {
  Slope out;
  if (!as<OpNode>(c.op)->row->gradient) return out;
  const std::vector<TensorType> tensors = *flatten_tensor_types(result->type);
  for (size_t i = 0; i < tensors.size(); ++i) {
    const bool comes = reached[i] && is_floating(Type(tensors[i]));
    out.adjoints.push_back(comes ? Expr(var("g", Type(tensors[i]))) : nullptr);
  }
  try {
    out.of_args = call_gradient(c, result, out.adjoints);
  } catch (const UserError&) {
    // It is refused where the gradient is taken, if it is.
    return out;
  }
  for (const Expr& e : out.of_args)
    out.reads.push_back(e && reads_values(e, out.adjoints, operands));
  return out;
}

bool one_to_one(const CallNode& c) {
  return as<OpNode>(c.op)->row->fusion.get() == FusionClass::ElemWise && c.args.size() == 1 &&
         isa<TensorTypeNode>(c.args[0]->type) &&
         tensor_of(c.args[0])->rank() == as<TensorTypeNode>(c.type)->rank();
}

bool by_element(const CallNode& c) {
  if (as<OpNode>(c.op)->row->fusion.get() > FusionClass::Broadcast) return false;
  if (c.attrs == nullptr || one_to_one(c)) return true;
  return std::ranges::all_of(
      c.args, [&](const Expr& a) { return !is_floating(a->type) || same_shape(a->type, c.type); });
}

bool is_move(const CallNode& c, const Slope& s) {
  return as<OpNode>(c.op)->row->fusion.get() <= FusionClass::CommReduce &&
         std::ranges::find(s.reads, true) == s.reads.end();
}

bool adds_adjoints(const CallNode& c) {
  const OpInfo& row = *as<OpNode>(c.op)->row;
  return row.fusion.get() != FusionClass::CommReduce && !row.reshape_only;
}

}  // namespace relay
