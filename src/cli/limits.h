// What a command may take, and how it ends when it may take no more.
#pragma once

#include <string>

#include "cli/command.h"
#include "runtime/vm/vm.h"

namespace relay::cli {

// The values of --time-limit and --memory-limit (empty: not given), and of a run's --fuel.
struct LimitFlags {
  std::string time;
  std::string memory;
  int64_t fuel = 0;

  // The options of every command that works on programs, and those of commands that run them too.
  std::vector<Option> table();
  std::vector<Option> table_of_run();

  // The limits of the compiler's work, from here to `end_compilation` or the end of the process. Work that does not
  // look at the clock any more is ended a second later, with the process.
  void begin_compilation() const;
  static void end_compilation();
  // Those of a run, in place of the compiler's, for what is not the run alone: the evaluator, and what becomes of the
  // result.
  void begin_run() const;
  // The limits of a run: only those that are given.
  runtime::RunOptions of_run() const;
};

// The command with the options, which hold for all that it does.
Command with_limits(Command command);

// From here on the process ends with a message and an exit code, where it would abort, when memory or threads run out
// in a place that nothing can be thrown through.
void end_cleanly_without_memory();
// "error[E0305]: ..." on standard error; needs no memory.
void report_out_of_memory() noexcept;

}  // namespace relay::cli
