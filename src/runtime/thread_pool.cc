#include "runtime/thread_pool.h"

#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <mutex>
#include <new>
#include <system_error>

#include "base/fork.h"
#include "base/thread_locals.h"
#include "runtime/core/denormals.h"
#include "runtime/cpu.h"

namespace relay::runtime {

namespace {

using Clock = std::chrono::steady_clock;

// How long a worker spins after the last session before it parks: calls in a tight loop find it
// awake, and an idle program does not burn a core.
constexpr auto kSpinAfterSession = std::chrono::microseconds(200);
// Inside a session: a section of an inference that runs serially for so long does not need a
// spinning worker.
constexpr auto kSpinInSession = std::chrono::milliseconds(10);
// Rounds that a waiting caller spins before it offers its core to others.
constexpr int kSpinsBeforeYield = 1 << 14;

int32_t run_body(relay_parallel_body body, void* env, int64_t begin, int64_t end) noexcept {
  try {
    return body(env, begin, end);
  } catch (...) {
    return RELAY_KERNEL_CHECK_FAILED;
  }
}

// Chunk t of `chunks`: the first extent % chunks chunks have one iteration more.
struct Split {
  int64_t quotient, remainder;
  Split(int64_t extent, int chunks) : quotient(extent / chunks), remainder(extent % chunks) {}
  int64_t begin(int64_t t) const { return t * quotient + std::min(t, remainder); }
};

std::atomic<const OpenMp*> shared_openmp{nullptr};
std::atomic<uint64_t> sharing_process{0};  // its fork_generation()

// The OpenMP whose threads run regions of so many chunks on this thread; null: those of the pool do.
const OpenMp* openmp_for(int chunks) {
  const OpenMp* shared = shared_openmp.load(std::memory_order_acquire);
  if (shared == nullptr || sharing_process.load(std::memory_order_relaxed) != fork_generation()) {
    return nullptr;
  }
  return shared->max_threads() >= chunks ? shared : nullptr;
}

}  // namespace

void share_openmp(const OpenMp* openmp) {
  sharing_process.store(fork_generation(), std::memory_order_relaxed);
  shared_openmp.store(openmp, std::memory_order_release);
}

// The caller writes the task, then raises `go`. The thread that raises `claimed` to the same number
// runs the task: the worker, or the caller when it is done with its own part and the worker has not
// begun (its core is taken by another process, or it has yet to wake up). The worker raises `done`.
// A thread of an OpenMP stands in for the worker, which sleeps then.
// Between the caller's claim and the next task the worker reads none of the fields.
struct ThreadPool::Worker {
  alignas(64) std::atomic<uint32_t> go{0};
  relay_parallel_body body = nullptr;
  void* env = nullptr;
  int64_t begin = 0;
  int64_t end = 0;
  Denormals denormals = Denormals::flush;
  std::atomic<bool> is_for_openmp{false};  // this one leaves the task alone
  alignas(64) std::atomic<uint32_t> claimed{0};
  std::atomic<uint32_t> done{0};
  int32_t code = 0;
  // 1 while the worker sleeps, or is about to, on this word.
  alignas(64) std::atomic<uint32_t> parked{0};
  std::thread thread;

  bool claim(uint32_t number) {
    uint32_t before = number - 1;
    return claimed.compare_exchange_strong(before, number, std::memory_order_acq_rel,
                                           std::memory_order_relaxed);
  }

  // Runs the task of that number, unless another thread does. The thread has its thread-local memory.
  void run(uint32_t number) {
    if (!claim(number)) return;
    DenormalScope scope(denormals);
    code = run_body(body, env, begin, end);
    done.store(number, std::memory_order_release);
  }

  void wake() {
    if (parked.load(std::memory_order_seq_cst) == 0) return;
    parked.store(0, std::memory_order_seq_cst);
    syscall(SYS_futex, reinterpret_cast<uint32_t*>(&parked), FUTEX_WAKE_PRIVATE, 1, nullptr,
            nullptr, 0);
  }
};

ThreadPool::ThreadPool(int num_threads) : process_(fork_generation()) {
  try {
    // Reserve first: a running worker must have an entry.
    workers_.reserve(static_cast<size_t>(std::max(num_threads, 1) - 1));
    for (int t = 1; t < num_threads; ++t) {
      auto worker = std::make_unique<Worker>();
      worker->thread = make_thread([this, &ref = *worker] { work(ref); });
      workers_.push_back(std::move(worker));
    }
  } catch (const std::system_error&) {
    // The system gives no more threads.
  } catch (const std::bad_alloc&) {
    // Nor the memory for one.
  }
}

ThreadPool::~ThreadPool() {
  if (!usable()) {
    // The threads exist in the parent process only, and their stacks, which pthread_detach would
    // read, may be unmapped: the workers are left as they are.
    for (auto& worker : workers_) static_cast<void>(worker.release());
    return;
  }
  stop_.store(true, std::memory_order_seq_cst);
  wake_all();
  for (auto& worker : workers_) worker->thread.join();
}

std::shared_ptr<ThreadPool> ThreadPool::shared(int num_threads) {
  // Never destroyed: threads may still ask while the process ends.
  static auto& mutex = *new ForkSafeMutex;
  static auto& pools = *new std::map<int, std::weak_ptr<ThreadPool>>;
  if (num_threads <= 0) num_threads = available_threads();
  num_threads = std::min(num_threads, 1024);
  std::lock_guard lock(mutex);
  std::weak_ptr<ThreadPool>& slot = pools[num_threads];
  std::shared_ptr<ThreadPool> pool = slot.lock();
  if (pool == nullptr || !pool->usable()) {
    pool = std::make_shared<ThreadPool>(num_threads);
    slot = pool;
  }
  return pool;
}

bool ThreadPool::usable() const { return process_ == fork_generation(); }

void ThreadPool::wake_all() {
  for (auto& worker : workers_) worker->wake();
}

ThreadPool::Session::Session(ThreadPool& pool, bool wake) : pool_(pool) {
  pool_.sessions_.fetch_add(1, std::memory_order_seq_cst);
  if (wake && pool_.usable() && openmp_for(pool_.num_threads()) == nullptr) pool_.wake_all();
}

ThreadPool::Session::~Session() { pool_.sessions_.fetch_sub(1, std::memory_order_relaxed); }

// A region under way. Its caller leads it; where an OpenMP has the threads, all of them are in `member`, the caller as number 0.
struct ThreadPool::Region {
  ThreadPool& pool;
  relay_parallel_body body;
  void* env;
  int64_t end_of_first;
  int chunks;
  const OpenMp* openmp;
  void (*waiting)(void*);
  void* waiting_for;
  int32_t result = 0;

  // Runs the first chunk and those that have not begun by then, and waits for the others.
  void lead() {
    result = run_body(body, env, 0, end_of_first);
    for (int t = 1; t < chunks; ++t) {
      Worker& worker = *pool.workers_[t - 1];
      uint32_t number = worker.go.load(std::memory_order_relaxed);
      if (worker.claim(number)) {
        int32_t code = run_body(body, env, worker.begin, worker.end);
        if (result == 0) result = code;
        continue;
      }
      for (int spins = 0; worker.done.load(std::memory_order_acquire) != number; ++spins) {
        if (spins < kSpinsBeforeYield) {
          spin_pause();
        } else {
          if (waiting != nullptr) waiting(waiting_for);
          sched_yield();
        }
      }
      if (result == 0) result = worker.code;
    }
  }

  static void member(void* region) {
    auto& self = *static_cast<Region*>(region);
    const int number = self.openmp->thread_num();
    if (number == 0) return self.lead();
    if (number >= self.chunks || !has_thread_locals()) return;
    Worker& worker = *self.pool.workers_[number - 1];
    worker.run(worker.go.load(std::memory_order_relaxed));
  }
};

int32_t ThreadPool::parallel_for(relay_parallel_body body, void* env, int64_t extent, int chunks,
                                 void (*waiting)(void*), void* waiting_for) {
  if (extent <= 0) return 0;
  chunks = std::clamp(chunks, 1, num_threads());
  if (extent < chunks) chunks = static_cast<int>(extent);
  if (chunks == 1) return run_body(body, env, 0, extent);
  Split split(extent, chunks);
  if (!usable() || busy_.exchange(true, std::memory_order_acquire)) {
    for (int t = 0; t < chunks; ++t) {
      int32_t code = run_body(body, env, split.begin(t), split.begin(t + 1));
      if (code != 0) return code;
    }
    return 0;
  }
  const OpenMp* openmp = openmp_for(chunks);
  const Denormals denormals = denormals_of_thread();
  for (int t = 1; t < chunks; ++t) {
    Worker& worker = *workers_[t - 1];
    worker.body = body;
    worker.env = env;
    worker.begin = split.begin(t);
    worker.end = split.begin(t + 1);
    worker.denormals = denormals;
    worker.is_for_openmp.store(openmp != nullptr, std::memory_order_relaxed);
    // Sequentially consistent, as are the worker's operations around parking: either the worker
    // sees the new number, or this thread sees that it is parked.
    worker.go.fetch_add(1, std::memory_order_seq_cst);
    if (openmp == nullptr) worker.wake();
  }
  Region region{*this, body, env, split.begin(1), chunks, openmp, waiting, waiting_for};
  if (openmp == nullptr) {
    region.lead();
  } else {
    // As many threads as other regions of the OpenMP have: with another number it ends some, or starts them anew.
    openmp->parallel(&Region::member, &region, 0, 0);
  }
  busy_.store(false, std::memory_order_release);
  return region.result;
}

void ThreadPool::work(Worker& worker) {
  // Callers do the work of one that is not there.
  if (!has_thread_locals()) return;
  uint32_t finished = 0;
  Clock::time_point idle_since;
  for (uint32_t round = 1;; ++round) {
    uint32_t number = worker.go.load(std::memory_order_acquire);
    if (number != finished) {
      finished = number;
      if (!worker.is_for_openmp.load(std::memory_order_relaxed)) {
        worker.run(number);
        round = 0;
        continue;
      }
    }
    spin_pause();
    if (round % 256 != 0) continue;
    if (round == 256) idle_since = Clock::now();
    if (stop_.load(std::memory_order_relaxed)) return;
    auto idle = Clock::now() - idle_since;
    bool in_session = sessions_.load(std::memory_order_relaxed) > 0;
    if (idle <
        (in_session ? Clock::duration(kSpinInSession) : Clock::duration(kSpinAfterSession))) {
      continue;
    }
    worker.parked.store(1, std::memory_order_seq_cst);
    if (worker.go.load(std::memory_order_seq_cst) == finished &&
        !stop_.load(std::memory_order_seq_cst)) {
      // Returns at once when the word is no longer 1, that is when it has been woken already.
      syscall(SYS_futex, reinterpret_cast<uint32_t*>(&worker.parked), FUTEX_WAIT_PRIVATE, 1,
              nullptr, nullptr, 0);
    }
    worker.parked.store(0, std::memory_order_relaxed);
    round = 0;
  }
}

}  // namespace relay::runtime
