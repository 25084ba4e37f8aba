#include "plan/plan.h"

#include <algorithm>

namespace relay::plan {

void Lifetime::include(int32_t step) { include(Lifetime{step, step}); }

void Lifetime::include(const Lifetime& other) {
  if (other.empty()) return;
  *this = empty() ? other : Lifetime{std::min(first, other.first), std::max(last, other.last)};
}

std::pair<int32_t, int64_t> PlanFunction::memory_of(int32_t index) const {
  int64_t offset = 0;
  for (; buffer(index).whole >= 0; index = buffer(index).whole) offset += buffer(index).offset;
  return {index, offset};
}

bool is_donated(const PlanFunction& f, ValueId value, ValueId output) {
  const PlanValue &from = f.value(value), &to = f.value(output);
  return from.place == Place::object && to.place == Place::output &&
         std::ranges::any_of(f.donations, [&](const Donation& d) {
           return d.in_place && d.param == from.index && d.output == to.index;
         });
}

}  // namespace relay::plan
