// What the queues of devices share: kernels that are ready to be launched, their working memory, and the diagnostic for a
// kernel that a driver refuses.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/diagnostic.h"
#include "base/fork.h"
#include "runtime/device_driver.h"
#include "runtime/device_source.h"

namespace relay::runtime {

// A kernel that has failed may read one element behind a buffer that is empty, before it ends: each block of memory is
// larger by this.
inline constexpr size_t kDeviceSlack = 64;

// Programs that the driver of a device has built, by their code: equal code is built once. May be used by several threads.
template <class Program>
class BuiltPrograms {
 public:
  // `build`: () -> std::shared_ptr<Program>. What it throws leaves nothing behind.
  template <class Build>
  std::shared_ptr<Program> get(const std::string& code, Build&& build) {
    std::lock_guard lock(mutex_);
    auto known = built_.find(code);
    if (known == built_.end()) known = built_.emplace(code, build()).first;
    return known->second;
  }

 private:
  ForkSafeMutex mutex_;
  std::unordered_map<std::string, std::shared_ptr<Program>> built_;
};

// The launches of a kernel, ready to be started.
template <class Program, class Function>
struct ReadyKernel {
  DeviceSource source;
  std::shared_ptr<Program> program;
  std::vector<Function> functions;
  int32_t number = 0;  // what its launches write beside their failure
};

// The kernels of a queue by their entries in artifacts.
template <class Ready>
class ReadyKernels {
 public:
  // `build`: (const DeviceSource&) -> the program. `find`: (program, const DeviceLaunch&) -> a function of it.
  template <class Build, class Find>
  Ready& get(const KernelInfo& info, relay_kernel entry, Build&& build, Find&& find) {
    if (auto known = kernels_.find(entry); known != kernels_.end()) return *known->second;
    auto made = std::make_unique<Ready>();
    made->source = read_device_source(entry);
    made->program = build(std::as_const(made->source));
    // The program has its own form of the code.
    made->source.code = {};
    made->source.binaries = {};
    for (const DeviceLaunch& l : made->source.launches) {
      made->functions.push_back(find(*made->program, l));
    }
    made->number = static_cast<int32_t>(infos_.size());
    Ready& out = *kernels_.emplace(entry, std::move(made)).first->second;
    infos_.push_back(&info);
    return out;
  }
  // What the failure word says: nothing, or the kernel that has failed.
  std::optional<DeviceFailure> failure(const int32_t (&word)[2]) const {
    if (word[0] == 0) return std::nullopt;
    const auto number = static_cast<size_t>(word[1]);
    RELAY_CHECK(number < infos_.size(), "a kernel of the device has an unknown number");
    return DeviceFailure{infos_[number], word[0]};
  }
  void clear() { kernels_.clear(); }

 private:
  std::unordered_map<relay_kernel, std::unique_ptr<Ready>> kernels_;
  std::vector<const KernelInfo*> infos_;
};

// Where the parts of a kernel's working memory begin in one block.
struct WorkspaceLayout {
  std::vector<int64_t> offsets;
  size_t bytes = 0;
};
// Throws RuntimeError E0604 for sizes that no device has; `device` is "an OpenCL device".
WorkspaceLayout layout_workspace(const DeviceSource& source, std::span<const int64_t> dims,
                                 std::string_view device);

struct RefusedKernel {
  std::string device;  // its name
  std::string code;
  std::string log;     // the driver's; may be empty
  std::string result;  // said where there is no log: "OpenCL error -11"
  std::string kind;    // of the name of the file: "opencl"
  std::string suffix;  // of it: ".cl"
  std::string help;    // beside where the code is kept; may be empty
};
// Keeps the code and the log in a new file, and throws RuntimeError E0621 with its path.
[[noreturn]] void refuse_kernel(const RefusedKernel& refused);

}  // namespace relay::runtime
