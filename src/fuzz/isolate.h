// Work in a process of its own, so that a crash or an endless loop is a result like any other.
#pragma once

#include <functional>
#include <string>

namespace relay::fuzz {

// Sends a message to the parent process.
using Send = std::function<void(const std::string& message)>;

// Runs `work` in a child process; `receive` is called here for every message of it. The child is
// ended when nothing comes from it for `timeout_seconds`. Returns what went wrong, or "".
// The caller has no other threads.
std::string run_isolated(const std::function<void(const Send&)>& work,
                         const std::function<void(const std::string&)>& receive,
                         int timeout_seconds);

// The same for several pieces of work, `jobs` at a time; `receive` and `ended` are told which.
void run_isolated(size_t count, int jobs, const std::function<void(size_t job, const Send&)>& work,
                  const std::function<void(size_t job, const std::string&)>& receive,
                  const std::function<void(size_t job, const std::string& problem)>& ended,
                  int timeout_seconds);

}  // namespace relay::fuzz
