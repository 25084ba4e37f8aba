// Small blocks of memory that a thread keeps for its next objects.
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/core/object_pool.h"

namespace relay::runtime::detail {

class MiddleBlocks;

constexpr size_t kCellSizes = 9;    // in steps of 16 bytes, up to 128
constexpr size_t kTensorSizes = 6;  // in steps of 64 bytes, up to 320
constexpr size_t kBlockSizes = kCellSizes + kTensorSizes;

// A list for each size, bounded, so that a thread which only frees returns the memory.
struct FreeBlocks {
  struct Block {
    Block* next;
  };
  Block* heads[kBlockSizes];
  uint32_t counts[kBlockSizes];
  MiddleBlocks* middle;  // for larger ones; null while none is kept
  ObjectCounts live;
  enum State : uint8_t { unused, open, closed } state;
};

// Zero-initialised and trivially destructible: objects may still be freed while the thread's other
// variables are being destroyed. It is reached without a call, and so lies in the little room that
// every process keeps for such variables of libraries loaded later; in a wheel, in a library of its
// own (cmake/RelayPortable.cmake), because a library's variables are there all or none.
[[gnu::tls_model("initial-exec")]] extern constinit thread_local FreeBlocks pool;

}  // namespace relay::runtime::detail
