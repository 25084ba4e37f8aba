#include "driver/options.h"

#include <algorithm>
#include <sstream>

#include "base/diagnostic_codes.h"
#include "ir/op.h"
#include "passes/pass.h"

namespace relay {
namespace {

constexpr int kMaxLevel = 3;
// Far above any machine; more is a slip.
constexpr int kMaxThreads = 4096;

[[noreturn]] void refuse(const std::string& message, const std::string& expected,
                         const std::string& found, const std::string& help = "") {
  Diagnostic problem(codes::driver_option, {}, message);
  problem.expected(expected).found(found);
  if (!help.empty()) problem.help(help);
  throw UserError(problem);
}

void check_range(const std::string& name, int value, int high) {
  if (value >= 0 && value <= high) return;
  refuse(name + " is out of range", "0 to " + std::to_string(high), std::to_string(value));
}

bool has_type(const Value& value, std::string_view type) {
  if (type == "bool") return value.get_if<bool>() != nullptr;
  if (type == "int") return value.get_if<int64_t>() != nullptr;
  auto* names = value.get_if<ValueList>();
  return names != nullptr && std::all_of(names->begin(), names->end(), [](const Value& name) {
           return name.get_if<std::string>() != nullptr;
         });
}

// Every option of every pass: its key in the configuration, and its type.
std::map<std::string, std::string, std::less<>> known_options() {
  std::map<std::string, std::string, std::less<>> out;
  for (const Pass* pass : all_passes()) {
    std::istringstream options{std::string(pass->options)};
    for (std::string option; options >> option;) {
      size_t colon = option.find(':');
      out["relay." + std::string(pass->name) + "." + option.substr(0, colon)] =
          option.substr(colon + 1);
    }
  }
  return out;
}

void check_config(const Dict& config) {
  if (config.empty()) return;
  const auto known = known_options();
  for (const auto& [key, value] : config) {
    auto it = known.find(key);
    if (it == known.end()) {
      std::string list;
      std::vector<std::string_view> names;
      for (const auto& [name, type] : known) {
        list += (list.empty() ? "" : ", ") + name;
        names.push_back(name);
      }
      refuse("no pass has the option '" + key + "'", "one of " + list, key, suggest(key, names));
    }
    if (!has_type(value, it->second)) {
      refuse("the option '" + key + "' has a value of the wrong type", it->second,
             to_string(value));
    }
  }
}

}  // namespace

void check_options(const CompileOptions& options) {
  check_range("opt_level", options.opt_level, kMaxLevel);
  check_range("num_threads", options.num_threads, kMaxThreads);
  for (const std::string& name : options.required_pass) find_pass(name);
  for (const std::string& name : options.disabled_pass) find_pass(name);
  check_config(options.config);
}

}  // namespace relay
