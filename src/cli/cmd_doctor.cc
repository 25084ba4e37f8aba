#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "base/budget.h"
#include "cli/commands.h"
#include "cli/line_reader.h"
#include "cli/terminal.h"
#include "codegen/kernel_cache.h"
#include "codegen/targets.h"
#include "driver/machine_limits.h"
#include "ir/text/text.h"
#include "runtime/core/strings.h"
#include "runtime/device_driver.h"
#include "runtime/temporary_file.h"
#include "types/infer.h"

namespace relay::cli {
namespace {

enum class State { good, limited, broken };

// What was examined, what was found, and what to do where it is not good.
struct Finding {
  std::string what;
  State state = State::good;
  std::string found;
  std::string remedy;
};

constexpr std::string_view word_of(State s) {
  return s == State::good ? "ok" : s == State::limited ? "limited" : "broken";
}

Finding machine() {
  Target target = parse_target("native");
  char gflops[64];
  std::snprintf(gflops, sizeof(gflops), "; %.0f GFLOP/s of float32 on one thread",
                measure_peak_gflops(1));
  return {"processor", State::good, target.describe() + gflops, ""};
}

Finding memory() {
  const int64_t usable = usable_memory();
  Finding out{"memory", State::good,
              format_bytes(static_cast<double>(usable)) + " for this process", ""};
  constexpr int64_t kLittle = int64_t{512} << 20;
  if (usable < kLittle) {
    out.state = State::limited;
    out.remedy =
        "models of more than about 100 MB may not compile: raise the limit of the control group or "
        "`ulimit -v`";
  }
  return out;
}

// A program on its whole way: passes, code generation, the file, and a run of what was loaded.
Finding program(const std::string& what, const std::string& text, runtime::Value input,
                const std::string& remedy) {
  Finding out{what, State::good, "", ""};
  try {
    auto begin = std::chrono::steady_clock::now();
    CompiledModule compiled = compile(
        infer_types(parse_module(what, "#[version = \"0.0.5\"]\n" + text)), CompileOptions());
    std::error_code none;
    std::string path = std::filesystem::temp_directory_path(none).string() + "/relay-doctor-" +
                       std::to_string(getpid()) + ".so";
    runtime::TemporaryFile file(path);
    file.write(compiled.elf.data(), compiled.elf.size());
    std::vector<runtime::Value> inputs{std::move(input)};
    compiled.load().run_values("main", inputs);
    double seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    out.found = "compiled, written to " + std::filesystem::path(path).parent_path().string() +
                " and run in " + format_seconds(seconds);
  } catch (const Error& e) {
    out.state = State::broken;
    out.found = e.diagnostics().empty() ? e.what() : e.diagnostics().front().message;
    out.remedy = remedy;
  }
  return out;
}

Finding cache() {
  std::shared_ptr<KernelCache> kept = KernelCache::of_user();
  if (kept == nullptr) {
    return {"cache", State::limited, "none: every compilation generates all code again",
            "unset RELAY_CACHE_SIZE, or set RELAY_CACHE_DIR where there is no home"};
  }
  KernelCache::Usage usage = kept->usage();
  Finding out{"cache", State::good,
              kept->folder() + ", " + format_bytes(static_cast<double>(usage.bytes)) + " of " +
                  format_bytes(static_cast<double>(kept->max_bytes())),
              ""};
  if (std::string note = kept->note(); !note.empty()) {
    out.state = State::limited;
    out.found += ": " + note;
    out.remedy = "set RELAY_CACHE_DIR to a folder that only you may write";
  }
  return out;
}

Finding line_editing() {
  if (LineReader::can_edit()) return {"line editing", State::good, "libedit, for relay repl", ""};
  return {"line editing", State::limited, "no libedit: relay repl reads plain lines",
          "install the package libedit2 (libedit on Fedora)"};
}

// A program for the host needs none: to have no device is no limit.
Finding devices() {
  Finding out{"devices", State::good, "", ""};
  for (const runtime::DeviceDriver& driver : runtime::device_drivers()) {
    if (!driver.describe) continue;
    std::string text;
    runtime::Device device{driver.type, 0};
    try {
      for (const std::string& name : driver.describe()) {
        text += (text.empty() ? "" : ", ") + device.to_string() + ": " + name;
        ++device.id;
      }
      if (text.empty()) text = "no device of " + device.to_string();
    } catch (const Error& e) {
      text = e.diagnostics().front().message;
    }
    out.found += (out.found.empty() ? "" : "; ") + text;
  }
  return out;
}

// Variables that begin as Relay's and that nothing reads.
Finding environment() {
  static const std::set<std::string, std::less<>> kRead = {
      "RELAY_CACHE_DIR",   "RELAY_CACHE_SIZE",   "RELAY_TIME_LIMIT", "RELAY_MEMORY_LIMIT",
      "RELAY_HOST",        "RELAY_NATIVE",       "RELAY_OPENCL",     "RELAY_CUDA",
      "RELAY_CUDA_GRAPHS", "RELAY_CODE_VERSION", "RELAY_ONEDNN"};
  std::string set, unknown;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    std::string_view text(*variable);
    std::string_view name = text.substr(0, text.find('='));
    if (!name.starts_with("RELAY_")) continue;
    std::string& list = kRead.contains(name) ? set : unknown;
    list += (list.empty() ? "" : ", ") + std::string(name);
  }
  Finding out{"environment", State::good, set.empty() ? "no RELAY_ variables" : "set: " + set, ""};
  if (!unknown.empty()) {
    out.state = State::limited;
    out.found = "nothing reads " + unknown;
    out.remedy = "Relay reads";
    for (const std::string& name : kRead)
      out.remedy += (name == *kRead.begin() ? " " : ", ") + name;
  }
  return out;
}

std::string json_of(const std::vector<Finding>& findings) {
  nlohmann::ordered_json root;
  root["version"] = RELAY_VERSION;
  for (const Finding& f : findings) {
    nlohmann::ordered_json row{{"what", f.what}, {"state", word_of(f.state)}, {"found", f.found}};
    if (!f.remedy.empty()) row["remedy"] = f.remedy;
    root["findings"].push_back(std::move(row));
  }
  return root.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

std::string text_of_findings(const std::vector<Finding>& findings) {
  std::string out = "relay " RELAY_VERSION "\n\n";
  constexpr size_t kLabel = 14, kState = 9;
  const size_t width = text_width();
  for (const Finding& f : findings) {
    std::string head = f.what;
    head.resize(kLabel, ' ');
    head += word_of(f.state);
    head.resize(kLabel + kState, ' ');
    std::string text = escape_for_terminal(f.found, 2000);
    if (!f.remedy.empty()) text += ". What to do: " + f.remedy;
    for (const std::string& line : wrapped(text, width - head.size())) {
      out += head + line + "\n";
      head.assign(kLabel + kState, ' ');
    }
  }
  return out;
}

int run_doctor(bool json) {
  initialize();
  const Tensor number = Tensor::scalar(1.0, DType::Float(32));
  const std::string_view word = "Relay";
  std::vector<Finding> findings{
      machine(),
      memory(),
      program("programs", "def @main(%x: float32) { exp(%x) }", number,
              "a folder for temporary files (TMPDIR) that may be written, and a system that lets "
              "processes map memory as executable, are needed"),
      program("strings", "def @main(%x: string) { text.full_match(%x, \"R.*\") }",
              runtime::make_strings({}, std::span(&word, 1)),
              "keep librelay_text.so beside the program: reinstall the package"),
      cache(),
      devices(),
      line_editing(),
      environment(),
  };
  std::string text = json ? json_of(findings) : text_of_findings(findings);
  std::fwrite(text.data(), 1, text.size(), stdout);
  for (const Finding& f : findings)
    if (f.state == State::broken) return 1;
  return 0;
}

}  // namespace

Command doctor_command() {
  auto json = std::make_shared<bool>(false);
  return {"doctor",
          "Examine this installation: processor, memory, a program on its whole way, cache, "
          "devices, libraries, environment; and say what to do about what is wrong",
          {flag("--json", *json, "Print the findings as JSON")},
          [json](const Given&) { return run_doctor(*json); }};
}

}  // namespace relay::cli
