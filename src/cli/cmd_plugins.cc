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
};

// Python beside this program, as in an environment, else the one that the shell finds.
std::string python() {
  std::error_code none;
  std::filesystem::path folder =
      std::filesystem::read_symlink("/proc/self/exe", none).parent_path();
  std::filesystem::path beside = folder / "python3";
  return access(beside.c_str(), X_OK) == 0 ? beside.string() : "python3";
}

int run(const Options& o) {
  std::fflush(stdout);
  std::string program = python(), option = "-c", json = "--json";
  std::string code = "import sys; from relay.plugins import main; sys.exit(main())";
  char* words[] = {program.data(), option.data(), code.data(), o.json ? json.data() : nullptr,
                   nullptr};
  execvp(words[0], words);
  throw UserError(Diagnostic(codes::driver_file, {},
                             "plug-ins are packages of Python, and " + program +
                                 " cannot be started: " + std::strerror(errno))
                      .help("pip install relay, and its command"));
}

}  // namespace

Command plugins_command() {
  auto o = std::make_shared<Options>();
  return {"plugins",
          "List the packages that add operators, passes and patterns to Relay in Python, and what "
          "each adds when it is loaded",
          {flag("--json", o->json, "Print the list as JSON")},
          [o](const Given&) { return run(*o); }};
}

}  // namespace relay::cli
