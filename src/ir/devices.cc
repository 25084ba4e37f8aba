#include "ir/devices.h"

#include <utility>

namespace relay {
namespace {

template <class A>
const A* attrs_of(const CallNode& call, std::string_view name) {
  auto* op = as<OpNode>(call.op);
  return op != nullptr && op->name == name ? static_cast<const A*>(call.attrs.get()) : nullptr;
}

}  // namespace

AttrsList DeviceCopyAttrs::describe() {
  return {"relay.attrs.DeviceCopyAttrs",
          {attribute("src_virtual_device", &Self::src_virtual_device,
                     "Where the value is, \"cpu\" or \"cuda:1\"; empty: wherever it is."),
           attribute("dst_virtual_device", &Self::dst_virtual_device, "Where the copy is.")}};
}

AttrsList OnDeviceAttrs::describe() {
  return {
      "relay.attrs.OnDeviceAttrs",
      {attribute("virtual_device", &Self::virtual_device, "The device, \"cpu\" or \"cuda:1\"."),
       attribute("constrain_result", &Self::constrain_result,
                 "Whether the value that the call gives is on the device, too; else it is where "
                 "it is used."),
       attribute("constrain_body", &Self::constrain_body,
                 "Whether the argument is computed on the device.")}};
}

Expr device_copy(Expr value, runtime::Device from, runtime::Device to) {
  auto* attrs = new DeviceCopyAttrs;
  Attrs keep(attrs);
  attrs->src_virtual_device = from.to_string();
  attrs->dst_virtual_device = to.to_string();
  const Span span = value->span;
  return call(kDeviceCopy, {std::move(value)}, keep, span);
}

Expr on_device(Expr value, runtime::Device device) {
  auto* attrs = new OnDeviceAttrs;
  Attrs keep(attrs);
  attrs->virtual_device = device.to_string();
  const Span span = value->span;
  return call(kOnDevice, {std::move(value)}, keep, span);
}

const DeviceCopyAttrs* as_device_copy(const CallNode& call) {
  return attrs_of<DeviceCopyAttrs>(call, kDeviceCopy);
}

const OnDeviceAttrs* as_on_device(const CallNode& call) {
  return attrs_of<OnDeviceAttrs>(call, kOnDevice);
}

runtime::Device known_device(const std::string& attribute) {
  auto device = runtime::Device::parse(attribute);
  RELAY_CHECK(device.has_value(), "a device that is not known: " + attribute);
  return *device;
}

runtime::Device kernel_device(const FunctionNode& primitive) {
  auto it = primitive.attrs.find(attr::kDevice);
  return it == primitive.attrs.end() ? runtime::Device::cpu()
                                     : known_device(*it->second.get_if<std::string>());
}

}  // namespace relay
