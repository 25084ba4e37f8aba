// A block of the host's memory that the device copies from and to without the driver's help, for copies of little memory
// that others have not pinned. It is filled from the front, and empty again once the queue has done all its work.
#pragma once

#include <cstddef>

#include "runtime/cuda/device.h"

namespace relay::runtime::cuda {

class PinnedMemory {
 public:
  // The context is current, here and below.
  PinnedMemory(OpenDevice& device, size_t bytes) : bytes_(bytes) {
    device.check(api().cuMemHostAlloc(&block_, bytes, kHostPortable),
                 "no " + std::to_string(bytes) + " bytes of the host can be pinned");
  }
  PinnedMemory(const PinnedMemory&) = delete;
  PinnedMemory& operator=(const PinnedMemory&) = delete;

  // Null where it is full.
  void* take(size_t bytes) {
    constexpr size_t kAlignment = 64;
    const size_t size = (bytes + kAlignment - 1) / kAlignment * kAlignment;
    if (size > bytes_ - used_) return nullptr;
    void* out = static_cast<char*>(block_) + used_;
    used_ += size;
    return out;
  }
  void reset() { used_ = 0; }
  void free() noexcept {
    if (block_ != nullptr) api().cuMemFreeHost(block_);
    block_ = nullptr;
  }

 private:
  void* block_ = nullptr;
  size_t bytes_, used_ = 0;
};

// Whether the device reads and writes the host's memory at the address by itself.
inline bool is_pinned(const void* memory) {
  uint32_t type = 0;
  return api().cuPointerGetAttribute(&type, kPointerMemoryType,
                                     reinterpret_cast<Address>(memory)) == kSuccess &&
         type == kMemoryOfHost;
}

}  // namespace relay::runtime::cuda
