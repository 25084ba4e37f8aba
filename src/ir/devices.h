// What a program says about devices: the operators device_copy and on_device, and the device of a kernel.
//
//   device_copy(%x, src_virtual_device="cpu", dst_virtual_device="cuda:0")
//   on_device(add(%x, %y), virtual_device="cuda:0")
//
// Devices are written as runtime::Device::parse reads them. Where the other values of a program are follows from these
// (analysis/placement.h).
#pragma once

#include <optional>
#include <string>

#include "ir/attrs.h"
#include "ir/expr.h"
#include "runtime/core/device.h"

namespace relay {

inline constexpr const char* kDeviceCopy = "device_copy";
inline constexpr const char* kOnDevice = "on_device";

struct DeviceCopyAttrs : AttrsOf<DeviceCopyAttrs> {
  std::string src_virtual_device;
  std::string dst_virtual_device;
  static AttrsList describe();
};

struct OnDeviceAttrs : AttrsOf<OnDeviceAttrs> {
  std::string virtual_device;
  bool constrain_result = false;
  bool constrain_body = true;
  static AttrsList describe();
};

// A value of `from` on `to`.
Expr device_copy(Expr value, runtime::Device from, runtime::Device to);
// The value, computed on the device.
Expr on_device(Expr value, runtime::Device device);

// The attributes of a call of the operator; null for any other call.
const DeviceCopyAttrs* as_device_copy(const CallNode& call);
const OnDeviceAttrs* as_on_device(const CallNode& call);

// The device of such an attribute, which the operator's relation has checked.
runtime::Device known_device(const std::string& attribute);

// The device of a primitive function (attr::kDevice); the host for one without.
runtime::Device kernel_device(const FunctionNode& primitive);

}  // namespace relay
