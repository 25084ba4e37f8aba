// Whether this machine has an OpenCL device, for the tests that need one.
#pragma once

#include <optional>
#include <string>

#include "base/diagnostic.h"
#include "runtime/device_driver.h"

namespace relay::driver_test {

inline constexpr runtime::Device kOpencl{kDLOpenCL, 0};

// Why there is none; nothing where there is one.
inline std::optional<std::string> no_opencl() {
  try {
    runtime::open_device(kOpencl);
    return std::nullopt;
  } catch (const RuntimeError& e) {
    return e.what();
  }
}

}  // namespace relay::driver_test
