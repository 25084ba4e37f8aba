#include "tir/copied_value.h"

#include <algorithm>
#include <cmath>

#include "tir/thread_nests.h"

namespace relay::tir {
namespace {

// A zero of which all bits are 0.
bool is_zero(const PrimExpr& e) {
  if (auto* number = as<FloatImmNode>(e)) return number->value == 0 && !std::signbit(number->value);
  return as_int(e) == 0;
}

}  // namespace

CopiedValue copied_value(const PrimExpr& value) {
  CopiedValue out;
  PrimExpr e = value;
  while (auto* choice = as<SelectNode>(e)) {
    if (!is_zero(choice->false_value) || reads_memory(choice->cond)) return {};
    out.inside = out.inside ? logical_and(out.inside, choice->cond) : choice->cond;
    e = choice->true_value;
  }
  auto* load = as<LoadNode>(e);
  if (load == nullptr || load->predicate || load->dtype.lanes != 1) return {};
  // The place is computed whether or not the condition holds.
  if (out.inside && std::ranges::any_of(load->indices, reads_memory)) return {};
  out.from = load;
  return out;
}

}  // namespace relay::tir
