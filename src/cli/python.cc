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

// The Python program; if that Python has no Relay, it reports what this program passes to it.
constexpr const char* kProgram = R"(import importlib, sys
name, missing = sys.argv.pop(1), sys.argv.pop(1)
try:
    module = importlib.import_module(name)
except ModuleNotFoundError as error:
    if error.name != "relay":
        raise
    sys.stderr.write(missing)
    sys.exit(1)
sys.exit(module.main())
)";

}  // namespace

int run_python(const std::string& module, const std::string& what,
               const std::vector<std::string>& words) {
  std::fflush(stdout);
  const std::string program = python();
  std::string missing = failed(what, program + " has no package relay").what();
  if (!missing.ends_with('\n')) missing += '\n';
  std::vector<std::string> all{program, "-c", kProgram, module, missing};
  all.insert(all.end(), words.begin(), words.end());
  std::vector<char*> pointers;
  for (std::string& word : all) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  pid_t child = 0;
  if (int error = posix_spawnp(&child, pointers[0], nullptr, nullptr, pointers.data(), environ);
      error != 0)
    throw failed(what, program + " cannot be started: " + std::strerror(error));
  int status = 0;
  while (waitpid(child, &status, 0) < 0) {
    if (errno != EINTR)
      throw failed(what, std::string("it cannot be waited for: ") + std::strerror(errno));
  }
  if (WIFSIGNALED(status))
    throw failed(what, program + " was stopped: " + strsignal(WTERMSIG(status)));
  return WEXITSTATUS(status);
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
