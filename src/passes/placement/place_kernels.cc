#include "passes/placement/place_kernels.h"

#include <map>

#include "analysis/placement.h"
#include "analysis/primitives.h"
#include "ir/interface_devices.h"
#include "passes/placement/copies.h"
#include "passes/structure/entry_functions.h"

namespace relay {
namespace {

using runtime::Device;

class Marker : public RewriterOutsidePrimitives {
 public:
  explicit Marker(const Placement& where) : where_(where) {}

  NodeRef post(const NodeRef& original, NodeRef rebuilt) override {
    auto* before = as<CallNode>(original);
    if (before == nullptr) return rebuilt;
    auto& c = *as<CallNode>(rebuilt);
    const PlacingCall what = placing_call(*before);
    if (what.on_device != nullptr) return c.args[0];
    auto* primitive = primitive_of(c);
    if (primitive == nullptr || what.copy != nullptr) return rebuilt;
    const Device device = where_.kernel_device(*before);
    if (device == kernel_device(*primitive)) return rebuilt;
    Function& placed = placed_[{primitive, device.type, device.id}];
    if (!placed) placed = with_attr(ref(*primitive), attr::kDevice, AttrValue(device.to_string()));
    return call(placed, c.args, c.attrs, c.span, c.type_args);
  }

 private:
  const Placement& where_;
  std::map<std::tuple<const Node*, uint16_t, uint16_t>, Function> placed_;
};

Module place_kernels(const Module& given, PassContext& ctx) {
  if (!uses_devices(given) && !has_interface_devices(given)) return given;
  const Module mod = with_device_copies(given, entry_functions(given, ctx), /*fused=*/true);
  const Placement where(mod);
  return map_functions(mod,
                       [&](const GlobalVar&, const Function& f) { return Marker(where).apply(f); });
}

}  // namespace

const Pass kPlaceKernels = {"PlaceKernels",
                            0,
                            Form::fused,
                            Form::any,
                            "Says of each primitive function which device runs it.",
                            place_kernels};

}  // namespace relay
