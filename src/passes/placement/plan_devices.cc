#include "passes/placement/plan_devices.h"

#include "analysis/placement.h"
#include "passes/placement/copies.h"
#include "passes/structure/entry_functions.h"

namespace relay {
namespace {

Module plan_devices(const Module& mod, PassContext& ctx) {
  if (!uses_devices(mod)) return mod;
  return with_device_copies(mod, entry_functions(mod, ctx), /*fused=*/false);
}

}  // namespace

const Pass kPlanDevices = {"PlanDevices",
                           0,
                           Form::any,
                           Form::any,
                           "Copies values to the devices that on_device and device_copy ask for.",
                           plan_devices};

}  // namespace relay
