#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "base/codes/driver.h"
#include "cli/commands.h"

namespace relay::cli {
namespace {

struct Options {
  bool json = false;
  std::vector<std::string> libraries;
};

// Python beside this program, as in an environment, else the one that the shell finds.
std::string python() {
  std::error_code none;
  std::filesystem::path folder =
      std::filesystem::read_symlink("/proc/self/exe", none).parent_path();
  std::filesystem::path beside = folder / "python3";
  return access(beside.c_str(), X_OK) == 0 ? beside.string() : "python3";
}

UserError failed(const std::string& why) {
  return UserError(Diagnostic(codes::driver_file, {}, "plug-ins are packages of Python, and " + why)
                       .help("install the package relay in that Python, and use its command"));
}

// The Python program; if that Python has no Relay, it reports what this program passes to it.
constexpr const char* kProgram = R"(import sys
missing = sys.argv.pop(1)
try:
    from relay.plugins import main
except ModuleNotFoundError as error:
    if error.name != "relay":
        raise
    sys.stderr.write(missing)
    sys.exit(1)
sys.exit(main())
)";

int run(const Options& o) {
  std::fflush(stdout);
  std::string program = python(), option = "-c", json = "--json", code = kProgram;
  std::string missing = failed(program + " has no package relay").what();
  if (!missing.ends_with('\n')) missing += '\n';
  std::vector<char*> words = {program.data(), option.data(), code.data(), missing.data()};
  if (o.json) words.push_back(json.data());
  std::string end = "--";
  words.push_back(end.data());
  std::vector<std::string> libraries = o.libraries;
  for (std::string& library : libraries) words.push_back(library.data());
  words.push_back(nullptr);
  pid_t child = 0;
  if (int error = posix_spawnp(&child, words[0], nullptr, nullptr, words.data(), environ);
      error != 0)
    throw failed(program + " cannot be started: " + std::strerror(error));
  int status = 0;
  while (waitpid(child, &status, 0) < 0) {
    if (errno != EINTR)
      throw failed(std::string("it cannot be waited for: ") + std::strerror(errno));
  }
  if (WIFSIGNALED(status)) throw failed(program + " was stopped: " + strsignal(WTERMSIG(status)));
  return WEXITSTATUS(status);
}

}  // namespace

Command plugins_command() {
  auto o = std::make_shared<Options>();
  return {"plugins",
          "List the packages that add operators, passes and patterns to Relay in Python, and what "
          "each adds when it is loaded; and what shared libraries add",
          {argument("FILE", o->libraries, "Shared libraries to load and list as well"),
           flag("--json", o->json, "Print the list as JSON")},
          [o](const Given&) { return run(*o); }};
}

}  // namespace relay::cli
