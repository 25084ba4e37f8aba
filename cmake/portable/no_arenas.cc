// Messages of protobuf without its arenas, so that its archive can be part of a shared library. As Debian builds it, one
// file of it, that of arenas, is code for programs only. Messages of ONNX are on the heap: what generated code would ask
// of an arena is defined here, and never reached.
#include <google/protobuf/arena.h>

#include <cstdlib>

namespace google::protobuf {

void* Arena::AllocateAlignedWithHook(size_t, const std::type_info*) { std::abort(); }
void* Arena::AllocateAlignedWithHookForArray(size_t, const std::type_info*) { std::abort(); }
std::pair<void*, internal::SerialArena::CleanupNode*> Arena::AllocateAlignedWithCleanup(
    size_t, const std::type_info*) {
  std::abort();
}

namespace internal {

ThreadSafeArena::~ThreadSafeArena() { std::abort(); }
void ThreadSafeArena::AddCleanup(void*, void (*)(void*)) { std::abort(); }
uint64_t ThreadSafeArena::SpaceAllocated() const { std::abort(); }

}  // namespace internal
}  // namespace google::protobuf

// In a file of its own (thread_cache.c), which the linker is to find before it looks into the archive.
extern __thread char thread_cache asm("_ZN6google8protobuf8internal15ThreadSafeArena13thread_cache_E");
char* relay_thread_cache() { return &thread_cache; }
