// Memory of a run: pages from the system, an arena for frames, scratch for kernels.
//
// All of it belongs to one execution context and is kept from run to run, so that a run in steady
// state asks the system for nothing.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <mutex>
#include <vector>

#include "runtime/device_driver.h"

namespace relay::runtime {

// Anonymous pages, zero at first and committed when touched. Blocks of several megabytes ask for
// huge pages. RuntimeError E0604 when the system refuses.
class Pages {
 public:
  Pages() = default;
  explicit Pages(size_t bytes);
  Pages(Pages&& other) noexcept;
  Pages& operator=(Pages&& other) noexcept;
  ~Pages();

  char* data() const { return data_; }
  size_t size() const { return size_; }

 private:
  char* data_ = nullptr;
  size_t size_ = 0;
};

// A stack of frames' arenas, each 64-byte aligned. What is pushed stays where it is until popped.
class ArenaStack {
 public:
  // Of the host, or of the queue's device.
  explicit ArenaStack(std::shared_ptr<DeviceQueue> queue = nullptr) : queue_(std::move(queue)) {}

  struct Mark {
    size_t block = 0;
    size_t used = 0;
    size_t pushed = 0;
  };

  // Uninitialised; the range dies when a mark taken before is popped. Zero bytes give a valid
  // pointer.
  char* push(size_t bytes);
  Mark mark() const { return {current_, used_, pushed_}; }
  void pop(Mark mark) {
    current_ = mark.block;
    used_ = mark.used;
    pushed_ = mark.pushed;
  }
  // The most bytes that were pushed at once since `forget_peak`.
  size_t peak() const { return peak_; }
  void forget_peak() { peak_ = pushed_; }
  // Gives back all but the first block; nothing may be pushed.
  void trim() {
    if (blocks_.size() > 1) blocks_.resize(1);
  }
  // Bytes that live frames occupy.
  size_t in_use() const;

 private:
  struct Block {
    Pages pages;                   // of the host
    std::shared_ptr<void> device;  // of a device
    char* data;
    size_t size;
  };
  Block make_block(size_t bytes) const;

  std::shared_ptr<DeviceQueue> queue_;
  std::vector<Block> blocks_;
  size_t current_ = 0;
  size_t used_ = 0;
  size_t pushed_ = 0;
  size_t peak_ = 0;
};

// Working memory of one kernel call; `allocate` may be called from several threads at once.
class Scratch {
 public:
  // 64-byte aligned, uninitialised; null when memory is exhausted or the size is absurd. Valid
  // until `reset`.
  void* allocate(int64_t bytes) noexcept;
  // How many bytes a kernel gets at most; negative: any number.
  void limit(int64_t bytes) {
    limit_ = bytes < 0 ? std::numeric_limits<uint64_t>::max() : static_cast<uint64_t>(bytes);
  }
  // Frees what was allocated since the last reset. Not during a kernel.
  void reset() {
    if (used_.load(std::memory_order_relaxed) != 0) reset_slow();
  }
  // Fills the memory that the next kernel gets, so that tests see reads of uninitialised memory.
  void poison(uint8_t pattern);

 private:
  void reset_slow();

  Pages block_;
  std::atomic<uint64_t> used_{0};
  uint64_t limit_ = std::numeric_limits<uint64_t>::max();
  std::mutex mutex_;
  std::vector<Pages> extra_;
  int poison_ = -1;
};

}  // namespace relay::runtime
