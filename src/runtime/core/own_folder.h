// Where the runtime is installed.
#pragma once

#include <string>

namespace relay::runtime {

// The folder of the library or program with this code, with a trailing slash; empty if the system does not report it.
std::string own_folder();

// A file of the package relay-targets: "librelay_targets.so", "aarch64-linux/relay-run". It is beside this library or
// program, or in the tree that it was built in. `mode` is what access() tests. Empty when there is none.
std::string find_in_targets(const std::string& name, int mode);

}  // namespace relay::runtime
