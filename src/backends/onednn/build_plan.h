// Makes the plan of a region: each primitive of its description, in the order of execution.
#pragma once

#include <cstdint>
#include <memory>

#include "backends/onednn/plan.h"

namespace relay::onednn {

// The plan of the description at `data` for a call with these sizes (Description::sizes); std::runtime_error where the
// description is damaged or has other sizes.
std::shared_ptr<Plan> build_plan(const void* data, const int64_t* sizes);

}  // namespace relay::onednn
