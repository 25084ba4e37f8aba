#include "base/budget.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>
#include <vector>

#include "base/diagnostic.h"
#include "base/parallel.h"

namespace relay {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

template <class E, class F>
std::string code_of(const F& f) {
  try {
    f();
  } catch (const E& e) {
    return std::string(e.diagnostics().at(0).code);
  }
  return "nothing was thrown";
}

void loop_without_end() {
  for (;;) check_budget();
}

TEST(Budget, without_a_scope_nothing_is_limited) {
  for (int i = 0; i < 10'000'000; ++i) check_budget();
  check_budget_now();
}

TEST(Budget, time_ends_a_loop_of_quick_steps_and_one_of_slow_steps) {
  for (int step_ms : {0, 30}) {
    auto start = Clock::now();
    EXPECT_EQ(code_of<UserError>([&] {
                BudgetScope scope({.seconds = 0.1});
                for (;;) {
                  if (step_ms > 0) std::this_thread::sleep_for(std::chrono::milliseconds(step_ms));
                  check_budget();
                }
              }),
              "E0304");
    // Slow steps have to be noticed as such first.
    EXPECT_LT(seconds_since(start), step_ms > 0 ? 4 : 0.6);
    EXPECT_GT(seconds_since(start), 0.09);
  }
}

TEST(Budget, memory_that_is_touched_counts) {
  std::vector<std::vector<char>> held;
  EXPECT_EQ(code_of<UserError>([&] {
              BudgetScope scope({.seconds = 60, .memory_bytes = int64_t{64} << 20});
              for (;;) {
                held.emplace_back(size_t{1} << 20, 'x');
                for (int i = 0; i < 1000; ++i) check_budget();
              }
            }),
            "E0305");
  EXPECT_GE(held.size(), 60u);
  EXPECT_LT(held.size(), 1000u);
}

TEST(Budget, the_tighter_limit_holds_and_ends_with_its_scope) {
  BudgetScope wide({.seconds = 3600});
  EXPECT_EQ(code_of<UserError>([] {
              BudgetScope scope({.seconds = 0.05});
              loop_without_end();
            }),
            "E0304");
  for (int i = 0; i < 1'000'000; ++i) check_budget();
  EXPECT_EQ(code_of<UserError>([] {
              BudgetScope scope({.seconds = 0.05});
              BudgetScope inner({.seconds = 3600});
              loop_without_end();
            }),
            "E0304");
}

TEST(Budget, an_inner_default_scope_leaves_the_limits_as_they_are) {
  BudgetScope scope({.seconds = 0});
  ::setenv("RELAY_TIME_LIMIT", "0.001", 1);
  {
    BudgetScope inner;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    EXPECT_NO_THROW(check_budget_now());
  }
  ::unsetenv("RELAY_TIME_LIMIT");
}

TEST(Budget, runs_have_errors_of_their_own) {
  BudgetLimits limits{.seconds = 0.01, .kind = BudgetKind::run};
  EXPECT_EQ(code_of<RuntimeError>([&] {
              BudgetScope scope(limits);
              loop_without_end();
            }),
            "E0615");
}

TEST(Budget, cancellation_is_noticed) {
  std::atomic<bool> stop{false};
  std::thread other([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    stop = true;
  });
  BudgetLimits limits;
  limits.cancelled = [&] { return stop.load(); };
  EXPECT_EQ(code_of<UserError>([&] {
              BudgetScope scope(limits);
              loop_without_end();
            }),
            "E0303");
  other.join();
}

TEST(Budget, helpers_of_a_parallel_loop_have_the_limits_of_its_caller) {
  BudgetScope scope({.seconds = 0.05});
  EXPECT_EQ(code_of<UserError>([] {
              // Only helpers work: the caller's share is over at once.
              std::thread::id caller = std::this_thread::get_id();
              for_each_parallel(4, 4, [&](size_t) {
                if (std::this_thread::get_id() == caller) {
                  std::this_thread::sleep_for(std::chrono::milliseconds(20));
                } else {
                  loop_without_end();
                }
              });
            }),
            "E0304");
}

TEST(Budget, numbers_have_units) {
  EXPECT_EQ(parse_seconds("90", "x"), 90);
  EXPECT_EQ(parse_seconds("0.5s", "x"), 0.5);
  EXPECT_EQ(parse_seconds("10m", "x"), 600);
  EXPECT_EQ(parse_seconds("2h", "x"), 7200);
  EXPECT_EQ(parse_bytes("1000", "x"), 1000);
  EXPECT_EQ(parse_bytes("4k", "x"), 4096);
  EXPECT_EQ(parse_bytes("1.5G", "x"), int64_t{3} << 29);
  EXPECT_EQ(parse_bytes("2MiB", "x"), int64_t{2} << 20);
  EXPECT_EQ(parse_bytes("2MB", "x"), int64_t{2} << 20);
  for (const char* text : {"", "-1", "nan", "inf", "x", "1d", "1e99", "1 s", "0x10 "}) {
    EXPECT_EQ(code_of<UserError>([&] { parse_seconds(text, "--time-limit"); }), "E0702") << text;
  }
  for (const char* text : {"", "-1", "4X", "4GG", "1e30", "iB", "4iB2"}) {
    EXPECT_EQ(code_of<UserError>([&] { parse_bytes(text, "--memory-limit"); }), "E0702") << text;
  }
}

TEST(Budget, defaults_come_from_the_environment) {
  ::setenv("RELAY_TIME_LIMIT", "7", 1);
  ::setenv("RELAY_MEMORY_LIMIT", "3M", 1);
  BudgetLimits limits = BudgetLimits::defaults();
  EXPECT_EQ(limits.seconds, 7);
  EXPECT_EQ(limits.memory_bytes, int64_t{3} << 20);
  ::setenv("RELAY_TIME_LIMIT", "soon", 1);
  EXPECT_EQ(code_of<UserError>([] { BudgetLimits::defaults(); }), "E0702");
  ::unsetenv("RELAY_TIME_LIMIT");
  ::unsetenv("RELAY_MEMORY_LIMIT");
  limits = BudgetLimits::defaults();
  EXPECT_EQ(limits.seconds, 600);
  EXPECT_GT(limits.memory_bytes, int64_t{1} << 24);
}

TEST(Budget, the_control_group_limits_memory) {
  namespace fs = std::filesystem;
  fs::path root = fs::temp_directory_path() / ("relay_budget" + std::to_string(::getpid()));
  fs::create_directories(root / "proc/self");
  fs::create_directories(root / "sys/fs/cgroup/work/job");
  auto write = [&](const char* path, const char* text) { std::ofstream(root / path) << text; };
  write("proc/self/cgroup", "0::/work/job\n");
  write("sys/fs/cgroup/work/job/memory.max", "max\n");
  int64_t machine = usable_memory(root.c_str());
  write("sys/fs/cgroup/work/memory.max", "50000000\n");
  EXPECT_EQ(usable_memory(root.c_str()), 50000000);
  EXPECT_GT(machine, 50000000);
// The sanitizers' own memory is beyond any such limit.
#if !defined(__SANITIZE_ADDRESS__)
  rlimit before{};
  getrlimit(RLIMIT_DATA, &before);
  rlimit tight{40000000, before.rlim_max};
  setrlimit(RLIMIT_DATA, &tight);
  int64_t limited = usable_memory(root.c_str());
  setrlimit(RLIMIT_DATA, &before);
  EXPECT_EQ(limited, 40000000);
#endif
  fs::remove_all(root);
}

}  // namespace
}  // namespace relay
