// CUDA devices of this machine, and modules that are loaded into them.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "runtime/cuda/api.h"
#include "runtime/device_kernels.h"
#include "runtime/device_pool.h"

namespace relay::runtime::cuda {

class OpenDevice;

// A module of a device; lives until the end of the process.
class LoadedModule {
 public:
  explicit LoadedModule(Module module) : module_(module) {}
  LoadedModule(const LoadedModule&) = delete;
  LoadedModule& operator=(const LoadedModule&) = delete;
  Module get() const { return module_; }

 private:
  Module module_;
};

// Makes the context of a device the thread's while it lives; where the thread has another, as that of PyTorch, it gets that
// back. Throws RuntimeError E0622 where the device cannot be used.
class Current {
 public:
  explicit Current(OpenDevice& device);
  ~Current();
  Current(const Current&) = delete;
  Current& operator=(const Current&) = delete;
};

// A device with its primary context, which it shares with others in the process. Lives until the end of the process; may be
// used by several threads.
//
// An access out of bounds, and other failures of a kernel, end the context: every later call fails. The device remembers the
// first, and whoever uses it gets RuntimeError E0622. A child of fork() cannot use the context of its parent, either.
class OpenDevice {
 public:
  OpenDevice(uint16_t number, DeviceHandle handle);

  Context context() const { return context_; }
  const std::string& name() const { return name_; }
  // All that was submitted to the context is done. The driver refuses this while a stream is captured, which holds `captures`;
  // the context is current.
  Result synchronize() {
    std::lock_guard lock(captures_);
    return api().cuCtxSynchronize();
  }
  std::mutex& captures() { return captures_; }
  int32_t multiprocessors() const { return multiprocessors_; }
  DevicePool& pool() { return pool_; }

  // The module of the code; equal code is loaded once. Throws RuntimeError E0621 where the driver refuses it, with the path of
  // a file that keeps it. The context is current.
  std::shared_ptr<LoadedModule> load(const std::string& code);

  // Throws RuntimeError for a result that is no success: E0604 for memory that is exhausted, else E0622. `what` is what was
  // done: "a kernel cannot be started".
  void check(Result result, const std::string& what);
  // Throws RuntimeError E0604; `what` as above. The context is current.
  [[noreturn]] void out_of_memory(const std::string& what);

  // Whether calls can succeed: the context is not lost, and it is of this process.
  bool is_usable() const noexcept;
  // Throws RuntimeError E0622 where it is not.
  void require_usable() const;

 private:
  std::shared_ptr<LoadedModule> load_new(const std::string& code);

  Context context_ = nullptr;
  std::string name_;  // "cuda:0, NVIDIA H200"
  std::string capability_;
  int32_t multiprocessors_ = 1;
  uint64_t generation_;  // of the process
  std::atomic<Result> lost_{kSuccess};
  std::mutex captures_;
  DevicePool pool_;
  BuiltPrograms<LoadedModule> modules_;
};

// The device with this number, in the driver's order. Throws RuntimeError E0620 where there is none.
OpenDevice& open_cuda_device(uint16_t number);

// One line for each device. Throws RuntimeError E0620 where there is no driver.
std::vector<std::string> describe_cuda_devices();

}  // namespace relay::runtime::cuda
