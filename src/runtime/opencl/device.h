// OpenCL devices of this machine, and programs that are built for them.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/fork.h"
#include "runtime/device_kernels.h"
#include "runtime/device_pool.h"
#include "runtime/opencl/api.h"
#include "runtime/opencl/group_size.h"

namespace relay::runtime::opencl {

// A program of a device, built.
class BuiltProgram {
 public:
  explicit BuiltProgram(Program program) : program_(program) {}
  ~BuiltProgram() { api().clReleaseProgram(program_); }
  BuiltProgram(const BuiltProgram&) = delete;
  BuiltProgram& operator=(const BuiltProgram&) = delete;
  Program get() const { return program_; }

 private:
  Program program_;
};

// Lives until the end of the process; may be used by several threads.
class OpenDevice {
 public:
  OpenDevice(DeviceId id, Context context);

  // False in a child of the process that opened it, which lacks the driver's threads.
  bool is_usable() const noexcept { return generation_ == fork_generation(); }
  // RuntimeError E0622 unless it is usable.
  void require_usable() const;

  DeviceId id() const { return id_; }
  Context context() const { return context_; }
  const std::string& name() const { return name_; }
  // Of a processor; nothing of other devices, whose drivers choose groups.
  const std::optional<GroupLimits>& group_limits() const { return group_limits_; }

  // Memory of the device, by addresses of AddressSpace.
  DevicePool& pool() { return pool_; }

  // The program of the source, from a binary for this device where the source has one that the driver takes, else from the
  // code; equal code is built once. Throws RuntimeError E0621 where the driver refuses it, with the path of a file
  // that keeps it.
  std::shared_ptr<BuiltProgram> build(const DeviceSource& source);

  // What a binary for this device names: it, the version of its driver, and the options of the build.
  std::string binary_device() const;
  // The code, built, as a binary; throws as `build`, and RuntimeError E0622 where the driver gives none.
  DeviceBinary binary_of(const std::string& code) const;

 private:
  // Null where there is none that the driver takes and that has the kernels.
  std::shared_ptr<BuiltProgram> from_binary(const DeviceSource& source) const;
  std::shared_ptr<BuiltProgram> from_code(const std::string& code) const;
  std::string build_log(Program program) const;

  DeviceId id_;
  Context context_;
  uint64_t generation_;  // of the process
  std::string name_;
  std::string options_;
  std::optional<GroupLimits> group_limits_;
  BuiltPrograms<BuiltProgram> programs_;
  DevicePool pool_;
};

// The device with this number: GPUs first, processors last, each in the order of the platforms. Throws RuntimeError E0620
// where there is none, E0622 where a parent of this process has opened it.
OpenDevice& open_opencl_device(uint16_t number);

// The names of all, in this order. Throws RuntimeError E0620 where there is no library.
std::vector<std::string> describe_opencl_devices();

}  // namespace relay::runtime::opencl
