#include "cli/plugins.h"

#include <memory>

#include "driver/compile.h"
#include "extend/plugin.h"

namespace relay::cli {

Command with_plugins(Command command) {
  auto paths = std::make_shared<std::vector<std::string>>();
  command.add({option("--plugin FILE", *paths,
                      "Load a shared library that adds operators, passes and rewrites; may be "
                      "repeated")});
  command.run = [paths, run = std::move(command.run)](const Given& given) {
    initialize();
    for (const std::string& path : *paths) extend::load_plugin(path);
    return run(given);
  };
  return command;
}

}  // namespace relay::cli
