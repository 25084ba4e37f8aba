#include <cstdlib>
#include <new>

#include "base/budget.h"
#include "base/thread_locals.h"

namespace relay {

bool detail::make_thread_ready() noexcept {
  // Thread-local variables of all libraries take a few kilobytes. Memory freed here is available for them.
  constexpr size_t kEnough = size_t{64} << 10;
  void* volatile memory = std::malloc(kEnough);
  if (memory == nullptr) return false;
  std::free(memory);
  // The memory of a library's variables comes for all of them at once.
  (void)current_budget();
  thread_is_ready = true;
  return true;
}

void require_thread_locals() {
  if (!has_thread_locals()) throw std::bad_alloc();
}

}  // namespace relay
