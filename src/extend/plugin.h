// Plug-ins: shared libraries that add operators, passes and rewrites by the C interface of include/relay/plugin.h.
#pragma once

#include <string>
#include <vector>

namespace relay::extend {

struct Plugin {
  std::string path;
  // What it added, in order.
  std::vector<std::string> operators;
  std::vector<std::string> passes;
};

// Loads the library, for the rest of the process, unless that was done. Throws UserError E1302 for a file that is no
// plug-in, E1303 for one of another version, E1304 when it says that it failed; then nothing of it is left.
Plugin load_plugin(const std::string& path);

// Those that are loaded, in order.
std::vector<Plugin> loaded_plugins();

}  // namespace relay::extend
