#include "runtime/vm/native_stack.h"

#include <sys/mman.h>

#include <algorithm>

namespace relay::runtime {

namespace {

// An access below the stack must fault and not reach other memory.
constexpr size_t kGuard = size_t{64} << 10;
constexpr size_t kLeast = size_t{4} << 20;
// Kept from run to run.
constexpr size_t kKept = size_t{1} << 20;

}  // namespace

std::unique_ptr<NativeStack> NativeStack::make() {
  for (size_t bytes = kBytes; bytes >= kLeast; bytes /= 2) {
    void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
    if (memory == MAP_FAILED) continue;
    std::unique_ptr<NativeStack> stack(new NativeStack(static_cast<char*>(memory), bytes));
    return mprotect(memory, kGuard, PROT_NONE) == 0 ? std::move(stack) : nullptr;
  }
  return nullptr;
}

NativeStack::~NativeStack() { munmap(memory_, bytes_); }

char* NativeStack::limit(size_t bytes) const {
  return top() - std::min(bytes, bytes_ - kGuard - kReserve);
}

void NativeStack::trim() { madvise(memory_ + kGuard, bytes_ - kGuard - kKept, MADV_DONTNEED); }

}  // namespace relay::runtime
