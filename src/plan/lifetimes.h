// How long values and their memory live.
#pragma once

#include "plan/plan.h"

namespace relay::plan {

// Sets the lifetime of every value, from the first to the last step that mentions it, and of every
// buffer: of the values in it and of its sub-buffers.
void find_lifetimes(PlanFunction& f);

}  // namespace relay::plan
