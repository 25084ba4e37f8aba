#include "runtime/core/device.h"

namespace relay::runtime {

std::string Device::to_string() const {
  auto name = [](int type) -> const char* {
    switch (type) {
      case kDLCPU:
        return "cpu";
      case kDLCUDA:
        return "cuda";
      case kDLCUDAHost:
        return "cuda_host";
      case kDLOpenCL:
        return "opencl";
      case kDLVulkan:
        return "vulkan";
      case kDLMetal:
        return "metal";
      case kDLROCM:
        return "rocm";
      case kDLROCMHost:
        return "rocm_host";
      case kDLCUDAManaged:
        return "cuda_managed";
      case kDLOneAPI:
        return "oneapi";
      default:
        return nullptr;
    }
  };
  const char* known = name(type);
  std::string text = known != nullptr ? known : "device type " + std::to_string(type);
  return type == kDLCPU && id == 0 ? text : text + ":" + std::to_string(id);
}

}  // namespace relay::runtime
