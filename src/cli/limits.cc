#include "cli/limits.h"

#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <memory>
#include <new>
#include <optional>
#include <string_view>
#include <system_error>

#include "base/budget.h"

namespace relay::cli {
namespace {

// Nothing is allocated and nothing is locked, so that a signal handler may call it.
void say(std::string_view text) noexcept {
  while (!text.empty()) {
    ssize_t written = write(STDERR_FILENO, text.data(), text.size());
    if (written <= 0) return;
    text.remove_prefix(static_cast<size_t>(written));
  }
}

void end_at_limit(int) {
  say("error[E0304]: the compilation takes longer than its limit\n"
      "  help:     raise the limit (--time-limit, RELAY_TIME_LIMIT), or find what makes the "
      "program so large\n");
  _exit(1);
}

void set_timer(double seconds) {
  itimerval timer{};
  timer.it_value.tv_sec = static_cast<time_t>(seconds);
  timer.it_value.tv_usec =
      static_cast<suseconds_t>((seconds - static_cast<double>(timer.it_value.tv_sec)) * 1e6);
  setitimer(ITIMER_REAL, &timer, nullptr);
}

std::optional<BudgetScope>& scope() {
  static std::optional<BudgetScope> open;
  return open;
}

[[noreturn]] void terminated() {
  try {
    if (std::exception_ptr e = std::current_exception()) std::rethrow_exception(e);
  } catch (const std::bad_alloc&) {
    report_out_of_memory();
    _exit(1);
  } catch (const std::system_error&) {
    say("error: the system refuses a thread\n");
    _exit(1);
  } catch (...) {
    say("internal error: an error in a place that throws nothing\n  This is a defect of Relay; "
        "please report it.\n");
    _exit(3);
  }
  say("internal error: the process was told to end\n  This is a defect of Relay; please report "
      "it.\n");
  _exit(3);
}

}  // namespace

std::vector<Option> LimitFlags::table() {
  return {
      option("--time-limit SECONDS", time,
             "Time for the compiler: 90, 10m; 0: no limit; without, 10m"),
      option("--memory-limit BYTES", memory,
             "Memory for the compiler: 500M, 4G; 0: no limit; without, 3/4 of what there is"),
  };
}

std::vector<Option> LimitFlags::table_of_run() {
  return {
      option("--time-limit SECONDS", time,
             "Time for the compiler, and for the run: 90, 10m; 0: no limit; without, 10m for the "
             "compiler"),
      option("--memory-limit BYTES", memory,
             "Memory for the compiler, and for the run: 500M, 4G; 0: no limit; without, 3/4 of "
             "what there is for the "
             "compiler"),
      option("--fuel STEPS", fuel, "Calls and jumps that the run may make; 0: any number"),
  };
}

Command with_limits(Command command) {
  auto flags = std::make_shared<LimitFlags>();
  command.add(flags->table());
  command.run = [flags, run = std::move(command.run)](const Given& given) {
    flags->begin_compilation();
    return run(given);
  };
  return command;
}

void LimitFlags::begin_compilation() const {
  BudgetLimits limits = BudgetLimits::defaults();
  if (!time.empty()) limits.seconds = parse_seconds(time, "--time-limit");
  if (!memory.empty()) limits.memory_bytes = parse_bytes(memory, "--memory-limit");
  scope().emplace(limits);
  if (limits.seconds <= 0) return;
  std::signal(SIGALRM, end_at_limit);
  set_timer(limits.seconds + 1);
}

void LimitFlags::end_compilation() {
  set_timer(0);
  scope().reset();
}

void LimitFlags::begin_run() const {
  end_compilation();
  runtime::RunOptions run = of_run();
  BudgetLimits limits;
  limits.seconds = run.time_limit;
  limits.memory_bytes = std::max<int64_t>(run.memory_limit, 0);
  limits.kind = BudgetKind::run;
  scope().emplace(limits);
}

runtime::RunOptions LimitFlags::of_run() const {
  runtime::RunOptions out;
  if (!time.empty()) out.time_limit = parse_seconds(time, "--time-limit");
  int64_t bytes = memory.empty() ? 0 : parse_bytes(memory, "--memory-limit");
  if (bytes > 0) out.memory_limit = bytes;
  if (fuel > 0) out.fuel = fuel;
  return out;
}

void report_out_of_memory() noexcept {
  say("error[E0305]: there is no more memory for this process\n"
      "  help:     give it more (ulimit -v, the control group's limit), or work on fewer threads "
      "(--threads)\n");
}

void end_cleanly_without_memory() { std::set_terminate(terminated); }

}  // namespace relay::cli
