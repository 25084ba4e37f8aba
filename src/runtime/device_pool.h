// Memory of a device that its queues allocate again and again: blocks that are released are kept for the next allocation of
// about their size, so that a run gets the addresses that the run before it had.
//
//   DevicePool pool(take, give);              // what the driver has for it
//   pool.open(&queue);
//   void* memory = pool.allocate(&queue, 4096);
//   pool.release(memory, false);              // work of the queue may still use it
//   pool.settle(&queue);                      // all work of the queue is done
//   pool.close(&queue);
//
// A block that is released goes to any later work of its queue, which is done in order, and to other queues or back to the
// driver once it is settled. May be used by several threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <unordered_map>

#include "base/fork.h"

namespace relay::runtime {

class DevicePool {
 public:
  // `take` returns null where there is no memory. Both are called under the pool's lock.
  DevicePool(std::function<void*(size_t)> take, std::function<void(void*)> give)
      : take_(std::move(take)), give_(std::move(give)) {}

  void open(const void* queue);
  // All work of the queue is done. With the last queue everything idle goes back to the driver.
  void close(const void* queue);

  // Null where the driver has no memory, even after all settled blocks were given back to it.
  void* allocate(const void* queue, size_t bytes);
  // `settled`: no work that was given to the queue uses it.
  void release(void* memory, bool settled);
  // Others have the memory, and may use it when it is released: it goes back to the driver then, which keeps it until their work
  // is done. Memory that is not of the pool is ignored.
  void lend(void* memory);
  // Blocks that the queue has released are free for everyone. What is idle beyond the most that was in use at once, and beyond
  // 64 MiB, goes back.
  void settle(const void* queue);

  struct Usage {
    size_t in_use = 0, idle = 0;  // bytes
  };
  Usage usage();

 private:
  struct Block {
    size_t bytes;
    const void* queue;
    bool is_lent = false;
  };
  struct Idle {
    void* memory;
    const void* queue;  // null when settled
    uint64_t since;
  };
  using IdleBlocks = std::multimap<size_t, Idle>;

  IdleBlocks::iterator find_idle(const void* queue, size_t bytes);
  void give_back(IdleBlocks::iterator block);
  void give_back_settled();
  void settle_blocks(const void* queue);

  std::function<void*(size_t)> take_;
  std::function<void(void*)> give_;
  ForkSafeMutex mutex_;
  std::unordered_map<void*, Block> used_;
  IdleBlocks idle_;  // by bytes
  size_t in_use_ = 0, peak_ = 0, idle_bytes_ = 0, queues_ = 0;
  uint64_t releases_ = 0;
};

}  // namespace relay::runtime
