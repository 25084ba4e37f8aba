#include "runtime/vm/native_stack.h"

#include <sys/mman.h>

#include <algorithm>

#include "base/codes/runtime.h"
#include "base/diagnostic.h"

namespace relay::runtime {

namespace {

// An access below the stack must fault and not reach other memory.
constexpr size_t kGuard = size_t{64} << 10;
constexpr size_t kLeast = size_t{4} << 20;
// Kept from run to run.
constexpr size_t kKept = size_t{1} << 20;

}  // namespace

NativeStack::NativeStack() {
  auto map = [&] {
    return mmap(nullptr, bytes_, PROT_READ | PROT_WRITE,
                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
  };
  void* memory = map();
  while (memory == MAP_FAILED && bytes_ > kLeast) {
    bytes_ /= 2;
    memory = map();
  }
  if (memory == MAP_FAILED || mprotect(memory, kGuard, PROT_NONE) != 0) {
    if (memory != MAP_FAILED) munmap(memory, bytes_);
    throw RuntimeError(Diagnostic(codes::run_out_of_memory, {},
                                  "there is no address space for the stack of native functions")
                           .help("raise the limit of the process, or compile with --no-native"));
  }
  memory_ = static_cast<char*>(memory);
}

NativeStack::~NativeStack() { munmap(memory_, bytes_); }

char* NativeStack::limit(size_t bytes) const {
  return top() - std::min(bytes, bytes_ - kGuard - kReserve);
}

void NativeStack::trim() { madvise(memory_ + kGuard, bytes_ - kGuard - kKept, MADV_DONTNEED); }

}  // namespace relay::runtime
