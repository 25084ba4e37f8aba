// What the archives that the module is made of expect of newer system libraries, for systems that have older ones: so
// that one wheel runs on glibc 2.34 and libstdc++ 11. Nothing here is seen outside of the module.

#include <condition_variable>
#include <cstdint>
#include <cstdlib>
#include <mutex>

#include <pthread.h>
#include <unistd.h>

// glibc 2.36. LLVM draws names of temporary files with it.
extern "C" [[gnu::visibility("hidden")]] uint32_t arc4random() {
  uint32_t drawn = 0;
  if (getentropy(&drawn, sizeof drawn) != 0) abort();
  return drawn;
}

// libstdc++ 12: condition_variable::wait(unique_lock<mutex>&), which differs from that of libstdc++ 11 in its version only.
extern "C" [[gnu::visibility("hidden")]] void
wait_for_condition(std::condition_variable* condition, std::unique_lock<std::mutex>* lock) asm(
    "_ZNSt18condition_variable4waitERSt11unique_lockISt5mutexE");

void wait_for_condition(std::condition_variable* condition, std::unique_lock<std::mutex>* lock) {
  pthread_cond_wait(condition->native_handle(), lock->mutex()->native_handle());
}
