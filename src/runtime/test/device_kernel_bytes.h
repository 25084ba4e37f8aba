// Kernels for devices, for tests of their queues.
#pragma once

#include <functional>
#include <span>
#include <string>

#include "base/diagnostic.h"
#include "runtime/device_source.h"

namespace relay::runtime {

// The bytes of a kernel of one launch with this name, which reads the first buffer and, where there is a formula, working
// memory; twice as many work items as its first size says. One that is named "fails" may fail.
inline std::string kernel_bytes(const std::string& name, const std::string& code,
                                const std::string& workspace = "",
                                std::array<int64_t, 3> group = {0, 0, 0},
                                std::vector<DeviceBinary> binaries = {}) {
  DeviceSource source;
  if (!workspace.empty()) source.workspace.emplace_back(workspace);
  DeviceLaunch launch;
  launch.name = name;
  launch.buffers = {0};
  if (!workspace.empty()) launch.buffers.push_back(1);
  launch.items[0] = SizeFormula("d0 2 *");
  launch.group = group;
  launch.may_fail = name == "fails";
  source.launches.push_back(launch);
  source.code = code;
  source.binaries = std::move(binaries);
  return to_bytes(source);
}

inline relay_kernel entry_of(const std::string& bytes) {
  return reinterpret_cast<relay_kernel>(const_cast<char*>(bytes.data()));
}

// What the work throws; "nothing".
inline std::string error_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& e) {
    return e.what();
  }
  return "nothing";
}

inline std::span<void* const> one(void* const& buffer) { return {&buffer, 1}; }
inline std::span<const int64_t> one(const int64_t& size) { return {&size, 1}; }

// The text between "is in " and the end of the suffix: the file that a message names.
inline std::string path_in(const std::string& message, const std::string& suffix) {
  const size_t begin = message.find("is in /");
  if (begin == message.npos) return "";
  return message.substr(begin + 6, message.find(suffix, begin) + suffix.size() - begin - 6);
}

}  // namespace relay::runtime
