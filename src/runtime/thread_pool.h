// A fork-join thread pool for kernels.
//
//   auto pool = ThreadPool::shared();
//   ThreadPool::Session session(*pool);        // an inference: workers spin, ready at once
//   pool->parallel_for(body, env, extent, 2);  // [0, extent) in 2 contiguous chunks
//
// Chunk 0 runs on the caller and chunk t on worker t, so that what a worker has in its caches is
// used again by the next kernel; only a chunk that its worker has not begun when the caller is done
// with its own is run by the caller, so a busy machine delays nothing. Workers spin while a session
// is open and a little after it, then park. A caller that finds the pool busy (another thread's
// region, or its own: nested) runs its chunks itself, one after another, with the same results.
// A worker is in its caller's mode for denormals (core/denormals.h). Nothing is pinned to cores; the operating system places the
// threads within the process's affinity mask.
//
// Where the process has an OpenMP that another library runs its own work with, such as PyTorch's, its threads can be the
// workers (share_openmp). They wait actively, as ours do: with a pool of each on the same cores, every region would begin
// while the other's threads still hold a core.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "runtime/core/kernel_abi.h"

namespace relay::runtime {

// The functions of an OpenMP runtime; libgomp, libomp and libiomp5 have them under these names.
struct OpenMp {
  void (*parallel)(void (*body)(void*), void* env, unsigned threads,
                   unsigned flags);  // GOMP_parallel
  int (*max_threads)();              // omp_get_max_threads
  int (*thread_num)();               // omp_get_thread_num
};

// Regions of all pools run on this OpenMP's threads from now on, where it has as many for the calling thread as a region has
// chunks; null: on the pools' own. Another thread may call it at any later time, so it stays for the rest of the process. In a
// child process after fork it is not used: its threads did not come along.
void share_openmp(const OpenMp* openmp);

class ThreadPool {
 public:
  // A pool for regions of up to `num_threads` chunks, with num_threads - 1 workers. When the
  // system refuses a thread, or the memory for it, the pool is smaller; it never fails.
  explicit ThreadPool(int num_threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  // The process's pool of that size, made on first use and kept while somebody holds it; 0 means
  // available_threads().
  static std::shared_ptr<ThreadPool> shared(int num_threads = 0);

  int num_threads() const { return static_cast<int>(workers_.size()) + 1; }

  // Runs `body` over [0, extent) in `chunks` contiguous chunks (at least 1, at most
  // num_threads()) whose sizes differ by at most one; returns 0 or the lowest failing chunk's
  // code. A body that throws counts as RELAY_KERNEL_CHECK_FAILED. A caller that waits for others
  // longer than some ten microseconds calls `waiting(waiting_for)` again and again.
  int32_t parallel_for(relay_parallel_body body, void* env, int64_t extent, int chunks,
                       void (*waiting)(void*) = nullptr, void* waiting_for = nullptr);

  // False in a child process after fork: the workers did not come along, and regions run
  // serially.
  bool usable() const;

  // Marks an inference. Opening wakes the workers when `wake` is set.
  class Session {
   public:
    explicit Session(ThreadPool& pool, bool wake = true);
    ~Session();
    Session(const Session&) = delete;
    Session& operator=(const Session&) = delete;

   private:
    ThreadPool& pool_;
  };

 private:
  struct Worker;
  struct Region;
  void work(Worker& worker);
  void wake_all();

  std::vector<std::unique_ptr<Worker>> workers_;
  alignas(64) std::atomic<bool> busy_{false};
  alignas(64) std::atomic<int> sessions_{0};
  std::atomic<bool> stop_{false};
  uint64_t process_ = 0;
};

}  // namespace relay::runtime
