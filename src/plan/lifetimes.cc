#include "plan/lifetimes.h"

namespace relay::plan {

void find_lifetimes(PlanFunction& f) {
  for (PlanValue& v : f.values) v.life = {};
  for (PlanBuffer& b : f.buffers) b.life = {};
  for (size_t s = 0; s < f.steps.size(); ++s) {
    auto step = static_cast<int32_t>(s);
    for (ValueId id : f.steps[s].results) f.value(id).life.include(step);
    for (ValueId id : f.steps[s].operands) f.value(id).life.include(step);
  }
  for (const PlanValue& v : f.values) {
    if (v.place == Place::arena) f.buffer(v.index).life.include(v.life);
  }
  // Parts come after what they are part of.
  for (size_t b = f.buffers.size(); b-- > 0;) {
    const PlanBuffer& part = f.buffers[b];
    if (part.whole >= 0) f.buffer(part.whole).life.include(part.life);
  }
}

}  // namespace relay::plan
