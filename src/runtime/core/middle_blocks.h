// Freed memory of tensors from some hundred bytes to 128 KiB, for the next ones of about the same size.
//
// The search of the system's allocator, which joins and splits blocks of these sizes, is as long as kernels of some
// microseconds. Each thread has its own, so that taking and keeping a block are a few instructions without a lock.
#pragma once

#include <array>
#include <bit>
#include <cstddef>

#include "runtime/core/large_blocks.h"

namespace relay::runtime::detail {

// Lists of free blocks, one for each of four sizes between powers of two: a block is up to a quarter larger than it was asked
// for. The lists hold kMostBytes; further blocks drive out those of the other sizes in turn.
class MiddleBlocks {
 public:
  // Sizes above this one.
  static constexpr size_t kBelow = 256;
  static constexpr size_t kMostBytes = size_t{1} << 20;

  MiddleBlocks() = default;
  MiddleBlocks(const MiddleBlocks&) = delete;
  MiddleBlocks& operator=(const MiddleBlocks&) = delete;
  ~MiddleBlocks() { drop(); }

  // The bytes of a block for so many, which are more than kBelow and less than kSmallestLargeBlock: a multiple of 64.
  static size_t block_bytes(size_t bytes) { return bytes_of(class_of(bytes)); }

  // A block for so many bytes, or null.
  void* take(size_t bytes) noexcept;
  // Keeps a block of block_bytes(bytes).
  void keep(void* memory, size_t bytes) noexcept;
  // Frees all blocks; false when there are none.
  bool drop() noexcept;
  size_t total() const { return total_; }

 private:
  struct Block {
    Block* next;
  };
  static constexpr size_t kSteps = 4;  // of each power of two
  static constexpr size_t kClasses = kSteps * std::bit_width(kSmallestLargeBlock / kBelow - 1);

  static size_t class_of(size_t bytes) {
    const auto power = static_cast<size_t>(std::bit_width((bytes - 1) / kBelow)) - 1;
    return power * kSteps + ((bytes - 1) >> power) / (kBelow / kSteps) - kSteps;
  }
  static size_t bytes_of(size_t size_class) {
    return (size_class % kSteps + 1 + kSteps) * (kBelow / kSteps) << size_class / kSteps;
  }
  void free_one(size_t size_class) noexcept;

  std::array<Block*, kClasses> heads_{};
  size_t total_ = 0;
  size_t next_class_ = 0;  // the one that the next block drives out
};

}  // namespace relay::runtime::detail
