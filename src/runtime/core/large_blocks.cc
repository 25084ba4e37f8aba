#include "runtime/core/large_blocks.h"

#include <cstdint>
#include <cstdlib>

#include "base/fork.h"

namespace relay::runtime {
namespace {

// The blocks that are kept, by age. Under AddressSanitizer none is: it has to see every use after free.
class LargeBlocks {
 public:
  constexpr LargeBlocks() = default;
  // Tensors may be freed after this, when the process ends.
  ~LargeBlocks() {
    std::lock_guard lock(mutex_);
    closed_ = true;
    while (count_ > 0) drop_oldest();
  }

  void* take(size_t bytes) {
    std::lock_guard lock(mutex_);
    // The one that was freed last is most likely in a cache.
    for (size_t i = count_; i-- > 0;) {
      if (blocks_[i].bytes == bytes) return remove(i);
    }
    return nullptr;
  }

  void keep(void* memory, size_t bytes) {
    std::lock_guard lock(mutex_);
    if (closed_ || bytes > most()) return std::free(memory);
    while (count_ == kMostBlocks || total_ + bytes > most()) drop_oldest();
    blocks_[count_++] = {memory, bytes};
    total_ += bytes;
  }

  bool drop() {
    std::lock_guard lock(mutex_);
    if (count_ == 0) return false;
    while (count_ > 0) drop_oldest();
    return true;
  }

  size_t total() {
    std::lock_guard lock(mutex_);
    return total_;
  }

 private:
  struct Block {
    void* memory = nullptr;
    size_t bytes = 0;
  };
  static constexpr size_t kMostBlocks = 64;

  static constexpr size_t most() {
#if defined(__SANITIZE_ADDRESS__)
    return 0;
#else
    return kMostLargeBytes;
#endif
  }
  void* remove(size_t i) {
    Block found = blocks_[i];
    for (; i + 1 < count_; ++i) blocks_[i] = blocks_[i + 1];
    --count_;
    total_ -= found.bytes;
    return found.memory;
  }
  void drop_oldest() { std::free(remove(0)); }

  ForkSafeMutex mutex_;
  Block blocks_[kMostBlocks];
  size_t count_ = 0;
  size_t total_ = 0;
  bool closed_ = false;
};

constinit LargeBlocks blocks;

}  // namespace

void* take_large_block(size_t bytes) noexcept { return blocks.take(bytes); }
void keep_large_block(void* memory, size_t bytes) noexcept { blocks.keep(memory, bytes); }
bool drop_large_blocks() noexcept { return blocks.drop(); }
size_t kept_large_bytes() noexcept { return blocks.total(); }

}  // namespace relay::runtime
