#include "passes/partial/fold.h"

#include "analysis/purity.h"
#include "ir/op.h"

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
  if (as<OpNode>(call->op)->row->compute == nullptr || has_symbolic_sizes(call->attrs)) {
    return nullptr;
  }
  ConstantFunction f;
  for (const Constant& c : leaves) {
    if (!is_small(c->type)) return nullptr;
    f.param(c);
  }
  auto results = f.evaluate(call, evaluate_);
  return results ? constant(results->at(0), call->span) : nullptr;
}

}  // namespace relay::partial
