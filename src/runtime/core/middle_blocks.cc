#include "runtime/core/middle_blocks.h"

#include <cstdlib>
#include <utility>

namespace relay::runtime::detail {

void* MiddleBlocks::take(size_t bytes) noexcept {
  const size_t size_class = class_of(bytes);
  Block* block = heads_[size_class];
  if (block == nullptr) return nullptr;
  heads_[size_class] = block->next;
  total_ -= bytes_of(size_class);
  return block;
}

void MiddleBlocks::keep(void* memory, size_t bytes) noexcept {
  const size_t size_class = class_of(bytes);
  const size_t more = bytes_of(size_class);
  while (total_ + more > kMostBytes) {
    if (heads_[next_class_] != nullptr) free_one(next_class_);
    next_class_ = (next_class_ + 1) % kClasses;
  }
  auto* block = static_cast<Block*>(memory);
  block->next = std::exchange(heads_[size_class], block);
  total_ += more;
}

bool MiddleBlocks::drop() noexcept {
  if (total_ == 0) return false;
  for (size_t c = 0; c < kClasses; ++c) {
    while (heads_[c] != nullptr) free_one(c);
  }
  return true;
}

void MiddleBlocks::free_one(size_t size_class) noexcept {
  Block* block = heads_[size_class];
  heads_[size_class] = block->next;
  total_ -= bytes_of(size_class);
  std::free(block);
}

}  // namespace relay::runtime::detail
