#include "runtime/opencl/address_space.h"

#include <sys/mman.h>

#include <mutex>

#include "base/diagnostic.h"

namespace relay::runtime::opencl {
namespace {

constexpr size_t kPage = 4096;

}  // namespace

AddressSpace& AddressSpace::instance() {
  static auto* const space = new AddressSpace;
  return *space;
}

void* AddressSpace::insert(Memory memory, size_t bytes) {
  // With the address behind the last byte, where a view without elements may begin.
  const size_t size = (bytes / kPage + 1) * kPage;
  void* range = mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (range == MAP_FAILED) return nullptr;
  std::lock_guard lock(mutex_);
  blocks_[static_cast<char*>(range)] = {memory, size};
  return range;
}

Memory AddressSpace::remove(void* range) noexcept {
  std::lock_guard lock(mutex_);
  auto block = blocks_.find(static_cast<char*>(range));
  const Memory memory = block->second.memory;
  munmap(range, block->second.size);
  blocks_.erase(block);
  return memory;
}

std::pair<Memory, size_t> AddressSpace::find(const void* address) {
  auto* at = static_cast<char*>(const_cast<void*>(address));
  std::lock_guard lock(mutex_);
  auto block = blocks_.upper_bound(at);
  RELAY_CHECK(block != blocks_.begin(), "an address that is not of an OpenCL device");
  --block;
  const auto offset = static_cast<size_t>(at - block->first);
  RELAY_CHECK(offset < block->second.size, "an address that is not of an OpenCL device");
  return {block->second.memory, offset};
}

}  // namespace relay::runtime::opencl
