#include "cli/python.h"

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "base/codes/driver.h"
#include "base/diagnostic.h"
#include "cli/argument_vector.h"
#include "cli/memory_file.h"

namespace relay::cli {
namespace {

std::string python() {
  std::error_code none;
  std::filesystem::path folder =
      std::filesystem::read_symlink("/proc/self/exe", none).parent_path();
  std::filesystem::path beside = folder / "python3";
  return access(beside.c_str(), X_OK) == 0 ? beside.string() : "python3";
}

UserError failed(const std::string& what, const std::string& why) {
  return UserError(Diagnostic(codes::driver_file, {}, what + ", and " + why)
                       .help("install the package relay in that Python, and use its command"));
}

// The parts of the Python program. No module is imported from the working folder, which -c puts in front.
constexpr const char* kWithoutFolder = R"(import sys
if sys.path and sys.path[0] == "":
    del sys.path[0]
)";

// Signals end the process as they end a program in C.
constexpr const char* kSignals = R"(import signal
signal.signal(signal.SIGPIPE, signal.SIG_DFL)
if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.SIG_DFL)
)";

// If that Python has no Relay, or an older one without the module, it reports what this program passes to it.
constexpr const char* kMain = R"(import importlib
name, missing = sys.argv.pop(1), sys.argv.pop(1)
try:
    module = importlib.import_module(name)
except ModuleNotFoundError as error:
    if error.name not in ("relay", name):
        raise
    sys.stderr.write(missing)
    sys.exit(1)
sys.exit(module.main())
)";

// The words of the process that runs `main()` of the module, behind these lines.
std::vector<std::string> words_of(const std::string& lines, const std::string& module,
                                  const std::string& what, const std::vector<std::string>& words) {
  const std::string program = python();
  std::string missing =
      failed(what, program + " has no package relay with the module " + module).what();
  if (!missing.ends_with('\n')) missing += '\n';
  std::vector<std::string> out{program, "-c", kWithoutFolder + lines + kMain, module, missing};
  out.insert(out.end(), words.begin(), words.end());
  return out;
}

UserError not_started(const std::string& what, const std::string& program, int error) {
  return failed(what, program + " cannot be started: " + std::strerror(error));
}

}  // namespace

int run_python(const std::string& module, const std::string& what,
               const std::vector<std::string>& words) {
  std::fflush(stdout);
  std::vector<std::string> all = words_of("", module, what, words);
  const std::string& program = all[0];
  pid_t child = 0;
  if (int error =
          posix_spawnp(&child, program.c_str(), nullptr, nullptr, pointers_to(all).data(), environ);
      error != 0)
    throw not_started(what, program, error);
  int status = 0;
  while (waitpid(child, &status, 0) < 0) {
    if (errno != EINTR)
      throw failed(what, std::string("it cannot be waited for: ") + std::strerror(errno));
  }
  if (WIFSIGNALED(status))
    throw failed(what, program + " was stopped: " + strsignal(WTERMSIG(status)));
  return WEXITSTATUS(status);
}

void exec_python(const std::string& module, const std::string& what,
                 const std::vector<std::string>& words) {
  std::fflush(stdout);
  std::vector<std::string> all = words_of(kSignals, module, what, words);
  execvp(all[0].c_str(), pointers_to(all).data());
  throw not_started(what, all[0], errno);
}

void draw_figure(const std::string& report, const std::string& path) {
  MemoryFile given;
  given.append(report);
  if (run_python("relay._figure", "figures are drawn by Relay's Python package",
                 {given.path(), path}) == 0)
    return;
  throw UserError(
      Diagnostic(codes::driver_output, {},
                 "the figure '" + escape_for_terminal(path, 200) + "' was not written"));
}

}  // namespace relay::cli
