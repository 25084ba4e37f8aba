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

#if defined(__x86_64__)

bool has_native_stack() { return true; }

relay_native_result call_on_stack(char* top, StackFunction f, void* a, const void* b,
                                  char** old_stack) {
  relay_native_result out;
  auto code = reinterpret_cast<int64_t>(f);
  auto store = reinterpret_cast<int64_t>(old_stack);
  // The caller's stack pointer survives in a register that functions keep.
  asm volatile(
      "movq %%rsp, %%rbx\n\t"
      "movq %%rsp, (%%rdx)\n\t"
      "movq %%rcx, %%rsp\n\t"
      "callq *%%rax\n\t"
      "movq %%rbx, %%rsp\n\t"
      : "+a"(code), "+d"(store), "+c"(top), "+D"(a), "+S"(b)
      :
      : "rbx", "r8", "r9", "r10", "r11", "memory", "cc", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4",
        "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14",
        "xmm15");
  out.value = code;
  out.failed = store;
  return out;
}

#else

bool has_native_stack() { return false; }

relay_native_result call_on_stack(char*, StackFunction, void*, const void*, char**) {
  throw InternalError("internal error: this machine's runtime has no stack for native functions");
}

#endif

}  // namespace relay::runtime
