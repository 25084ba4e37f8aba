#include "runtime/device_pool.h"

#include <algorithm>
#include <mutex>

#include "base/diagnostic.h"

namespace relay::runtime {
namespace {

constexpr size_t kGrain = 512;
// Bytes that are kept idle at least.
constexpr size_t kKeptIdle = size_t{64} << 20;

size_t rounded(size_t bytes) { return (std::max<size_t>(bytes, 1) + kGrain - 1) / kGrain * kGrain; }
// The largest block for as many bytes: one much larger is kept for others.
size_t largest_for(size_t bytes) { return bytes + std::max(bytes / 4, size_t{4} * kGrain); }

}  // namespace

void DevicePool::open(const void*) {
  std::lock_guard lock(mutex_);
  ++queues_;
}

void DevicePool::close(const void* queue) {
  std::lock_guard lock(mutex_);
  settle_blocks(queue);
  if (--queues_ > 0) return;
  give_back_settled();
  peak_ = 0;
}

void* DevicePool::allocate(const void* queue, size_t bytes) {
  const size_t size = rounded(bytes);
  if (size < bytes) return nullptr;
  std::lock_guard lock(mutex_);
  Block block{size, queue};
  void* memory = nullptr;
  if (auto idle = find_idle(queue, size); idle != idle_.end()) {
    memory = idle->second.memory;
    block.bytes = idle->first;
    idle_bytes_ -= idle->first;
    idle_.erase(idle);
  } else {
    memory = take_(size);
    if (memory == nullptr) {
      give_back_settled();
      memory = take_(size);
    }
    if (memory == nullptr) return nullptr;
  }
  used_[memory] = block;
  in_use_ += block.bytes;
  peak_ = std::max(peak_, in_use_);
  return memory;
}

DevicePool::IdleBlocks::iterator DevicePool::find_idle(const void* queue, size_t bytes) {
  auto best = idle_.end();
  for (auto it = idle_.lower_bound(bytes); it != idle_.end() && it->first <= largest_for(bytes);
       ++it) {
    if (it->second.queue == queue) return it;
    if (it->second.queue == nullptr && best == idle_.end()) best = it;
  }
  return best;
}

void DevicePool::release(void* memory, bool settled) {
  std::lock_guard lock(mutex_);
  auto used = used_.find(memory);
  RELAY_CHECK(used != used_.end(), "memory is released that is not of the device");
  const Block block = used->second;
  used_.erase(used);
  in_use_ -= block.bytes;
  if (block.is_lent) return give_(memory);
  idle_bytes_ += block.bytes;
  idle_.emplace(block.bytes, Idle{memory, settled ? nullptr : block.queue, ++releases_});
}

void DevicePool::lend(void* memory) {
  std::lock_guard lock(mutex_);
  if (auto used = used_.find(memory); used != used_.end()) used->second.is_lent = true;
}

void DevicePool::settle_blocks(const void* queue) {
  for (auto& [bytes, idle] : idle_) {
    if (idle.queue == queue) idle.queue = nullptr;
  }
}

void DevicePool::settle(const void* queue) {
  std::lock_guard lock(mutex_);
  settle_blocks(queue);
  while (idle_bytes_ > std::max(peak_, kKeptIdle)) {
    auto oldest = idle_.end();
    for (auto it = idle_.begin(); it != idle_.end(); ++it) {
      if (it->second.queue != nullptr) continue;
      if (oldest == idle_.end() || it->second.since < oldest->second.since) oldest = it;
    }
    if (oldest == idle_.end()) return;
    give_back(oldest);
  }
}

void DevicePool::give_back(IdleBlocks::iterator block) {
  idle_bytes_ -= block->first;
  give_(block->second.memory);
  idle_.erase(block);
}

void DevicePool::give_back_settled() {
  for (auto it = idle_.begin(); it != idle_.end();) {
    const auto next = std::next(it);
    if (it->second.queue == nullptr) give_back(it);
    it = next;
  }
}

DevicePool::Usage DevicePool::usage() {
  std::lock_guard lock(mutex_);
  return {in_use_, idle_bytes_};
}

}  // namespace relay::runtime
