#include "base/fork.h"

#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstddef>

#include "base/thread_locals.h"

namespace relay {
namespace {

using detail::fork_depth;

// The threads in a section, counted in several stripes so that they do not share a cache line.
constexpr size_t kStripes = 64;
struct alignas(64) Stripe {
  std::atomic<int32_t> threads{0};
};
constinit Stripe stripes[kStripes];

// Whether a thread waits to fork, or forks.
constinit std::atomic<bool> forking{false};
constinit std::atomic<uint64_t> generation{0};
// One fork at a time.
constinit std::mutex fork_mutex;

constexpr auto kPatience = std::chrono::seconds(10);
constexpr useconds_t kPauseMicroseconds = 20;

Stripe& stripe_of_thread() {
  // Descriptors of threads are pages apart.
  return stripes[(static_cast<size_t>(pthread_self()) >> 12) % kStripes];
}

bool is_any_in_section() {
  for (const Stripe& s : stripes) {
    if (s.threads.load(std::memory_order_seq_cst) > 0) return true;
  }
  return false;
}

void before_fork() {
  // A section that forks would wait for itself; it is its own affair.
  if (fork_depth++ > 0) return;
  fork_mutex.lock();
  forking.store(true, std::memory_order_seq_cst);
  const auto end = std::chrono::steady_clock::now() + kPatience;
  while (is_any_in_section() && std::chrono::steady_clock::now() < end) usleep(kPauseMicroseconds);
}

void after_fork() {
  if (--fork_depth > 0) return;
  forking.store(false, std::memory_order_seq_cst);
  fork_mutex.unlock();
}

void after_fork_in_child() {
  generation.fetch_add(1, std::memory_order_relaxed);
  const bool in_section = fork_depth > 1;
  for (Stripe& s : stripes) s.threads.store(0, std::memory_order_relaxed);
  if (in_section) stripe_of_thread().threads.store(1, std::memory_order_relaxed);
  after_fork();
}

// Once; a fork in the middle begins it again in the child.
void prepare_for_forks() {
  static std::once_flag once;
  std::call_once(once, [] { pthread_atfork(before_fork, after_fork, after_fork_in_child); });
}

}  // namespace

uint64_t fork_generation() {
  prepare_for_forks();
  return generation.load(std::memory_order_relaxed);
}

namespace {

void enter() noexcept {
  prepare_for_forks();
  std::atomic<int32_t>& threads = stripe_of_thread().threads;
  for (;;) {
    // Sequentially consistent, as are the fork's operations: either it sees the thread here, or the
    // thread sees that it forks.
    threads.fetch_add(1, std::memory_order_seq_cst);
    if (!forking.load(std::memory_order_seq_cst)) [[likely]]
      return;
    threads.fetch_sub(1, std::memory_order_seq_cst);
    while (forking.load(std::memory_order_relaxed)) usleep(kPauseMicroseconds);
  }
}

}  // namespace

void ForkSection::enter() noexcept {
  if (fork_depth == 0) relay::enter();
  ++fork_depth;
}

void ForkSection::leave() noexcept {
  if (--fork_depth > 0) return;
  stripe_of_thread().threads.fetch_sub(1, std::memory_order_release);
}

ForkGap::ForkGap() noexcept : depth_(fork_depth) {
  if (depth_ == 0) return;
  fork_depth = 0;
  stripe_of_thread().threads.fetch_sub(1, std::memory_order_release);
}

ForkGap::~ForkGap() {
  if (depth_ == 0) return;
  enter();
  fork_depth = depth_;
}

}  // namespace relay
