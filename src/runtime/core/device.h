// Where data lies: a kind of memory, with DLPack's numbers, and the number of the device.
//
//   Device::cpu().to_string()      // "cpu"
//   Device{kDLCUDA, 1}.to_string() // "cuda:1"
//
// Tensors, the types in signatures and the kernels of a program all name their device. This runtime
// runs on the CPU: it takes data that the CPU can read, and refuses the rest by the device's name.
#pragma once

#include <cstdint>
#include <string>

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

  friend constexpr bool operator==(Device, Device) = default;
};

}  // namespace relay::runtime
