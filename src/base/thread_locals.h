// Variables of threads, and the memory for them.
//
// A library that is loaded while the process runs gets the memory for its variables of a thread when the thread first
// touches one; where there is none the C library ends the process. So whoever runs on a thread of unknown history asks
// first.
#pragma once

#include <cstdint>

namespace relay {

namespace detail {
// Reached without a call, and there from a thread's first moment (base/budget.h).
[[gnu::tls_model("initial-exec")]] extern constinit thread_local int32_t fork_depth;
[[gnu::tls_model("initial-exec")]] extern constinit thread_local bool thread_is_ready;
bool make_thread_ready() noexcept;
}  // namespace detail

// Whether the variables of this thread have their memory, now and from here on.
inline bool has_thread_locals() noexcept {
  return detail::thread_is_ready || detail::make_thread_ready();
}

// Throws std::bad_alloc where they have none.
void require_thread_locals();

}  // namespace relay
