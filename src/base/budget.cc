#include "base/budget.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <string>

#include "base/codes/driver.h"
#include "base/codes/passes.h"
#include "base/codes/runtime.h"
#include "base/fork.h"
#include "base/lines.h"
#include "base/quantities.h"

namespace relay {

namespace {

using Clock = std::chrono::steady_clock;

// The countdown is chosen to take about this long; then the clock and the memory are checked, which
// costs a few microseconds.
constexpr Clock::rep kLook = Clock::duration(std::chrono::milliseconds(10)).count();
// The cancellation callback may wait for a lock: for milliseconds, where other threads of Python hold theirs. Work ends within
// 50 ms of Ctrl-C.
constexpr Clock::rep kAsk = Clock::duration(std::chrono::milliseconds(30)).count();
constexpr int32_t kMaxCountdown = 1 << 20;

struct Watch {
  const BudgetScope* scope;
  int32_t countdown;  // the initial value of the running countdown
  Clock::rep looked;  // when
  Clock::rep asked;
};
constinit thread_local Watch watch{};

Clock::rep ticks() { return Clock::now().time_since_epoch().count(); }

void begin_watch(const BudgetScope* scope) {
  Clock::rep now = scope != nullptr ? ticks() : 0;
  // Steps may be slow from the first on: the countdown grows from one.
  watch = {scope, 1, now, now};
  detail::budget_countdown = 1;
}

// The first line of a file, as a number; nothing when it is none ("max").
int64_t number_in(const std::string& path) {
  std::string line = first_line_of(path);
  int64_t value = 0;
  bool is_number = std::from_chars(line.data(), line.data() + line.size(), value).ec == std::errc();
  return is_number ? value : std::numeric_limits<int64_t>::max();
}

int64_t control_group_memory(const std::string& root) {
  int64_t least = std::numeric_limits<int64_t>::max();
  // Lines "0::/path" (version 2) and "4:memory:/path" (version 1). Inside a container the path may
  // not exist below the mount, whose root is then the container's own group.
  for (const std::string& line : lines_of(root + "/proc/self/cgroup")) {
    size_t first = line.find(':');
    size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    std::string controllers = line.substr(first + 1, second - first - 1);
    std::string path = line.substr(second + 1);
    bool version1 = ("," + controllers + ",").find(",memory,") != std::string::npos;
    if (!controllers.empty() && !version1) continue;
    std::string mount = root + "/sys/fs/cgroup" + (version1 ? "/memory" : "");
    const char* name = version1 ? "/memory.limit_in_bytes" : "/memory.max";
    // A parent's limit holds for its children.
    for (; !path.empty() && path != "/"; path.erase(path.rfind('/'))) {
      if (path.front() != '/' || path.find("..") != std::string::npos) break;
      least = std::min(least, number_in(mount + path + name));
    }
    least = std::min(least, number_in(mount + name));
  }
  return least;
}

// A number, and the text after it.
std::pair<double, std::string> split_number(std::string_view text) {
  std::string copy(text);
  char* end = nullptr;
  double value = std::strtod(copy.c_str(), &end);
  bool digits = !copy.empty() && (copy[0] == '.' || (copy[0] >= '0' && copy[0] <= '9'));
  if (!digits || !std::isfinite(value)) return {-1, ""};
  return {value, end};
}

[[noreturn]] void bad_number(std::string_view text, std::string_view option, const char* expected) {
  throw UserError(
      Diagnostic(codes::driver_option, {}, std::string(option) + " is given a wrong value")
          .expected(expected)
          .found("'" + std::string(text) + "'"));
}

[[noreturn]] void exceeded(BudgetKind kind, const DiagnosticCode& of_compile,
                           const DiagnosticCode& of_run, const std::string& what,
                           const char* help) {
  if (kind == BudgetKind::run) {
    throw RuntimeError(Diagnostic(of_run, {}, "the run " + what).help(help));
  }
  throw UserError(Diagnostic(of_compile, {}, "the compilation " + what).help(help));
}

}  // namespace

double parse_seconds(std::string_view text, std::string_view option) {
  auto [value, unit] = split_number(text);
  double scale = unit.empty() || unit == "s" ? 1 : unit == "m" ? 60 : unit == "h" ? 3600 : -1;
  // More than a century has no end.
  if (value < 0 || scale < 0 || value * scale > 4e9) {
    bad_number(text, option, "seconds, such as 90, 0.5, 10m or 2h; 0 for no limit");
  }
  return value * scale;
}

int64_t parse_bytes(std::string_view text, std::string_view option) {
  auto [value, unit] = split_number(text);
  for (char& c : unit) {
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  }
  if (unit.ends_with("IB") && unit.size() == 3) unit.resize(1);
  if (unit.ends_with("B") && unit.size() <= 2) unit.pop_back();
  constexpr std::string_view kUnits = "KMGT";
  double scale = 1;
  if (!unit.empty()) {
    size_t at = unit.size() == 1 ? kUnits.find(unit[0]) : std::string_view::npos;
    scale = at == std::string_view::npos ? -1 : std::ldexp(1.0, static_cast<int>(10 * (at + 1)));
  }
  if (value < 0 || scale < 0 || value * scale > 4e18) {
    bad_number(text, option, "bytes, such as 500000000, 500M or 4G; 0 for no limit");
  }
  return static_cast<int64_t>(value * scale);
}

int64_t own_memory() {
  // Without C++ streams, and so without an allocation: this runs when memory is
  // short.
  int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return 0;
  char text[128];
  ssize_t size = read(fd, text, sizeof(text) - 1);
  close(fd);
  if (size <= 0) return 0;
  text[size] = 0;
  long long total = 0, resident = 0, shared = 0;
  if (std::sscanf(text, "%lld %lld %lld", &total, &resident, &shared) != 3) return 0;
  return (resident - shared) * sysconf(_SC_PAGESIZE);
}

int64_t usable_memory(const char* root) {
  int64_t pages = sysconf(_SC_PHYS_PAGES);
  int64_t least = pages > 0 ? pages * sysconf(_SC_PAGESIZE) : std::numeric_limits<int64_t>::max();
  least = std::min(least, control_group_memory(root));
  for (auto resource : {RLIMIT_AS, RLIMIT_DATA}) {
    rlimit limit{};
    if (getrlimit(resource, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) continue;
    least = static_cast<int64_t>(std::min<uint64_t>(static_cast<uint64_t>(least), limit.rlim_cur));
  }
  return least;
}

BudgetLimits BudgetLimits::defaults() {
  // The machine does not change while a process runs.
  static const int64_t usable = usable_memory();
  BudgetLimits out;
  out.seconds = 600;
  out.memory_bytes = std::max<int64_t>((usable - own_memory()) / 4 * 3, int64_t{16} << 20);
  if (const char* text = std::getenv("RELAY_TIME_LIMIT"); text != nullptr && *text != 0) {
    out.seconds = parse_seconds(text, "RELAY_TIME_LIMIT");
  }
  if (const char* text = std::getenv("RELAY_MEMORY_LIMIT"); text != nullptr && *text != 0) {
    out.memory_bytes = parse_bytes(text, "RELAY_MEMORY_LIMIT");
  }
  return out;
}

BudgetScope::BudgetScope()
    : BudgetScope(watch.scope != nullptr ? BudgetLimits() : BudgetLimits::defaults()) {}

BudgetScope::BudgetScope(BudgetLimits limits) : limits_(std::move(limits)), outer_(watch.scope) {
  if (limits_.seconds > 0) {
    std::chrono::duration<double> time(limits_.seconds);
    deadline_ = Clock::now() + std::chrono::duration_cast<Clock::duration>(time);
  }
  if (limits_.memory_bytes > 0) memory_ceiling_ = own_memory() + limits_.memory_bytes;
  begin_watch(this);
}

BudgetScope::~BudgetScope() { begin_watch(outer_); }

const BudgetScope* current_budget() { return watch.scope; }

BudgetShare::BudgetShare(const BudgetScope* scope) : before_(watch.scope) { begin_watch(scope); }
BudgetShare::~BudgetShare() { begin_watch(before_); }

void BudgetScope::fail_time() const {
  exceeded(limits_.kind, codes::compile_time_limit, codes::run_time_limit,
           "takes longer than its limit of " + format_seconds(limits_.seconds),
           limits_.kind == BudgetKind::run ? "raise the limit, or look for a loop without end"
                                           : "raise the limit (--time-limit, RELAY_TIME_LIMIT), or "
                                             "find what makes the program so large");
}

void BudgetScope::fail_memory() const {
  exceeded(limits_.kind, codes::compile_memory_limit, codes::run_out_of_memory,
           "takes more memory than its limit of " +
               format_bytes(static_cast<double>(limits_.memory_bytes)),
           limits_.kind == BudgetKind::run
               ? "raise the limit, or look for a recursion or a list that grows without end"
               : "raise the limit (--memory-limit, RELAY_MEMORY_LIMIT), or find what makes the "
                 "program so large");
}

// The callback may wait for a lock that a thread holds while it forks.
bool is_cancelled(const BudgetLimits& limits) {
  ForkGap gap;
  return limits.cancelled();
}

// The limits of this scope and of those around it.
void BudgetScope::check(bool ask) const {
  Clock::time_point now = Clock::now();
  int64_t memory = -1;
  for (const BudgetScope* s = this; s != nullptr; s = s->outer_) {
    if (now > s->deadline_) s->fail_time();
    if (s->memory_ceiling_ != std::numeric_limits<int64_t>::max()) {
      if (memory < 0) memory = own_memory();
      if (memory > s->memory_ceiling_) s->fail_memory();
    }
    if (ask && s->limits_.cancelled && is_cancelled(s->limits_)) {
      exceeded(s->limits_.kind, codes::pass_cancelled, codes::run_failed, "was cancelled", "");
    }
  }
}

void check_budget_now() {
  if (watch.scope == nullptr) return;
  watch.looked = watch.asked = ticks();
  watch.scope->check(true);
}

void check_budget_after_work() {
  if (watch.scope == nullptr) return;
  Clock::rep now = ticks();
  if (now - watch.looked < kLook) return;
  watch.looked = now;
  bool ask = now - watch.asked >= kAsk;
  if (ask) watch.asked = now;
  watch.scope->check(ask);
}

void detail::check_budget_slowly() {
  if (watch.scope == nullptr) {
    budget_countdown = kMaxCountdown;
    return;
  }
  // The next countdown takes about as long as is wanted, unless the work changes its pace.
  Clock::rep passed = ticks() - watch.looked;
  if (passed < kLook / 2) watch.countdown = std::min(2 * watch.countdown, kMaxCountdown);
  if (passed > 2 * kLook) watch.countdown = std::max(watch.countdown / 4, 1);
  budget_countdown = watch.countdown;
  check_budget_after_work();
}

}  // namespace relay
