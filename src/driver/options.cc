#include "driver/options.h"

#include "base/codes/driver.h"
#include "passes/pass_list.h"

namespace relay {
namespace {

constexpr int kMaxLevel = 3;
// Far above any machine; more is a slip.
constexpr int kMaxThreads = 4096;

[[noreturn]] void refuse(const std::string& message, const std::string& expected,
                         const std::string& found) {
  throw UserError(Diagnostic(codes::driver_option, {}, message).expected(expected).found(found));
}

void check_range(const std::string& name, int value, int high) {
  if (value >= 0 && value <= high) return;
  refuse(name + " is out of range", "0 to " + std::to_string(high), std::to_string(value));
}

}  // namespace

void check_options(const CompileOptions& options) {
  check_range("opt_level", options.opt_level, kMaxLevel);
  check_range("num_threads", options.num_threads, kMaxThreads);
  for (const std::string& name : options.required_pass) find_pass(name);
  for (const std::string& name : options.disabled_pass) find_pass(name);
  check_config(options.config);
}

UserError wrong_usage(std::string message, std::string help) {
  return UserError(Diagnostic(codes::driver_usage, {}, std::move(message)).help(std::move(help)));
}

}  // namespace relay
