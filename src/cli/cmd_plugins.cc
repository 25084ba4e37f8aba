#include "cli/commands.h"
#include "cli/python.h"

namespace relay::cli {
namespace {

struct PluginsArgs {
  bool json = false;
  std::vector<std::string> libraries;
};

int run_plugins(const PluginsArgs& o) {
  std::vector<std::string> words;
  if (o.json) words.push_back("--json");
  words.push_back("--");
  words.insert(words.end(), o.libraries.begin(), o.libraries.end());
  return run_python("relay.plugins", "plug-ins are packages of Python", words);
}

}  // namespace

Command plugins_command() {
  auto o = std::make_shared<PluginsArgs>();
  return {"plugins",
          "List the packages that add operators, passes and patterns to Relay in Python, and what "
          "each adds when it is loaded; and what shared libraries add",
          {argument("FILE", o->libraries, "Shared libraries to load and list as well"),
           flag("--json", o->json, "Print the list as JSON")},
          [o](const Given&) { return run_plugins(*o); }};
}

}  // namespace relay::cli
