// Work of the compiler on several threads. (Kernels run on the runtime's pool.)
#pragma once

#include <cstddef>
#include <functional>

namespace relay {

// Runs work(0) .. work(count - 1) on up to `threads` threads, the caller's among them, and returns
// when all are done. After a failure no further work begins, and the first failure is thrown. The
// caller's limits (base/budget.h) hold on all of them, and are looked at before each work.
void for_each_parallel(size_t count, int threads, const std::function<void(size_t)>& work);

}  // namespace relay
