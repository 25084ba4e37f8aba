// The memory of OpenCL devices by addresses, for all queues: one reads what another has written. The addresses are reserved, and
// nothing is there.
#pragma once

#include <cstddef>
#include <map>
#include <utility>

#include "base/fork.h"
#include "runtime/opencl/api.h"

namespace relay::runtime::opencl {

// May be used by several threads.
class AddressSpace {
 public:
  static AddressSpace& instance();

  // The first of as many addresses; null where there are none.
  void* insert(Memory memory, size_t bytes);
  // Of what `insert` has returned.
  Memory remove(void* range) noexcept;
  // The memory that has the address, or ends there, and the byte in it.
  std::pair<Memory, size_t> find(const void* address);

 private:
  struct Block {
    Memory memory;
    size_t size;
  };
  ForkSafeMutex mutex_;
  std::map<char*, Block> blocks_;
};

}  // namespace relay::runtime::opencl
