#include "passes/partial/fold.h"

#include <unordered_map>

#include "analysis/purity.h"
#include "ir/op.h"
#include "node/walk.h"

namespace relay::partial {
namespace {

// What conditions, counters and indices take, with room for small tables.
constexpr int64_t kMaxElements = 256;

// Something that a program may decide by: one number, or a few integers.
bool is_small(const Type& type) {
  auto* t = as<TensorTypeNode>(type);
  if (t == nullptr || (t->rank() > 0 && t->dtype.is_floating())) return false;
  auto shape = t->const_shape();
  if (!shape) return false;
  int64_t elements = 1;
  for (int64_t d : *shape) {
    if (__builtin_mul_overflow(elements, d, &elements)) return false;
  }
  return elements <= kMaxElements;
}

}  // namespace

Constant Folding::fold(const Call& call, const std::vector<Constant>& leaves) const {
  if (!evaluate_ || !is_pure_op_call(*call.get()) || !is_small(call->type)) return nullptr;
  if (as<OpNode>(call->op)->row->compute == nullptr) return nullptr;
  // Values are parameters, so that the same operator on other values is compiled once.
  std::unordered_map<const Node*, NodeRef> params_of;
  std::vector<Var> params;
  std::vector<Tensor> args;
  for (const Constant& c : leaves) {
    if (!is_small(c->type)) return nullptr;
    Var p = var("p" + std::to_string(params.size()), c->type);
    if (!params_of.emplace(c.get(), p).second) continue;
    params.push_back(p);
    args.push_back(c->data);
  }
  Expr body = cast<ExprNode>(substitute(call, params_of, family::expr));
  try {
    std::vector<Tensor> results = evaluate_(function(std::move(params), body, body->type), args);
    return constant(results.at(0), call->span);
  } catch (const RuntimeError&) {
    // The run will fail at the same place, if it gets there.
    return nullptr;
  }
}

}  // namespace relay::partial
