// Thread pool, processor features, quota, workspaces.
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "runtime/core/denormals.h"
#include "runtime/cpu.h"
#include "runtime/memory.h"
#include "runtime/thread_pool.h"

namespace relay::runtime {
namespace {

struct Marks {
  std::vector<std::atomic<int>> seen;
  std::vector<std::pair<int64_t, int64_t>> chunks;
  std::mutex mutex;
  explicit Marks(size_t n) : seen(n) {}
  static int32_t body(void* env, int64_t begin, int64_t end) {
    auto* self = static_cast<Marks*>(env);
    for (int64_t i = begin; i < end; ++i) self->seen[static_cast<size_t>(i)]++;
    std::lock_guard lock(self->mutex);
    self->chunks.emplace_back(begin, end);
    return 0;
  }
};

TEST(thread_pool, covers_every_iteration_once_in_balanced_chunks) {
  ThreadPool pool(3);
  for (int64_t extent : {0, 1, 2, 3, 4, 7, 100, 1001}) {
    for (int chunks : {1, 2, 3, 9}) {
      Marks marks(static_cast<size_t>(extent));
      EXPECT_EQ(pool.parallel_for(Marks::body, &marks, extent, chunks), 0);
      for (auto& seen : marks.seen) ASSERT_EQ(seen.load(), 1);
      int64_t smallest = extent, largest = 0;
      for (auto [begin, end] : marks.chunks) {
        smallest = std::min(smallest, end - begin);
        largest = std::max(largest, end - begin);
      }
      EXPECT_LE(largest - (extent > 0 ? smallest : 0), 1);
      EXPECT_EQ(marks.chunks.size(), static_cast<size_t>(std::min<int64_t>({extent, chunks, 3})));
    }
  }
}

TEST(thread_pool, extents_near_the_limit_do_not_overflow) {
  ThreadPool pool(2);
  std::atomic<int64_t> sum{0};
  auto body = [](void* env, int64_t begin, int64_t end) -> int32_t {
    static_cast<std::atomic<int64_t>*>(env)->fetch_add(end - begin);
    return 0;
  };
  EXPECT_EQ(pool.parallel_for(body, &sum, std::numeric_limits<int64_t>::max(), 2), 0);
  EXPECT_EQ(sum.load(), std::numeric_limits<int64_t>::max());
}

TEST(thread_pool, returns_the_lowest_failing_chunks_code) {
  ThreadPool pool(3);
  auto body = [](void*, int64_t begin, int64_t) -> int32_t {
    return begin == 0 ? 0 : static_cast<int32_t>(begin);
  };
  EXPECT_EQ(pool.parallel_for(body, nullptr, 3, 3), 1);
  auto thrower = [](void*, int64_t begin, int64_t) -> int32_t {
    if (begin > 0) throw 1;
    return 0;
  };
  EXPECT_EQ(pool.parallel_for(thrower, nullptr, 2, 2), RELAY_KERNEL_CHECK_FAILED);
}

TEST(thread_pool, a_chunk_runs_on_its_worker_unless_that_is_late) {
  ThreadPool pool(3);
  struct Env {
    std::thread::id ids[3];
  };
  auto body = [](void* env, int64_t begin, int64_t) -> int32_t {
    static_cast<Env*>(env)->ids[begin] = std::this_thread::get_id();
    return 0;
  };
  std::set<std::thread::id> seen[3];
  for (int i = 0; i < 1000; ++i) {
    Env env;
    pool.parallel_for(body, &env, 3, 3);
    for (int t = 0; t < 3; ++t) seen[t].insert(env.ids[t]);
  }
  std::thread::id caller = std::this_thread::get_id();
  EXPECT_EQ(seen[0], std::set{caller});
  for (int t = 1; t < 3; ++t) {
    seen[t].erase(caller);
    EXPECT_LE(seen[t].size(), 1u);
  }
}

TEST(thread_pool, a_caller_that_waits_for_long_is_told) {
  ThreadPool pool(2);
  struct Env {
    std::thread::id caller = std::this_thread::get_id();
    std::atomic<bool> worker_begins{false}, waited{false};
  } env;
  auto body = [](void* env, int64_t begin, int64_t) -> int32_t {
    auto& e = *static_cast<Env*>(env);
    if (begin == 0) {
      // The caller's own chunk lasts until the worker has begun.
      for (int ms = 0; ms < 2000 && !e.worker_begins; ++ms)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    } else if (std::this_thread::get_id() != e.caller) {
      e.worker_begins = true;
      while (!e.waited) std::this_thread::yield();
    }
    return 0;
  };
  auto waiting = [](void* env) { static_cast<Env*>(env)->waited = true; };
  EXPECT_EQ(pool.parallel_for(body, &env, 2, 2, waiting, &env), 0);
  EXPECT_TRUE(env.waited);
}

TEST(thread_pool, the_caller_does_not_wait_for_a_worker_that_has_not_begun) {
  // Both threads on one core: the worker can only begin when the caller is preempted or sleeps.
  cpu_set_t before, one;
  ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
  CPU_ZERO(&one);
  CPU_SET(sched_getcpu(), &one);
  ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
  ThreadPool pool(2);
  struct Env {
    std::thread::id caller;
    std::atomic<int64_t> by_caller{0}, count{0};
  } env;
  env.caller = std::this_thread::get_id();
  auto body = [](void* env, int64_t begin, int64_t end) -> int32_t {
    auto& e = *static_cast<Env*>(env);
    e.count += end - begin;
    if (std::this_thread::get_id() == e.caller) e.by_caller += end - begin;
    return 0;
  };
  for (int i = 0; i < 1000; ++i) pool.parallel_for(body, &env, 2, 2);
  EXPECT_EQ(env.count, 2000);
  EXPECT_GT(env.by_caller, 1000);
  ASSERT_EQ(sched_setaffinity(0, sizeof before, &before), 0);
}

TEST(thread_pool, nested_and_concurrent_regions_are_complete) {
  ThreadPool pool(2);
  struct Env {
    ThreadPool* pool;
    std::atomic<int64_t> count{0};
  };
  auto outer = [](void* env, int64_t begin, int64_t end) -> int32_t {
    auto inner = [](void* e, int64_t b, int64_t n) -> int32_t {
      static_cast<Env*>(e)->count += n - b;
      return 0;
    };
    for (int64_t i = begin; i < end; ++i)
      static_cast<Env*>(env)->pool->parallel_for(inner, env, 10, 2);
    return 0;
  };
  std::vector<std::thread> threads;
  std::vector<std::unique_ptr<Env>> envs;
  for (int t = 0; t < 3; ++t) {
    envs.push_back(std::make_unique<Env>());
    envs.back()->pool = &pool;
    threads.emplace_back([&pool, env = envs.back().get(), outer] {
      ThreadPool::Session session(pool);
      for (int i = 0; i < 200; ++i) pool.parallel_for(outer, env, 8, 2);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (auto& env : envs) EXPECT_EQ(env->count.load(), 200 * 8 * 10);
}

TEST(thread_pool, wakes_after_parking) {
  ThreadPool pool(2);
  for (int i = 0; i < 5; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(3));
    Marks marks(10);
    EXPECT_EQ(pool.parallel_for(Marks::body, &marks, 10, 2), 0);
    EXPECT_EQ(marks.chunks.size(), 2u);
  }
}

TEST(thread_pool, is_shared_and_goes_away) {
  auto a = ThreadPool::shared(2);
  EXPECT_EQ(a, ThreadPool::shared(2));
  EXPECT_EQ(a->num_threads(), 2);
  EXPECT_GE(ThreadPool::shared()->num_threads(), 1);
}

// An OpenMP of `team` threads, started for each region; as a team of one where a region is nested.
int team = 1;
thread_local int number = -1;
std::atomic<int> regions{0};
const OpenMp openmp{
    [](void (*body)(void*), void* env, unsigned, unsigned) {
      const int threads = number < 0 ? team : 1, before = number;
      ++regions;
      std::vector<std::thread> others;
      for (int t = 1; t < threads; ++t) {
        others.emplace_back([=] {
          number = t;
          body(env);
        });
      }
      number = 0;
      body(env);
      number = before;
      for (std::thread& t : others) t.join();
    },
    [] { return team; },
    [] { return number; },
};

struct SharedTeam {
  explicit SharedTeam(int threads) {
    team = threads;
    regions = 0;
    share_openmp(&openmp);
  }
  ~SharedTeam() { share_openmp(nullptr); }
};

TEST(thread_pool, regions_run_on_the_threads_of_an_openmp) {
  ThreadPool pool(3);
  for (int threads : {3, 5}) {
    SharedTeam shared(threads);
    ThreadPool::Session session(pool);
    for (int64_t extent : {2, 3, 100}) {
      Marks marks(static_cast<size_t>(extent));
      EXPECT_EQ(pool.parallel_for(Marks::body, &marks, extent, 3), 0);
      for (auto& seen : marks.seen) ASSERT_EQ(seen.load(), 1);
      EXPECT_EQ(marks.chunks.size(), static_cast<size_t>(std::min<int64_t>(extent, 3)));
    }
    EXPECT_EQ(regions, 3);
  }
  // Both chunks wait for each other, so that each has a thread.
  SharedTeam shared(3);
  std::atomic<int> arrived{0};
  auto meet = [](void* env, int64_t begin, int64_t) -> int32_t {
    auto& all = *static_cast<std::atomic<int>*>(env);
    ++all;
    while (all < 3) std::this_thread::yield();
    return begin == 0 ? 0 : static_cast<int32_t>(number + 7);
  };
  EXPECT_EQ(pool.parallel_for(meet, &arrived, 3, 3), 8);
}

TEST(thread_pool, an_openmp_with_fewer_threads_than_chunks_is_left_alone) {
  ThreadPool pool(3);
  SharedTeam shared(2);
  Marks marks(9);
  EXPECT_EQ(pool.parallel_for(Marks::body, &marks, 9, 3), 0);
  EXPECT_EQ(regions, 0);
  EXPECT_EQ(pool.parallel_for(Marks::body, &marks, 9, 2), 0);
  EXPECT_EQ(regions, 1);
  for (auto& seen : marks.seen) EXPECT_EQ(seen.load(), 2);
}

TEST(thread_pool, a_region_inside_of_one_of_the_openmp_is_run_by_its_caller) {
  ThreadPool pool(2);
  SharedTeam shared(2);
  Marks marks(4);
  struct Env {
    ThreadPool& pool;
    Marks& marks;
  } env{pool, marks};
  openmp.parallel(
      [](void* env) {
        auto& e = *static_cast<Env*>(env);
        if (number != 0) return;
        EXPECT_EQ(e.pool.parallel_for(Marks::body, &e.marks, 4, 2), 0);
      },
      &env, 0, 0);
  for (auto& seen : marks.seen) EXPECT_EQ(seen.load(), 1);
}

// ThreadSanitizer does not support threads in a forked child.
#if !defined(__SANITIZE_THREAD__)
TEST(thread_pool, a_forked_child_runs_serially) {
  SharedTeam shared(2);
  auto pool = ThreadPool::shared(2);
  pid_t child = fork();
  if (child == 0) {
    Marks marks(10);
    bool right = !pool->usable() && pool->parallel_for(Marks::body, &marks, 10, 2) == 0 &&
                 marks.chunks.size() == 2;
    pool.reset();
    auto fresh = ThreadPool::shared(2);
    right = right && fresh->usable() && fresh->parallel_for(Marks::body, &marks, 10, 2) == 0 &&
            regions == 0;
    _exit(right ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}
#endif

TEST(denormals, are_as_the_scope_says_on_all_threads_and_the_mode_is_restored) {
  volatile float tiny = std::numeric_limits<float>::min();
  const Denormals before = denormals_of_thread();
  ThreadPool pool(2);
  for (Denormals mode : {Denormals::flush, Denormals::keep, Denormals::flush}) {
    DenormalScope scope(mode);
    EXPECT_EQ(denormals_of_thread(), mode);
    EXPECT_EQ(std::bit_cast<uint32_t>(tiny * 0.5f) == 0, mode == Denormals::flush);
    struct Both {
      std::atomic<int> arrived{0};
      float results[2] = {1, 1};
    } both;
    pool.parallel_for(
        [](void* env, int64_t begin, int64_t) -> int32_t {
          auto& b = *static_cast<Both*>(env);
          // Neither thread computes both.
          b.arrived.fetch_add(1);
          while (b.arrived.load() < 2) spin_pause();
          volatile float small = std::numeric_limits<float>::min();
          b.results[begin] = small * 0.5f;
          return 0;
        },
        &both, 2, 2);
    for (float r : both.results) {
      EXPECT_EQ(std::bit_cast<uint32_t>(r) == 0, mode == Denormals::flush);
    }
  }
  EXPECT_EQ(denormals_of_thread(), before);
}

TEST(cpu, features_are_named) {
#if defined(__x86_64__)
  EXPECT_TRUE(host_has_feature("sse2"));
  EXPECT_EQ(host_has_feature("avx2"), __builtin_cpu_supports("avx2") != 0);
  EXPECT_EQ(host_has_feature("avx512f"), __builtin_cpu_supports("avx512f") != 0);
#endif
  EXPECT_FALSE(host_has_feature("made-up"));
  std::vector<std::string> wanted = {"made-up", "other"};
  EXPECT_EQ(missing_features(wanted).absent, wanted);
  EXPECT_TRUE(missing_features(wanted).disabled.empty());
}

TEST(cpu, a_refusal_says_who_lacks_what) {
  auto text = [](const MissingFeatures& m) { return features_refused("m.so", m).message; };
  EXPECT_EQ(text({{"amx-tile", "xop"}, {}}),
            "m.so uses instructions that this processor lacks: amx-tile, xop");
  EXPECT_EQ(text({{}, {"avx512f"}}),
            "m.so uses instructions that the operating system does not enable: avx512f");
  EXPECT_EQ(text({{"xop"}, {"avx512f", "avx512vl"}}),
            "m.so uses instructions that this processor lacks: xop; and instructions that the "
            "operating system does not enable: avx512f, avx512vl");
  const std::vector<std::string> least;
  EXPECT_FALSE(machine_refuses("m.so", host_arch(), least));
  EXPECT_EQ(machine_refuses("m.so", "vax", least)->code, "E0610");
}

class QuotaTest : public testing::Test {
 protected:
  void SetUp() override {
    root_ = std::filesystem::temp_directory_path() / ("relay_quota_" + std::to_string(getpid()));
  }
  void TearDown() override { std::filesystem::remove_all(root_); }
  void put(const std::string& path, const std::string& text) {
    std::filesystem::path file = root_.string() + path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }
  std::filesystem::path root_;
};

TEST_F(QuotaTest, version_2_takes_the_smallest_of_the_parents) {
  put("/proc/self/cgroup", "0::/a/b\n");
  EXPECT_EQ(cgroup_cpu_quota(root_), 0);
  put("/sys/fs/cgroup/a/b/cpu.max", "max 100000\n");
  EXPECT_EQ(cgroup_cpu_quota(root_), 0);
  put("/sys/fs/cgroup/a/cpu.max", "150000 100000\n");
  EXPECT_EQ(cgroup_cpu_quota(root_), 1.5);
  put("/sys/fs/cgroup/cpu.max", "50000 100000\n");
  EXPECT_EQ(cgroup_cpu_quota(root_), 0.5);
  EXPECT_EQ(available_threads(root_), 1);
}

TEST_F(QuotaTest, version_1) {
  put("/proc/self/cgroup", "5:memory:/x\n4:cpu,cpuacct:/docker/1\n");
  put("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "300000\n");
  put("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(cgroup_cpu_quota(root_), 3);
  put("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "-1\n");
  EXPECT_EQ(cgroup_cpu_quota(root_), 0);
  EXPECT_GE(available_threads(root_), 1);
}

TEST(memory, arena_stack_keeps_what_is_pushed) {
  ArenaStack arena;
  std::vector<std::pair<char*, ArenaStack::Mark>> pushed;
  for (size_t n = 0; n < 200; ++n) {
    ArenaStack::Mark mark = arena.mark();
    char* memory = arena.push(n * 1000);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(memory) % 64, 0u);
    std::memset(memory, static_cast<int>(n), n * 1000);
    pushed.emplace_back(memory, mark);
  }
  for (size_t n = 200; n-- > 0;) {
    for (size_t i = 0; i < n * 1000; ++i) {
      ASSERT_EQ(static_cast<unsigned char>(pushed[n].first[i]), n);
    }
    arena.pop(pushed[n].second);
  }
  EXPECT_EQ(arena.in_use(), 0u);
}

TEST(memory, scratch_is_safe_from_several_threads) {
  Scratch scratch;
  for (int round = 0; round < 20; ++round) {
    std::vector<std::thread> threads;
    for (int t = 0; t < 3; ++t) {
      threads.emplace_back([&scratch, t] {
        for (int i = 0; i < 20; ++i) {
          char* memory = static_cast<char*>(scratch.allocate(1000));
          ASSERT_NE(memory, nullptr);
          std::memset(memory, t, 1000);
          for (int k = 0; k < 1000; ++k) ASSERT_EQ(memory[k], t);
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    scratch.reset();
  }
  EXPECT_EQ(scratch.allocate(-1), nullptr);
  EXPECT_EQ(scratch.allocate(INT64_MAX), nullptr);
}

}  // namespace
}  // namespace relay::runtime
