// The `relay` command: its words in, its exit code out.
#pragma once

#include <span>
#include <string>

#include "base/diagnostic.h"

namespace relay::cli {

// Whether Python runs in this process. Where it is absent, a command that needs code generators of Python (--guest) runs
// in a process of Python's.
enum class Python { absent, running };

// Runs the command that `words` (without the program's name) say. This is the one place where errors become messages
// and exit codes: 0 done, 1 the program, model or option is wrong, a run failed or the output could not be written, 2
// wrong usage, 3 a defect of Relay. Throws nothing.
int run_command_line(std::span<const std::string> words, Python python) noexcept;

// Prints the messages of an error, and returns its exit code.
int report_error(const Error& e);

}  // namespace relay::cli
