#include "runtime/core/device.h"

#include <charconv>
#include <iterator>

namespace relay::runtime {
namespace {

struct Name {
  uint16_t type;
  std::string_view name;
};

// As DLPack calls them.
constexpr Name kNames[] = {
    {kDLCPU, "cpu"},
    {kDLCUDA, "cuda"},
    {kDLCUDAHost, "cuda_host"},
    {kDLOpenCL, "opencl"},
    {kDLVulkan, "vulkan"},
    {kDLMetal, "metal"},
    {kDLROCM, "rocm"},
    {kDLROCMHost, "rocm_host"},
    {kDLExtDev, "ext_dev"},
    {kDLCUDAManaged, "cuda_managed"},
    {kDLOneAPI, "oneapi"},
};

}  // namespace

std::string Device::to_string() const {
  std::string text = "device type " + std::to_string(type);
  for (const Name& n : kNames) {
    if (n.type == type) text = n.name;
  }
  return type == kDLCPU && id == 0 ? text : text + ":" + std::to_string(id);
}

std::optional<Device> Device::parse(std::string_view text) {
  const size_t colon = text.find(':');
  Device out;
  if (colon != text.npos) {
    const std::string_view number = text.substr(colon + 1);
    auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), out.id);
    if (error != std::errc() || end != number.data() + number.size()) return std::nullopt;
  }
  for (const Name& n : kNames) {
    if (n.name != text.substr(0, colon)) continue;
    out.type = n.type;
    return out;
  }
  return std::nullopt;
}

std::string Device::names() {
  std::string out;
  for (const Name& n : kNames) out += (out.empty() ? "" : ", ") + std::string(n.name);
  return out;
}

}  // namespace relay::runtime
