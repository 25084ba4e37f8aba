#include "base/fork.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <mutex>
#include <shared_mutex>
#include <thread>
#include <vector>

namespace relay {
namespace {

// ThreadSanitizer does not support threads in a forked child.
#if !defined(__SANITIZE_THREAD__)

using namespace std::chrono_literals;

// Whether the child ends with true within its time; a child that hangs is ended.
bool child_says(const std::function<bool()>& child) {
  const pid_t pid = fork();
  if (pid == 0) {
    alarm(20);
    _exit(child() ? 0 : 1);
  }
  int status = 0;
  EXPECT_EQ(waitpid(pid, &status, 0), pid);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

TEST(fork, a_child_finds_no_mutex_locked_and_nothing_half_changed) {
  ForkSafeMutex mutex;
  ForkSafeSharedMutex shared;
  int left = 0, right = 0;  // equal whenever the mutex is free
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&] {
      while (!stop) {
        {
          std::lock_guard lock(mutex);
          ++left;
          std::this_thread::sleep_for(100us);
          ++right;
        }
        std::shared_lock lock(shared);
        std::this_thread::sleep_for(50us);
      }
    });
  }
  for (int round = 0; round < 50; ++round) {
    EXPECT_TRUE(child_says([&] {
      std::lock_guard lock(mutex);
      std::unique_lock all(shared);
      return left == right;
    })) << round;
  }
  stop = true;
  for (std::thread& t : threads) t.join();
}

TEST(fork, waits_for_sections_and_not_for_gaps_in_them) {
  std::atomic<int> inside{0}, in_gap{0};
  std::atomic<bool> go_on{false};
  std::thread waiting([&] {
    ForkSection outer, inner;
    inside = 1;
    std::this_thread::sleep_for(100ms);
    inside = 0;
    ForkGap gap;
    in_gap = 1;
    while (!go_on) std::this_thread::sleep_for(1ms);
  });
  while (inside == 0) std::this_thread::yield();
  EXPECT_TRUE(child_says([&] { return inside == 0; }));
  while (in_gap == 0) std::this_thread::yield();
  // The other thread stays in its gap: a fork that waited for it would never end.
  EXPECT_TRUE(child_says([] { return true; }));
  go_on = true;
  waiting.join();
  EXPECT_TRUE(child_says([] {
    ForkSection section;
    return true;
  }));
}

TEST(fork, children_are_of_other_generations) {
  const uint64_t mine = fork_generation();
  EXPECT_TRUE(child_says([&] {
    return fork_generation() == mine + 1 &&
           child_says([&] { return fork_generation() == mine + 2; });
  }));
  EXPECT_EQ(fork_generation(), mine);
}

TEST(fork, in_a_section_does_not_wait_for_itself) {
  ForkSection section;
  EXPECT_TRUE(child_says([] {
    ForkSection nested;
    return true;
  }));
}

#endif

}  // namespace
}  // namespace relay
