// What a child of fork() finds: state that no other thread was changing.
//
//   ForkSafe<std::mutex> mutex;      // for what threads share
//   std::lock_guard lock(mutex);
//
//   ForkSection section;             // around calls into a library with locks of its own
//   run_llvm(module);
//
//   std::thread t = make_thread(f);  // the C library's lists of threads are such state, too
//
// Of the threads of a process its child has the one that forked. A mutex that another thread held
// stays locked there for ever, and what it guards half changed. So a fork waits until no thread is
// in a section, and threads that come to one wait until the process has forked.
//
// A section is short - a kernel in LLVM is the longest - and never waits for a lock outside of one,
// such as Python's, which a fork may hold. After ten seconds a fork goes on all the same.
#pragma once

#include <cstdint>
#include <mutex>
#include <shared_mutex>
#include <thread>
#include <utility>

namespace relay {

// How many forks lie between the first process and this one: what belongs to threads that a child
// has not got (a pool of workers, a long run) is of another generation there.
uint64_t fork_generation();

// Sections nest.
class ForkSection {
 public:
  ForkSection() { enter(); }
  ~ForkSection() { leave(); }
  ForkSection(const ForkSection&) = delete;
  ForkSection& operator=(const ForkSection&) = delete;

 private:
  template <class M>
  friend class ForkSafe;

  static void enter() noexcept;
  static void leave() noexcept;
};

// A new thread. In glibc a thread gets the stack of one that ended and frees that one's thread-local
// memory; a child forked meanwhile would free it again with its own first thread.
template <class F>
std::thread make_thread(F&& f) {
  ForkSection section;
  return std::thread(std::forward<F>(f));
}

// Leaves the sections of the thread for as long as it lives, for what may wait for other locks. The
// thread holds no ForkSafe mutex.
class ForkGap {
 public:
  ForkGap() noexcept;
  ~ForkGap();
  ForkGap(const ForkGap&) = delete;
  ForkGap& operator=(const ForkGap&) = delete;

 private:
  int32_t depth_;
};

// A mutex that is held in a section.
template <class M>
class ForkSafe {
 public:
  constexpr ForkSafe() = default;

  void lock() {
    ForkSection::enter();
    mutex_.lock();
  }
  void unlock() {
    mutex_.unlock();
    ForkSection::leave();
  }
  void lock_shared() {
    ForkSection::enter();
    mutex_.lock_shared();
  }
  void unlock_shared() {
    mutex_.unlock_shared();
    ForkSection::leave();
  }

 private:
  M mutex_;
};

using ForkSafeMutex = ForkSafe<std::mutex>;
using ForkSafeSharedMutex = ForkSafe<std::shared_mutex>;

}  // namespace relay
