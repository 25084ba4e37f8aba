#include "base/parallel.h"

#include <atomic>
#include <exception>
#include <mutex>
#include <new>
#include <system_error>
#include <thread>
#include <vector>

#include "base/budget.h"
#include "base/fork.h"
#include "base/thread_locals.h"

namespace relay {

void for_each_parallel(size_t count, int threads, const std::function<void(size_t)>& work) {
  std::atomic<size_t> next{0};
  std::exception_ptr failure;
  std::mutex mutex;
  auto loop = [&] {
    for (size_t i = next++; i < count; i = next++) {
      try {
        check_budget_now();
        work(i);
      } catch (...) {
        std::lock_guard<std::mutex> lock(mutex);
        if (!failure) failure = std::current_exception();
        next = count;
      }
    }
  };
  const BudgetScope* budget = current_budget();
  auto help = [&] {
    // The others do its part.
    if (!has_thread_locals()) return;
    BudgetShare share(budget);
    loop();
  };
  std::vector<std::thread> helpers;
  try {
    for (int t = 1; t < threads && static_cast<size_t>(t) < count; ++t) {
      // Reserve first: a thread that runs already must not be lost by a failed allocation.
      helpers.reserve(helpers.size() + 1);
      helpers.push_back(make_thread(help));
    }
  } catch (const std::system_error&) {
    // The system gives no more threads; those that there are do the work.
  } catch (const std::bad_alloc&) {
    // Nor the memory for one.
  }
  loop();
  for (std::thread& t : helpers) t.join();
  if (failure) std::rethrow_exception(failure);
}

}  // namespace relay
