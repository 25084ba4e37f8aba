// Where data lies: a kind of memory, with DLPack's numbers, and the number of the device.
//
//   Device::cpu().to_string()      // "cpu"
//   Device{kDLCUDA, 1}.to_string() // "cuda:1"
//   Device::parse("ext_dev:0")     // Device{kDLExtDev, 0}
//
// Tensors, the types in signatures and the kernels of a program all name their device. The control of
// a program runs on the CPU, and so do its kernels unless they are placed on a device that has a
// driver (runtime/device_driver.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/core/dlpack.h"

namespace relay::runtime {

struct Device {
  uint16_t type = kDLCPU;  // a DLDeviceType, known to Relay or not
  uint16_t id = 0;

  static constexpr Device cpu() { return {}; }
  // Memory that the CPU reads like its own: its own, and what other devices have pinned.
  constexpr bool is_host() const {
    return type == kDLCPU || type == kDLCUDAHost || type == kDLROCMHost;
  }
  std::string to_string() const;
  // What `to_string` writes of a type with a name; the number may be left out, and is 0 then. nullopt for anything else.
  static std::optional<Device> parse(std::string_view text);
  // The names that `parse` takes, for messages: "cpu, cuda, ...".
  static std::string names();

  friend constexpr bool operator==(Device, Device) = default;
};

}  // namespace relay::runtime
