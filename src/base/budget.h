// What a compilation may take: time and memory.
//
//   BudgetScope scope({.seconds = 60, .memory_bytes = int64_t{4} << 30});
//   Module m = infer_types(parse(text));   // ends with UserError E0304 or E0305 at the limit
//
// A small input can ask for work without end (types that double at every line, a kernel of a
// million statements), so everything that works on programs asks `check_budget()` in the loops
// whose length an input decides. Asking costs a nanosecond; the clock is read every few
// milliseconds and the memory a few times a second, so that work ends about a tenth of a second
// behind its limit. A call into a library (a pass of LLVM over one kernel) is not interrupted.
//
// Limits belong to the thread that opens the scope, and to the threads of for_each_parallel below
// it. Without a scope there is no limit.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <limits>
#include <string_view>

namespace relay {

namespace detail {
// How often check_budget may be called before the clock is looked at. A few bytes: it is in the
// room that every process keeps for the variables of libraries loaded later, and reached without a
// call (runtime/core/free_blocks.h says more).
[[gnu::tls_model("initial-exec")]] extern constinit thread_local int32_t budget_countdown;
void check_budget_slowly();
}  // namespace detail

// What the limits are for: it decides about the error.
enum class BudgetKind {
  compile,  // UserError E0304 (time), E0305 (memory), E0303 (cancelled)
  run,      // RuntimeError E0615 (time), E0604 (memory), E0607 (cancelled)
};

struct BudgetLimits {
  double seconds = 0;  // 0: no limit
  // By how much the process's own memory (not the pages of mapped files) may grow; 0: no limit.
  int64_t memory_bytes = 0;
  // Asked a few times a second; true ends the work.
  std::function<bool()> cancelled = nullptr;
  BudgetKind kind = BudgetKind::compile;

  // The environment variables RELAY_TIME_LIMIT (seconds) and RELAY_MEMORY_LIMIT (bytes, or with a
  // unit) where they are set; else what no honest model meets: ten minutes, and three quarters of
  // the memory that the process may still use. UserError E0702 when a variable is no such number.
  static BudgetLimits defaults();
};

// Limits of what happens while it lives. Inside another scope the tighter limits hold.
class BudgetScope {
 public:
  // The defaults, unless a scope is open already: what entry points of the compiler open.
  BudgetScope();
  explicit BudgetScope(BudgetLimits limits);
  ~BudgetScope();
  BudgetScope(const BudgetScope&) = delete;
  BudgetScope& operator=(const BudgetScope&) = delete;

 private:
  friend void check_budget_now();
  friend void check_budget_after_work();
  using Clock = std::chrono::steady_clock;

  void check(bool ask) const;
  [[noreturn]] void fail_time() const;
  [[noreturn]] void fail_memory() const;

  BudgetLimits limits_;
  Clock::time_point deadline_ = Clock::time_point::max();
  int64_t memory_ceiling_ = std::numeric_limits<int64_t>::max();
  const BudgetScope* outer_;
};

// The innermost scope of this thread, or null.
const BudgetScope* current_budget();

// Makes the limits of one thread those of another while it works for the first.
class BudgetShare {
 public:
  explicit BudgetShare(const BudgetScope* scope);
  ~BudgetShare();
  BudgetShare(const BudgetShare&) = delete;
  BudgetShare& operator=(const BudgetShare&) = delete;

 private:
  const BudgetScope* before_;
};

// Throws when the limits of this thread are passed. Cheap enough for every step of a loop.
inline void check_budget() {
  if (--detail::budget_countdown < 0) [[unlikely]]
    detail::check_budget_slowly();
}

// The same after a step that may take long, such as a kernel: reads the clock each time.
void check_budget_after_work();
// Looks at everything, whenever it was done last: between the phases of a compilation.
void check_budget_now();

// A number of seconds: "90", "0.5", "10m", "2h". UserError E0702 that names `option`.
double parse_seconds(std::string_view text, std::string_view option);
// A number of bytes: "500000000", "500M", "1.5G", "4GiB". UserError E0702 that names `option`.
int64_t parse_bytes(std::string_view text, std::string_view option);

// Bytes of memory that this process has for itself: anonymous pages, and files it changed.
int64_t own_memory();
// The memory that this process may use at most: of the machine, its control groups (below `root`,
// for tests) and its limit of address space.
int64_t usable_memory(const char* root = "");

}  // namespace relay
